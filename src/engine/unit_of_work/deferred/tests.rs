use std::fs::copy;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::engine::model::job::QueueKey;
use crate::engine::{Claim, EffectiveState, EngineSettings, Put, SeriesTotals, minute};

/// An engine without background tasks, which would store what is deferred.
async fn open(folder: &Path) -> Engine {
    let options = EngineSettings {
        database: format!("sqlite://{}", folder.join("jobs.db").display()),
        without_tasks: true,
        ..EngineSettings::default()
    };
    Engine::open(&options).await.unwrap()
}

/// The engine after a crash: it finds what the other one has committed.
async fn crashed(folder: &Path) -> (TempDir, Engine) {
    let copied = TempDir::new().unwrap();
    for name in ["jobs.db-wal", "jobs.db"] {
        copy(folder.join(name), copied.path().join(name)).unwrap();
    }
    let engine = open(copied.path()).await;
    (copied, engine)
}

fn queue() -> QueueKey {
    QueueKey::qless("q")
}

/// Puts three jobs, of which a worker claims two.
async fn put_and_claim(engine: &Engine) {
    let job = || Put {
        body: "1".to_owned(),
        ..Put::default()
    };
    let jobs = vec![job(), job(), job()];
    let put = engine.put(queue(), jobs, "w".to_owned(), None).await;
    put.unwrap().into_iter().for_each(|id| drop(id.unwrap()));
    let claimed = engine.claim(Claim::of(queue(), "w", 2), None).await;
    assert_eq!(claimed.unwrap().len(), 2);
}

/// The numbers of jobs that are waiting and running.
async fn counts(engine: &Engine) -> (i64, i64) {
    let found = engine.queue(&queue(), None).await.unwrap().unwrap();
    let of = |state| found.counts.of(state);
    (of(EffectiveState::Waiting), of(EffectiveState::Running))
}

/// The numbers of jobs that were put and claimed in the last hour.
async fn recent_totals(engine: &Engine) -> (i64, i64) {
    let from = minute(engine.now(None)) - 60;
    let spans = engine.series(Some(&queue()), from, 10, 7).await.unwrap();
    let all = spans
        .iter()
        .fold(SeriesTotals::default(), SeriesTotals::plus);
    (all.put, all.claimed())
}

async fn workers(engine: &Engine) -> Vec<(String, i64)> {
    let workers = engine.workers(None).await.unwrap();
    let workers = workers.iter().map(|it| (it.name.clone(), it.jobs));
    workers.collect()
}

#[tokio::test]
async fn a_crash_loses_statistics_and_events_but_no_counts() {
    let folder = TempDir::new().unwrap();
    let engine = open(folder.path()).await;
    put_and_claim(&engine).await;
    let (_copied, after) = crashed(folder.path()).await;
    assert_eq!(counts(&after).await, (1, 2));
    assert_eq!(recent_totals(&after).await, (0, 0));
    assert_eq!(after.last_event().await.unwrap(), 0);
    assert_eq!(workers(&after).await, [("w".to_owned(), 2)]);
    assert_eq!(after.check(None).await.unwrap(), []);
    after.close().await;
    // Readers of the running engine find everything.
    assert_eq!(recent_totals(&engine).await, (3, 2));
    let (_copied, after) = crashed(folder.path()).await;
    assert_eq!(
        recent_totals(&after).await,
        (3, 2),
        "it was stored for the reader"
    );
    assert!(after.last_event().await.unwrap() > 0);
    after.close().await;
    engine.close().await;
}

#[tokio::test]
async fn a_stop_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let engine = open(folder.path()).await;
    put_and_claim(&engine).await;
    engine.close().await;
    let engine = open(folder.path()).await;
    assert_eq!(recent_totals(&engine).await, (3, 2));
    assert!(engine.last_event().await.unwrap() > 0);
    assert_eq!(engine.count_workers().await.unwrap(), 1);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn events_that_are_followed_are_committed_with_their_changes_and_in_order() {
    let folder = TempDir::new().unwrap();
    let engine = open(folder.path()).await;
    put_and_claim(&engine).await;
    let followed = engine.follow_events();
    put_and_claim(&engine).await;
    let (_copied, after) = crashed(folder.path()).await;
    let (survived, _) = after.events(0, 100, None).await.unwrap();
    let (events, _) = engine.events(0, 100, None).await.unwrap();
    assert_eq!(survived, events);
    assert!(!events.is_empty());
    let numbers: Vec<i64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as i64).collect::<Vec<_>>());
    after.close().await;
    drop(followed);
    put_and_claim(&engine).await;
    let (_copied, after) = crashed(folder.path()).await;
    assert_eq!(after.events(0, 100, None).await.unwrap().0, survived);
    after.close().await;
    engine.close().await;
}

#[tokio::test]
async fn what_is_deferred_is_bounded() {
    let folder = TempDir::new().unwrap();
    let engine = open(folder.path()).await;
    let job = || Put {
        body: "1".to_owned(),
        ..Put::default()
    };
    // Each put publishes an event with the name of its queue.
    let long = QueueKey::qless("q".repeat(200));
    for _ in 0..EVENT_BYTES_MAX / 200 / 250 + 2 {
        let jobs = (0..250).map(|_| job()).collect();
        let put = engine.put(long.clone(), jobs, String::new(), None).await;
        put.unwrap().into_iter().for_each(|id| drop(id.unwrap()));
    }
    let (_copied, after) = crashed(folder.path()).await;
    assert!(after.last_event().await.unwrap() > 0);
    after.close().await;
    engine.close().await;
}

#[test]
fn the_series_of_a_deleted_queue_are_kept() {
    let mut deferred = DeferredWrites::default();
    let row = |kind: Kind, queue, n| (kind as u8, queue, 5, 1, n, None, None);
    let rows = [
        row(Kind::Minute, DELETED_QUEUES, 1),
        row(Kind::Minute, 7, 2),
        row(Kind::Wait, 7, 4),
        row(Kind::Minute, 8, 8),
    ];
    deferred.add(&rows, None, Time(0));
    deferred.delete_queue(7);
    let expected = [
        row(Kind::Minute, DELETED_QUEUES, 3),
        row(Kind::Minute, 8, 8),
    ];
    assert_eq!(deferred.rows(), expected);
}
