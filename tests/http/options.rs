//! `/config`, and the effects of the options.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Response, Server};

async fn set(server: &Server, option: &str, value: Value) -> Response {
    let body = json!({ "data": value }).to_string();
    server
        .send(Method::PUT, &format!("/config/{option}"), Some(body))
        .await
}

#[tokio::test]
async fn options_have_defaults_until_they_are_set() {
    let server = Server::start();
    let client = server.client();
    let all = client.get("/config").await.ok();
    for (option, value) in [
        ("heartbeat", 60),
        ("stats-history", 30),
        ("histogram-history", 7),
        ("jobs-history", 604_800),
        ("jobs-history-count", 50_000),
        ("max-worker-age", 86_400),
    ] {
        assert_eq!(all[option], value, "{option}");
        assert_eq!(client.get(&format!("/config/{option}")).await.ok(), value);
    }
    assert_eq!(set(&server, "heartbeat", json!(300)).await.ok(), 300);
    assert_eq!(client.get("/config/heartbeat").await.ok(), 300);
    assert_eq!(client.get("/config").await.ok()["heartbeat"], 300);
    assert_eq!(
        set(&server, "heartbeat", json!(null)).await.ok(),
        json!(null)
    );
    assert_eq!(client.get("/config/heartbeat").await.ok(), 60);
}

#[tokio::test]
async fn unknown_options_are_kept_unchanged() {
    let server = Server::start();
    let client = server.client();
    let unknown = client
        .get("/config/colour")
        .await
        .assert_rejected(404, "no_such_option");
    assert_eq!(unknown["option"], "colour");
    let value = json!({"of": ["the", "shed", 1.5]});
    assert_eq!(set(&server, "colour", value.clone()).await.ok(), value);
    assert_eq!(client.get("/config/colour").await.ok(), value);
    let unset = server.send(Method::DELETE, "/config/colour", None).await;
    assert_eq!(unset.checked().ok(), true);
    client
        .get("/config/colour")
        .await
        .assert_rejected(404, "no_such_option");
}

#[tokio::test]
async fn known_options_must_be_numbers() {
    let server = Server::start();
    for option in [
        "heartbeat",
        "work-heartbeat",
        "heartbeat-work",
        "jobs-history",
        "work-cutoff",
    ] {
        set(&server, option, json!("soon"))
            .await
            .assert_rejected_field("data");
    }
    server
        .send(Method::PUT, "/config/heartbeat", Some("{}".to_owned()))
        .await
        .assert_rejected_field("data");
}

#[tokio::test]
async fn a_queue_heartbeat_can_be_set_by_either_name() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    set(&server, "heartbeat", json!(10)).await.ok();
    set(&server, "a-heartbeat", json!(20)).await.ok();
    set(&server, "heartbeat-b", json!(30.5)).await.ok();
    for (queue, seconds) in [("a", json!(20)), ("b", json!(30.5)), ("c", json!(10))] {
        worker.add_ids(queue, &[queue]).await;
        let job = worker.pop(queue).await;
        assert_eq!(job["heartbeat"], seconds);
        assert_eq!(job["expires"], seconds);
        let beat = worker.at(5).post("/heartbeat", json!(queue)).await.ok();
        assert_eq!(beat, seconds);
    }
}

#[tokio::test]
async fn a_negative_heartbeat_creates_an_expired_lease() {
    let server = Server::start();
    let worker = server.by("w").at(100);
    set(&server, "heartbeat", json!(-10)).await.ok();
    worker.add_ids("work", &["a"]).await;
    let job = worker.pop("work").await;
    assert_eq!(
        (&job["state"], &job["expires"]),
        (&json!("running"), &json!(90))
    );
    assert_eq!(worker.get("/jobs/stalled/work").await.ok(), json!(["a"]));
    assert_eq!(server.by("other").at(100).pop("work").await["id"], "a");
}

#[tokio::test]
async fn no_heartbeat_extends_a_lease_beyond_the_cutoff() {
    let server = Server::start();
    let worker = server.by("w");
    set(&server, "work-cutoff", json!(100)).await.ok();
    worker.at(0).add_ids("work", &["a"]).await;
    let job = worker.at(0).pop("work").await;
    assert_eq!(
        (&job["heartbeat"], &job["cutoff"]),
        (&json!(60), &json!(100))
    );
    assert_eq!(worker.at(30).post("/heartbeat", json!("a")).await.ok(), 60);
    assert_eq!(worker.at(50).post("/heartbeat", json!("a")).await.ok(), 50);
    assert_eq!(worker.at(90).post("/heartbeat", json!("a")).await.ok(), 10);
    assert_eq!(server.by("other").at(100).pop("work").await["id"], "a");
}

#[tokio::test]
async fn complete_jobs_are_deleted_by_age_and_by_number() {
    let server = Server::start();
    let worker = server.by("w");
    set(&server, "jobs-history", json!(100)).await.ok();
    for (now, id) in [(0, "a"), (50, "b"), (100, "c")] {
        worker
            .at(now)
            .add_and_pop(json!({"id": id, "meta": 1}))
            .await;
        worker.at(now).complete("work", id).await;
    }
    assert_eq!(
        worker.at(100).get("/jobs/complete").await.ok(),
        json!(["c", "b"])
    );
    worker
        .at(100)
        .get("/job/a")
        .await
        .assert_rejected(404, "no_such_job");
    set(&server, "jobs-history-count", json!(1)).await.ok();
    worker
        .at(101)
        .add_and_pop(json!({"id": "d", "meta": 1}))
        .await;
    worker.at(101).complete("work", "d").await;
    assert_eq!(
        worker.at(101).get("/jobs/complete").await.ok(),
        json!(["d"])
    );
    set(&server, "jobs-history", json!(-1)).await.ok();
    worker
        .at(102)
        .add_and_pop(json!({"id": "e", "meta": 1}))
        .await;
    worker.at(102).complete("work", "e").await;
    assert_eq!(worker.at(102).get("/jobs/complete").await.ok(), json!([]));
}

#[tokio::test]
async fn options_survive_a_restart_and_are_deleted_by_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("switchyard.db");
    let server = Server::on(&database, &["--allow-flush"]);
    set(&server, "work-heartbeat", json!(7)).await.ok();
    server.stop().await;
    let server = Server::on(&database, &["--allow-flush"]);
    assert_eq!(server.client().get("/config/work-heartbeat").await.ok(), 7);
    server.client().post("/flush", json!(null)).await.ok();
    server
        .client()
        .get("/config/work-heartbeat")
        .await
        .assert_rejected(404, "no_such_option");
}
