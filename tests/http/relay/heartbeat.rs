//! Heartbeats: they restart the timeout and can change the state.

use chrono::Duration;
use reqwest::Method;
use serde_json::json;

use super::{NO_RUN, assert_consistent, client, start};
use crate::support::eventually;
use crate::support::relay::{Job, new, run_path, with};

#[tokio::test]
async fn heartbeats_keep_a_run_alive() {
    let server = start();
    let relay = client(&server);
    relay
        .put_with("q", "a", json!({"timeout": 4, "max_retries": 0}))
        .await;
    let job = relay.take("q").await;
    // Longer than two timeouts.
    let long = async || {
        relay.heartbeat(&job).await.only(202);
        let now = relay.existing_job("q", "a").await;
        assert_eq!(now.run_id, job.run_id);
        now.updated_at - job.updated_at > Duration::seconds(9)
    };
    eventually("heartbeats for nine seconds", long).await;
    relay.complete(&job).await;
    assert!(!relay.exists("q", "a").await);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn the_body_replaces_the_state_and_an_empty_body_keeps_it() {
    let server = start();
    let relay = client(&server);
    relay
        .put(&json!([with(
            "q",
            "a",
            json!({"state": {"n": 0}, "payload": "p", "max_retries": 3})
        )]))
        .await;
    let job = relay.take("q").await;
    let mut before = job.clone();
    for (body, state) in [
        (None, Some("{\"n\":0}")),
        (Some("{\"n\": 1.0}"), Some("{\"n\": 1.0}")),
        (None, Some("{\"n\": 1.0}")),
        (Some(" \n"), Some("{\"n\": 1.0}")),
        (Some(""), Some("{\"n\": 1.0}")),
        (Some("0"), Some("0")),
        (Some("\"\""), Some("\"\"")),
        (Some("false"), Some("false")),
        (Some("null"), None),
        (None, None),
        (Some("[null]"), Some("[null]")),
        (Some(" null "), None),
    ] {
        let reply = match body {
            None => relay.heartbeat(&job).await,
            Some(body) => relay.heartbeat_with(&job, body).await,
        };
        reply.only(202);
        let after = relay.existing_job("q", "a").await;
        assert!(after.updated_at > before.updated_at, "{body:?}: {after:?}");
        let expected = Job {
            state: state.map(str::to_owned),
            updated_at: after.updated_at,
            ..job.clone()
        };
        assert_eq!(after, expected, "{body:?}");
        before = after;
    }
    assert_consistent(&server).await;
}

/// Clients send various content types with JSON.
#[tokio::test]
async fn any_content_type_is_accepted() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    let job = relay.take("q").await;
    let kinds = [
        None,
        Some("text/plain"),
        Some("application/octet-stream"),
        Some("application/x-www-form-urlencoded"),
    ];
    for (n, kind) in kinds.into_iter().enumerate() {
        let state = format!("[{n}]");
        let request = relay
            .request(Method::PATCH, &job.run_path())
            .body(state.clone());
        let request = match kind {
            Some(kind) => request.header("content-type", kind),
            None => request,
        };
        relay.ask(&format!("{kind:?}"), request).await.only(202);
        assert_eq!(relay.existing_job("q", "a").await.state, Some(state));
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn invalid_json_is_400_and_changes_nothing() {
    let server = start();
    let relay = client(&server);
    relay.put_with("q", "a", json!({"state": 1})).await;
    let job = relay.take("q").await;
    for body in [
        "{",
        "x",
        "nul",
        "1 2",
        "[1,]",
        "{\"a\":}",
        "\"\n\"",
        "'a'",
        "\u{feff}1",
        "01",
    ] {
        relay
            .heartbeat_with(&job, body)
            .await
            .assert_rejected(400, &[]);
    }
    let latin: &[u8] = b"\"\xe9\"";
    relay
        .heartbeat_with(&job, latin)
        .await
        .assert_rejected(400, &[]);
    assert_eq!(relay.existing_job("q", "a").await, job);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_heartbeat_requires_the_current_run() {
    let server = start();
    let relay = client(&server);
    let later = json!({"run_at": "2100-01-01T00:00:00Z"});
    relay
        .put(&json!([
            new("q", "a"),
            new("q", "b"),
            with("q", "later", later)
        ]))
        .await;
    let (a, b) = (relay.take("q").await, relay.take("q").await);
    relay.put_ids("q", &["waiting"]).await;
    relay.put_ids("other", &["a"]).await;
    relay.take("other").await;
    let (run_a, run_b) = (a.run().to_string(), b.run().to_string());
    for (queue, id, run) in [
        ("q", "a", NO_RUN),
        ("q", "a", &*run_b),
        ("q", "b", &*run_a),
        ("other", "a", &*run_a),
        ("q", "waiting", &*run_a),
        ("q", "later", NO_RUN),
        ("q", "never", &*run_a),
        ("never", "a", &*run_a),
        ("Q", "a", &*run_a),
    ] {
        let path = run_path(queue, id, run);
        let named = format!("\"{id}\"");
        relay
            .send(Method::PATCH, &path)
            .await
            .assert_rejected(404, &[&named]);
        let reply = relay.send_json(Method::PATCH, &path, "7").await;
        reply.assert_rejected(404, &[&named]);
    }
    assert_eq!(relay.existing_job("q", "a").await, a);
    assert_eq!(relay.existing_job("q", "b").await, b);
    relay.complete(&a).await;
    relay.heartbeat(&a).await.assert_rejected(404, &["\"a\""]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_run_id_must_be_a_uuid() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    let job = relay.take("q").await;
    let run = job.run().to_string();
    let (_, short) = run.split_at(1);
    for bad in [
        "x",
        "1",
        "null",
        short,
        &format!("{run}0"),
        &run.replace('-', "_"),
        "%20",
        &format!("g{short}"),
    ] {
        let path = run_path("q", "a", bad);
        relay
            .send(Method::PATCH, &path)
            .await
            .assert_rejected(400, &[]);
        relay
            .send_json(Method::PATCH, &path, "1")
            .await
            .assert_rejected(400, &[]);
        relay
            .send_json(Method::PUT, &path, "[]")
            .await
            .assert_rejected(400, &[]);
        relay
            .send(Method::DELETE, &path)
            .await
            .assert_rejected(400, &[]);
    }
    assert_eq!(relay.existing_job("q", "a").await, job);
    // All notations of a UUID are equivalent.
    for same in [run.to_uppercase(), run.replace('-', "")] {
        relay
            .send(Method::PATCH, &run_path("q", "a", &same))
            .await
            .only(202);
    }
    assert_consistent(&server).await;
}
