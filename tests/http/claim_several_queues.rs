//! `/get` from several queues, in order or round-robin.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Caller, Server, ids};

/// A server with the queues of the documentation: five jobs in `A`, two in `B`, three in `C`.
async fn filled() -> Server {
    let server = Server::start();
    for (queue, ids) in [
        ("A", &["a1", "a2", "a3", "a4", "a5"][..]),
        ("B", &["b1", "b2"]),
        ("C", &["c1", "c2", "c3"]),
    ] {
        server.at(0).add_ids(queue, ids).await;
    }
    server
}

const CBA: &str = "/get?queue=C&queue=B&queue=A";

/// The IDs of the next jobs, claimed one at a time.
async fn one_by_one(worker: Caller<'_>, path: &str, count: usize) -> Vec<String> {
    let mut taken = Vec::new();
    for _ in 0..count {
        let job = worker.get(path).await.ok();
        taken.push(job["id"].as_str().expect("a job").to_owned());
    }
    taken
}

#[tokio::test]
async fn in_order_each_queue_is_emptied_before_the_next() {
    let order = ["c1", "c2", "c3", "b1", "b2", "a1", "a2", "a3", "a4", "a5"];
    for query in ["", "&order=ordered"] {
        let server = filled().await;
        let worker = server.by("w").at(0);
        let path = format!("{CBA}{query}");
        assert_eq!(one_by_one(worker, &path, 10).await, order);
        assert_eq!(worker.get(&path).await.ok(), Value::Null);
        let server = filled().await;
        let worker = server.by("w").at(0);
        let all = worker.get(&format!("{path}&count=10")).await.ok();
        assert_eq!(ids(&all), order);
        let none = worker.get(&format!("{path}&count=10")).await.ok();
        assert_eq!(none, json!([]));
    }
}

#[tokio::test]
async fn round_robin_claims_one_job_per_queue() {
    let order = ["c1", "b1", "a1", "c2", "b2", "a2", "c3", "a3", "a4", "a5"];
    let path = format!("{CBA}&order=round-robin");
    let server = filled().await;
    let worker = server.by("w").at(0);
    assert_eq!(one_by_one(worker, &path, 10).await, order);
    assert_eq!(worker.get(&path).await.ok(), Value::Null);
    let server = filled().await;
    let worker = server.by("w").at(0);
    let all = worker.get(&format!("{path}&count=10")).await.ok();
    assert_eq!(ids(&all), order);
    // Round-robin continues across requests.
    let server = filled().await;
    let worker = server.by("w").at(0);
    let two = worker.get(&format!("{path}&count=2")).await.ok();
    assert_eq!(ids(&two), order[..2]);
    assert_eq!(one_by_one(worker, &path, 2).await, order[2..4]);
    let rest = worker.get(&format!("{path}&count=10")).await.ok();
    assert_eq!(ids(&rest), order[4..]);
}

#[tokio::test]
async fn the_round_robin_position_is_kept_per_worker_and_list() {
    let server = filled().await;
    let (one, other) = (server.by("one").at(0), server.by("other").at(0));
    let cba = format!("{CBA}&order=round-robin");
    let ca = "/get?queue=C&queue=A&order=round-robin";
    assert_eq!(one_by_one(one, &cba, 1).await, ["c1"]);
    assert_eq!(
        one_by_one(other, &cba, 1).await,
        ["c2"],
        "the position of another worker is separate"
    );
    assert_eq!(one_by_one(one, &cba, 1).await, ["b1"]);
    assert_eq!(
        one_by_one(one, ca, 1).await,
        ["c3"],
        "the position of another list is separate"
    );
    assert_eq!(one_by_one(one, &cba, 1).await, ["a1"]);
    assert_eq!(one_by_one(other, &cba, 1).await, ["b2"]);
    assert_eq!(one_by_one(one, ca, 1).await, ["a2"]);
    // The position does not affect claims in order.
    server.at(0).add_ids("C", &["c4"]).await;
    assert_eq!(one_by_one(one, CBA, 2).await, ["c4", "a3"]);
}

#[tokio::test]
async fn a_post_claims_like_a_get() {
    let server = filled().await;
    let worker = server.by("w").at(0);
    let queues = json!(["C", "B", "A"]);
    let job = worker.post("/get", json!({"queues": queues})).await.ok();
    for (key, value) in [
        ("id", "c1"),
        ("queue", "C"),
        ("state", "running"),
        ("worker", "w"),
    ] {
        assert_eq!(job[key], value, "{key}");
    }
    assert_eq!(
        (&job["expires"], &job["heartbeat"]),
        (&json!(60), &json!(60))
    );
    let one = json!({"queues": queues, "count": 1, "order": "ordered"});
    assert_eq!(worker.post("/get", one).await.ok()["id"], "c2");
    let many = json!({"queues": queues, "count": 4, "order": "round-robin", "wait": 0});
    let many = worker.post("/get", many).await.ok();
    assert_eq!(ids(&many), ["c3", "b1", "a1", "b2"]);
    let empty = json!({"queues": ["D", "E"]});
    assert_eq!(worker.post("/get", empty.clone()).await.ok(), Value::Null);
    let mut empty = empty;
    empty["count"] = 2.into();
    assert_eq!(worker.post("/get", empty).await.ok(), json!([]));
    let workers = server.at(0).get("/workers").await.ok();
    assert_eq!(workers, json!([{"name": "w", "jobs": 6, "stalled": 0}]));
}

#[tokio::test]
async fn every_queue_keeps_its_order_and_heartbeat() {
    let server = Server::start();
    let worker = server.by("w");
    worker.set("B-heartbeat", json!(300)).await.ok();
    worker.at(0).add_ids("A", &["lost"]).await;
    worker.at(0).pop("A").await;
    worker.at(0).add_ids("A", &["plain"]).await;
    worker
        .at(0)
        .add("A", json!({"id": "urgent", "meta": 1, "priority": -1}))
        .await;
    worker
        .at(0)
        .add("B", json!({"id": "due", "meta": 1, "delay": 60}))
        .await;
    let all = worker.at(60).get("/get?queue=A&queue=B&count=9").await.ok();
    assert_eq!(ids(&all), ["lost", "urgent", "plain", "due"]);
    assert_eq!(
        json!([
            all[0]["heartbeat"],
            all[3]["heartbeat"],
            all[0]["remaining"]
        ]),
        json!([60, 300, 4])
    );
}

#[tokio::test]
async fn a_paused_queue_is_skipped() {
    let server = filled().await;
    let who = server.at(0);
    who.post_whole("/pause/C", json!({})).await.ok();
    let worker = server.by("w").at(0);
    let in_turn = format!("{CBA}&order=round-robin");
    assert_eq!(one_by_one(worker, CBA, 1).await, ["b1"]);
    assert_eq!(one_by_one(worker, &in_turn, 3).await, ["b2", "a1", "a2"]);
    for queue in ["A", "B"] {
        who.post_whole(&format!("/pause/{queue}"), json!({}))
            .await
            .ok();
    }
    let ghost = server.by("ghost").at(0).get(CBA).await.ok();
    assert_eq!(ghost, Value::Null);
    let workers = server.at(0).get("/workers").await.ok();
    assert_eq!(
        workers.as_array().unwrap().len(),
        1,
        "a claim of paused queues lists no worker"
    );
}

#[tokio::test]
async fn a_duplicate_queue_counts_once() {
    let server = filled().await;
    let worker = server.by("w").at(0);
    let path = "/get?queue=C&queue=C&queue=B&queue=C&order=round-robin";
    assert_eq!(one_by_one(worker, path, 4).await, ["c1", "b1", "c2", "b2"]);
    let path = "/get?queue=A&queue=A&count=10";
    assert_eq!(ids(&worker.get(path).await.ok()).len(), 5);
}

#[tokio::test]
async fn invalid_requests_are_rejected_with_their_field() {
    let server = filled().await;
    let worker = server.by("w").at(0);
    let names: Vec<String> = (0..101).map(|index| format!("q{index}")).collect();
    for (data, field) in [
        (json!({}), "queues"),
        (json!({"queues": []}), "queues"),
        (json!({"queues": "A"}), "queues"),
        (json!({"queues": {"A": 1}}), "queues"),
        (json!({"queues": ["A", 1]}), "queues"),
        (json!({"queues": ["A", ""]}), "queues"),
        (json!({"queues": ["a".repeat(256)]}), "queues"),
        (json!({"queues": names}), "queues"),
        (json!({"queues": ["A"], "order": "random"}), "order"),
        (json!({"queues": ["A"], "order": 1}), "order"),
        (json!({"queues": ["A"], "count": 0}), "count"),
        (json!({"queues": ["A"], "count": 10001}), "count"),
        (json!({"queues": ["A"], "count": 1.5}), "count"),
        (json!({"queues": ["A"], "count": "2"}), "count"),
        (json!({"queues": ["A"], "wait": -1}), "wait"),
        (json!({"queues": ["A"], "wait": 60.5}), "wait"),
        (json!({"queues": ["A"], "wait": "long"}), "wait"),
    ] {
        worker.post("/get", data).await.assert_rejected_field(field);
    }
    worker
        .post_whole("/get", json!({}))
        .await
        .assert_rejected_field("data");
    worker
        .post("/get", json!(["A"]))
        .await
        .assert_rejected(400, "bad_request");
    let query: Vec<String> = names.iter().map(|name| format!("queue={name}")).collect();
    let too_many = query.join("&");
    for (query, field) in [
        (format!("?{too_many}").as_str(), "queue"),
        ("?queue=A&order=random", "order"),
        ("?queue=A&order=", "order"),
        ("?queue=A&count=0", "count"),
        ("?queue=A&count=10001", "count"),
        ("?queue=A&count=x", "count"),
        ("?queue=A&wait=-1", "wait"),
        ("?queue=A&wait=61", "wait"),
        ("?queue=A&wait=NaN", "wait"),
        ("?queue=A&wait=", "wait"),
    ] {
        worker
            .get(&format!("/get{query}"))
            .await
            .assert_rejected_field(field);
    }
    let response = worker.get("/get?queue=A&queue=").await;
    response.assert_rejected(400, "bad_request");
    assert_eq!(server.at(0).get("/queue/A").await.ok()["waiting"], 5);
    assert_eq!(server.at(0).get("/workers").await.ok(), json!([]));
    // 100 queues are accepted.
    let hundred = worker
        .get(&format!("/get?{}", query[..100].join("&")))
        .await;
    assert_eq!(hundred.ok(), Value::Null);
    let hundred = json!({"queues": names[..100]});
    assert_eq!(worker.post("/get", hundred).await.ok(), Value::Null);
}

#[tokio::test]
async fn head_claims_no_job() {
    let server = filled().await;
    let response = server.try_send(Method::HEAD, CBA, None).await.unwrap();
    assert_eq!(response.status, 405);
    assert_eq!(server.at(0).get("/queue/C").await.ok()["waiting"], 3);
    assert_eq!(server.at(0).get("/workers").await.ok(), json!([]));
}
