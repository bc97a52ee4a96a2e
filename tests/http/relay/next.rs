//! Next: the selection, number and order of claimed jobs.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;

use super::{assert_consistent, client, start};
use crate::support::eventually;
use crate::support::relay::{new, with};

#[tokio::test]
async fn next_without_jobs_is_204() {
    let server = start();
    let relay = client(&server);
    for path in ["/queues/q/jobs", "/queues/q/jobs?num_jobs=100"] {
        relay.send(Method::GET, path).await.only(204);
    }
    let later = json!({"run_at": "2100-01-01T00:00:00Z"});
    relay
        .put(&json!([with("q", "later", later), new("other", "a")]))
        .await;
    relay.send(Method::GET, "/queues/q/jobs").await.only(204);
    assert_eq!(relay.next_ids("other", 1).await, ["a"]);
    relay
        .send(Method::GET, "/queues/other/jobs")
        .await
        .only(204);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn each_job_is_claimed_once_with_its_own_run() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a", "b", "c", "d"]).await;
    let before = relay.existing_job("q", "a").await;
    let mut jobs = relay.next("q", 3).await;
    jobs.extend(relay.next("q", 3).await);
    let ids: Vec<&str> = jobs.iter().map(|job| &*job.id).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    let runs: BTreeSet<_> = jobs.iter().map(|job| job.run()).collect();
    assert_eq!(runs.len(), 4, "{runs:?}");
    for job in &jobs {
        assert_eq!(relay.existing_job("q", &job.id).await, *job);
    }
    // Only these fields change with a run.
    let mut first = jobs[0].clone();
    assert!(first.updated_at > before.updated_at, "{first:?}");
    (first.run_id, first.updated_at) = (None, before.updated_at);
    assert_eq!(first, before);
    assert_eq!(relay.next_ids("q", 9).await, [""; 0]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn next_returns_the_requested_number_or_all_available() {
    let server = start();
    let relay = client(&server);
    let ids: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    relay
        .put(&ids.iter().map(|id| new("q", id)).collect())
        .await;
    let ask = async |query: &str| {
        let path = format!("/queues/q/jobs{query}");
        relay.send(Method::GET, &path).await.jobs().len()
    };
    for (query, count) in [
        ("", 1),
        ("?", 1),
        ("?other=5", 1),
        ("?num_jobs=1", 1),
        ("?num_jobs=7", 7),
        ("?a=1&num_jobs=02", 2),
        ("?num_jobs=300", 300),
        ("?num_jobs=9223372036854775807", 400 - 313),
        ("?num_jobs=1", 0),
    ] {
        assert_eq!(ask(query).await, count, "{query}");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn next_returns_at_most_1000_jobs() {
    let server = start();
    let relay = client(&server);
    let jobs = (0..3_000).map(|n| new("q", &n.to_string())).collect();
    relay.put(&jobs).await;
    for (asked, given) in [(999, 999), (1_000, 1_000), (1_001, 1_000), (1_001, 1)] {
        assert_eq!(relay.next("q", asked).await.len(), given, "{asked}");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn an_invalid_number_is_400_and_claims_nothing() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    for number in [
        "",
        "0",
        "-1",
        "x",
        "1.5",
        "1.0",
        "1e1",
        "%201",
        "1%20",
        "9223372036854775808",
        "null",
        "true",
        "1,2",
        "%D9%A1",
        "0x1",
    ] {
        for queue in ["q", "empty"] {
            let path = format!("/queues/{queue}/jobs?num_jobs={number}");
            relay
                .send(Method::GET, &path)
                .await
                .assert_rejected(400, &["num_jobs"]);
        }
    }
    assert_eq!(relay.next_ids("q", 9).await, ["a"]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn jobs_are_ordered_by_run_at_then_by_enqueue() {
    let server = start();
    let relay = client(&server);
    let time = |n: usize| format!("2022-09-05T04:37:23.00000{n}Z");
    // Some jobs with the same time in one request, others in different requests.
    let times = [5, 3, 5, 1, 3, 1, 9, 5, 0, 1, 9, 3];
    let job = |n: usize| with("q", &n.to_string(), json!({"run_at": time(times[n])}));
    relay.put(&json!([job(0), job(1), job(2), job(3)])).await;
    for n in 4..8 {
        relay.put(&json!([job(n)])).await;
    }
    relay.put(&json!([job(8), job(9), job(10), job(11)])).await;
    let mut expected: Vec<usize> = (0..times.len()).collect();
    expected.sort_by_key(|n| times[*n]);
    let expected: Vec<String> = expected.iter().map(usize::to_string).collect();
    let mut got = relay.next_ids("q", 5).await;
    for _ in 0..2 {
        got.extend(relay.next_ids("q", 1).await);
    }
    got.extend(relay.next_ids("q", 100).await);
    assert_eq!(got, expected);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn jobs_without_run_at_are_first_in_first_out() {
    let server = start();
    let relay = client(&server);
    let mut expected = Vec::new();
    for round in 0..20 {
        let ids = ["z", "a", "m"].map(|name| format!("{name}{round}"));
        relay
            .put(&ids.iter().map(|id| new("q", id)).collect())
            .await;
        expected.extend(ids);
    }
    // A job with a time in the past comes earlier.
    let early = json!({"run_at": "2022-09-05T04:37:23Z"});
    relay.put_with("q", "early", early).await;
    expected.insert(0, "early".to_owned());
    assert_eq!(relay.next_ids("q", 100).await, expected);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_scheduled_job_is_claimed_when_it_is_due() {
    let server = start();
    let relay = client(&server);
    let at = chrono::Utc::now() + chrono::Duration::milliseconds(700);
    relay.put_with("q", "a", json!({"run_at": at})).await;
    let job = std::cell::Cell::new(None);
    eventually("the job is delivered", async || {
        let next = relay.next("q", 1).await.pop();
        let is_delivered = next.is_some();
        job.set(next);
        is_delivered
    })
    .await;
    let job = job.into_inner().expect("a job");
    assert!(job.updated_at >= job.run_at, "too early: {job:?}");
    assert_eq!(job.run_at.timestamp_micros(), at.timestamp_micros());
    assert_consistent(&server).await;
}
