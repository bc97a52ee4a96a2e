//! `/priority`, and `/jobs?id=`, which shows the effect on several jobs.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn changing_the_priority_moves_a_waiting_job() {
    let server = Server::start();
    let client = server.by("w");
    for (now, id) in [(1, "a"), (2, "b"), (3, "c")] {
        client
            .at(now)
            .add("work", json!({"id": id, "meta": 1}))
            .await;
    }
    let set = client
        .at(9)
        .post("/priority", json!({"id": "c", "priority": -1}))
        .await;
    assert_eq!(set.ok(), -1);
    assert_eq!(client.at(9).peek_ids("work").await, ["c", "a", "b"]);
    client
        .at(9)
        .post("/priority", json!({"id": "a", "priority": -1}))
        .await
        .ok();
    assert_eq!(client.at(9).peek_ids("work").await, ["a", "c", "b"]);
    let set = client
        .at(9)
        .post("/priority", json!({"id": "a", "priority": 0.25}))
        .await;
    assert_eq!(set.ok(), 0.25);
    assert_eq!(client.at(9).peek_ids("work").await, ["c", "b", "a"]);
}

#[tokio::test]
async fn a_job_that_does_not_wait_keeps_the_new_priority() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker.add_ids("work", &["b"]).await;
    worker
        .post("/priority", json!({"id": "a", "priority": 5}))
        .await
        .ok();
    assert_eq!(worker.job("a").await["state"], "running");
    worker.post("/retry/work", json!({"id": "a"})).await.ok();
    assert_eq!(worker.peek_ids("work").await, ["b", "a"]);
}

#[tokio::test]
async fn invalid_priorities_are_rejected_individually() {
    let server = Server::start();
    let client = server.by("w").at(0);
    client.add_ids("work", &["a"]).await;
    let unknown = client
        .post("/priority", json!({"id": "x", "priority": 1}))
        .await;
    assert_eq!(unknown.assert_rejected(404, "no_such_job")["id"], "x");
    client
        .post("/priority", json!({"id": "a"}))
        .await
        .assert_rejected_field("priority");
    client
        .post("/priority", json!({"id": "a", "priority": "high"}))
        .await
        .assert_rejected_field("priority");
    client
        .post("/priority", json!({"priority": 1}))
        .await
        .assert_rejected_field("id");
    let items = json!([{"id": "a", "priority": 2}, {"id": "x", "priority": 1}, {"id": "a"}]);
    let response = client.post("/priority", items).await.whole();
    assert_eq!(response["results"], json!([2, false, false]));
    assert_eq!(response["errors"][0], json!(null));
    assert_eq!(response["errors"][1]["code"], "no_such_job");
    assert_eq!(response["errors"][2]["field"], "priority");
}

#[tokio::test]
async fn jobs_by_id_are_returned_in_the_requested_order() {
    let server = Server::start();
    let client = server.by("w").at(0);
    client.add_ids("work", &["a", "b", "c d"]).await;
    let jobs = client.get("/jobs?id=c%20d&id=nobody&id=a&id=a").await.ok();
    let ids: Vec<_> = jobs
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["id"].as_str())
        .collect();
    assert_eq!(ids, [Some("c d"), None, Some("a"), Some("a")]);
    assert_eq!(client.get("/jobs").await.ok(), json!([]));
    client.get("/jobs?id=").await.assert_rejected_field("id");
}
