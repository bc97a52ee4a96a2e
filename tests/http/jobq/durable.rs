//! Acknowledged writes survive kill -9 under load.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{assert_consistent, client};
use crate::support::Server;
use crate::support::eventually;
use crate::support::jobq::{Job, Jobq, Reply, What, path, plain};

/// The calls of the clients, and their outcomes.
#[derive(Debug, Default)]
struct Ledger {
    /// The payloads of the jobs that clients tried to create.
    tried: BTreeSet<String>,
    /// The payloads of the created jobs, by ID.
    created: BTreeMap<i64, String>,
    /// The states of the claimed jobs, by ID.
    taken: BTreeMap<i64, String>,
    /// The acknowledged events, by ID.
    noted: BTreeMap<i64, BTreeSet<String>>,
    /// Jobs whose deletion was requested, and jobs whose deletion was acknowledged.
    perhaps_deleted: BTreeSet<i64>,
    deleted: BTreeSet<i64>,
    /// The numbers of the created queues in order of the responses, and of those whose deletion was requested.
    queues: Vec<i64>,
    perhaps_expunged: BTreeSet<i64>,
    expunged: BTreeSet<i64>,
    kept: BTreeSet<i64>,
}

type Notes = Arc<Mutex<Ledger>>;

/// Sends a request; `None` if there was no response. A server that is being killed sends no response or a correct one.
async fn attempt(jobq: &Jobq, method: Method, path: &str, body: &Value) -> Option<Reply> {
    let request = jobq.request(method, path).body(body.to_string());
    let reply = jobq.attempt(path, request).await?;
    assert!([200, 404].contains(&reply.status), "{reply:?}");
    Some(reply)
}

async fn produce(jobq: Jobq, name: String, end: Arc<AtomicBool>, notes: Notes) {
    for call in 0.. {
        if end.load(Ordering::Acquire) {
            return;
        }
        let payload = json!(format!("{name}-{call}"));
        notes.lock().unwrap().tried.insert(payload.to_string());
        let body = json!({"payload": payload, "state": ["NEW"]});
        let reply = attempt(&jobq, Method::POST, "/queue/work/job", &body).await;
        let Some(job) = reply.map(|reply| reply.job()) else {
            continue;
        };
        let before = notes.lock().unwrap().created.insert(job.id, job.payload);
        assert_eq!(before, None, "{} was assigned twice", job.id);
    }
}

async fn consume(jobq: Jobq, name: String, end: Arc<AtomicBool>, notes: Notes) {
    let query = json!([["IS", "json_extract(state,'$[0]')", "NEW"]]);
    for call in 0.. {
        if end.load(Ordering::Acquire) {
            return;
        }
        let body = json!({"query": query, "state": ["TAKEN", name, call]});
        let reply = attempt(&jobq, Method::POST, "/queue/work/poll_job", &body).await;
        let Some(job) = reply.and_then(|reply| reply.maybe_job()) else {
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        };
        let before = notes.lock().unwrap().taken.insert(job.id, job.state);
        assert_eq!(before, None, "{} was claimed twice", job.id);
        if call % 3 == 0 {
            notes.lock().unwrap().perhaps_deleted.insert(job.id);
            let path = path("work", job.id);
            if let Some(reply) = attempt(&jobq, Method::DELETE, &path, &json!(null)).await {
                reply.done();
                notes.lock().unwrap().deleted.insert(job.id);
            }
            continue;
        }
        let note = json!(format!("{name}-{call}"));
        let path = format!("{}/event", path("work", job.id));
        if let Some(reply) = attempt(&jobq, Method::POST, &path, &note).await {
            let id = reply.job().id;
            let mut notes = notes.lock().unwrap();
            notes.noted.entry(id).or_default().insert(note.to_string());
        }
    }
}

/// Creates queues, and deletes every other one.
async fn create_and_delete_queues(jobq: Jobq, name: String, end: Arc<AtomicBool>, notes: Notes) {
    for call in 0.. {
        if end.load(Ordering::Acquire) {
            return;
        }
        let body = json!({"name": format!("queue-{name}-{call}")});
        let reply = attempt(&jobq, Method::POST, "/queue", &body).await;
        let Some(id) = reply.and_then(|reply| reply.ok::<Value>()["id"].as_i64()) else {
            continue;
        };
        notes.lock().unwrap().queues.push(id);
        if call % 2 == 0 {
            notes.lock().unwrap().perhaps_expunged.insert(id);
            let path = format!("/queue/{id}");
            if let Some(reply) = attempt(&jobq, Method::DELETE, &path, &json!(null)).await {
                reply.done();
                notes.lock().unwrap().expunged.insert(id);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_under_load_loses_no_acknowledged_write() {
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("jobs.db");
    let notes = Notes::default();
    let mut newest = 0;
    for kill in 1..4_u64 {
        let mut server = Server::on(&database, &[]);
        if kill == 1 {
            client(&server).create("work").await;
        }
        let ended = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for number in 0..4 {
            let name = format!("{kill}-{number}");
            let end = || Arc::clone(&ended);
            let ledger = || Arc::clone(&notes);
            clients.spawn(produce(client(&server), name.clone(), end(), ledger()));
            clients.spawn(consume(client(&server), name.clone(), end(), ledger()));
            if number == 0 {
                clients.spawn(create_and_delete_queues(
                    client(&server),
                    name,
                    end(),
                    ledger(),
                ));
            }
        }
        let rounds = usize::try_from(kill).expect("a few");
        let under_load = async || {
            let ledger = notes.lock().unwrap();
            let counts = [
                ledger.created.len() / 20,
                ledger.taken.len() / 5,
                ledger.deleted.len(),
            ];
            counts.into_iter().all(|count| count >= rounds) && !ledger.queues.is_empty()
        };
        eventually("there is load", under_load).await;
        // The time of the kill varies on purpose.
        tokio::time::sleep(Duration::from_millis(100 + kill * 377 % 500)).await;
        server.kill_under_load(|| ended.store(true, Ordering::Release));
        clients.join_all().await;
        let queues = notes.lock().unwrap().queues.split_off(0);
        let first = queues.first().copied().expect("a queue was created");
        assert!(first > newest, "{first} is not a new number");
        assert!(queues.is_sorted(), "{queues:?}");
        newest = queues.last().copied().expect("a queue was created");
        let mut ledger = notes.lock().unwrap();
        let perhaps = &ledger.perhaps_expunged;
        let kept: Vec<i64> = queues
            .into_iter()
            .filter(|id| !perhaps.contains(id))
            .collect();
        ledger.kept.extend(kept);
    }
    let server = Server::on(&database, &[]);
    let ledger = std::mem::take(&mut *notes.lock().unwrap());
    settle(&client(&server), &ledger).await;
    let next = client(&server).create("next").await;
    assert!(next.id > newest, "{next:?} after {newest}");
    assert_consistent(&server).await;
}

/// Compares the remaining jobs with the outcomes of the calls.
async fn settle(jobq: &Jobq, ledger: &Ledger) {
    let all = jobq.all("work").await;
    let jobs: BTreeMap<i64, &Job> = all.iter().map(|job| (job.id, job)).collect();
    for (id, payload) in &ledger.created {
        let Some(job) = jobs.get(id) else {
            assert!(ledger.perhaps_deleted.contains(id), "{id} is lost");
            continue;
        };
        assert_eq!(job.payload, *payload, "{job:?}");
    }
    let mut payloads = BTreeSet::new();
    for job in &all {
        assert!(
            ledger.tried.contains(&job.payload),
            "never created by a client: {job:?}"
        );
        assert!(payloads.insert(&job.payload), "created twice: {job:?}");
        assert!(
            !ledger.deleted.contains(&job.id),
            "exists after its deletion: {job:?}"
        );
        if let Some(state) = ledger.taken.get(&job.id) {
            assert_eq!(job.state, *state, "{job:?}");
        }
        let taken = job
            .log()
            .into_iter()
            .filter(|what| matches!(what, What::Advanced(_, _)));
        assert_eq!(
            taken.count(),
            usize::from(job.state != plain(&json!(["NEW"])))
        );
        for note in ledger.noted.get(&job.id).into_iter().flatten() {
            assert!(job.log().contains(&What::User(note.clone())), "{job:?}");
        }
    }
    let ids: BTreeSet<i64> = jobq.queues().await.iter().map(|queue| queue.id).collect();
    for id in &ledger.expunged {
        assert!(!ids.contains(id), "queue {id} is back");
    }
    for id in &ledger.kept {
        assert!(ids.contains(id), "queue {id} is lost");
    }
    // Numbers are never reused.
    let last = ledger.created.keys().chain(jobs.keys()).max().copied();
    let next = jobq.put("work", &json!("next")).await;
    assert!(Some(next.id) > last, "{next:?} after {last:?}");
}
