//! `/queues` and `/queue`.

use serde_json::{Value, json};

use crate::support::Server;

fn names(queues: &Value) -> Vec<&str> {
    queues
        .as_array()
        .unwrap()
        .iter()
        .map(|queue| queue["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn queues_are_listed_by_creation_then_by_name() {
    let server = Server::start();
    assert_eq!(server.client().get("/queues").await.ok(), json!([]));
    server.at(5).add_ids("beta", &["a"]).await;
    server.at(5).add_ids("alpha", &["b"]).await;
    server.at(1).add_ids("zeta", &["c"]).await;
    server.at(9).add_ids("aaa", &["d"]).await;
    server.at(0).add_ids("beta", &["e"]).await;
    let queues = server.at(9).get("/queues").await.ok();
    assert_eq!(names(&queues), ["zeta", "alpha", "beta", "aaa"]);
}

#[tokio::test]
async fn a_queue_exists_from_its_first_job_on() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.pop("popped").await;
    worker.get("/peek/peeked").await.ok();
    worker.get("/queue/looked-at").await.ok();
    worker.post("/add/empty", json!([])).await.ok();
    worker
        .post("/add/refused", json!({"id": 1, "meta": 1}))
        .await
        .assert_rejected_field("id");
    assert_eq!(worker.get("/queues").await.ok(), json!([]));
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker
        .post(
            "/complete/work",
            json!({"id": "a", "meta": 1, "next": "after"}),
        )
        .await
        .ok();
    let queues = worker.get("/queues").await.ok();
    assert_eq!(names(&queues), ["after", "work"]);
}

#[tokio::test]
async fn a_queue_counts_its_jobs_by_state() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_ids("work", &["s", "r1", "r2", "x", "f", "w1", "w2"])
        .await;
    worker.at(0).pop("work").await;
    worker.at(30).pop_ids("work", 4).await;
    worker.at(30).complete("work", "x").await;
    worker.at(30).fail("f", "g").await;
    worker
        .at(30)
        .add("work", json!({"id": "due", "meta": 1, "delay": 10}))
        .await;
    worker
        .at(30)
        .add("work", json!({"id": "later", "meta": 1, "delay": 100}))
        .await;
    worker
        .at(30)
        .add("work", json!({"id": "held", "meta": 1, "depends": ["w1"]}))
        .await;
    let queue = worker.at(61).get("/queue/work").await.ok();
    for (key, count) in [
        ("name", json!("work")),
        ("waiting", json!(3)),
        ("running", json!(2)),
        ("stalled", json!(1)),
        ("scheduled", json!(1)),
        ("depends", json!(1)),
        ("recurring", json!(0)),
        ("paused", json!(false)),
    ] {
        assert_eq!(queue[key], count, "{key}: {queue}");
    }
    assert!(queue["length"].is_u64(), "{queue}");
    let queues = worker.at(61).get("/queues").await.ok();
    assert_eq!(
        queues,
        json!([queue]),
        "the list and the single queue agree"
    );
}

#[tokio::test]
async fn the_length_of_a_queue_counts_waiting_running_and_scheduled_jobs() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b"]).await;
    worker.pop("work").await;
    worker
        .add("work", json!({"id": "c", "meta": 1, "delay": 10}))
        .await;
    assert_eq!(worker.get("/queue/work").await.ok()["length"], 3);
}

#[tokio::test]
async fn an_unknown_queue_is_empty() {
    let server = Server::start();
    let queue = server.client().get("/queue/nowhere").await.ok();
    let expected = json!({"name": "nowhere", "waiting": 0, "running": 0, "stalled": 0, "scheduled": 0,
                          "depends": 0, "recurring": 0, "paused": false, "length": 0});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(queue.get(key), Some(value), "{key}");
    }
    assert_eq!(server.client().get("/queues").await.ok(), json!([]));
}
