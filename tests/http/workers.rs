//! `/workers` and `/worker`.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn workers_are_listed_by_their_last_request() {
    let server = Server::start();
    assert_eq!(server.client().get("/workers").await.ok(), json!([]));
    server.at(0).add_ids("work", &["a", "b", "c"]).await;
    server.by("first").at(1).pop_ids("work", 2).await;
    server.by("second").at(2).pop("work").await;
    // A worker that gets no job is listed, too.
    server.by("idle").at(3).pop("nowhere").await;
    let expected = json!([
        {"name": "idle", "jobs": 0, "stalled": 0},
        {"name": "second", "jobs": 1, "stalled": 0},
        {"name": "first", "jobs": 2, "stalled": 0},
    ]);
    assert_eq!(server.at(3).get("/workers").await.ok(), expected);
    // A heartbeat counts as a request; one lease of `first` has expired by then, and that of `second`.
    server
        .by("first")
        .at(10)
        .post("/heartbeat", json!("b"))
        .await
        .ok();
    let expected = json!([
        {"name": "first", "jobs": 1, "stalled": 1},
        {"name": "idle", "jobs": 0, "stalled": 0},
        {"name": "second", "jobs": 0, "stalled": 1},
    ]);
    assert_eq!(server.at(62).get("/workers").await.ok(), expected);
}

#[tokio::test]
async fn a_worker_lists_its_jobs_latest_expiry_first() {
    let server = Server::start();
    server.at(0).add_ids("work", &["a", "b", "c", "d"]).await;
    let worker = server.by("w");
    for now in 0..4 {
        worker.at(now).pop("work").await;
    }
    assert_eq!(
        server.at(5).get("/worker/w").await.ok(),
        json!({"jobs": ["d", "c", "b", "a"], "stalled": []})
    );
    assert_eq!(
        server.at(61).get("/worker/w").await.ok(),
        json!({"jobs": ["d", "c"], "stalled": ["b", "a"]})
    );
    worker.at(62).post("/heartbeat", json!("a")).await.ok();
    assert_eq!(
        server.at(62).get("/worker/w").await.ok(),
        json!({"jobs": ["a", "d"], "stalled": ["c", "b"]})
    );
}

#[tokio::test]
async fn an_unknown_worker_has_no_jobs() {
    let server = Server::start();
    let worker = server.client().get("/worker/nobody").await.ok();
    assert_eq!(worker, json!({"jobs": [], "stalled": []}));
    assert_eq!(server.client().get("/workers").await.ok(), json!([]));
}

#[tokio::test]
async fn every_way_to_end_a_job_removes_it_from_its_worker() {
    let server = Server::start();
    let worker = server.by("w");
    let ids = [
        "taken-over",
        "completed",
        "failed",
        "retried",
        "cancelled",
        "put",
    ];
    worker.at(0).add_ids("work", &ids).await;
    worker.at(0).pop("work").await;
    worker.at(1).pop_ids("work", 10).await;
    worker.at(1).complete("work", "completed").await;
    worker.at(1).fail("failed", "g").await;
    worker
        .at(1)
        .post("/retry/work", json!({"id": "retried", "delay": 1000}))
        .await
        .ok();
    worker.at(1).post("/cancel", json!("cancelled")).await.ok();
    worker
        .at(1)
        .add("work", json!({"id": "put", "meta": 1, "delay": 1000}))
        .await;
    assert_eq!(
        server.at(2).get("/worker/w").await.ok(),
        json!({"jobs": ["taken-over"], "stalled": []})
    );
    server.by("v").at(60).pop("work").await;
    assert_eq!(
        server.at(60).get("/worker/w").await.ok(),
        json!({"jobs": [], "stalled": []})
    );
    assert_eq!(
        server.at(60).get("/worker/v").await.ok(),
        json!({"jobs": ["taken-over"], "stalled": []})
    );
}

#[tokio::test]
async fn a_worker_without_requests_for_a_day_is_forgotten() {
    let server = Server::start();
    server.by("w").at(0).pop("work").await;
    let list = async |now: i32| server.at(now).get("/workers").await.ok();
    assert_eq!(list(86_399).await[0]["name"], "w");
    assert_eq!(list(86_400).await, json!([]));
}

#[tokio::test]
async fn with_client_clocks_the_last_request_can_be_earlier() {
    let server = Server::start();
    for (now, worker) in [(1000, "early"), (500, "late"), (10, "early")] {
        let worker = server.by(worker).at(now);
        worker.add("work", json!({"meta": now})).await;
        worker.pop("work").await;
    }
    let names = |workers: Value| {
        let workers = workers.as_array().unwrap().clone();
        workers
            .iter()
            .map(|worker| worker["name"].clone())
            .collect::<Vec<_>>()
    };
    let workers = server.at(600).get("/workers").await.ok();
    assert_eq!(names(workers), ["late", "early"]);
}
