//! Acknowledged writes survive a stop, and kill -9 under load.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{assert_consistent, client};
use crate::support::Server;
use crate::support::eventually;
use crate::support::relay::{Job, Relay, Reply, new, with};

#[tokio::test]
async fn everything_survives_a_stop_and_a_crash() {
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("jobs.db");
    let mut server = Server::on(&database, &[]);
    let relay = client(&server);
    let early =
        json!({"run_at": "2001-01-01T00:00:00.000001Z", "payload": {"a" : 1.50}, "state": [1]});
    let later = json!({"run_at": "2100-01-01T00:00:00.123456Z", "max_retries": 7});
    relay.put_with("q", "running", early).await;
    let running = relay.take("q").await;
    relay
        .heartbeat_with(&running, "{\"a\":  2.0}")
        .await
        .only(202);
    relay
        .put(&json!([
            new("q", "waiting"),
            with("q", "later", later),
            new("q", "gone")
        ]))
        .await;
    relay.delete("q", "gone").await;
    relay
        .put_with("dead", "dead", json!({"timeout": 0, "max_retries": 0}))
        .await;
    relay.take("dead").await;
    relay.wait_until_gone("dead", "dead").await;
    let ids = ["running", "waiting", "later"];
    let all = async |relay: &Relay| {
        let mut all = Vec::new();
        for id in ids {
            all.push(relay.existing_job("q", id).await);
        }
        all
    };
    let before = all(&relay).await;
    server.kill();
    let server = Server::on(&database, &[]);
    assert_eq!(all(&client(&server)).await, before);
    server.stop().await;
    let server = Server::on(&database, &[]);
    let relay = client(&server);
    assert_eq!(all(&relay).await, before);
    assert!(!relay.exists("q", "gone").await && !relay.exists("dead", "dead").await);
    relay.heartbeat(&running).await.only(202);
    let next = json!([new("q", "waiting"), new("q", "running")]);
    relay.requeue(&running, "ignore", &next).await.only(202);
    assert_eq!(relay.next_ids("q", 9).await, ["waiting", "running"]);
    assert_consistent(&server).await;
}

/// Runs whose timeout ends while no server runs time out afterwards.
#[tokio::test]
async fn timeouts_that_end_while_the_server_is_stopped_take_effect_afterwards() {
    let folder = TempDir::new().expect("a folder");
    // If the timeouts end before the server is killed, the test repeats with longer ones.
    let mut seconds = 1;
    let database = loop {
        let database = folder.path().join(format!("jobs{seconds}.db"));
        let mut server = Server::on(&database, &[]);
        let relay = client(&server);
        let began = Instant::now();
        let at = chrono::Utc::now() + chrono::Duration::seconds(seconds);
        let back = json!({"timeout": seconds, "max_retries": 1, "state": "kept"});
        let dies = json!({"timeout": seconds, "max_retries": 0});
        relay
            .put(&json!([
                with("q", "back", back),
                with("q", "dies", dies),
                with("q", "due", json!({"run_at": at})),
            ]))
            .await;
        assert_eq!(relay.next_ids("q", 2).await, ["back", "dies"]);
        server.kill();
        if began.elapsed().as_secs_f64() < seconds as f64 {
            break database;
        }
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    };
    // Without a server there is no event to wait for.
    let passed = Duration::from_millis(300) + Duration::from_secs(seconds.unsigned_abs());
    tokio::time::sleep(passed).await;
    let server = Server::on(&database, &[]);
    let relay = client(&server);
    relay.wait_until_gone("q", "dies").await;
    relay.wait_until_timed_out("q", "back").await;
    let jobs = relay.next("q", 9).await;
    let ids: Vec<&str> = jobs.iter().map(|job| &*job.id).collect();
    assert_eq!(ids, ["back", "due"]);
    assert_eq!(
        (jobs[0].retries_remaining, jobs[0].state.as_deref()),
        (Some(0), Some("\"kept\""))
    );
    assert_consistent(&server).await;
}

/// The calls of the clients, and their outcomes.
#[derive(Debug, Default)]
struct Ledger {
    /// Lists that clients tried to enqueue, and those whose enqueue was acknowledged.
    tried: Vec<[String; 3]>,
    enqueued: BTreeSet<String>,
    /// Claimed jobs, by ID.
    given: BTreeMap<String, Job>,
    /// Jobs whose end was requested, and jobs whose end was acknowledged.
    perhaps_ended: BTreeSet<String>,
    ended: BTreeSet<String>,
    /// Jobs whose state change was acknowledged.
    changed: BTreeSet<String>,
}

type Notes = Arc<Mutex<Ledger>>;

/// Sends a request; `None` if there was no response. A server that is being killed sends no response or a correct one.
async fn attempt(
    relay: &Relay,
    method: Method,
    path: &str,
    body: &Value,
    status: u16,
) -> Option<Reply> {
    let request = relay.request(method, path).body(body.to_string());
    let request = request.header("content-type", "application/json");
    let reply = relay.attempt(path, request).await?;
    if reply.status == 204 {
        return None;
    }
    assert_eq!(reply.status, status, "{reply:?}");
    Some(reply)
}

async fn produce(relay: Relay, name: String, end: Arc<AtomicBool>, notes: Notes) {
    for call in 0.. {
        if end.load(Ordering::Acquire) {
            return;
        }
        let ids = [0, 1, 2].map(|n| format!("{name}-{call}-{n}"));
        notes.lock().unwrap().tried.push(ids.clone());
        let jobs = ids
            .iter()
            .map(|id| with("work", id, json!({"payload": id})));
        if attempt(&relay, Method::POST, "/queues/jobs", &jobs.collect(), 202)
            .await
            .is_some()
        {
            notes.lock().unwrap().enqueued.extend(ids);
        }
    }
}

async fn consume(relay: Relay, end: Arc<AtomicBool>, notes: Notes) {
    while !end.load(Ordering::Acquire) {
        let path = "/queues/work/jobs?num_jobs=3";
        let Some(reply) = attempt(&relay, Method::GET, path, &json!(null), 200).await else {
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        };
        for (number, job) in reply.jobs().into_iter().enumerate() {
            let (id, run) = (job.id.clone(), job.run_path());
            let before = notes.lock().unwrap().given.insert(id.clone(), job);
            assert!(before.is_none(), "{id} was delivered twice");
            if number == 0 {
                let changed = attempt(&relay, Method::PATCH, &run, &json!(id), 202).await;
                if changed.is_some() {
                    notes.lock().unwrap().changed.insert(id);
                }
                continue;
            }
            notes.lock().unwrap().perhaps_ended.insert(id.clone());
            let ended = if number == 1 {
                attempt(&relay, Method::DELETE, &run, &json!(null), 200).await
            } else {
                let jobs = json!([with("after", &id, json!({"payload": id}))]);
                attempt(&relay, Method::PUT, &run, &jobs, 202).await
            };
            if ended.is_some() {
                notes.lock().unwrap().ended.insert(id);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_under_load_loses_no_acknowledged_write() {
    const CLIENTS: usize = 5;
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("jobs.db");
    let notes = Notes::default();
    for kill in 1..4_u64 {
        let mut server = Server::on(&database, &[]);
        let ended = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let name = format!("{kill}-{number}");
            let end = || Arc::clone(&ended);
            clients.spawn(produce(client(&server), name, end(), Arc::clone(&notes)));
            clients.spawn(consume(client(&server), end(), Arc::clone(&notes)));
        }
        let rounds = usize::try_from(kill).expect("a few");
        let under_load = async || {
            let ledger = notes.lock().unwrap();
            ledger.enqueued.len() > 50 * rounds && ledger.ended.len() > 10 * rounds
        };
        eventually("there is load", under_load).await;
        // The time of the kill varies on purpose.
        tokio::time::sleep(Duration::from_millis(100 + kill * 377 % 500)).await;
        server.kill_under_load(|| ended.store(true, Ordering::Release));
        clients.join_all().await;
    }
    let server = Server::on(&database, &[]);
    let ledger = std::mem::take(&mut *notes.lock().unwrap());
    settle(&server, &ledger).await;
    assert_consistent(&server).await;
}

/// Compares the remaining jobs with the outcomes of the calls.
async fn settle(server: &Server, ledger: &Ledger) {
    let relay = client(server);
    for list in &ledger.tried {
        if list.iter().any(|id| ledger.perhaps_ended.contains(id)) {
            continue;
        }
        let mut there = 0;
        for id in list {
            there += usize::from(relay.exists("work", id).await);
        }
        let acknowledged = ledger.enqueued.contains(&list[0]);
        assert!(
            there == 3 || there == 0 && !acknowledged,
            "{there} of {list:?}"
        );
    }
    for id in &ledger.ended {
        assert!(!relay.exists("work", id).await, "{id} has ended");
    }
    for id in ledger.enqueued.difference(&ledger.perhaps_ended) {
        let job = relay.existing_job("work", id).await;
        assert_eq!(job.payload, json!(id).to_string());
        if ledger.changed.contains(id) {
            assert_eq!(job.state, Some(json!(id).to_string()));
        }
        if let Some(given) = ledger.given.get(id) {
            assert_eq!(job.run_id, given.run_id, "the run continues");
            relay.heartbeat(given).await.only(202);
        }
    }
    // Either a requeued job or its replacement exists: never both, never none.
    for id in &ledger.perhaps_ended {
        let (before, after) = (
            relay.exists("work", id).await,
            relay.exists("after", id).await,
        );
        assert!(!(before && after), "{id} exists twice");
    }
    let mut rest = BTreeSet::new();
    loop {
        let jobs = relay.next("work", 500).await;
        if jobs.is_empty() {
            break;
        }
        for job in jobs {
            assert!(
                !ledger.given.contains_key(&job.id),
                "{job:?} was already delivered"
            );
            assert!(rest.insert(job.id.clone()), "{job:?} came twice");
        }
    }
}
