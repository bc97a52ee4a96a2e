//! PostgreSQL is stopped or hangs: requests fail with 503.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use super::{assert_consistent, client};
use crate::support::Server;
use crate::support::eventually;
use crate::support::postgres::Postgres;
use crate::support::relay::{Job, Relay, new, path};

/// A guard against a request that waits for the database; no test waits this long.
const ANSWERED: Duration = Duration::from_secs(60);

/// The durability that survives a crash of PostgreSQL.
const FULL: &[&str] = &["--durability", "full"];

/// Sends requests of every kind concurrently, and checks that each is rejected in time.
async fn assert_all_rejected_in_time(relay: &Relay, job: &Job) {
    let run = job.run_path();
    let jobs = json!([new("q", "x")]).to_string();
    let requests = [
        (Method::POST, "/queues/jobs".to_owned(), Some(&jobs)),
        (
            Method::POST,
            "/queues/jobs?mode=ignore".to_owned(),
            Some(&jobs),
        ),
        (
            Method::POST,
            "/queues/jobs?mode=replace".to_owned(),
            Some(&jobs),
        ),
        (Method::GET, "/queues/q/jobs?num_jobs=5".to_owned(), None),
        (Method::GET, path("q", "a"), None),
        (Method::HEAD, path("q", "a"), None),
        (Method::DELETE, path("q", "b"), None),
        (Method::PATCH, run.clone(), None),
        (Method::PUT, run.clone(), Some(&jobs)),
        (Method::DELETE, run, None),
    ];
    let requests = requests.into_iter().map(|(method, path, body)| async move {
        let head = method == Method::HEAD;
        let began = Instant::now();
        let reply = match body {
            Some(body) => relay.send_json(method, &path, body.clone()).await,
            None => relay.send(method, &path).await,
        };
        let took = began.elapsed();
        assert!(took <= ANSWERED, "{took:?}: {reply:?}");
        assert_eq!(reply.status, 429, "{reply:?}");
        assert_eq!(reply.text.is_empty(), head, "{reply:?}");
    });
    futures::future::join_all(requests).await;
}

/// A server with two jobs, of which the returned one runs.
async fn start(postgres: &Postgres) -> (Server, Relay, Job) {
    let server = Server::at_url(&postgres.address(), FULL);
    let relay = client(&server);
    relay.put_ids("q", &["a", "b"]).await;
    let job = relay.take("q").await;
    (server, relay, job)
}

/// Waits until the server responds normally again.
async fn recovered(relay: &Relay) {
    let works = async || {
        let jobs = json!([new("recovered", "x")]);
        relay.enqueue("ignore", &jobs).await.status == 202
    };
    eventually("the server works again", works).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_postgres_clients_are_asked_to_retry() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let (server, relay, job) = start(&postgres).await;
    postgres.stop();
    assert_all_rejected_in_time(&relay, &job).await;
    assert_all_rejected_in_time(&relay, &job).await;
    // Invalid requests are rejected without using the database.
    relay.enqueue_text("", "[").await.assert_rejected(400, &[]);
    relay.enqueue_text("", "{}").await.assert_rejected(422, &[]);
    postgres.start_again();
    recovered(&relay).await;
    // The rejected requests had no effect.
    assert_eq!(relay.existing_job("q", "a").await, job);
    assert!(!relay.exists("q", "x").await);
    relay.heartbeat(&job).await.only(202);
    assert_eq!(relay.next_ids("q", 9).await, ["b"]);
    relay.complete(&job).await;
    assert_consistent(&server).await;
    server.stop().await;
}

/// Requests that hang may or may not be committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgres_hangs_clients_are_asked_to_retry() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let (server, relay, job) = start(&postgres).await;
    postgres.freeze();
    assert_all_rejected_in_time(&relay, &job).await;
    assert_all_rejected_in_time(&relay, &job).await;
    postgres.thaw();
    recovered(&relay).await;
    relay.delete("q", "a").await;
    relay
        .enqueue("replace", &json!([new("q", "a")]))
        .await
        .only(202);
    assert!(relay.next_ids("q", 9).await.contains(&"a".to_owned()));
    assert_consistent(&server).await;
    server.stop().await;
}
