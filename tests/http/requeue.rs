//! `/requeue`: like `/add`, for an existing job.

use serde_json::{Value, json};

use crate::support::{STATES, Server, one_in_each_state};

#[tokio::test]
async fn requeue_moves_a_job_in_any_state() {
    let server = Server::start();
    one_in_each_state(&server).await;
    let client = server.by("client").at(100);
    for state in STATES {
        let item = json!({"id": state, "meta": "new"});
        assert_eq!(client.post("/requeue/other", item).await.ok(), state);
        let job = client.job(state).await;
        let held = state == "depends";
        assert_eq!(job["state"], if held { "depends" } else { "waiting" });
        assert_eq!(job["queue"], "other");
        assert_eq!(job["meta"], "new");
        assert_eq!(job["worker"], Value::Null);
        let last = job["history"].as_array().unwrap().last().unwrap();
        assert_eq!(*last, json!({"what": "put", "when": 100, "q": "other"}));
    }
    assert_eq!(client.get("/failed").await.ok(), json!({}));
    assert_eq!(client.get("/jobs/complete").await.ok(), json!([]));
    assert_eq!(client.get("/queue/work").await.ok()["length"], 0);
    assert_eq!(client.peek_ids("other").await, STATES[..6]);
    let beat = server.by("w").at(100).post("/heartbeat", json!("running"));
    assert_eq!(
        beat.await.assert_rejected(409, "not_running")["state"],
        "waiting",
        "its lock is lost"
    );
}

#[tokio::test]
async fn requeue_does_not_create_a_job() {
    let server = Server::start();
    let client = server.at(0);
    let item = json!({"id": "a", "meta": 1});
    let refused = client.post("/requeue/work", item.clone()).await;
    assert_eq!(refused.assert_rejected(404, "no_such_job")["id"], "a");
    client
        .get("/job/a")
        .await
        .assert_rejected(404, "no_such_job");
    assert_eq!(client.get("/queues").await.ok(), json!([]));
    client.add_ids("work", &["a"]).await;
    client.post("/cancel", json!("a")).await.ok();
    client
        .post("/requeue/work", item)
        .await
        .assert_rejected(404, "no_such_job");
}

#[tokio::test]
async fn requeue_keeps_unset_fields_and_restores_retries() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    let item =
        json!({"id": "a", "meta": 1, "klass": "K", "priority": 7, "tags": ["t"], "retries": 2});
    worker.add_and_pop(item).await;
    worker.post("/retry/work", json!({"id": "a"})).await.ok();
    let same = json!({"id": "a", "meta": 2});
    worker.post("/requeue/work", same).await.ok();
    let job = worker.job("a").await;
    assert_eq!(
        json!([job["klass"], job["priority"], job["tags"], job["remaining"]]),
        json!(["K", 7, ["t"], 2])
    );
    let other = json!({"id": "a", "meta": 2, "priority": 1, "tags": ["u"],
                       "retries": 3, "delay": 10});
    worker.post("/requeue/work", other).await.ok();
    let job = worker.job("a").await;
    assert_eq!(
        json!([job["priority"], job["tags"], job["retries"], job["state"]]),
        json!([1, ["u"], 3, "scheduled"])
    );
    assert_eq!(worker.at(10).pop("work").await["id"], "a");
}

#[tokio::test]
async fn a_requeued_job_can_depend_on_others_but_not_on_itself() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["a", "b"]).await;
    let item = json!({"id": "b", "meta": 1, "depends": ["a"]});
    client.post("/requeue/work", item).await.ok();
    assert_eq!(client.job("a").await["dependents"], json!(["b"]));
    let item = json!({"id": "a", "meta": 1, "depends": ["b"]});
    let refused = client.post("/requeue/work", item).await;
    assert_eq!(refused.assert_rejected(409, "dependency_cycle")["id"], "a");
    assert_eq!(client.state("a").await, "waiting");
}

#[tokio::test]
async fn invalid_items_are_rejected_individually() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["a", "b"]).await;
    let bad = [
        (json!({"meta": 1}), "id"),
        (json!({"id": 17, "meta": 1}), "id"),
        (json!({"id": "", "meta": 1}), "id"),
        (json!({"id": "a"}), "meta"),
        (json!({"id": "a", "meta": 1, "delay": "soon"}), "delay"),
        (json!({"id": "a", "meta": 1, "priority": []}), "priority"),
        (json!({"id": "a", "meta": 1, "tags": "t"}), "tags"),
        (json!({"id": "a", "meta": 1, "retries": 1.5}), "retries"),
        (json!({"id": "a", "meta": 1, "depends": "b"}), "depends"),
    ];
    for (item, field) in &bad {
        let response = client.post("/requeue/other", item.clone()).await;
        response.assert_rejected_field(field);
    }
    let mut items: Vec<Value> = bad.iter().map(|(item, _)| item.clone()).collect();
    items.push(json!({"id": "nobody", "meta": 1}));
    items.push(json!({"id": "b", "meta": "new"}));
    let whole = client.post("/requeue/other", items.into()).await.whole();
    for (index, (_, field)) in bad.iter().enumerate() {
        assert_eq!(whole["results"][index], false);
        assert_eq!(whole["errors"][index]["field"], *field);
    }
    assert_eq!(whole["results"][bad.len()], false);
    assert_eq!(whole["errors"][bad.len()]["code"], "no_such_job");
    assert_eq!(whole["results"][bad.len() + 1], "b");
    assert_eq!(whole["errors"][bad.len() + 1], Value::Null);
    assert_eq!(client.peek_ids("work").await, ["a"]);
    assert_eq!(client.peek_ids("other").await, ["b"]);
}
