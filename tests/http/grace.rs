//! The option `grace-period`: when a lease expires, the worker is warned before the job can be claimed again.

use serde_json::{Value, json};

use crate::support::Server;

/// A server with a grace period of 10 s, where `w` has a lease on the job `a` of the queue `work` until 60 s.
async fn with_grace(item: Value) -> Server {
    let server = Server::start();
    server.client().set("grace-period", json!(10)).await.ok();
    let mut job = item;
    job["id"] = "a".into();
    job["meta"] = 1.into();
    server.by("w").at(0).add_and_pop(job).await;
    server
}

async fn history(server: &Server) -> Vec<String> {
    let job = server.at(0).job("a").await;
    let history = job["history"].as_array().unwrap().iter();
    history
        .map(|entry| entry["what"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_first_claim_after_an_expired_lease_only_warns() {
    let server = with_grace(json!({})).await;
    let other = server.by("v");
    assert_eq!(other.at(59).pop("work").await, Value::Null);
    assert_eq!(history(&server).await, ["put", "popped"]);
    assert_eq!(other.at(60).pop("work").await, Value::Null);
    let job = server.at(60).job("a").await;
    assert_eq!(
        json!([
            job["state"],
            job["worker"],
            job["expires"],
            job["remaining"]
        ]),
        json!(["running", "w", 70, 5])
    );
    assert_eq!(history(&server).await, ["put", "popped", "timed-out"]);
    assert_eq!(
        server.at(60).get("/worker/w").await.ok(),
        json!({"jobs": [], "stalled": []})
    );
    for now in [61.0, 69.9] {
        assert_eq!(other.at(now).pop("work").await, Value::Null, "{now}");
    }
    let job = other.at(70).pop("work").await;
    assert_eq!(
        json!([job["id"], job["worker"], job["expires"], job["remaining"]]),
        json!(["a", "v", 130, 4])
    );
    let all = ["put", "popped", "timed-out", "popped"];
    assert_eq!(history(&server).await, all, "timed out only once");
    let stats = server.at(70).get("/stats/work").await.ok();
    assert_eq!(stats["retries"], 1);
}

#[tokio::test]
async fn the_grace_period_starts_with_the_warning() {
    let server = with_grace(json!({})).await;
    let other = server.by("v");
    assert_eq!(other.at(1000).pop("work").await, Value::Null);
    assert_eq!(other.at(1009).pop("work").await, Value::Null);
    assert_eq!(other.at(1010).pop("work").await["id"], "a");
}

#[tokio::test]
async fn a_warning_does_not_count_as_a_job_of_the_claim() {
    let server = with_grace(json!({})).await;
    server.at(1).add_ids("work", &["b", "c"]).await;
    let other = server.by("v");
    assert_eq!(other.at(60).pop("work").await["id"], "b");
    assert_eq!(history(&server).await, ["put", "popped", "timed-out"]);
    assert_eq!(other.at(60).pop_ids("work", 10).await, ["c"]);
    assert_eq!(other.at(70).pop_ids("work", 10).await, ["a"]);
}

#[tokio::test]
async fn during_the_grace_period_the_job_belongs_to_its_worker() {
    for (path, data, state) in [
        ("/complete/work", json!({"id": "a", "meta": 2}), "complete"),
        (
            "/fail",
            json!({"id": "a", "group": "g", "message": "m"}),
            "failed",
        ),
        ("/retry/work", json!({"id": "a"}), "waiting"),
        ("/heartbeat", json!("a"), "running"),
    ] {
        let server = with_grace(json!({})).await;
        assert_eq!(server.by("v").at(60).pop("work").await, Value::Null);
        let other = server.by("v").at(65).post(path, data.clone()).await;
        assert_eq!(
            other.assert_rejected(409, "wrong_worker")["worker"],
            "w",
            "{path}"
        );
        server.by("w").at(65).post(path, data).await.ok();
        assert_eq!(server.at(65).state("a").await, state, "{path}");
    }
}

#[tokio::test]
async fn a_heartbeat_within_the_grace_period_renews_the_lease() {
    let server = with_grace(json!({})).await;
    let (worker, other) = (server.by("w"), server.by("v"));
    other.at(60).pop("work").await;
    assert_eq!(worker.at(65).post("/heartbeat", json!("a")).await.ok(), 60);
    assert_eq!(server.at(65).job("a").await["expires"], 125);
    assert_eq!(
        server.at(65).get("/worker/w").await.ok(),
        json!({"jobs": ["a"], "stalled": []})
    );
    assert_eq!(other.at(124).pop("work").await, Value::Null);
    assert_eq!(server.at(124).job("a").await["remaining"], 5);
}

#[tokio::test]
async fn a_job_without_retries_left_fails_after_the_grace_period() {
    let server = with_grace(json!({"retries": 0})).await;
    let other = server.by("v");
    assert_eq!(other.at(60).pop("work").await, Value::Null);
    assert_eq!(server.at(60).state("a").await, "running");
    assert_eq!(server.at(60).get("/failed").await.ok(), json!({}));
    assert_eq!(other.at(70).pop("work").await, Value::Null);
    let job = server.at(70).job("a").await;
    assert_eq!(
        json!([job["state"], job["remaining"], job["failure"]["worker"]]),
        json!(["failed", -1, "w"])
    );
}

#[tokio::test]
async fn a_new_lease_gets_a_new_warning() {
    let server = with_grace(json!({})).await;
    let (one, other) = (server.by("one"), server.by("other"));
    one.at(60).pop("work").await;
    assert_eq!(one.at(70).pop("work").await["id"], "a");
    assert_eq!(other.at(130).pop("work").await, Value::Null);
    assert_eq!(server.at(130).job("a").await["worker"], "one");
    let job = other.at(140).pop("work").await;
    assert_eq!((&job["id"], &job["remaining"]), (&json!("a"), &json!(3)));
}

#[tokio::test]
async fn the_warning_is_an_event() {
    let server = with_grace(json!({})).await;
    server.at(0).post("/track", json!("a")).await.ok();
    let channels_of_events = async || -> Vec<String> {
        let page = server.at(0).get("/events?limit=10000").await.ok();
        let events = page["events"].as_array().unwrap().iter();
        let channels = events.map(|event| event["channel"].as_str().unwrap());
        let of_interest = channels.filter(|channel| ["stalled", "w:w", "popped"].contains(channel));
        of_interest.map(str::to_owned).collect()
    };
    assert_eq!(channels_of_events().await, [""; 0]);
    server.by("v").at(60).pop("work").await;
    assert_eq!(channels_of_events().await, ["stalled", "w:w"]);
    server.by("v").at(70).pop("work").await;
    assert_eq!(
        channels_of_events().await,
        ["stalled", "w:w", "popped"],
        "not twice"
    );
}

#[tokio::test]
async fn peek_does_not_warn() {
    let server = with_grace(json!({})).await;
    server.at(60).peek_ids("work").await;
    assert_eq!(history(&server).await, ["put", "popped"]);
    assert_eq!(server.at(60).job("a").await["expires"], 60);
}

#[tokio::test]
async fn without_the_option_there_is_no_grace_period() {
    let server = Server::start();
    assert_eq!(server.at(0).get("/config/grace-period").await.ok(), 0);
    let no_number = server.at(0).set("grace-period", json!("long")).await;
    no_number.assert_rejected_field("data");
    server
        .by("w")
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    assert_eq!(server.by("v").at(60).pop("work").await["id"], "a");
    let all = ["put", "popped", "timed-out", "popped"];
    assert_eq!(history(&server).await, all);
}
