//! Complete, delete, and checking whether a job exists.

use reqwest::Method;
use serde_json::json;

use super::{NO_RUN, assert_consistent, client, start};
use crate::support::relay::{new, path, run_path, with};

#[tokio::test]
async fn only_the_current_run_can_complete_a_job() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a", "b", "waiting"]).await;
    let (a, b) = (relay.take("q").await, relay.take("q").await);
    let (run_a, run_b) = (a.run().to_string(), b.run().to_string());
    for (queue, id, run) in [
        ("q", "a", NO_RUN),
        ("q", "a", &*run_b),
        ("q", "b", &*run_a),
        ("q", "waiting", &*run_a),
        ("q", "never", &*run_a),
        ("never", "a", &*run_a),
    ] {
        relay
            .send(Method::DELETE, &run_path(queue, id, run))
            .await
            .only(200);
    }
    assert_eq!(relay.existing_job("q", "a").await, a);
    assert_eq!(relay.existing_job("q", "b").await, b);
    assert!(relay.exists("q", "waiting").await);
    for _ in 0..3 {
        relay.complete(&a).await;
        assert_eq!(relay.job("q", "a").await, None);
    }
    relay.heartbeat(&b).await.only(202);
    assert_eq!(relay.next_ids("q", 9).await, ["waiting"]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_key_is_free_after_completion_or_deletion() {
    let server = start();
    let relay = client(&server);
    let mut created = None;
    for round in 0..4 {
        relay
            .put_with("q", "a", json!({"payload": round, "max_retries": round}))
            .await;
        let job = relay.take("q").await;
        assert_eq!(
            (&*job.payload, job.state.clone()),
            (&*round.to_string(), None)
        );
        assert!(created < Some(job.created_at));
        created = Some(job.created_at);
        relay.heartbeat_with(&job, "1").await.only(202);
        match round % 3 {
            0 => relay.complete(&job).await,
            1 => relay.delete("q", "a").await,
            _ => relay.requeue(&job, "", &json!([])).await.only(202),
        }
        assert!(!relay.exists("q", "a").await);
        relay.heartbeat(&job).await.assert_rejected(404, &["\"a\""]);
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn delete_and_reads_accept_jobs_in_any_state() {
    let server = start();
    let relay = client(&server);
    let later = json!({"run_at": "2100-01-01T00:00:00Z"});
    relay
        .put(&json!([
            new("q", "running"),
            new("q", "waiting"),
            with("q", "later", later)
        ]))
        .await;
    let running = relay.take("q").await;
    relay.put_with("back", "back", json!({"timeout": 0})).await;
    relay.take("back").await;
    relay.wait_until_timed_out("back", "back").await;
    for (queue, id) in [
        ("q", "running"),
        ("q", "waiting"),
        ("q", "later"),
        ("back", "back"),
    ] {
        // Repeated reads change nothing.
        let before = relay.existing_job(queue, id).await;
        for _ in 0..2 {
            assert!(relay.exists(queue, id).await);
            assert_eq!(relay.existing_job(queue, id).await, before);
        }
        relay.send(Method::HEAD, &path(queue, id)).await.only(200);
        for _ in 0..2 {
            relay.delete(queue, id).await;
            relay.send(Method::HEAD, &path(queue, id)).await.only(404);
            relay.send(Method::GET, &path(queue, id)).await.only(404);
        }
        assert_eq!(
            relay.next_ids(queue, 1).await,
            if id == "running" {
                vec!["waiting"]
            } else {
                vec![]
            }
        );
        if id == "running" {
            relay
                .heartbeat(&running)
                .await
                .assert_rejected(404, &["\"running\""]);
            relay.complete(&running).await;
        }
    }
    relay.delete("never", "never").await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn head_has_the_status_of_get() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    for (path, status) in [
        ("/queues/q/jobs/a", 200),
        ("/queues/q/jobs/b", 404),
        ("/queues/r/jobs/a", 404),
    ] {
        let get = relay.send(Method::GET, path).await;
        let head = relay.send(Method::HEAD, path).await;
        assert_eq!((get.status, head.status), (status, status));
        assert_eq!(head.text, "");
    }
    assert_consistent(&server).await;
}
