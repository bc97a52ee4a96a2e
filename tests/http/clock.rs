//! The test clock: `now` in requests, with and without `--trust-client-clock`.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn zero_and_negative_times_are_valid() {
    let server = Server::start();
    server
        .at(-1000.5)
        .add("work", json!({"id": "a", "meta": 1, "delay": 1000.5}))
        .await;
    let worker = server.by("w");
    assert_eq!(worker.at(-0.25).pop("work").await, Value::Null);
    let job = worker.at(0).pop("work").await;
    assert_eq!(job["id"], "a");
    assert_eq!(job["expires"], 60);
    let put = job["history"][0]["when"].as_f64().unwrap();
    assert!((-1001.0..=-1000.5).contains(&put), "{put}");
    server.at(-50).add_ids("past", &["b"]).await;
    assert_eq!(worker.at(-50).pop("past").await["expires"], 10);
}

#[tokio::test]
async fn time_may_decrease() {
    let server = Server::start();
    let worker = server.by("w");
    server.at(1000).add_ids("work", &["a"]).await;
    assert_eq!(
        worker.at(10).pop("work").await["expires"],
        70,
        "also before it was put"
    );
    assert_eq!(
        server.at(1000).get("/jobs/stalled/work").await.ok(),
        json!(["a"])
    );
    assert_eq!(
        server.at(60).get("/jobs/stalled/work").await.ok(),
        json!([])
    );
    assert_eq!(
        server.at(60).get("/jobs/running/work").await.ok(),
        json!(["a"])
    );
    assert_eq!(worker.at(0).post("/heartbeat", json!("a")).await.ok(), 60);
    assert_eq!(server.at(0).job("a").await["expires"], 60);
    worker.at(-5).complete("work", "a").await;
}

#[tokio::test]
async fn now_must_be_a_finite_number() {
    let server = Server::start();
    for now in [
        json!("soon"),
        json!("17"),
        json!([1]),
        json!({}),
        json!(true),
    ] {
        let body = json!({"now": now, "data": {"meta": 1}});
        server
            .client()
            .post_whole("/add/work", body)
            .await
            .assert_rejected_field("now");
        server
            .client()
            .post_whole("/get/work", json!({"now": now}))
            .await
            .assert_rejected_field("now");
    }
    let body = r#"{"now": 1e999, "data": {"meta": 1}}"#;
    let response = server
        .send(Method::POST, "/add/work", Some(body.to_owned()))
        .await;
    response.assert_rejected(400, "bad_request");
    for now in ["soon", "NaN", "inf", "-inf", "infinity", "1e999", "", "1,5"] {
        for path in [
            "/get/work",
            "/peek/work",
            "/queues",
            "/workers",
            "/jobs/running/work",
            "/job/a",
            "/failed",
            "/failed/g",
            "/worker/w",
            "/queue/q",
        ] {
            server
                .client()
                .get(&format!("{path}?now={now}"))
                .await
                .assert_rejected_field("now");
        }
    }
    assert_eq!(server.client().pop("work").await, Value::Null);
}

#[tokio::test]
async fn now_is_ignored_unless_client_clocks_are_trusted() {
    let server = Server::with(&[]);
    let worker = server.by("w");
    // In 1970 the delay would be over; in a thousand years the lease would have expired.
    worker
        .at(0)
        .add("work", json!({"id": "later", "meta": 1, "delay": 1000}))
        .await;
    worker.at(0).add_ids("work", &["a"]).await;
    assert_eq!(worker.at(1e10).pop_ids("work", 10).await, ["a"]);
    assert_eq!(server.by("v").at(4e9).pop("work").await, Value::Null);
    let expires = server.client().job("a").await["expires"].as_f64().unwrap();
    let real = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert!(
        (expires - real.as_secs_f64() - 60.0).abs() < 30.0,
        "{expires}"
    );
    assert_eq!(
        server.client().get("/peek/work?now=soon").await.ok(),
        Value::Null
    );
    let body = json!({"now": "soon", "data": {"id": "b", "meta": 1}});
    assert_eq!(
        server.client().post_whole("/add/work", body).await.ok(),
        "b"
    );
}

#[tokio::test]
async fn a_request_without_now_uses_the_servers_clock() {
    let server = Server::start();
    server
        .client()
        .add("work", json!({"id": "a", "meta": 1, "delay": 3600}))
        .await;
    assert_eq!(server.client().pop("work").await, Value::Null);
    assert_eq!(server.at(4e9).pop("work").await["id"], "a");
}

#[tokio::test]
async fn the_test_clock_disables_maintenance() {
    let server = Server::start();
    let worker = server.by("w");
    // By the wall clock, all of this has expired long ago.
    worker
        .at(0)
        .add_and_pop(json!({"id": "held", "meta": 1}))
        .await;
    worker
        .at(0)
        .add("work", json!({"id": "scheduled", "meta": 1, "delay": 10}))
        .await;
    worker.at(0).add_ids("other", &["done"]).await;
    worker.at(0).pop("other").await;
    worker.at(0).complete("other", "done").await;
    let look = async || {
        let who = server.at(5);
        let mut seen = vec![
            who.get("/queues").await.ok(),
            who.get("/workers").await.ok(),
        ];
        for id in ["held", "scheduled", "done"] {
            seen.push(who.job(id).await);
        }
        seen
    };
    let before = look().await;
    assert_eq!(before[3]["state"], "scheduled");
    // Maintenance would run twice in this time.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(look().await, before);
}
