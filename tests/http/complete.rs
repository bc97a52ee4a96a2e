//! `/complete`, with and without a next queue.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn a_complete_job_is_in_no_queue_and_has_no_worker() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": "old", "retries": 3}))
        .await;
    assert_eq!(
        worker
            .at(1)
            .post(
                "/retry/work",
                json!({"id": "a", "group": "g", "message": "m"})
            )
            .await
            .ok(),
        2
    );
    worker.at(2).pop("work").await;
    let whole = worker
        .at(5)
        .post("/complete/work", json!({"id": "a", "meta": {"new": 1}}))
        .await
        .whole();
    assert_eq!(
        (&whole["results"], &whole["state"]),
        (&json!("a"), &json!("complete"))
    );
    let job = server.at(5).job("a").await;
    assert_eq!(job["state"], "complete");
    assert_eq!(job["meta"], json!({"new": 1}));
    for key in ["queue", "worker", "expires", "failure"] {
        assert_eq!(job[key], Value::Null, "{key}");
    }
    assert_eq!(job["remaining"], 3, "the retries are reset");
    assert_eq!(
        job["history"].as_array().unwrap().last().unwrap()["what"],
        "done"
    );
    assert_eq!(server.by("v").at(1000).pop("work").await, Value::Null);
}

#[tokio::test]
async fn a_second_completion_is_rejected() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker.complete("work", "a").await;
    let again = worker
        .post("/complete/work", json!({"id": "a", "meta": 2}))
        .await;
    assert_eq!(
        again.assert_rejected(409, "not_running")["state"],
        "complete"
    );
    assert_eq!(worker.job("a").await["meta"], Value::Null);
}

#[tokio::test]
async fn completing_an_array_returns_only_the_completed_ids() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b", "c", "d"]).await;
    worker.pop_ids("work", 2).await;
    server.by("v").at(0).pop("work").await;
    let item = |id: &str| json!({"id": id, "meta": 1});
    let data =
        json!([item("a"), item("c"), item("nope"), {"id": "b"}, item("b"), item("d"), item("a")]);
    let whole = worker.post("/complete/work", data).await.whole();
    assert_eq!(whole["results"], json!(["a", "b"]));
    let codes: Vec<Value> = whole["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error.get("code").cloned().unwrap_or_default())
        .collect();
    assert_eq!(
        json!(codes),
        json!([
            null,
            "wrong_worker",
            "no_such_job",
            "bad_request",
            null,
            "not_running",
            "not_running"
        ])
    );
    assert_eq!(whole["errors"][3]["field"], "meta");
    let states = whole["states"].as_array().unwrap();
    assert_eq!(states.len(), 7, "parallel to data");
    assert_eq!(
        (&states[0], &states[4]),
        (&json!("complete"), &json!("complete"))
    );
    assert!(
        !states[1].is_string() && !states[6].is_string(),
        "{states:?}"
    );
}

#[tokio::test]
async fn an_array_without_rejections_has_states_and_no_errors() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b"]).await;
    worker.pop_ids("work", 2).await;
    let data = json!([{"id": "a", "meta": 1}, {"id": "b", "meta": 1, "next": "other"}]);
    let whole = worker.post("/complete/work", data).await.whole();
    assert_eq!(whole["results"], json!(["a", "b"]));
    assert_eq!(whole["states"], json!(["complete", "waiting"]));
    assert_eq!(whole.get("errors"), None);
}

#[tokio::test]
async fn the_queue_in_the_path_must_be_the_jobs_queue() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    let refused = worker
        .post("/complete/other", json!({"id": "a", "meta": 1}))
        .await
        .assert_rejected(409, "wrong_queue");
    assert_eq!(
        (&refused["id"], &refused["queue"]),
        (&json!("a"), &json!("work"))
    );
    worker.complete("work", "a").await;
}

#[tokio::test]
async fn an_invalid_completion_is_rejected_with_its_field() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": "old"})).await;
    for (item, field) in [
        (json!({"id": "a"}), "meta"),
        (json!({"meta": 1}), "id"),
        (json!({"id": 1, "meta": 1}), "id"),
        (json!({"id": "a", "meta": 1, "next": 17}), "next"),
        (json!({"id": "a", "meta": 1, "next": ""}), "next"),
        (
            json!({"id": "a", "meta": 1, "next": "n", "delay": "x"}),
            "delay",
        ),
        (
            json!({"id": "a", "meta": 1, "next": "n", "depends": "x"}),
            "depends",
        ),
        (
            json!({"id": "a", "meta": 1, "next": "n", "depends": [1]}),
            "depends",
        ),
        (json!({"id": "a", "meta": 1, "delay": 5}), "delay"),
        (json!({"id": "a", "meta": 1, "depends": ["b"]}), "depends"),
    ] {
        worker
            .post("/complete/work", item.clone())
            .await
            .assert_rejected_field(field);
        let whole = worker.post("/complete/work", json!([item])).await.whole();
        assert_eq!(whole["results"], json!([]), "{item}");
        assert_eq!(whole["errors"][0]["field"], field, "{item}");
    }
    let job = worker.job("a").await;
    assert_eq!(
        (&job["state"], &job["meta"]),
        (&json!("running"), &json!("old"))
    );
}

#[tokio::test]
async fn complete_with_next_moves_the_job_to_that_queue() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1, "retries": 2, "priority": 3, "tags": ["t"]}))
        .await;
    worker
        .at(1)
        .post(
            "/retry/work",
            json!({"id": "a", "group": "g", "message": "m"}),
        )
        .await
        .ok();
    worker.at(1).pop("work").await;
    let data = json!({"id": "a", "meta": 2, "next": "after"});
    let whole = worker.at(2).post("/complete/work", data).await.whole();
    assert_eq!(
        (&whole["results"], &whole["state"]),
        (&json!("a"), &json!("waiting"))
    );
    let job = server.at(2).job("a").await;
    assert_eq!(job["state"], "waiting");
    assert_eq!(job["queue"], "after");
    assert_eq!(job["meta"], 2);
    assert_eq!(job["remaining"], 2);
    assert_eq!(job["priority"], 3);
    assert_eq!(job["tags"], json!(["t"]));
    assert_eq!(job["failure"], Value::Null);
    assert_eq!(job["worker"], Value::Null);
    let history = job["history"].as_array().unwrap();
    let last_two: Vec<&Value> = history[history.len() - 2..]
        .iter()
        .map(|event| &event["what"])
        .collect();
    assert_eq!(last_two, ["done", "put"]);
    assert_eq!(history.last().unwrap()["q"], "after");
    assert_eq!(server.at(2).get("/jobs/complete").await.ok(), json!([]));
    worker.at(3).pop("after").await;
    worker.at(3).complete("after", "a").await;
}

#[tokio::test]
async fn complete_with_next_can_name_the_same_queue() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker
        .post(
            "/complete/work",
            json!({"id": "a", "meta": 2, "next": "work"}),
        )
        .await
        .ok();
    assert_eq!(worker.pop("work").await["meta"], 2);
}

#[tokio::test]
async fn complete_with_next_can_delay_the_job() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    let data = json!({"id": "a", "meta": 1, "next": "after", "delay": 10});
    let whole = worker.at(5).post("/complete/work", data).await.whole();
    assert_eq!(whole["state"], "scheduled");
    assert_eq!(server.at(14).state("a").await, "scheduled");
    assert_eq!(worker.at(14).pop("after").await, Value::Null);
    assert_eq!(worker.at(15).pop("after").await["id"], "a");
}

#[tokio::test]
async fn complete_with_next_can_add_dependencies() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    worker.at(0).add_ids("work", &["b"]).await;
    let data =
        json!({"id": "a", "meta": 1, "next": "after", "depends": ["b", "nobody"], "delay": 10});
    let whole = worker.at(1).post("/complete/work", data).await.whole();
    assert_eq!(whole["state"], "depends");
    let job = server.at(1).job("a").await;
    assert_eq!(
        (&job["state"], &job["dependencies"]),
        (&json!("depends"), &json!(["b"]))
    );
    assert_eq!(server.at(1).job("b").await["dependents"], json!(["a"]));
    worker.at(2).pop("work").await;
    worker.at(2).complete("work", "b").await;
    assert_eq!(
        server.at(2).state("a").await,
        "scheduled",
        "its delay is not over"
    );
    assert_eq!(worker.at(11).pop("after").await["id"], "a");
}

#[tokio::test]
async fn complete_with_completed_dependencies_only_delays_the_job() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "b", "meta": 1})).await;
    worker.complete("work", "b").await;
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    let data = json!({"id": "a", "meta": 1, "next": "after", "depends": ["b"], "delay": 10});
    let whole = worker.post("/complete/work", data).await.whole();
    assert_eq!(whole["state"], "scheduled");
    worker
        .at(10)
        .add_and_pop(json!({"id": "c", "meta": 1}))
        .await;
    let data = json!({"id": "c", "meta": 1, "next": "after", "depends": ["b"]});
    let whole = worker.at(10).post("/complete/work", data).await.whole();
    assert_eq!(whole["state"], "waiting");
}
