//! `/fail`, `/retry`, `/failed` and `/unfail`.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn a_failed_job_has_the_reason_time_and_worker() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": "old", "retries": 2}))
        .await;
    let data =
        json!({"id": "a", "group": "ValueError", "message": "it <broke>\nhere", "meta": "new"});
    assert_eq!(worker.at(7).post("/fail", data).await.ok(), "a");
    let job = server.at(8).job("a").await;
    assert_eq!(job["state"], "failed");
    assert_eq!(job["queue"], "work", "the job stays failed");
    assert_eq!(job["remaining"], 2);
    assert_eq!(job["meta"], "new");
    assert_eq!(job["worker"], Value::Null);
    assert_eq!(job["expires"], Value::Null);
    let failure =
        json!({"group": "ValueError", "message": "it <broke>\nhere", "when": 7, "worker": "w"});
    assert_eq!(job["failure"], failure);
    let last = job["history"].as_array().unwrap().last().unwrap();
    assert_eq!(
        *last,
        json!({"what": "failed", "when": 7, "group": "ValueError", "worker": "w"})
    );
    assert_eq!(server.at(1000).pop("work").await, Value::Null);
}

#[tokio::test]
async fn a_failure_keeps_meta_if_unset_and_checks_a_given_queue() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": "old"})).await;
    let data = json!({"id": "a", "group": "g", "message": "m"});
    let refused = worker
        .post("/fail/other", data.clone())
        .await
        .assert_rejected(409, "wrong_queue");
    assert_eq!(refused["queue"], "work");
    assert_eq!(worker.post("/fail/work", data).await.ok(), "a");
    assert_eq!(worker.job("a").await["meta"], "old");
}

#[tokio::test]
async fn an_invalid_failure_is_rejected_with_its_field() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    for (item, field) in [
        (json!({"group": "g", "message": "m"}), "id"),
        (json!({"id": "a", "message": "m"}), "group"),
        (json!({"id": "a", "group": "g"}), "message"),
        (json!({"id": "a", "group": 1, "message": "m"}), "group"),
        (json!({"id": "a", "group": "", "message": "m"}), "group"),
        (json!({"id": "a", "group": "g", "message": {}}), "message"),
    ] {
        worker
            .post("/fail", item.clone())
            .await
            .assert_rejected_field(field);
    }
    worker
        .post("/fail", json!("a"))
        .await
        .assert_rejected(400, "bad_request");
    assert_eq!(worker.state("a").await, "running");
}

#[tokio::test]
async fn only_the_worker_of_a_running_job_can_fail_it() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b"]).await;
    worker.pop("work").await;
    let item = |id: &str| json!({"id": id, "group": "g", "message": "m"});
    worker
        .post("/fail", item("nope"))
        .await
        .assert_rejected(404, "no_such_job");
    assert_eq!(
        worker
            .post("/fail", item("b"))
            .await
            .assert_rejected(409, "not_running")["state"],
        "waiting"
    );
    let other = server
        .by("v")
        .at(0)
        .post("/fail", item("a"))
        .await
        .assert_rejected(409, "wrong_worker");
    assert_eq!(other["worker"], "w");
    let whole = worker
        .post("/fail", json!([item("b"), item("a"), item("a")]))
        .await
        .whole();
    assert_eq!(whole["results"], json!([false, "a", false]));
    assert_eq!(whole["errors"][2]["state"], "failed");
}

#[tokio::test]
async fn retry_makes_a_job_available_again() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1, "retries": 5}))
        .await;
    assert_eq!(
        worker
            .at(1)
            .post("/retry/work", json!({"id": "a"}))
            .await
            .ok(),
        4
    );
    let job = server.at(1).job("a").await;
    assert_eq!(
        (&job["state"], &job["remaining"]),
        (&json!("waiting"), &json!(4))
    );
    assert_eq!(
        (&job["worker"], &job["expires"], &job["failure"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    worker.at(2).pop("work").await;
    assert_eq!(
        worker
            .at(2)
            .post("/retry/work", json!({"id": "a", "delay": 10}))
            .await
            .ok(),
        3
    );
    assert_eq!(server.at(11).state("a").await, "scheduled");
    assert_eq!(worker.at(12).pop("work").await["id"], "a");
    // With group and message, the reason is stored.
    let data = json!({"id": "a", "group": "flaky", "message": "again"});
    assert_eq!(worker.at(13).post("/retry/work", data).await.ok(), 2);
    let job = server.at(13).job("a").await;
    assert_eq!(job["state"], "waiting");
    assert_eq!(
        job["failure"],
        json!({"group": "flaky", "message": "again", "when": 13, "worker": "w"})
    );
    assert_eq!(server.at(13).get("/failed").await.ok(), json!({}));
}

#[tokio::test]
async fn retry_accepts_an_id_alone() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    assert_eq!(
        worker
            .post("/retry/work", json!([{"id": "a"}, {"id": "b"}]))
            .await
            .ok(),
        json!([4, false])
    );
}

#[tokio::test]
async fn retry_without_retries_left_fails_the_job() {
    let server = Server::start();
    let worker = server.by("w").at(5);
    for (id, reason, group, message) in [
        (
            "a",
            json!({}),
            "failed-retries-work",
            "Job exhausted retries in queue \"work\"",
        ),
        (
            "b",
            json!({"group": "mine", "message": "gave up"}),
            "mine",
            "gave up",
        ),
    ] {
        worker
            .add_and_pop(json!({"id": id, "meta": 1, "retries": 0}))
            .await;
        let mut data = reason;
        data["id"] = id.into();
        let left = worker.post("/retry/work", data).await.ok();
        assert!(left.as_i64().unwrap() < 0, "{left}");
        let job = worker.job(id).await;
        assert_eq!(
            (&job["state"], &job["remaining"]),
            (&json!("failed"), &json!(-1))
        );
        assert_eq!(job["failure"]["group"], group);
        assert_eq!(job["failure"]["message"], message);
        let last = job["history"].as_array().unwrap().last().unwrap();
        assert_eq!(
            (&last["what"], &last["group"]),
            (&json!("failed"), &json!(group))
        );
    }
    assert_eq!(
        worker.get("/failed").await.ok(),
        json!({"failed-retries-work": 1, "mine": 1})
    );
}

#[tokio::test]
async fn an_invalid_retry_is_rejected() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b"]).await;
    worker.pop("work").await;
    worker
        .post("/retry/work", json!({}))
        .await
        .assert_rejected_field("id");
    worker
        .post("/retry/work", json!({"id": "a", "delay": "x"}))
        .await
        .assert_rejected_field("delay");
    worker
        .post(
            "/retry/work",
            json!({"id": "a", "group": 1, "message": "m"}),
        )
        .await
        .assert_rejected_field("group");
    worker
        .post("/retry/work", json!({"id": "nope"}))
        .await
        .assert_rejected(404, "no_such_job");
    worker
        .post("/retry/work", json!({"id": "b"}))
        .await
        .assert_rejected(409, "not_running");
    assert_eq!(
        worker
            .post("/retry/other", json!({"id": "a"}))
            .await
            .assert_rejected(409, "wrong_queue")["queue"],
        "work"
    );
    server
        .by("v")
        .at(0)
        .post("/retry/work", json!({"id": "a"}))
        .await
        .assert_rejected(409, "wrong_worker");
    assert_eq!(worker.job("a").await["remaining"], 5);
}

/// Fails jobs `0`, `1`, … of a group, one per second.
async fn fail_many(server: &Server, group: &str, count: usize) {
    for index in 0..count {
        let worker = server.by("w").at(f64::from(u32::try_from(index).unwrap()));
        let id = format!("{group}{index}");
        worker
            .add_and_pop(json!({"id": id, "meta": index, "retries": 1}))
            .await;
        worker.fail(&id, group).await;
    }
}

fn ids(jobs: &Value) -> Vec<&str> {
    jobs.as_array()
        .unwrap()
        .iter()
        .map(|job| job["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn failures_are_counted_by_group_and_listed_newest_first() {
    let server = Server::start();
    assert_eq!(server.client().get("/failed").await.ok(), json!({}));
    fail_many(&server, "x", 30).await;
    fail_many(&server, "y", 1).await;
    assert_eq!(
        server.at(99).get("/failed").await.ok(),
        json!({"x": 30, "y": 1})
    );
    let page = server.at(99).get("/failed/x").await.ok();
    assert_eq!(page["total"], 30);
    let newest: Vec<String> = (5..30).rev().map(|index| format!("x{index}")).collect();
    assert_eq!(ids(&page["jobs"]), newest, "25 unless a limit is given");
    assert_eq!(page["jobs"][0]["meta"], 29, "whole jobs");
    assert_eq!(page["jobs"][0]["failure"]["message"], "x29 went wrong");
    let page = server.at(99).get("/failed/x?offset=28&limit=10").await.ok();
    assert_eq!(
        (&page["total"], ids(&page["jobs"])),
        (&json!(30), vec!["x1", "x0"])
    );
    let none = server.at(99).get("/failed/z").await.ok();
    assert_eq!(none, json!({"total": 0, "jobs": []}));
    for (query, field) in [
        ("offset=x", "offset"),
        ("limit=x", "limit"),
        ("offset=-1", "offset"),
        ("limit=-1", "limit"),
        ("limit=1.5", "limit"),
    ] {
        server
            .client()
            .get(&format!("/failed/x?{query}"))
            .await
            .assert_rejected_field(field);
    }
}

#[tokio::test]
async fn unfail_requeues_the_oldest_failures() {
    let server = Server::start();
    fail_many(&server, "x", 30).await;
    let data = json!({"group": "x", "count": 2});
    assert_eq!(server.at(100).post("/unfail/work", data).await.ok(), 2);
    let job = server.at(100).job("x0").await;
    assert_eq!(
        (&job["state"], &job["queue"], &job["remaining"]),
        (&json!("waiting"), &json!("work"), &json!(1))
    );
    assert_eq!(job["failure"]["group"], "x", "until it is completed");
    assert_eq!(
        job["history"].as_array().unwrap().last().unwrap()["what"],
        "put"
    );
    assert_eq!(server.at(100).peek_ids("work").await, ["x0", "x1"]);
    assert_eq!(server.at(100).get("/failed").await.ok(), json!({"x": 28}));
    // 25 unless a count is given, into any queue.
    assert_eq!(
        server
            .at(100)
            .post("/unfail/other", json!({"group": "x"}))
            .await
            .ok(),
        25
    );
    assert_eq!(server.at(100).job("x2").await["queue"], "other");
    let data = json!({"group": "x", "count": 1000});
    assert_eq!(
        server
            .at(100)
            .post("/unfail/other", data.clone())
            .await
            .ok(),
        3
    );
    assert_eq!(server.at(100).post("/unfail/other", data).await.ok(), 0);
    assert_eq!(server.at(100).get("/failed").await.ok(), json!({}));
    assert_eq!(
        server
            .at(100)
            .post("/unfail/other", json!({"group": "nobody"}))
            .await
            .ok(),
        0
    );
}

#[tokio::test]
async fn an_invalid_unfail_is_rejected() {
    let server = Server::start();
    for (data, field) in [
        (json!({}), "group"),
        (json!({"group": 1}), "group"),
        (json!({"group": "g", "count": "x"}), "count"),
        (json!({"group": "g", "count": 1.5}), "count"),
        (json!({"group": "g", "count": -1}), "count"),
    ] {
        server
            .client()
            .post("/unfail/work", data)
            .await
            .assert_rejected_field(field);
    }
    server
        .client()
        .post("/unfail/work", json!("g"))
        .await
        .assert_rejected(400, "bad_request");
}

#[tokio::test]
async fn jobs_without_retries_are_listed_by_group_for_any_queue_name() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    // The longest queue name results in the longest group name.
    let queue = "q".repeat(255);
    worker
        .add(&queue, json!({"id": "a", "meta": 1, "retries": 0}))
        .await;
    worker.pop(&queue).await;
    worker
        .post(&format!("/retry/{queue}"), json!({"id": "a"}))
        .await
        .ok();
    let group = format!("failed-retries-{queue}");
    assert_eq!(
        worker.get(&format!("/failed/{group}")).await.ok()["total"],
        1
    );
    assert_eq!(
        worker
            .post("/unfail/work", json!({"group": group}))
            .await
            .ok(),
        1
    );
    assert_eq!(worker.state("a").await, "waiting");
}
