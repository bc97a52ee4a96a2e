//! The option `<queue>-max-concurrency`: the maximum number of running jobs of a queue.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Server, ids};

async fn limit(server: &Server, queue: &str, most: u32) {
    let option = format!("{queue}-max-concurrency");
    server.client().set(&option, json!(most)).await.ok();
}

#[tokio::test]
async fn no_more_jobs_run_than_the_limit() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    limit(&server, "work", 3).await;
    let names = ["a", "b", "c", "d", "e"];
    worker.add_ids("work", &names).await;
    worker.add_ids("other", &["x", "y", "z", "u"]).await;
    assert_eq!(worker.pop("work").await["id"], "a");
    assert_eq!(worker.pop_ids("work", 10).await, ["b", "c"]);
    assert_eq!(worker.pop("work").await, Value::Null);
    assert_eq!(worker.get("/get/work/10").await.ok(), json!([]));
    assert_eq!(
        worker.peek_ids("work").await,
        ["d", "e"],
        "a peek does not count"
    );
    assert_eq!(
        worker.pop_ids("other", 10).await.len(),
        4,
        "the limit of one queue does not apply to others"
    );
    // The limit applies to all workers; workers that get no job are listed as well.
    assert_eq!(server.by("v").at(0).pop("work").await, Value::Null);
    let workers = server.at(0).get("/workers").await.ok();
    assert_eq!(workers.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn every_way_to_end_a_job_makes_room() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    limit(&server, "work", 1).await;
    let ways = [
        (
            "complete",
            "/complete/work",
            json!({"id": "complete", "meta": 1}),
        ),
        (
            "on",
            "/complete/work",
            json!({"id": "on", "meta": 1, "next": "other"}),
        ),
        (
            "fail",
            "/fail",
            json!({"id": "fail", "group": "g", "message": "m"}),
        ),
        (
            "retry",
            "/retry/work",
            json!({"id": "retry", "delay": 1000}),
        ),
        ("cancel", "/cancel", json!("cancel")),
        ("add", "/add/other", json!({"id": "add", "meta": 1})),
        ("last", "/complete/work", json!({"id": "last", "meta": 1})),
    ];
    for (id, ..) in &ways {
        worker.add_ids("work", &[id]).await;
    }
    for (id, path, data) in ways {
        assert_eq!(worker.pop_ids("work", 10).await, [id]);
        assert_eq!(worker.pop("work").await, Value::Null, "{id} is running");
        worker.post(path, data).await.ok();
    }
    worker.add_ids("work", &["a", "b"]).await;
    worker.pop("work").await;
    worker.post("/timeout", json!("a")).await.ok();
    assert_eq!(
        worker.pop_ids("work", 10).await,
        ["a"],
        "a timed-out job does not count as running"
    );
}

#[tokio::test]
async fn an_expired_lease_does_not_count_and_is_claimed_first() {
    let server = Server::start();
    let worker = server.by("w");
    limit(&server, "work", 2).await;
    worker
        .at(0)
        .add_ids("work", &["lost", "held", "a", "b"])
        .await;
    worker.at(0).pop("work").await;
    worker.at(30).pop("work").await;
    assert_eq!(worker.at(59).pop_ids("work", 10).await, [""; 0]);
    assert_eq!(worker.at(60).pop_ids("work", 10).await, ["lost"]);
    assert_eq!(worker.at(60).pop_ids("work", 10).await, [""; 0]);
}

#[tokio::test]
async fn the_limit_can_be_changed_and_removed() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    let names: Vec<String> = (0..9).map(|index| format!("j{index}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    worker.add_ids("work", &all).await;
    limit(&server, "work", 1).await;
    assert_eq!(worker.pop_ids("work", 10).await, all[..1]);
    limit(&server, "work", 3).await;
    assert_eq!(worker.pop_ids("work", 10).await, all[1..3]);
    // Existing leases are kept.
    limit(&server, "work", 2).await;
    assert_eq!(worker.pop("work").await, Value::Null);
    worker.complete("work", all[0]).await;
    assert_eq!(worker.pop("work").await, Value::Null);
    worker.complete("work", all[1]).await;
    assert_eq!(worker.pop_ids("work", 10).await, all[3..4]);
    limit(&server, "work", 0).await;
    assert_eq!(worker.pop_ids("work", 3).await, all[4..7]);
    limit(&server, "work", 1).await;
    worker.delete("/config/work-max-concurrency").await.ok();
    assert_eq!(worker.pop_ids("work", 10).await, all[7..]);
    let response = worker.set("work-max-concurrency", json!("few")).await;
    response.assert_rejected_field("data");
}

#[tokio::test]
async fn claims_from_several_queues_skip_a_queue_at_its_limit() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    limit(&server, "A", 1).await;
    worker.add_ids("A", &["a1", "a2"]).await;
    worker.add_ids("B", &["b1", "b2", "b3"]).await;
    let all = worker.get("/get?queue=A&queue=B&count=2").await.ok();
    assert_eq!(ids(&all), ["a1", "b1"]);
    let path = "/get?queue=A&queue=B&order=round-robin";
    assert_eq!(worker.get(path).await.ok()["id"], "b2");
    assert_eq!(worker.get(path).await.ok()["id"], "b3");
    assert_eq!(worker.get(path).await.ok(), Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_holds_for_concurrent_claims() {
    let server = Arc::new(Server::with(&[]));
    limit(&server, "work", 3).await;
    for round in 0..5 {
        let items = vec![json!({"meta": round}); 8];
        server.client().post("/add/work", items.into()).await.ok();
        let mut takers = JoinSet::new();
        for taker in 0..16 {
            let server = Arc::clone(&server);
            let count = 1 + taker % 3;
            takers.spawn(async move {
                let path = format!("/get?queue=work&count={count}");
                let got = server.by(&format!("w{taker}")).get(&path).await.ok();
                if count == 1 && got != Value::Null {
                    return ids(&json!([got]));
                }
                if count == 1 { Vec::new() } else { ids(&got) }
            });
        }
        let got: Vec<String> = takers.join_all().await.into_iter().flatten().collect();
        assert_eq!(got.len(), 3, "round {round}");
        for id in &got {
            server.client().post("/cancel", json!(id)).await.ok();
        }
    }
}
