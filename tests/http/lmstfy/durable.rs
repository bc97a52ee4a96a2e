//! Acknowledged writes survive a stop, and kill -9 under load.

use std::collections::BTreeSet;
use std::sync::Mutex;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{assert_consistent, client};
use crate::support::Server;
use crate::support::api_client::{Received, exchange};
use crate::support::eventually;
use crate::support::lmstfy::{Lmstfy, Reply};

/// The responses for one job of each kind.
async fn all(lmstfy: &Lmstfy, ids: &[String]) -> Vec<Value> {
    let mut all = Vec::new();
    for id in ids {
        let job = lmstfy.existing_job("work", id).await;
        all.push(json!([
            job.id,
            job.text(),
            job.remain_tries,
            job.attributes,
            job.ttl == 0
        ]));
    }
    let (size, dead) = (lmstfy.size("work").await, lmstfy.dead("work").await);
    all.push(json!([size, dead]));
    all
}

#[tokio::test]
async fn everything_survives_a_stop_and_a_crash() {
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("jobs.db");
    let mut server = Server::on(&database, &["--no-auth"]);
    let lmstfy = client(&server);
    let dead = lmstfy.publish_dead("work", "dead").await;
    let working = lmstfy.publish("work?tries=7", "working").await;
    lmstfy.take("work?ttr=3600").await;
    let request = lmstfy
        .request(Method::PUT, "/work?ttl=0&tries=3")
        .body("ready");
    let request = request
        .header("enable-job-version", "yes")
        .header("job-attr-flag", "1");
    let ready = Reply::of("attributes".to_owned(), request)
        .await
        .published();
    let next = lmstfy.publish("work", "next").await;
    let delayed = lmstfy.publish("work?delay=3600&ttl=7200", "delayed").await;
    let gone = lmstfy.publish("work", "gone").await;
    lmstfy.ack("work", &gone).await;
    let ids = [dead.clone(), working, ready.clone(), next.clone(), delayed];
    let before = all(&lmstfy, &ids).await;
    server.kill();
    let server = Server::on(&database, &["--no-auth"]);
    assert_eq!(all(&client(&server), &ids).await, before);
    server.stop().await;
    let server = Server::on(&database, &["--no-auth"]);
    let lmstfy = client(&server);
    assert_eq!(all(&lmstfy, &ids).await, before);
    assert_eq!(lmstfy.drain("work").await, [ready, next]);
    assert_eq!(lmstfy.respawn("work").await, 1);
    assert_eq!(lmstfy.drain("work").await, [dead]);
    assert_eq!(lmstfy.job("work", &gone).await, None);
    assert_consistent(&server).await;
}

/// Timeouts that end while no server runs take effect afterwards.
#[tokio::test]
async fn timeouts_that_end_while_the_server_is_stopped_take_effect_afterwards() {
    let folder = TempDir::new().expect("a folder");
    // If the timeouts end before the server is killed, the test repeats with longer ones.
    let mut seconds = 1;
    let (database, [expires, dies, back, due]) = loop {
        let database = folder.path().join(format!("jobs{seconds}.db"));
        let mut server = Server::on(&database, &["--no-auth"]);
        let lmstfy = client(&server);
        let began = Instant::now();
        let at = format!("work?ttl={seconds}");
        let expires = lmstfy.publish(&at, "expires").await;
        let dies = lmstfy.publish("dies", "dies").await;
        lmstfy.consume(&format!("dies?ttr={seconds}")).await;
        let back = lmstfy.publish("back?tries=2", "back").await;
        lmstfy.consume(&format!("back?ttr={seconds}")).await;
        let at = format!("due?delay={seconds}");
        let due = lmstfy.publish(&at, "due").await;
        server.kill();
        if began.elapsed() < Duration::from_secs(seconds) {
            break (database, [expires, dies, back, due]);
        }
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    };
    // Without a server there is no event to wait for.
    let passed = Duration::from_secs(seconds) + Duration::from_millis(200);
    tokio::time::sleep(passed).await;
    let server = Server::on(&database, &["--no-auth"]);
    let lmstfy = client(&server);
    assert_eq!(lmstfy.job("work", &expires).await, None);
    assert_eq!(lmstfy.take("back?timeout=30").await.id, back);
    assert_eq!(lmstfy.take("due?timeout=30").await.id, due);
    lmstfy.wait_until_dead("dies", 1).await;
    assert_eq!(lmstfy.dead("dies").await, (1, dies));
    assert_consistent(&server).await;
}

/// The calls of the clients, and their outcomes.
#[derive(Debug, Default)]
struct Ledger {
    /// Bodies that clients tried to publish.
    tried: BTreeSet<String>,
    /// IDs of jobs whose publish, consume or ack was acknowledged.
    published: BTreeSet<String>,
    given: BTreeSet<String>,
    acked: BTreeSet<String>,
    /// IDs of jobs whose ack was sent, with any outcome.
    perhaps_acked: BTreeSet<String>,
}

type Notes = Arc<Mutex<Ledger>>;

/// The body of the response with this status; `None` if there was no response.
async fn attempt(
    lmstfy: &Lmstfy,
    method: Method,
    path: &str,
    body: String,
    status: u16,
) -> Option<Value> {
    let request = lmstfy.request(method, path).body(body);
    let Received {
        status: got, text, ..
    } = exchange(path, request).await.ok()?;
    // A server that is being killed sends no response or a correct one.
    assert!(got == status || got == 404, "{path}: {got} {text}");
    (got == status).then(|| serde_json::from_str(&text).unwrap_or_default())
}

fn id(job: &Value) -> String {
    job.as_str().expect("an id").to_owned()
}

async fn produce(lmstfy: Lmstfy, name: String, ended: Arc<AtomicBool>, notes: Notes) {
    for call in 0.. {
        if ended.load(Ordering::Acquire) {
            return;
        }
        let bodies = [0, 1, 2].map(|n| format!("\"{name}-{call}-{n}\""));
        notes.lock().unwrap().tried.extend(bodies.clone());
        let (path, body) = match call % 2 {
            0 => ("/work", bodies[0].clone()),
            _ => ("/work/bulk", format!("[{}]", bodies.join(","))),
        };
        if let Some(response) = attempt(&lmstfy, Method::PUT, path, body, 201).await {
            let published = &mut notes.lock().unwrap().published;
            match response["job_ids"].as_array() {
                Some(ids) => published.extend(ids.iter().map(id)),
                None => drop(published.insert(id(&response["job_id"]))),
            }
        }
    }
}

async fn consume(lmstfy: Lmstfy, ended: Arc<AtomicBool>, notes: Notes) {
    while !ended.load(Ordering::Acquire) {
        let path = "/work?ttr=3600&count=3";
        let Some(jobs) = attempt(&lmstfy, Method::GET, path, String::new(), 200).await else {
            continue;
        };
        let ids: Vec<String> = jobs
            .as_array()
            .expect("jobs")
            .iter()
            .map(|job| id(&job["job_id"]))
            .collect();
        for id in &ids {
            assert!(
                notes.lock().unwrap().given.insert(id.clone()),
                "{id} was delivered twice"
            );
        }
        // One job is not acknowledged.
        for id in ids.iter().skip(1) {
            notes.lock().unwrap().perhaps_acked.insert(id.clone());
            let path = format!("/work/job/{id}");
            if attempt(&lmstfy, Method::DELETE, &path, String::new(), 204)
                .await
                .is_some()
            {
                notes.lock().unwrap().acked.insert(id.clone());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_under_load_loses_no_acknowledged_write() {
    const CLIENTS: usize = 6;
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("jobs.db");
    let notes = Notes::default();
    for kill in 1..4_u64 {
        let mut server = Server::on(&database, &["--no-auth"]);
        let ended = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let name = format!("{kill}-{number}");
            let (lmstfy, end) = (client(&server), Arc::clone(&ended));
            clients.spawn(produce(lmstfy.clone(), name, end, Arc::clone(&notes)));
            clients.spawn(consume(lmstfy, Arc::clone(&ended), Arc::clone(&notes)));
        }
        let rounds = usize::try_from(kill).expect("a few");
        let under_load = async || {
            let ledger = notes.lock().unwrap();
            ledger.published.len() > 50 * rounds && ledger.acked.len() > 10 * rounds
        };
        eventually("there is load", under_load).await;
        // The time of the kill varies on purpose.
        tokio::time::sleep(Duration::from_millis(100 + kill * 377 % 500)).await;
        server.kill_under_load(|| ended.store(true, Ordering::Release));
        clients.join_all().await;
    }
    let server = Server::on(&database, &["--no-auth"]);
    let ledger = std::mem::take(&mut *notes.lock().unwrap());
    settle(&server, &ledger).await;
    assert_consistent(&server).await;
}

/// Compares the remaining jobs with the outcomes of the calls.
async fn settle(server: &Server, ledger: &Ledger) {
    let lmstfy = client(server);
    for id in &ledger.acked {
        assert_eq!(lmstfy.job("work", id).await, None, "it was acknowledged");
    }
    for id in ledger.published.difference(&ledger.perhaps_acked) {
        lmstfy.existing_job("work", id).await;
    }
    let mut ready = BTreeSet::new();
    while let Some(job) = lmstfy.consume("work?ttr=3600").await {
        assert!(
            ledger.tried.contains(job.text()),
            "{job:?} was never published"
        );
        assert!(
            !ledger.given.contains(&job.id),
            "{job:?} was already delivered"
        );
        assert!(ready.insert(job.id.clone()), "{job:?} came twice");
    }
    assert_eq!(lmstfy.dead("work").await, (0, String::new()));
}
