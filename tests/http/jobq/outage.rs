//! PostgreSQL is stopped or hangs: requests fail with 503.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_consistent, client};
use crate::support::Server;
use crate::support::eventually;
use crate::support::jobq::{Jobq, ids};
use crate::support::postgres::Postgres;

/// A guard against a request that waits for the database; no test waits this long.
const ANSWERED: Duration = Duration::from_secs(60);

/// The durability that survives a crash of PostgreSQL.
const FULL: &[&str] = &["--durability", "full"];

/// Sends requests of every kind concurrently, and checks that each is rejected in time.
async fn assert_all_rejected_in_time(jobq: &Jobq) {
    let requests = [
        (Method::GET, "/queue", ""),
        (Method::POST, "/queue", r#"{"name":"new"}"#),
        (Method::DELETE, "/queue/q", ""),
        (Method::GET, "/queue/q/job", ""),
        (Method::POST, "/queue/q/job", r#"{"payload":"x"}"#),
        (Method::POST, "/queue/q/query_jobs", "{}"),
        (
            Method::POST,
            "/queue/q/poll_job",
            r#"{"query":[],"state":"x"}"#,
        ),
        (Method::GET, "/queue/q/job/1", ""),
        (Method::HEAD, "/queue/q/job/1", ""),
        (Method::DELETE, "/queue/q/job/1", ""),
        (
            Method::POST,
            "/queue/q/job/1/state",
            r#"{"old":null,"new":"x"}"#,
        ),
        (Method::POST, "/queue/q/job/1/event", "\"x\""),
    ];
    let requests = requests.into_iter().map(|(method, path, body)| async move {
        let began = Instant::now();
        let asked = format!("{method} {path}");
        let reply = jobq
            .ask(&asked, jobq.request(method, path).body(body))
            .await;
        let took = began.elapsed();
        assert!(took <= ANSWERED, "{took:?}: {reply:?}");
        assert_eq!(reply.status, 503, "{reply:?}");
    });
    futures::future::join_all(requests).await;
}

/// A server with two jobs.
async fn start(postgres: &Postgres) -> (Server, Jobq) {
    let server = Server::at_url(&postgres.address(), FULL);
    let jobq = client(&server);
    jobq.create("q").await;
    for number in 1..=2 {
        jobq.put("q", &json!(number)).await;
    }
    (server, jobq)
}

/// Waits until the server responds normally again.
async fn recovered(jobq: &Jobq) {
    let works = async || {
        let reply = jobq.post("/queue", &json!({"name": "recovered"})).await;
        [200, 409].contains(&reply.status)
    };
    eventually("the server works again", works).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_postgres_clients_are_asked_to_retry() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let (server, jobq) = start(&postgres).await;
    let before = jobq.all("q").await;
    postgres.stop();
    assert_all_rejected_in_time(&jobq).await;
    assert_all_rejected_in_time(&jobq).await;
    // Invalid requests are rejected without using the database.
    for path in ["/queue", "/queue/q/job", "/queue/q/job/1/event"] {
        jobq.post_text(path, "[").await.assert_rejected(400, &[]);
    }
    jobq.get("/nope").await.assert_rejected(404, &[]);
    postgres.start_again();
    recovered(&jobq).await;
    // The rejected requests had no effect.
    assert_eq!(jobq.all("q").await, before);
    let names: Vec<String> = jobq.queues().await.into_iter().map(|q| q.name).collect();
    assert_eq!(names, ["q", "recovered"]);
    assert_eq!(jobq.put("q", &json!(3)).await.id, 3);
    let polled = jobq.poll("q", &json!([]), &json!(["A"])).await;
    assert_eq!(polled.map(|job| job.id), Some(1));
    assert_consistent(&server).await;
    server.stop().await;
}

/// Requests that hang may or may not be committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgres_hangs_clients_are_asked_to_retry() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let (server, jobq) = start(&postgres).await;
    postgres.freeze();
    assert_all_rejected_in_time(&jobq).await;
    assert_all_rejected_in_time(&jobq).await;
    postgres.thaw();
    recovered(&jobq).await;
    let fresh = jobq.create("fresh").await;
    assert!(jobq.queues().await.contains(&fresh));
    for number in 1..=3 {
        assert_eq!(jobq.put("fresh", &json!(number)).await.id, number);
    }
    let polled = jobq.poll("fresh", &json!([]), &Value::Null).await;
    assert_eq!(polled.map(|job| job.id), Some(1));
    assert_eq!(ids(&jobq.all("fresh").await), [1, 2, 3]);
    assert_consistent(&server).await;
    server.stop().await;
}
