//! Tests of the engine's verbs on a real database. The test sets the time.

#![cfg(test)]

mod alerts;
mod bodies;
mod bounds;
mod caches;
mod chains;
mod claims;
mod clocks;
mod crash_copy;
#[path = "../support/database.rs"]
mod database;
mod dead;
mod empty_queues;
mod events;
#[path = "../support/eventually.rs"]
mod eventually;
#[expect(dead_code, reason = "the tests of the server use the rest")]
#[path = "../support/history.rs"]
mod history;
mod limits;
#[expect(dead_code, reason = "the tests of the server use the rest")]
#[path = "../support/link.rs"]
mod link;
mod long_parts;
mod model;
mod oldest;
mod operations;
mod pages;
mod pauses;
#[path = "../support/random.rs"]
mod random;
mod readers;
mod rejected_requests;
mod relations;
mod requests;
mod retries;
mod round_robin;
mod schedules;
mod search;
mod series;
mod sessions;
#[path = "../support/settings.rs"]
mod settings;
mod simulation;
mod slow;
mod storm;
mod tokens;
mod waits;
mod worker_results;

use std::time::Duration;

use eventually::eventually;
use switchyard::engine::{
    Claim, EffectiveState, Engine, EngineSettings, Error, Fail, Job, JobKey, LeaseHolder,
    NextQueue, OffsetPage, Publish, Put, QueueKey, Retry, State, Time,
};

const PAGE: OffsetPage = OffsetPage {
    offset: 0,
    limit: 1_000,
};

/// An engine on a new database.
async fn open(trust_client_clock: bool) -> Engine {
    Engine::open(&EngineSettings {
        trust_client_clock,
        ..options()
    })
    .await
    .unwrap()
}

/// An engine that deletes empty queues after this time.
async fn open_with_empty_queue_age(empty_queue_age: Duration) -> Engine {
    Engine::open(&EngineSettings {
        empty_queue_age: Some(empty_queue_age),
        ..options()
    })
    .await
    .unwrap()
}

fn options() -> EngineSettings {
    let folder = tempfile::TempDir::new().unwrap();
    let given = database::options();
    let given = |option: &str| given.iter().any(|it| it == option);
    EngineSettings {
        database: match database::postgres() {
            Some(_) => database::address(folder.path()),
            None => "sqlite::memory:".to_owned(),
        },
        no_skip_locked: given("--no-skip-locked"),
        no_notify: given("--no-notify"),
        ..EngineSettings::default()
    }
}

/// An engine that takes the time from the test.
async fn engine() -> Engine {
    open(true).await
}

/// A job that fails when its lease has expired this many times and once more.
fn with_retries(id: &str, retries: i64) -> Put {
    Put {
        retries: Some(retries),
        ..new(id)
    }
}

fn at(seconds: f64) -> Option<Time> {
    Time::from_seconds(seconds)
}

fn q() -> QueueKey {
    QueueKey::qless("q")
}

fn new(id: &str) -> Put {
    Put {
        id: Some(id.to_owned()),
        body: "{}".to_owned(),
        ..Put::default()
    }
}

/// An lmstfy job that can be consumed at once, with one try and no end.
fn lmstfy_job(body: &str) -> Publish {
    Publish {
        body: body.to_owned(),
        delay_s: 0,
        ttl_s: 0,
        tries: 1,
        versioned: false,
        attributes: None,
    }
}

fn holder(worker: &str) -> LeaseHolder {
    LeaseHolder {
        worker: worker.to_owned(),
        queue: None,
    }
}

async fn put(engine: &Engine, now: f64, job: Put) {
    engine
        .put(q(), vec![job], "client".to_owned(), at(now))
        .await
        .unwrap()
        .remove(0)
        .unwrap();
}

/// Puts jobs into the queue.
async fn add(engine: &Engine, queue: &QueueKey, jobs: Vec<Put>) {
    let put = engine.put(queue.clone(), jobs, "client".to_owned(), None);
    for done in put.await.unwrap() {
        done.unwrap();
    }
}

/// Puts jobs into the qless queue with this name.
async fn add_to(engine: &Engine, queue: &str, jobs: Vec<Put>) {
    add(engine, &QueueKey::qless(queue), jobs).await;
}

async fn pop(engine: &Engine, now: f64, worker: &str, count: usize) -> Vec<String> {
    ids(&engine
        .claim(Claim::of(q(), worker, count), at(now))
        .await
        .unwrap())
}

async fn complete(engine: &Engine, now: f64, worker: &str, id: &str) -> Result<State, Error> {
    let turn = (JobKey::qless(id), "{}".to_owned(), None);
    engine
        .complete(vec![turn], holder(worker), at(now))
        .await
        .unwrap()
        .remove(0)
}

async fn job(engine: &Engine, id: &str) -> Job {
    engine.job(&JobKey::qless(id)).await.unwrap().unwrap()
}

fn ids(jobs: &[Job]) -> Vec<String> {
    jobs.iter().map(|job| job.key.id.clone()).collect()
}

/// Checks that stored counts equal the lengths of the lists.
async fn assert_counts(engine: &Engine, now: f64) {
    for queue in engine.queues(at(now)).await.unwrap().iter() {
        for state in EffectiveState::ALL {
            let listed = engine
                .jobs(state, Some(&queue.queue.key), PAGE, at(now))
                .await
                .unwrap();
            let kept = queue.counts.of(state);
            assert_eq!(
                kept,
                i64::try_from(listed.len()).unwrap(),
                "{} in {:?}",
                state.as_str(),
                queue.queue.key
            );
        }
    }
    for group in engine.failure_groups().await.unwrap().iter() {
        let (total, jobs) = engine
            .jobs_of_failure_group(&group.group, PAGE)
            .await
            .unwrap();
        assert_eq!(total, i64::try_from(jobs.len()).unwrap());
        assert_eq!(group.count, total);
    }
}

/// The seed of a run whose length this variable sets. A run of the usual length, as in `make test`, always has the same
/// seed.
fn seed_of_run(length: &str) -> u64 {
    match std::env::var_os(length) {
        Some(_) => settings::seed(),
        None => settings::number("SWITCHYARD_SEED", 1),
    }
}
