//! Timeouts of runs, and jobs without retries left.

use std::sync::Mutex;

use serde_json::json;
use tokio::time::{Duration, Instant};

use super::{assert_consistent, client, start};
use crate::support::eventually;
use crate::support::relay::{Job, Relay, new, with};

/// Claims the job whenever it is available, until it no longer exists or was claimed `most` times.
async fn runs(relay: &Relay, queue: &str, id: &str, most: usize) -> Vec<Job> {
    let runs = Mutex::new(Vec::new());
    let over = async || {
        let taken = relay.next(queue, 1).await;
        let count = {
            let mut runs = runs.lock().unwrap();
            runs.extend(taken);
            runs.len()
        };
        count >= most || !relay.exists(queue, id).await
    };
    eventually(&format!("the end of {id}"), over).await;
    runs.into_inner().unwrap()
}

#[tokio::test]
async fn n_retries_allow_n_plus_1_runs() {
    let server = start();
    let relay = client(&server);
    for max in [0, 1, 2, 5] {
        let id = format!("a{max}");
        relay
            .put_with("q", &id, json!({"timeout": 0, "max_retries": max}))
            .await;
        let runs = runs(&relay, "q", &id, 100).await;
        let left: Vec<i64> = runs
            .iter()
            .filter_map(|job| job.retries_remaining)
            .collect();
        let expected: Vec<i64> = (0..=max).rev().collect();
        assert_eq!(left, expected);
        assert!(
            runs.iter().all(|job| job.max_retries == Some(max)),
            "{runs:?}"
        );
        assert_eq!(relay.job("q", &id).await, None);
        assert_eq!(relay.next_ids("q", 9).await, [""; 0]);
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn unlimited_retries_allow_further_runs() {
    let server = start();
    let relay = client(&server);
    relay
        .put_with("q", "a", json!({"timeout": 0, "max_retries": null}))
        .await;
    let runs = runs(&relay, "q", "a", 40).await;
    assert_eq!(runs.len(), 40);
    for (run, before) in runs[1..].iter().zip(&runs) {
        assert_eq!((run.max_retries, run.retries_remaining), (None, None));
        assert_ne!(run.run_id, before.run_id);
        assert!(run.updated_at > before.updated_at);
        assert_eq!(
            (run.created_at, run.run_at),
            (before.created_at, before.run_at)
        );
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_job_without_retries_left_frees_its_key() {
    let server = start();
    let relay = client(&server);
    let mut old = None;
    for round in 0..3 {
        let job = with(
            "q",
            "a",
            json!({"timeout": 0, "max_retries": 0, "payload": round, "state": round}),
        );
        relay.put(&json!([job])).await;
        let job = relay.take("q").await;
        assert_eq!(
            (&*job.payload, job.retries_remaining),
            (&*round.to_string(), Some(0))
        );
        assert!(Some(job.created_at) > old, "it is another run");
        old = Some(job.created_at);
        relay.wait_until_gone("q", "a").await;
        relay.heartbeat(&job).await.assert_rejected(404, &["\"a\""]);
        relay.complete(&job).await;
        let jobs = json!([new("q", "b")]);
        relay.requeue(&job, "", &jobs).await.only(202);
        assert!(!relay.exists("q", "b").await);
        assert_eq!(relay.job("q", "a").await, None);
        assert_eq!(relay.next_ids("q", 9).await, [""; 0]);
        relay.delete("q", "a").await;
    }
    // The other modes create a new job, too.
    for mode in ["ignore", "replace"] {
        let job = json!([with("q", "a", json!({"timeout": 0, "max_retries": 0}))]);
        relay.enqueue(mode, &job).await.only(202);
        let job = relay.take("q").await;
        assert_eq!((job.state, &*job.payload), (None, "null"));
        assert!(Some(job.created_at) > old, "{mode}");
        relay.wait_until_gone("q", "a").await;
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_timeout_changes_only_the_documented_fields() {
    let server = start();
    let relay = client(&server);
    // If a heartbeat comes after the timeout, the test repeats with a longer one.
    let mut seconds = 2;
    while !times_out_unchanged(&relay, seconds).await {
        relay.delete("q", "a").await;
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    }
    assert_consistent(&server).await;
}

/// Returns false if a heartbeat came too late.
async fn times_out_unchanged(relay: &Relay, timeout_s: u64) -> bool {
    let timeout = Duration::from_secs(timeout_s);
    let fields = json!({"timeout": timeout_s, "max_retries": 3, "payload": {"a": 1.50}, "state": 0,
        "run_at": "2022-09-05T04:37:23.123456Z"});
    relay.put_with("q", "a", fields).await;
    let began = Instant::now();
    let job = relay.take("q").await;
    let heartbeat = relay.heartbeat_with(&job, "{\"step\":  1}").await;
    if began.elapsed() >= timeout {
        return false;
    }
    heartbeat.only(202);
    let extended = relay.existing_job("q", "a").await;
    let after = relay.wait_until_timed_out("q", "a").await;
    let expected = Job {
        run_id: None,
        retries_remaining: Some(2),
        ..extended
    };
    assert_eq!(after, expected);
    relay
        .heartbeat_with(&job, "2")
        .await
        .assert_rejected(404, &["\"a\""]);
    relay.complete(&job).await;
    let jobs = json!([new("q", "b")]);
    relay.requeue(&job, "", &jobs).await.only(202);
    assert_eq!(relay.existing_job("q", "a").await, after);
    assert!(!relay.exists("q", "b").await);
    let began = Instant::now();
    let again = relay.take("q").await;
    assert_ne!(again.run_id, job.run_id);
    let expected = Job {
        run_id: again.run_id,
        updated_at: again.updated_at,
        ..after
    };
    assert_eq!(again, expected);
    // The previous run is no longer valid.
    relay
        .heartbeat_with(&job, "2")
        .await
        .assert_rejected(404, &["\"a\""]);
    relay.complete(&job).await;
    let heartbeat = relay.heartbeat(&again).await;
    if began.elapsed() >= timeout {
        return false;
    }
    heartbeat.only(202);
    true
}

#[tokio::test]
async fn a_timed_out_job_returns_to_its_place() {
    let server = start();
    let relay = client(&server);
    relay
        .put(&json!([
            with("q", "a", json!({"timeout": 0})),
            with("q", "b", json!({"timeout": 0})),
            new("q", "c")
        ]))
        .await;
    relay.put_ids("q", &["d"]).await;
    assert_eq!(relay.next_ids("q", 2).await, ["a", "b"]);
    for id in ["b", "a"] {
        relay.wait_until_timed_out("q", id).await;
    }
    assert_eq!(relay.next_ids("q", 9).await, ["a", "b", "c", "d"]);
    assert_consistent(&server).await;
}

/// The timeout starts with the run, however long the job has waited; and it is the same for every run.
#[tokio::test]
async fn waiting_does_not_count_toward_the_timeout() {
    let server = start();
    let relay = client(&server);
    relay
        .put_with("q", "a", json!({"timeout": 4, "max_retries": 0}))
        .await;
    // The time itself is under test.
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    let job = relay.take("q").await;
    relay.heartbeat(&job).await.only(202);
    assert_eq!(relay.existing_job("q", "a").await.run_id, job.run_id);
    relay.complete(&job).await;
    assert_consistent(&server).await;
}

/// Many runs at once; some jobs have no retries left, others become available again.
#[tokio::test]
async fn hundreds_of_runs_can_time_out_together() {
    const JOBS: i64 = 600;
    let server = start();
    let relay = client(&server);
    let job = |n: i64| {
        let max = if n % 3 == 2 {
            json!(null)
        } else {
            json!(n % 3)
        };
        with(
            "q",
            &n.to_string(),
            json!({"timeout": 3, "max_retries": max}),
        )
    };
    relay.put(&(0..JOBS).map(job).collect()).await;
    assert_eq!(relay.next("q", 600).await.len(), 600);
    for n in (0..JOBS).step_by(3) {
        relay.wait_until_gone("q", &n.to_string()).await;
    }
    for n in (0..JOBS).filter(|n| n % 3 != 0) {
        relay.wait_until_timed_out("q", &n.to_string()).await;
    }
    let again = relay.next("q", 1_000).await;
    let ids: Vec<i64> = again.iter().map(|job| job.id.parse().unwrap()).collect();
    let expected: Vec<i64> = (0..JOBS).filter(|n| n % 3 != 0).collect();
    assert_eq!(ids, expected);
    for job in &again {
        let left = (job.max_retries.is_some()).then_some(0);
        assert_eq!(job.retries_remaining, left, "{job:?}");
    }
    assert_consistent(&server).await;
}
