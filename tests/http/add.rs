//! `/add`: puts new jobs, and moves existing ones.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn a_new_job_has_the_documented_defaults() {
    let server = Server::start();
    let id = server
        .by("client")
        .at(1000.5)
        .add("work", json!({"meta": {"a": 1}}))
        .await;
    let job = server.at(1001).job(&id).await;
    let expected = json!({
        "id": id,
        "queue": "work",
        "meta": {"a": 1},
        "klass": null,
        "state": "waiting",
        "worker": null,
        "expires": null,
        "priority": 0,
        "retries": 5,
        "remaining": 5,
        "tags": [],
        "tracked": false,
        "dependencies": [],
        "dependents": [],
        "failure": null,
        "spawned_from": null,
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(job.get(key), Some(value), "{key}: {job}");
    }
    assert_eq!(job["history"].as_array().unwrap().len(), 1);
    assert_eq!(job["history"][0]["what"], "put");
    assert_eq!(job["history"][0]["q"], "work");
    let when = job["history"][0]["when"].as_f64().unwrap();
    assert!((1000.0..=1000.5).contains(&when), "{when}");
}

#[tokio::test]
async fn a_new_job_has_the_given_fields() {
    let server = Server::start();
    let item = json!({"id": "a", "meta": [], "klass": "foo.Job", "priority": -3.5,
                      "tags": ["x", "y", "x"], "retries": 0});
    assert_eq!(server.at(0).add("work", item).await, "a");
    let job = server.at(0).job("a").await;
    assert_eq!(job["meta"], json!([]));
    assert_eq!(job["klass"], "foo.Job");
    assert_eq!(job["priority"], -3.5);
    assert_eq!(
        job["tags"],
        json!(["x", "y"]),
        "as they were added, each once"
    );
    assert_eq!(job["retries"], 0);
    assert_eq!(job["remaining"], 0);
}

#[tokio::test]
async fn generated_ids_are_unique_and_have_32_hex_digits() {
    let server = Server::start();
    let items = vec![json!({"meta": null}); 100];
    let added = server.client().post("/add/work", items.into()).await.ok();
    let mut ids: Vec<&str> = added
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap())
        .collect();
    for id in &ids {
        let is_hex = id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        assert!(id.len() == 32 && is_hex, "{id}");
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

#[tokio::test]
async fn an_invalid_item_is_rejected_with_its_field() {
    let server = Server::start();
    let bad = [
        (json!({"id": "a"}), "meta"),
        (json!({"id": 17, "meta": 1}), "id"),
        (json!({"id": "", "meta": 1}), "id"),
        (json!({"id": "a\u{0}", "meta": 1}), "id"),
        (json!({"id": "a\u{7f}", "meta": 1}), "id"),
        (json!({"id": ["a"], "meta": 1}), "id"),
        (json!({"meta": 1, "klass": 17}), "klass"),
        (json!({"meta": 1, "delay": "soon"}), "delay"),
        (json!({"meta": 1, "delay": [1]}), "delay"),
        (json!({"meta": 1, "priority": "high"}), "priority"),
        (json!({"meta": 1, "tags": "t"}), "tags"),
        (json!({"meta": 1, "tags": [1]}), "tags"),
        (json!({"meta": 1, "retries": "many"}), "retries"),
        (json!({"meta": 1, "retries": 1.5}), "retries"),
        (json!({"meta": 1, "depends": "b"}), "depends"),
        (json!({"meta": 1, "depends": [null]}), "depends"),
    ];
    for (item, field) in &bad {
        server
            .client()
            .post("/add/work", item.clone())
            .await
            .assert_rejected_field(field);
    }
    // The items of an array are independent: valid ones are added.
    let mut items = vec![json!({"id": "first", "meta": 1})];
    items.extend(bad.iter().map(|(item, _)| item.clone()));
    items.extend([json!("text"), json!(17), json!(null), json!([])]);
    items.push(json!({"id": "last", "meta": 1}));
    let whole = server
        .client()
        .post("/add/work", items.clone().into())
        .await
        .whole();
    let results = whole["results"].as_array().unwrap();
    let errors = whole["errors"].as_array().unwrap();
    assert_eq!((results.len(), errors.len()), (items.len(), items.len()));
    assert_eq!((&results[0], &errors[0]), (&json!("first"), &Value::Null));
    assert_eq!(results.last(), Some(&json!("last")));
    assert_eq!(errors.last(), Some(&Value::Null));
    for index in 1..items.len() - 1 {
        assert_eq!(results[index], json!(false), "{}", items[index]);
        assert_eq!(errors[index]["code"], "bad_request", "{}", items[index]);
        assert!(errors[index]["error"].is_string(), "{}", items[index]);
        if let Some((_, field)) = bad.get(index - 1) {
            assert_eq!(errors[index]["field"], *field, "{}", items[index]);
        }
    }
    assert_eq!(
        server.client().pop_ids("work", 100).await,
        ["first", "last"]
    );
}

#[tokio::test]
async fn an_item_that_is_not_an_object_is_rejected() {
    let server = Server::start();
    for item in [json!("text"), json!(17), json!(null), json!(false)] {
        server
            .client()
            .post("/add/work", item)
            .await
            .assert_rejected(400, "bad_request");
    }
}

#[tokio::test]
async fn a_response_without_rejections_has_no_errors() {
    let server = Server::start();
    let whole = server
        .client()
        .post("/add/work", json!([{"meta": 1}, {"meta": 2}]))
        .await
        .whole();
    assert_eq!(whole.get("errors"), None);
}

#[tokio::test]
async fn put_moves_an_existing_job_and_keeps_unset_options() {
    let server = Server::start();
    let item =
        json!({"id": "a", "meta": "old", "klass": "K", "priority": 7, "tags": ["t"], "retries": 2});
    server.at(0).add("one", item).await;
    server
        .at(1)
        .add("two", json!({"id": "a", "meta": "new"}))
        .await;
    assert_eq!(server.at(1).pop("one").await, Value::Null);
    let job = server.at(1).job("a").await;
    assert_eq!(job["queue"], "two");
    assert_eq!(job["meta"], "new");
    assert_eq!(job["klass"], "K");
    assert_eq!(job["priority"], 7);
    assert_eq!(job["tags"], json!(["t"]));
    assert_eq!(job["retries"], 2);
    let item =
        json!({"id": "a", "meta": "newer", "klass": "L", "priority": 1, "tags": [], "retries": 9});
    server.at(2).add("two", item).await;
    let job = server.at(2).job("a").await;
    assert_eq!(job["klass"], "L");
    assert_eq!(job["priority"], 1);
    assert_eq!(job["tags"], json!([]));
    assert_eq!((&job["retries"], &job["remaining"]), (&json!(9), &json!(9)));
}

#[tokio::test]
async fn put_takes_a_running_job_from_its_worker() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker
        .add_and_pop(json!({"id": "a", "meta": 1, "retries": 3}))
        .await;
    assert_eq!(worker.post("/retry/work", json!({"id": "a"})).await.ok(), 2);
    worker.pop("work").await;
    server
        .at(1)
        .add("work", json!({"id": "a", "meta": 2}))
        .await;
    let job = server.at(1).job("a").await;
    assert_eq!(job["state"], "waiting");
    assert_eq!(job["worker"], Value::Null);
    assert_eq!(job["expires"], Value::Null);
    assert_eq!(job["remaining"], 3, "the retries are reset");
    let beat = worker.at(1).post("/heartbeat", json!("a")).await;
    assert_eq!(beat.assert_rejected(409, "not_running")["state"], "waiting");
    let done = worker
        .at(1)
        .post("/complete/work", json!({"id": "a", "meta": 1}))
        .await;
    done.assert_rejected(409, "not_running");
}

#[tokio::test]
async fn put_makes_a_complete_job_wait_again() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker.complete("work", "a").await;
    server
        .at(1)
        .add("work", json!({"id": "a", "meta": 2}))
        .await;
    assert_eq!(server.at(1).get("/jobs/complete").await.ok(), json!([]));
    assert_eq!(worker.at(1).pop("work").await["meta"], 2);
}

#[tokio::test]
async fn put_removes_a_failed_job_from_its_group_and_keeps_the_failure() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker.fail("a", "boom").await;
    server
        .at(1)
        .add("other", json!({"id": "a", "meta": 2}))
        .await;
    assert_eq!(server.at(1).get("/failed").await.ok(), json!({}));
    let job = worker.at(2).pop("other").await;
    assert_eq!(job["failure"]["group"], "boom", "until it is completed");
    worker.at(2).complete("other", "a").await;
    assert_eq!(server.at(3).job("a").await["failure"], Value::Null);
}

#[tokio::test]
async fn a_delayed_job_becomes_available_after_the_delay() {
    let server = Server::start();
    let at = |now: f64| server.at(now);
    at(0.0)
        .add("work", json!({"id": "a", "meta": 1, "delay": 10.5}))
        .await;
    assert_eq!(at(10.4).state("a").await, "scheduled");
    assert_eq!(at(10.4).pop("work").await, Value::Null);
    assert_eq!(
        at(10.4).get("/jobs/scheduled/work").await.ok(),
        json!(["a"])
    );
    assert_eq!(at(10.5).peek_ids("work").await, ["a"]);
    assert_eq!(at(10.5).get("/jobs/scheduled/work").await.ok(), json!([]));
    assert_eq!(at(10.5).get("/jobs/waiting/work").await.ok(), json!(["a"]));
    assert_eq!(at(10.5).pop("work").await["id"], "a");
}

#[tokio::test]
async fn a_delay_of_zero_or_less_makes_the_job_available() {
    let server = Server::start();
    for (id, delay) in [("zero", 0.0), ("past", -100.0)] {
        server
            .at(0)
            .add("work", json!({"id": id, "meta": 1, "delay": delay}))
            .await;
        assert_eq!(server.at(0).state(id).await, "waiting");
    }
}

#[tokio::test]
async fn put_without_a_delay_removes_the_previous_delay() {
    let server = Server::start();
    server
        .at(0)
        .add("work", json!({"id": "a", "meta": 1, "delay": 1000}))
        .await;
    server
        .at(1)
        .add("work", json!({"id": "a", "meta": 1}))
        .await;
    assert_eq!(server.at(1).pop("work").await["id"], "a");
}
