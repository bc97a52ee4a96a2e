//! `/pause` and `/unpause`.

use serde_json::{Value, json};

use crate::support::Server;

async fn pause(server: &Server, queue: &str) {
    let path = format!("/pause/{queue}");
    let response = server.at(0).post_whole(&path, json!({})).await;
    assert_eq!(response.ok(), true);
}

async fn unpause(server: &Server, queue: &str) {
    let path = format!("/unpause/{queue}");
    let response = server.at(0).post_whole(&path, json!({})).await;
    assert_eq!(response.ok(), true);
}

#[tokio::test]
async fn a_paused_queue_gives_out_no_jobs_until_unpaused() {
    let server = Server::start();
    let worker = server.by("w");
    worker.at(0).add_ids("work", &["lost", "a", "b"]).await;
    worker.at(0).add_ids("other", &["c"]).await;
    worker.at(0).pop("work").await;
    pause(&server, "work").await;
    pause(&server, "work").await;
    // Not even jobs whose lease has expired.
    for now in [1, 100] {
        assert_eq!(worker.at(now).pop("work").await, Value::Null);
        let many = worker.at(now).get("/get/work/10").await.ok();
        assert_eq!(many, json!([]));
    }
    assert_eq!(worker.at(1).job("lost").await["remaining"], 5);
    assert_eq!(worker.at(1).pop("other").await["id"], "c");
    unpause(&server, "work").await;
    assert_eq!(worker.at(100).pop_ids("work", 10).await, ["lost", "a", "b"]);
    unpause(&server, "work").await;
    worker.at(100).complete("work", "a").await;
}

#[tokio::test]
async fn everything_but_claims_works_on_a_paused_queue() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b", "c", "d"]).await;
    worker.pop_ids("work", 4).await;
    pause(&server, "work").await;
    assert_eq!(worker.post("/heartbeat", json!("a")).await.ok(), 60);
    worker.complete("work", "a").await;
    worker.fail("b", "g").await;
    worker.post("/retry/work", json!({"id": "c"})).await.ok();
    let on = json!({"id": "d", "meta": 1, "next": "work"});
    worker.post("/complete/work", on).await.ok();
    worker.add_ids("work", &["e"]).await;
    let back = json!({"group": "g"});
    assert_eq!(worker.post("/unfail/work", back).await.ok(), 1);
    let mut there = worker.peek_ids("work").await;
    assert_eq!(worker.get("/jobs/waiting/work").await.ok(), json!(there));
    there.sort_unstable();
    assert_eq!(there, ["b", "c", "d", "e"]);
    assert_eq!(worker.pop("work").await, Value::Null);
}

#[tokio::test]
async fn a_queue_shows_whether_it_is_paused() {
    let server = Server::start();
    let who = server.at(0);
    who.add_ids("work", &["a"]).await;
    who.add_ids("other", &["b"]).await;
    let paused = async || {
        let queues = who.get("/queues").await.ok();
        json!([
            who.get("/queue/work").await.ok()["paused"],
            who.get("/queue/other").await.ok()["paused"],
            queues[0]["paused"],
            queues[1]["paused"],
        ])
    };
    // Sorted by name, because both queues were created at 0 s: `other` is before `work`.
    assert_eq!(paused().await, json!([false, false, false, false]));
    pause(&server, "work").await;
    assert_eq!(paused().await, json!([true, false, false, true]));
    assert_eq!(who.get("/queue/work").await.ok()["waiting"], 1);
    unpause(&server, "work").await;
    assert_eq!(paused().await, json!([false, false, false, false]));
}

#[tokio::test]
async fn an_unknown_queue_can_be_paused() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    unpause(&server, "new").await;
    pause(&server, "new").await;
    assert_eq!(worker.get("/queue/new").await.ok()["paused"], true);
    assert_eq!(worker.get("/queues").await.ok(), json!([]));
    worker.add_ids("new", &["a"]).await;
    assert_eq!(worker.pop("new").await, Value::Null);
    unpause(&server, "new").await;
    assert_eq!(worker.pop("new").await["id"], "a");
}

#[tokio::test]
async fn a_claim_on_a_paused_queue_does_not_list_the_worker() {
    let server = Server::start();
    server.at(0).add_ids("work", &["a"]).await;
    pause(&server, "work").await;
    server.by("w").at(0).pop("work").await;
    assert_eq!(server.at(0).get("/workers").await.ok(), json!([]));
    unpause(&server, "work").await;
    server.by("w").at(0).pop("work").await;
    assert_eq!(server.at(0).get("/workers").await.ok()[0]["name"], "w");
}

#[tokio::test]
async fn a_pause_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("jobs.db");
    let server = Server::on(&database, &["--trust-client-clock"]);
    server.at(0).add_ids("work", &["a"]).await;
    pause(&server, "work").await;
    server.stop().await;
    let server = Server::on(&database, &["--trust-client-clock"]);
    assert_eq!(server.at(0).pop("work").await, Value::Null);
    unpause(&server, "work").await;
    assert_eq!(server.at(0).pop("work").await["id"], "a");
}
