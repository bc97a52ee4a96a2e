//! `/cancel` and `/flush`.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn a_canceled_job_is_removed_from_all_lists() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker
        .add_ids("work", &["running", "failed", "waiting"])
        .await;
    worker.pop_ids("work", 2).await;
    worker.fail("failed", "g").await;
    worker
        .add("work", json!({"id": "scheduled", "meta": 1, "delay": 9}))
        .await;
    // As an ID and as an item.
    assert_eq!(
        worker.post("/cancel", json!({"id": "running"})).await.ok(),
        "running"
    );
    for id in ["failed", "waiting", "scheduled"] {
        assert_eq!(worker.post("/cancel", json!(id)).await.ok(), id);
    }
    for id in ["running", "failed", "waiting", "scheduled"] {
        worker
            .get(&format!("/job/{id}"))
            .await
            .assert_rejected(404, "no_such_job");
        worker
            .post("/heartbeat", json!(id))
            .await
            .assert_rejected(404, "no_such_job");
        let done = worker
            .post("/complete/work", json!({"id": id, "meta": 1}))
            .await;
        done.assert_rejected(404, "no_such_job");
    }
    assert_eq!(worker.get("/failed").await.ok(), json!({}));
    assert_eq!(
        worker.get("/worker/w").await.ok(),
        json!({"jobs": [], "stalled": []})
    );
    let queue = worker.get("/queue/work").await.ok();
    for state in [
        "waiting",
        "running",
        "stalled",
        "scheduled",
        "depends",
        "length",
    ] {
        assert_eq!(queue[state], 0, "{state}");
    }
    assert_eq!(worker.at(1000).pop("work").await, Value::Null);
}

#[tokio::test]
async fn canceling_an_array_ignores_unknown_ids() {
    let server = Server::start();
    server.client().add_ids("work", &["a", "b", "c"]).await;
    let response = server
        .client()
        .post("/cancel", json!(["a", "nope", "b"]))
        .await;
    assert_eq!(response.ok(), json!(["a", "nope", "b"]));
    assert_eq!(server.client().peek_ids("work").await, ["c"]);
}

#[tokio::test]
async fn canceling_a_complete_job_is_rejected_for_the_whole_array() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker.complete("work", "a").await;
    worker.add_ids("work", &["b"]).await;
    assert_eq!(
        worker
            .post("/cancel", json!("a"))
            .await
            .assert_rejected(409, "already_complete")["id"],
        "a"
    );
    let response = worker.post("/cancel", json!(["b", "a"])).await;
    assert_eq!(response.assert_rejected(409, "already_complete")["id"], "a");
    assert_eq!(worker.state("a").await, "complete");
    assert_eq!(worker.state("b").await, "waiting");
}

#[tokio::test]
async fn a_job_with_dependents_is_canceled_only_together_with_them() {
    let server = Server::start();
    let who = server.at(0);
    who.add_ids("work", &["a", "x"]).await;
    who.add("work", json!({"id": "b", "meta": 1, "depends": ["a"]}))
        .await;
    who.add("work", json!({"id": "c", "meta": 1, "depends": ["b"]}))
        .await;
    let refused = who
        .post("/cancel", json!("a"))
        .await
        .assert_rejected(409, "has_dependents");
    assert_eq!(
        (&refused["id"], &refused["dependents"]),
        (&json!("a"), &json!(["b"]))
    );
    let refused = who
        .post("/cancel", json!(["x", "a", "b"]))
        .await
        .assert_rejected(409, "has_dependents");
    assert_eq!(
        (&refused["id"], &refused["dependents"]),
        (&json!("b"), &json!(["c"]))
    );
    for id in ["a", "b", "c", "x"] {
        who.job(id).await;
    }
    // The whole chain, in any order; or starting with its last job.
    assert_eq!(who.post("/cancel", json!("c")).await.ok(), "c");
    assert_eq!(who.job("b").await["dependents"], json!([]));
    who.add("work", json!({"id": "c", "meta": 1, "depends": ["b"]}))
        .await;
    assert_eq!(
        who.post("/cancel", json!(["b", "c", "a"])).await.ok(),
        json!(["b", "c", "a"])
    );
    assert_eq!(who.peek_ids("work").await, ["x"]);
}

/// A chain that is longer than a transaction, starting with its first job.
#[tokio::test]
async fn a_long_chain_is_canceled_completely_or_not_at_all() {
    const JOBS: usize = 1_200;
    let server = Server::start();
    let who = server.at(0);
    let ids: Vec<String> = (0..JOBS).map(|n| format!("j{n}")).collect();
    let items = (0..JOBS).map(|n| match n {
        0 => json!({"id": "j0", "meta": 1}),
        n => json!({"id": ids[n], "meta": 1, "depends": [ids[n - 1]]}),
    });
    let items: Vec<Value> = items.collect();
    who.post("/add/work", items.into()).await.ok();
    let last = JOBS - 1;
    let refused = who.post("/cancel", json!(ids[..last])).await;
    let refused = refused.assert_rejected(409, "has_dependents");
    assert_eq!(refused["dependents"], json!([ids[last]]));
    assert_eq!(who.pop_ids("work", 2).await, ["j0"]);
    who.complete("work", "j0").await;
    who.post("/cancel", json!(ids))
        .await
        .assert_rejected(409, "already_complete");
    for id in ["j1", "j600", "j1199"] {
        who.job(id).await;
    }
    who.post("/cancel", json!(ids[1..])).await.ok();
    for id in &ids[1..] {
        who.get(&format!("/job/{id}"))
            .await
            .assert_rejected(404, "no_such_job");
    }
}

#[tokio::test]
async fn an_invalid_cancel_is_rejected() {
    let server = Server::start();
    server.client().add_ids("work", &["a"]).await;
    for data in [
        json!({}),
        json!({"id": 1}),
        json!(""),
        json!(["a", 17]),
        json!(["a", ""]),
    ] {
        server
            .client()
            .post("/cancel", data)
            .await
            .assert_rejected(400, "bad_request");
    }
    assert_eq!(server.client().state("a").await, "waiting");
}

#[tokio::test]
async fn flush_is_rejected_unless_enabled() {
    let server = Server::start();
    server.client().add_ids("work", &["a"]).await;
    server
        .client()
        .post("/flush", Value::Null)
        .await
        .assert_rejected(403, "not_enabled");
    assert_eq!(server.client().state("a").await, "waiting");
}

#[tokio::test]
async fn flush_deletes_everything() {
    let server = Server::with(&["--trust-client-clock", "--allow-flush"]);
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b", "c", "d"]).await;
    worker.pop_ids("work", 3).await;
    worker.fail("a", "g").await;
    worker.complete("work", "b").await;
    worker
        .add("work", json!({"id": "e", "meta": 1, "depends": ["d"]}))
        .await;
    assert_eq!(worker.post("/flush", Value::Null).await.ok(), true);
    assert_eq!(worker.get("/queues").await.ok(), json!([]));
    assert_eq!(worker.get("/workers").await.ok(), json!([]));
    assert_eq!(worker.get("/failed").await.ok(), json!({}));
    assert_eq!(worker.get("/jobs/complete").await.ok(), json!([]));
    for id in ["a", "b", "c", "d", "e"] {
        worker
            .get(&format!("/job/{id}"))
            .await
            .assert_rejected(404, "no_such_job");
    }
    // The server works as on a new database.
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker.complete("work", "a").await;
    let queues = worker.get("/queues").await.ok();
    assert_eq!(queues.as_array().map(Vec::len), Some(1));
    assert_eq!(queues[0]["waiting"], 0);
}
