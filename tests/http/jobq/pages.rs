//! Pages of lists, and the number of results of a query.

use serde_json::{Value, json};

use super::{assert_consistent, start_with_queue};
use crate::support::at_once;
use crate::support::jobq::{Jobq, ids};

/// Creates this many jobs in the queue.
async fn fill(jobq: &Jobq, count: i64) {
    for number in 1..=count {
        assert_eq!(jobq.put("q", &json!(number)).await.id, number);
    }
}

#[tokio::test]
async fn a_list_has_pages_in_order_of_the_job_numbers() {
    let (server, jobq) = start_with_queue().await;
    fill(&jobq, 7).await;
    // Changed jobs do not move, and deleted jobs leave no gap in the pages.
    jobq.event("q", 1, &json!(1)).await.job();
    jobq.delete("q", 4).await;
    for (query, shown, next) in [
        ("", &[1, 2, 3, 5, 6, 7][..], None),
        ("?limit=6", &[1, 2, 3, 5, 6, 7], None),
        ("?limit=10000", &[1, 2, 3, 5, 6, 7], None),
        ("?limit=5", &[1, 2, 3, 5, 6], Some(6)),
        ("?limit=1", &[1], Some(1)),
        ("?limit=3", &[1, 2, 3], Some(3)),
        ("?limit=3&after=3", &[5, 6, 7], None),
        ("?limit=2&after=3", &[5, 6], Some(6)),
        ("?after=6&limit=2", &[7], None),
        ("?after=4", &[5, 6, 7], None),
        ("?after=0", &[1, 2, 3, 5, 6, 7], None),
        ("?after=7", &[], None),
        ("?after=1000000", &[], None),
        ("?unknown=1&limit=1&after=5", &[6], Some(6)),
    ] {
        let (jobs, reported_next) = jobq.get(&format!("/queue/q/job{query}")).await.page();
        assert_eq!(
            (ids(&jobs), reported_next),
            (shown.to_vec(), next),
            "{query:?} of the list"
        );
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn invalid_pages_are_rejected() {
    let (server, jobq) = start_with_queue().await;
    fill(&jobq, 2).await;
    for query in [
        "limit=0",
        "limit=10001",
        "limit=-1",
        "limit=",
        "limit=x",
        "limit=1.5",
        "limit=1e3",
        "limit=0x10",
        "limit=99999999999999999999",
        "limit=%201",
        "after=",
        "after=x",
        "after=1.5",
        "after=1;",
        "after=null",
        "limit=1%27%20OR%201=1",
    ] {
        let reply = jobq.get(&format!("/queue/q/job?{query}")).await;
        reply.assert_rejected(400, &[]);
    }
    for limit in [1, 9_999, 10_000] {
        let path = format!("/queue/q/job?limit={limit}");
        assert_eq!(jobq.get(&path).await.status, 200);
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_query_returns_up_to_its_limit() {
    let (server, jobq) = start_with_queue().await;
    fill(&jobq, 5).await;
    jobq.event("q", 2, &json!(1)).await.job();
    for (limit, shown) in [
        (1, &[1][..]),
        (2, &[1, 3]),
        (4, &[1, 3, 4, 5]),
        (5, &[1, 3, 4, 5, 2]),
        (9_999, &[1, 3, 4, 5, 2]),
        (10_000, &[1, 3, 4, 5, 2]),
    ] {
        for query in [json!([]), json!([[">", "id", 0]])] {
            let body = json!({"query": query, "limit": limit});
            let reply = jobq.post("/queue/q/query_jobs", &body).await;
            assert_eq!(ids(&reply.jobs()), shown, "{body}");
        }
    }
    // The limit counts matching jobs only.
    for limit in [json!(1), json!(1.0)] {
        let body = json!({"query": [[">=", "id", 4]], "limit": limit});
        let reply = jobq.post("/queue/q/query_jobs", &body).await;
        assert_eq!(ids(&reply.jobs()), [4]);
    }
    for limit in [
        json!(0),
        json!(-1),
        json!(10_001),
        json!(1.5),
        json!("5"),
        json!([5]),
        json!({}),
        json!(true),
        json!(1e300),
    ] {
        let body = json!({"query": [], "limit": limit});
        let reply = jobq.post("/queue/q/query_jobs", &body).await;
        assert_eq!(reply.status, 400, "{reply:?}");
    }
    assert_consistent(&server).await;
}

/// The default limits are 1,000 for a list and 100 for a query.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_default_a_list_returns_1000_and_a_query_100_jobs() {
    const JOBS: usize = 1_003;
    let (server, jobq) = start_with_queue().await;
    at_once(std::slice::from_ref(&jobq), 17, |jobq, _| async move {
        for number in 0..JOBS / 17 {
            jobq.put("q", &json!(number)).await;
        }
    })
    .await;
    let (jobs, next) = jobq.get("/queue/q/job").await.page();
    let expected: Vec<i64> = (1..=1_000).collect();
    assert_eq!((ids(&jobs), next), (expected, Some(1_000)));
    let (jobs, next) = jobq.get("/queue/q/job?after=1000").await.page();
    assert_eq!((ids(&jobs), next), (vec![1_001, 1_002, 1_003], None));
    for body in [
        json!({}),
        json!({"query": []}),
        json!({"query": [[">", "id", 0]]}),
    ] {
        let jobs = jobq.post("/queue/q/query_jobs", &body).await.jobs();
        assert_eq!(jobs.len(), 100, "{body}");
    }
    let all = jobq.matching("q", &json!([])).await;
    assert_eq!(all.len(), JOBS);
    // A page starts after the given job even if that job has been deleted.
    jobq.delete("q", 1_000).await;
    let (jobs, next) = jobq.get("/queue/q/job?after=1000&limit=2").await.page();
    assert_eq!((ids(&jobs), next), (vec![1_001, 1_002], Some(1_002)));
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_missing_query_matches_all_jobs() {
    let (server, jobq) = start_with_queue().await;
    fill(&jobq, 3).await;
    for body in ["{}", r#"{"limit":3}"#, r#"{"query":[]}"#, r#"{"x":1}"#] {
        let reply = jobq.post_text("/queue/q/query_jobs", body).await;
        assert_eq!(ids(&reply.jobs()), [1, 2, 3], "{body}");
    }
    for body in ["", "[]", "null", "1", "\"query\"", "{", "query=[]"] {
        let reply = jobq.post_text("/queue/q/query_jobs", body).await;
        reply.assert_rejected(400, &[]);
    }
    for query in [json!({}), json!("id = 1"), json!(1), Value::Bool(true)] {
        let reply = jobq.send_query("q", &query).await;
        let at = reply.bad_query();
        assert_eq!((at.term, at.place, at.column), (None, None, None));
    }
    assert_consistent(&server).await;
}
