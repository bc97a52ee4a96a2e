//! PostgreSQL goes away or hangs: clients are told to try again later.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::{client, sound};
use crate::support::Server;
use crate::support::jobq::{Jobq, ids};
use crate::support::lmstfy::eventually;
use crate::support::postgres::Postgres;

/// A guard against a request that waits for the database; no test waits for it.
const ANSWERED: Duration = Duration::from_secs(60);

/// What survives the end of PostgreSQL too.
const FULL: &[&str] = &["--durability", "full"];

/// Requests of every kind, all at once: each is put off in time.
async fn all_are_put_off(jobq: &Jobq) {
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

/// Until the server does what it is asked for.
async fn recovered(jobq: &Jobq) {
    let works = async || {
        let reply = jobq.post("/queue", &json!({"name": "recovered"})).await;
        [200, 409].contains(&reply.status)
    };
    eventually("the server works again", works).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_postgres_clients_are_told_to_try_again() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let (server, jobq) = start(&postgres).await;
    let before = jobq.all("q").await;
    postgres.stop();
    all_are_put_off(&jobq).await;
    all_are_put_off(&jobq).await;
    // What is wrong is wrong without a database.
    for path in ["/queue", "/queue/q/job", "/queue/q/job/1/event"] {
        jobq.post_text(path, "[").await.refused(400, &[]);
    }
    jobq.get("/nope").await.refused(404, &[]);
    postgres.start_again();
    recovered(&jobq).await;
    // Nothing of what was put off has happened.
    assert_eq!(jobq.all("q").await, before);
    let names: Vec<String> = jobq.queues().await.into_iter().map(|q| q.name).collect();
    assert_eq!(names, ["q", "recovered"]);
    assert_eq!(jobq.put("q", &json!(3)).await.id, 3);
    let polled = jobq.poll("q", &json!([]), &json!(["A"])).await;
    assert_eq!(polled.map(|job| job.id), Some(1));
    sound(&server).await;
    server.stop().await;
}

/// Here it is not known what has been done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgres_hangs_clients_are_told_to_try_again() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let (server, jobq) = start(&postgres).await;
    postgres.freeze();
    all_are_put_off(&jobq).await;
    all_are_put_off(&jobq).await;
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
    sound(&server).await;
    server.stop().await;
}
