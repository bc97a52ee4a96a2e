//! Polls: which job they claim, and how they change it.

use serde_json::{Value, json};

use super::{assert_consistent, start_with_queue};
use crate::support::at_once;
use crate::support::eventually;
use crate::support::jobq::{What, plain};

#[tokio::test]
async fn a_poll_claims_the_least_recently_changed_job() {
    let (server, jobq) = start_with_queue().await;
    for number in 1..=4 {
        jobq.put("q", &json!(number)).await;
    }
    jobq.event("q", 1, &json!("busy")).await.job();
    let free = json!([["IS", "state", null]]);
    let mut taken = Vec::new();
    while let Some(job) = jobq.poll("q", &free, &json!(["TAKEN"])).await {
        assert!(!taken.contains(&job.id), "again: {job:?}");
        assert_eq!(job.payload, job.id.to_string());
        assert_eq!(jobq.existing_job("q", job.id).await, job);
        taken.push(job.id);
    }
    assert_eq!(taken, [2, 3, 4, 1]);
    // A poll changes the job, so repeated polls claim the jobs in turn.
    let any = json!([]);
    for id in [2, 3, 4, 1, 2, 3, 4, 1] {
        let job = jobq.poll("q", &any, &json!(["AGAIN"])).await;
        assert_eq!(job.map(|job| job.id), Some(id));
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_poll_sets_the_state_and_adds_an_event() {
    let (server, jobq) = start_with_queue().await;
    let first = json!(["A", {"n": 1}]);
    jobq.put_in("q", &json!({"p": 1}), &first).await;
    jobq.put_in("q", &json!({"p": 2}), &first).await;
    let mut log = vec![What::Created];
    let mut old = first;
    let is_first = json!([["=", "id", 1]]);
    for new in [
        json!(["B"]),
        json!(null),
        json!(null),
        json!("x"),
        json!([]),
    ] {
        let job = jobq.poll("q", &is_first, &new).await.expect("a job");
        log.push(What::Advanced(plain(&old), plain(&new)));
        assert_eq!((job.id, job.log()), (1, log.clone()));
        assert_eq!(job.payload, plain(&json!({"p": 1})));
        old = new;
    }
    assert_eq!(jobq.existing_job("q", 2).await.log(), [What::Created]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_poll_without_a_match_has_no_effect() {
    let (server, jobq) = start_with_queue().await;
    jobq.create("other").await;
    jobq.put("other", &json!(1)).await;
    let none = jobq.send_poll("q", &json!([]), &json!(1)).await;
    none.assert_rejected(404, &[]);
    let job = jobq.put_in("q", &json!(1), &json!("S")).await;
    for query in [
        json!([["IS", "state", null]]),
        json!([["=", "id", 2]]),
        json!([["=", "state", null]]),
        json!([["=", 1, 0]]),
        json!([["=", "id", 1], ["=", "id", 2]]),
        json!([["IS", "json_extract(payload,'$.x')", 1]]),
    ] {
        let reply = jobq.send_poll("q", &query, &json!(2)).await;
        reply.assert_rejected(404, &[]);
        assert_eq!(jobq.all("q").await, std::slice::from_ref(&job), "{query}");
    }
    assert_eq!(jobq.all("other").await.len(), 1);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_poll_requires_a_query_and_a_state() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(1)).await;
    for body in [
        "{}",
        r#"{"query":[]}"#,
        r#"{"state":1}"#,
        r#"{"query":null,"state":1}"#,
        r#"{"query":{},"state":1}"#,
        r#"{"query":"id = 1","state":1}"#,
        r#"{"Query":[],"State":1}"#,
        "[]",
        "null",
        "1",
        "",
    ] {
        let reply = jobq.post_text("/queue/q/poll_job", body).await;
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
    }
    assert_eq!(jobq.all("q").await, [job]);
    let body = r#"{"state":null,"limit":0,"x":1,"query":[]}"#;
    let polled = jobq.post_text("/queue/q/poll_job", body).await.job();
    assert_eq!(polled.log().len(), 2);
    assert_consistent(&server).await;
}

/// An extension of the documentation's example: another client claims a job that has not been changed for a long time.
#[tokio::test]
async fn a_stale_job_can_be_claimed_again() {
    let (server, jobq) = start_with_queue().await;
    let assigned = |node: i32| json!(["ASSIGNED", {"node": node}]);
    let of = |node: i32| json!(["=", "json_extract(state,'$[1].node')", node]);
    jobq.put("q", &json!("a")).await;
    let polled = jobq.poll("q", &json!([]), &assigned(1)).await;
    let before = polled.expect("a job");
    let stale = json!(["<", "modified", "strftime('%s','now') - 1"]);
    let query = json!([
        ["=", "json_extract(state,'$[0]')", "'ASSIGNED'"],
        of(1),
        stale
    ]);
    let taken = async || {
        let Some(job) = jobq.poll("q", &query, &assigned(2)).await else {
            return false;
        };
        assert!(job.modified > before.modified + 1, "{job:?}");
        true
    };
    eventually("a stale job is taken over", taken).await;
    assert_eq!(jobq.existing_job("q", 1).await.state, plain(&assigned(2)));
    // The first client gets an error when it returns, and the job is no longer stale.
    let late = jobq.advance("q", 1, &assigned(1), &json!(["DONE"])).await;
    assert_eq!(late.conflict().state, plain(&assigned(2)));
    assert_eq!(jobq.poll("q", &query, &assigned(3)).await, None);
    assert_consistent(&server).await;
}

/// A poll skips any number of jobs that do not match.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_finds_a_match_behind_many_other_jobs() {
    const JOBS: i64 = 1_500;
    let (server, jobq) = start_with_queue().await;
    at_once(std::slice::from_ref(&jobq), 15, |jobq, _| async move {
        for _ in 0..100 {
            jobq.put_in("q", &json!({"n": 0}), &json!(["OLD"])).await;
        }
    })
    .await;
    let last = jobq.put_in("q", &json!({"n": 1}), &json!(["NEW"])).await;
    assert_eq!(last.id, JOBS + 1);
    for query in [
        json!([["=", "json_extract(payload,'$.n')", 1]]),
        json!([["=", "json_extract(state,'$[0]')", "'NEW'"]]),
        json!([["LIKE", "state", "'%new%'"]]),
    ] {
        let body = json!({"query": query, "limit": 1});
        let found = jobq.post("/queue/q/query_jobs", &body).await.jobs();
        assert_eq!(found[0].id, last.id, "{query}");
        let job = jobq.poll("q", &query, &json!(["NEW"])).await;
        assert_eq!(job.map(|job| job.id), Some(last.id), "{query}");
    }
    assert_consistent(&server).await;
}

/// The poll changes the tag by which it matches, so it claims each job once.
#[tokio::test]
async fn polls_by_tag_claim_each_job_once() {
    let (server, jobq) = start_with_queue().await;
    let tags: [Value; 6] = [
        json!(["CREATED"]),
        json!(["created"]),
        json!(["CREATED", {"by": "x"}]),
        json!("CREATED"),
        json!({"tag": ["CREATED"]}),
        json!([["CREATED"]]),
    ];
    for tag in &tags {
        jobq.put_in("q", &json!(1), tag).await;
    }
    let query = json!([["IS", "json_extract(state, '$[0]')", "CREATED"]]);
    let mut taken = Vec::new();
    while let Some(job) = jobq.poll("q", &query, &json!(["TAKEN"])).await {
        assert!(!taken.contains(&job.id), "again: {job:?}");
        taken.push(job.id);
    }
    assert_eq!(taken, [1, 3]);
    assert_consistent(&server).await;
}
