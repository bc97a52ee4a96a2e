//! Pauses that end at a time.

use std::time::Duration;

use switchyard::engine::{
    Claim, Durability, Engine, EngineSettings, ManualClock, NewPause, Queue, QueueKey, Time,
};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{database, new, open, q};

/// A longer wait is a hang.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A job of the queue, if a claim gets one.
async fn claimed(engine: &Engine) -> Option<String> {
    let jobs = engine.claim(Claim::of(q(), "w", 1), None).await.unwrap();
    jobs.into_iter().next().map(|job| job.key.id)
}

async fn put(engine: &Engine, id: &str) {
    let put = engine.put(q(), vec![new(id)], "client".to_owned(), None);
    put.await.unwrap().remove(0).unwrap();
}

async fn pause(engine: &Engine, reason: &str, until: Option<Time>) -> usize {
    let pause = NewPause {
        reason: reason.into(),
        by: "olga".into(),
        until,
    };
    engine
        .pause_queues(&[q()], Some(pause), None)
        .await
        .unwrap()
}

/// The queue as it is stored.
fn stored(engine: &Engine) -> Queue {
    (*engine.known_queues().get(&q()).unwrap()).clone()
}

/// The reason of the pause that the lists show.
async fn shown(engine: &Engine) -> Option<String> {
    let queue = engine.queue(&q(), None).await.unwrap().unwrap();
    queue.pause.map(|pause| pause.reason.to_string())
}

pub fn with_clock(clock: &ManualClock, folder: &TempDir) -> EngineSettings {
    EngineSettings {
        database: database::address(&folder.path().join("pauses.db")),
        durability: Durability::Process,
        offline: true,
        writer_on_runtime: true,
        clock: Some(clock.clone()),
        ..EngineSettings::default()
    }
}

#[tokio::test]
async fn claims_get_jobs_exactly_from_the_end_of_a_pause() {
    let (folder, start) = (TempDir::new().unwrap(), Time(1_000_000_000_000));
    let clock = ManualClock::at(start);
    let options = with_clock(&clock, &folder);
    let engine = Engine::open(&options).await.unwrap();
    put(&engine, "a").await;
    put(&engine, "b").await;
    let end = start.plus_seconds(10.0);
    assert_eq!(pause(&engine, "deploy", Some(end)).await, 1);
    clock.set(Time(end.0 - 1));
    engine.maintain().await.unwrap();
    assert_eq!(claimed(&engine).await, None);
    assert_eq!(shown(&engine).await.as_deref(), Some("deploy"));
    // Maintenance has not run since, and the pause survives a restart.
    engine.close().await;
    let engine = Engine::open(&options).await.unwrap();
    let kept = stored(&engine).pause.unwrap();
    assert_eq!((kept.since.is_some(), kept.until), (true, Some(end)));
    assert_eq!((&*kept.reason, &*kept.by), ("deploy", "olga"));
    assert_eq!(claimed(&engine).await, None);
    clock.set(end);
    assert_eq!(shown(&engine).await, None);
    assert_eq!(claimed(&engine).await.as_deref(), Some("a"));
    assert!(stored(&engine).pause.is_some(), "not removed yet");
    engine.maintain().await.unwrap();
    assert_eq!(stored(&engine).pause, None);
    assert_eq!(claimed(&engine).await.as_deref(), Some("b"));
    assert!(engine.check(None).await.unwrap().is_empty());
    engine.close().await;
}

#[tokio::test]
async fn a_pause_of_a_client_has_no_end_and_keeps_the_reason() {
    let (folder, start) = (TempDir::new().unwrap(), Time(1_000_000_000_000));
    let clock = ManualClock::at(start);
    let engine = Engine::open(&with_clock(&clock, &folder)).await.unwrap();
    put(&engine, "a").await;
    pause(&engine, "deploy", Some(start.plus_seconds(10.0))).await;
    engine.pause(q(), true, None).await.unwrap();
    clock.set(start.plus_seconds(1_000.0));
    engine.maintain().await.unwrap();
    assert_eq!(claimed(&engine).await, None);
    assert_eq!(shown(&engine).await.as_deref(), Some("deploy"));
    // The same pause again changes nothing; another end or reason does.
    engine.pause(q(), true, None).await.unwrap();
    assert_eq!(pause(&engine, "deploy", None).await, 0);
    assert_eq!(pause(&engine, "audit", None).await, 1);
    assert_eq!(shown(&engine).await.as_deref(), Some("audit"));
    assert_eq!(engine.pause_queues(&[q()], None, None).await.unwrap(), 1);
    assert_eq!(engine.pause_queues(&[q()], None, None).await.unwrap(), 0);
    assert_eq!(claimed(&engine).await.as_deref(), Some("a"));
    engine.close().await;
}

/// Starts a poll that waits for the jobs of the queue.
fn waiting(engine: &Engine) -> tokio::task::JoinHandle<String> {
    let engine = engine.clone();
    tokio::spawn(async move {
        let claim = Claim::of(q(), "w", 1);
        let jobs = timeout(WAIT_MAX, engine.claim_or_wait(claim, WAIT_MAX * 2, None));
        let jobs = jobs.await.expect("the poll wakes").unwrap();
        jobs[0].key.id.clone()
    })
}

#[tokio::test]
async fn polls_wake_at_the_end_of_a_pause() {
    let engine = open(false).await;
    put(&engine, "a").await;
    put(&engine, "b").await;
    let soon = |seconds| engine.now(None).plus_seconds(seconds);
    // One poll starts before the end of the pause changes, and one afterwards.
    pause(&engine, "", Some(soon(3_600.0))).await;
    let early = waiting(&engine);
    assert_eq!(claimed(&engine).await, None);
    // Late enough that the pause begins before, even on a busy machine.
    let end = soon(2.0);
    pause(&engine, "", Some(end)).await;
    let late = waiting(&engine);
    let mut ids = [early.await.unwrap(), late.await.unwrap()];
    assert!(engine.now(None) >= end);
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b"]);
    engine.close().await;
}

#[tokio::test]
async fn many_queues_are_paused_and_resume_in_batches() {
    let (folder, start) = (TempDir::new().unwrap(), Time(1_000_000_000_000));
    let clock = ManualClock::at(start);
    let engine = Engine::open(&with_clock(&clock, &folder)).await.unwrap();
    let queues: Vec<QueueKey> = (0..600).map(|n| QueueKey::qless(format!("q{n}"))).collect();
    let new = NewPause {
        until: Some(start.plus_seconds(5.0)),
        ..NewPause::default()
    };
    assert_eq!(
        engine.pause_queues(&queues, Some(new), None).await.unwrap(),
        600
    );
    let paused = || {
        let known = engine.known_queues().unordered().into_iter();
        known.filter(|queue| queue.pause.is_some()).count()
    };
    assert_eq!(paused(), 600);
    clock.set(start.plus_seconds(5.0));
    engine.maintain().await.unwrap();
    assert_eq!(paused(), 0);
    engine.close().await;
}
