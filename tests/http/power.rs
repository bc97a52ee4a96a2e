//! A loss of power, and a disk that fails: what was acknowledged is kept, and what is not safe is not acknowledged.
//!
//! `SWITCHYARD_CUTS` sets how often the power is lost in each test, `SWITCHYARD_SEED` when.

use std::collections::BTreeMap;
use std::fs;

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

use crate::support::disk::Disk;
use crate::support::eventually;
use crate::support::random::Random;
use crate::support::{Server, database, settings};

const CLIENTS: usize = 4;
/// Enough for several checkpoints.
const JOBS: usize = 80;
const BYTES: usize = 8_000;

/// When the server acknowledged the steps of a job: positions in the records of the disk.
#[derive(Clone, Copy)]
struct Acknowledged {
    put: u64,
    completed: Option<u64>,
}

fn data_of(id: &str) -> String {
    id.repeat(BYTES / id.len())
}

/// Puts jobs, claims them, and completes two of three.
async fn work(server: &Server, disk: &Disk, client: usize) -> BTreeMap<String, Acknowledged> {
    let queue = format!("queue-{client}");
    let worker = server.by("w");
    let mut acknowledged = BTreeMap::new();
    for number in 0..JOBS {
        let id = format!("job-{client}-{number}");
        worker
            .add(&queue, json!({"id": id, "meta": data_of(&id)}))
            .await;
        let put = disk.position();
        assert_eq!(worker.pop(&queue).await["id"], *id);
        let completed = if number % 3 == 0 {
            None
        } else {
            let item = json!({"id": id, "meta": data_of(&id)});
            worker.post(&format!("/complete/{queue}"), item).await.ok();
            Some(disk.position())
        };
        acknowledged.insert(id, Acknowledged { put, completed });
    }
    acknowledged
}

/// The jobs of a database after a loss of power, with their states.
async fn found(server: &Server, ids: &[&String]) -> BTreeMap<String, String> {
    let mut states = BTreeMap::new();
    for part in ids.chunks(100) {
        let query: Vec<String> = part.iter().map(|id| format!("id={id}")).collect();
        let jobs = server
            .client()
            .get(&format!("/jobs?{}", query.join("&")))
            .await
            .ok();
        for job in jobs.as_array().unwrap().iter().filter(|job| !job.is_null()) {
            let (id, state) = (job["id"].as_str().unwrap(), job["state"].as_str().unwrap());
            assert_eq!(job["meta"], data_of(id), "{id} has its data");
            states.insert(id.to_owned(), state.to_owned());
        }
    }
    states
}

async fn integrity(path: &std::path::Path) -> String {
    let options = SqliteConnectOptions::new().filename(path);
    let mut connection = options.connect().await.unwrap();
    sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

/// Works under load, loses power at random times, and checks what is left with `check`.
async fn lose_power(
    durability: &str,
    check: impl Fn(u64, &BTreeMap<String, Acknowledged>, &BTreeMap<String, String>),
) {
    let (cuts, seed) = (settings::number("SWITCHYARD_CUTS", 6), settings::seed());
    let disk = Disk::new().await;
    let mut server = disk.server(&["--durability", durability]);
    let clients = (0..CLIENTS).map(|client| work(&server, &disk, client));
    let acknowledged: BTreeMap<_, _> = join_all(clients).await.into_iter().flatten().collect();
    server.kill();
    let records = disk.records();
    let mut random = Random(seed);
    for cut in 0..cuts {
        let count = match cut {
            0 => records.len(),
            _ => 1 + random.index(records.len()),
        };
        let folder = TempDir::new().unwrap();
        let path = disk.after_power_loss(&records[..count], &mut random, folder.path());
        let server = Server::on(&path, &[]);
        let ids: Vec<&String> = acknowledged.keys().collect();
        let states = found(&server, &ids).await;
        check(records[count - 1].end, &acknowledged, &states);
        let problems = server.client().get("/check").await.ok()["problems"].clone();
        assert_eq!(problems, json!([]), "after {count} calls");
        server.stop().await;
        assert_eq!(integrity(&path).await, "ok", "after {count} calls");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_loss_keeps_everything_acknowledged() {
    if database::postgres().is_some() {
        return;
    }
    lose_power("full", |cut, acknowledged, states| {
        for (id, steps) in acknowledged {
            let state = states.get(id).map(String::as_str);
            if steps.put <= cut {
                assert!(state.is_some(), "{id} was acknowledged, and is lost");
            }
            if steps.completed.is_some_and(|completed| completed <= cut) {
                assert_eq!(state, Some("complete"), "{id} was completed");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_durability_process_a_power_loss_keeps_a_consistent_earlier_state() {
    if database::postgres().is_some() {
        return;
    }
    lose_power("process", |_, acknowledged, states| {
        // Each client's jobs are put one after the other, so a job is there only if all earlier ones are.
        for client in 0..CLIENTS {
            let is_there = |number: &usize| states.contains_key(&format!("job-{client}-{number}"));
            let kept = (0..JOBS).take_while(is_there).count();
            assert!(!(kept..JOBS).any(|number| is_there(&number)), "{states:?}");
        }
        assert!(states.len() <= acknowledged.len());
    })
    .await;
}

/// Puts a job. The status, or `None` without a response.
async fn put(server: &Server, id: &str) -> Option<u16> {
    let body = json!({"data": {"id": id, "meta": null}}).to_string();
    let response = server.try_send(Method::POST, "/add/work", Some(body)).await;
    response.ok().map(|response| response.status)
}

/// Waits until the server has stopped with an error. A restart then has these jobs.
async fn stops_and_keeps(mut server: Server, disk: &Disk, ids: &[&str]) {
    assert_eq!(server.stopped().await.code(), Some(1));
    let server = Server::on(&disk.database(), &[]);
    for id in ids {
        assert_eq!(server.client().state(id).await, "waiting", "{id}");
    }
    server.stop().await;
    assert_eq!(integrity(&disk.database()).await, "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_fsync_stops_the_server_before_it_acknowledges() {
    if database::postgres().is_some() {
        return;
    }
    let disk = Disk::new().await;
    let server = disk.server(&["--durability", "full"]);
    server.client().add_ids("work", &["before"]).await;
    disk.fail("fsync");
    assert_ne!(put(&server, "after").await, Some(200));
    disk.repair();
    stops_and_keeps(server, &disk, &["before"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_write_is_not_acknowledged_and_later_ones_succeed() {
    if database::postgres().is_some() {
        return;
    }
    let disk = Disk::new().await;
    let server = disk.server(&["--durability", "full"]);
    server.client().add_ids("work", &["before"]).await;
    disk.fail("write");
    assert_ne!(put(&server, "refused").await, Some(200));
    let claim = server.try_send(Method::GET, "/get/work?host=w", None).await;
    assert_ne!(claim.unwrap().status, 200);
    disk.repair();
    eventually("new jobs are accepted again", async || {
        put(&server, "after").await == Some(200)
    })
    .await;
    let jobs = server.by("w").pop_ids("work", 10).await;
    assert_eq!(jobs, ["before", "after"]);
    server.stop().await;
    assert_eq!(integrity(&disk.database()).await, "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stops_when_a_file_of_its_database_is_moved() {
    if database::postgres().is_some() {
        return;
    }
    for name in ["jobs.db", "jobs.db-wal"] {
        let disk = Disk::new().await;
        let server = disk.server(&["--durability", "full"]);
        server.client().add_ids("work", &["before"]).await;
        let path = disk.database().with_file_name(name);
        let away = path.with_extension("away");
        fs::rename(&path, &away).unwrap();
        assert_ne!(put(&server, "after").await, Some(200), "{name}");
        fs::rename(&away, &path).unwrap();
        stops_and_keeps(server, &disk, &["before"]).await;
    }
}
