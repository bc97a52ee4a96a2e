//! Replace: a new job replaces the existing one, whose run ends.

use serde_json::json;

use super::{assert_consistent, client, start};
use crate::support::relay::{new, with};

#[tokio::test]
async fn a_replaced_job_keeps_only_its_creation_time() {
    let server = start();
    let relay = client(&server);
    let old = json!({"timeout": 9, "max_retries": 5, "payload": "old", "state": "old",
        "run_at": "2001-01-01T00:00:00Z"});
    relay.put_with("q", "a", old).await;
    let before = relay.existing_job("q", "a").await;
    let other = json!({"timeout": 7, "max_retries": 2, "payload": "new", "state": [2],
        "run_at": "2002-01-01T00:00:00Z"});
    let jobs = json!([with("q", "a", other)]);
    relay.enqueue("replace", &jobs).await.only(202);
    let job = relay.existing_job("q", "a").await;
    assert_eq!((job.timeout, &*job.payload), (7, "\"new\""));
    assert_eq!((job.max_retries, job.retries_remaining), (Some(2), Some(2)));
    assert_eq!(job.state.as_deref(), Some("[2]"));
    assert_eq!(job.run_at.to_rfc3339(), "2002-01-01T00:00:00+00:00");
    assert_eq!(job.created_at, before.created_at);
    assert!(job.updated_at > before.updated_at, "{job:?}");
    // Unset fields have their defaults, not the values of the replaced job.
    let bare = json!([new("q", "a")]);
    relay.enqueue("replace", &bare).await.only(202);
    let job = relay.existing_job("q", "a").await;
    assert_eq!(
        (job.timeout, &*job.payload, job.state),
        (3600, "null", None)
    );
    assert_eq!((job.max_retries, job.retries_remaining), (None, None));
    assert!(
        job.run_at > before.created_at,
        "the default is the current time"
    );
    assert_eq!(relay.next_ids("q", 9).await, ["a"]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn the_run_of_a_replaced_job_has_no_access_to_the_new_one() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    let old = relay.take("q").await;
    relay.heartbeat_with(&old, "1").await.only(202);
    let jobs = json!([new("q", "a")]);
    relay.enqueue("replace", &jobs).await.only(202);
    let waiting = relay.existing_job("q", "a").await;
    assert_eq!((waiting.run_id, &waiting.state), (None, &None));
    relay.heartbeat(&old).await.assert_rejected(404, &["\"a\""]);
    relay
        .heartbeat_with(&old, "2")
        .await
        .assert_rejected(404, &["\"a\""]);
    relay.complete(&old).await;
    let more = json!([new("q", "b"), new("q", "a")]);
    relay.requeue(&old, "replace", &more).await.only(202);
    assert_eq!(relay.existing_job("q", "a").await, waiting);
    assert!(!relay.exists("q", "b").await);
    let on_one = relay.take("q").await;
    assert_ne!(on_one.run_id, old.run_id);
    for _ in 0..2 {
        relay
            .heartbeat_with(&old, "3")
            .await
            .assert_rejected(404, &["\"a\""]);
        relay.complete(&old).await;
        relay.heartbeat(&on_one).await.only(202);
    }
    assert_eq!(relay.existing_job("q", "a").await.state, None);
    relay.complete(&on_one).await;
    assert!(!relay.exists("q", "a").await);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_replacement_is_ordered_by_its_run_at() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a", "b", "c"]).await;
    let later = json!({"run_at": "2100-01-01T00:00:00Z"});
    let jobs = json!([new("q", "a"), with("q", "b", later)]);
    relay.enqueue("replace", &jobs).await.only(202);
    assert_eq!(relay.next_ids("q", 9).await, ["c", "a"]);
    // A change from later to now, and a key that is not in use.
    let jobs = json!([new("q", "b"), new("q", "d")]);
    relay.enqueue("replace", &jobs).await.only(202);
    assert_eq!(relay.next_ids("q", 9).await, ["b", "d"]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn of_two_equal_keys_in_one_request_the_last_one_is_kept() {
    let server = start();
    let relay = client(&server);
    for _ in 0..2 {
        let jobs: Vec<_> = [1, 2, 3]
            .map(|n| with("q", "a", json!({"payload": n, "max_retries": n})))
            .into();
        relay.enqueue("replace", &json!(jobs)).await.only(202);
        let job = relay.existing_job("q", "a").await;
        assert_eq!((&*job.payload, job.max_retries), ("3", Some(3)));
    }
    assert_eq!(relay.next_ids("q", 9).await, ["a"]);
    assert_consistent(&server).await;
}

/// Runs of the replaced job do not count against the new job.
#[tokio::test]
async fn a_replacement_has_all_its_retries() {
    let server = start();
    let relay = client(&server);
    let job = json!({"timeout": 0, "max_retries": 2});
    relay.put_with("q", "a", job.clone()).await;
    relay.take("q").await;
    assert_eq!(
        relay.wait_until_timed_out("q", "a").await.retries_remaining,
        Some(1)
    );
    let again = json!([with("q", "a", job)]);
    relay.enqueue("replace", &again).await.only(202);
    assert_eq!(
        relay.existing_job("q", "a").await.retries_remaining,
        Some(2)
    );
    assert_eq!(relay.take("q").await.retries_remaining, Some(2));
    assert_consistent(&server).await;
}
