//! `/heartbeat`.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn a_heartbeat_extends_the_lease() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": "old"}))
        .await;
    // As an ID, and as an item, with and without the queue.
    for (now, path, data) in [
        (10, "/heartbeat", json!("a")),
        (20, "/heartbeat", json!({"id": "a"})),
        (30, "/heartbeat/work", json!("a")),
    ] {
        assert_eq!(worker.at(now).post(path, data).await.ok(), 60);
        let job = server.at(now).job("a").await;
        assert_eq!(job["expires"], now + 60);
        assert_eq!(job["meta"], "old");
    }
    assert_eq!(server.by("v").at(89).pop("work").await, Value::Null);
    assert_eq!(server.by("v").at(90).pop("work").await["id"], "a");
}

#[tokio::test]
async fn a_heartbeat_can_set_meta() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": "old"})).await;
    let data = json!({"id": "a", "meta": {"progress": [1, 2]}});
    assert_eq!(worker.post("/heartbeat", data).await.ok(), 60);
    assert_eq!(worker.job("a").await["meta"], json!({"progress": [1, 2]}));
    assert_eq!(
        worker
            .post("/heartbeat", json!({"id": "a", "meta": null}))
            .await
            .ok(),
        60
    );
    assert_eq!(
        worker.job("a").await["meta"],
        Value::Null,
        "null is a value"
    );
}

#[tokio::test]
async fn a_heartbeat_of_an_array_has_one_result_per_item() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b", "c"]).await;
    worker.pop_ids("work", 2).await;
    let data = json!(["a", "nope", {"id": "b"}, "c", 17, {}]);
    let whole = worker.post("/heartbeat", data).await.whole();
    assert_eq!(
        whole["results"],
        json!([60, false, 60, false, false, false])
    );
    let codes: Vec<&Value> = whole["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error.get("code").unwrap_or(error))
        .collect();
    let null = Value::Null;
    assert_eq!(
        codes,
        [
            &null,
            &json!("no_such_job"),
            &null,
            &json!("not_running"),
            &json!("bad_request"),
            &json!("bad_request")
        ]
    );
    assert_eq!(whole["errors"][1]["id"], "nope");
    assert_eq!(whole["errors"][3]["state"], "waiting");
    assert_eq!(whole["errors"][5]["field"], "id");
}

#[tokio::test]
async fn only_running_jobs_accept_heartbeats() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["failed", "complete"]).await;
    worker.pop_ids("work", 2).await;
    worker.fail("failed", "g").await;
    worker.complete("work", "complete").await;
    worker.add_ids("work", &["waiting"]).await;
    worker
        .add("work", json!({"id": "scheduled", "meta": 1, "delay": 5}))
        .await;
    worker
        .add(
            "work",
            json!({"id": "depends", "meta": 1, "depends": ["waiting"]}),
        )
        .await;
    for state in ["waiting", "scheduled", "depends", "failed", "complete"] {
        let refused = worker
            .post("/heartbeat", json!(state))
            .await
            .assert_rejected(409, "not_running");
        assert_eq!(
            (&refused["id"], &refused["state"]),
            (&json!(state), &json!(state))
        );
    }
    worker
        .post("/heartbeat", json!("nope"))
        .await
        .assert_rejected(404, "no_such_job");
}

#[tokio::test]
async fn a_heartbeat_with_a_wrong_queue_is_rejected() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    let refused = worker
        .post("/heartbeat/other", json!("a"))
        .await
        .assert_rejected(409, "wrong_queue");
    assert_eq!(
        (&refused["id"], &refused["queue"]),
        (&json!("a"), &json!("work"))
    );
}

#[tokio::test]
async fn a_late_heartbeat_counts_until_another_claim() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    assert_eq!(
        worker.at(1000).post("/heartbeat", json!("a")).await.ok(),
        60
    );
    assert_eq!(server.by("v").at(1059).pop("work").await, Value::Null);
    server.by("v").at(1060).pop("work").await;
    worker
        .at(1060)
        .post("/heartbeat", json!("a"))
        .await
        .assert_rejected(409, "wrong_worker");
}

#[tokio::test]
async fn an_item_without_a_valid_id_is_rejected() {
    let server = Server::start();
    for (data, field) in [
        (json!({}), "id"),
        (json!({"id": 1}), "id"),
        (json!(""), "id"),
        (json!({"id": ""}), "id"),
    ] {
        server
            .by("w")
            .post("/heartbeat", data)
            .await
            .assert_rejected_field(field);
    }
}
