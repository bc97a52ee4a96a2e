//! Idle queues that were created implicitly are deleted.

use std::time::Duration;

use switchyard::engine::{Claim, Engine, EngineSettings, ManualClock, Publish, QueueKey, Time};
use tempfile::TempDir;

use super::lmstfy_job;

const START: Time = Time(1_000_000_000_000);

/// An engine that deletes empty queues after half a second, and its clock.
async fn open(folder: &TempDir) -> (Engine, ManualClock) {
    let clock = ManualClock::at(START);
    let options = EngineSettings {
        empty_queue_age: Some(Duration::from_millis(500)),
        ..super::pauses::with_clock(&clock, folder)
    };
    (Engine::open(&options).await.unwrap(), clock)
}

/// Runs maintenance this long after the start.
async fn maintain_after(seconds: f64, engine: &Engine, clock: &ManualClock) {
    clock.set(START.plus_seconds(seconds));
    engine.maintain().await.unwrap();
}

fn queue(name: &str) -> QueueKey {
    QueueKey::lmstfy("ns", name)
}

async fn publish(engine: &Engine, name: &str, delay_s: u32) -> String {
    let job = Publish {
        delay_s,
        ..lmstfy_job("")
    };
    let mut ids = engine.publish(queue(name), vec![job]).await.unwrap();
    ids.remove(0)
}

async fn is_known(engine: &Engine, name: &str) -> bool {
    engine.queue(&queue(name), None).await.unwrap().is_some()
}

#[tokio::test]
async fn empty_queues_are_deleted_and_others_are_kept() {
    let folder = TempDir::new().unwrap();
    let (engine, clock) = open(&folder).await;
    let replied = publish(&engine, "replies", 0).await;
    let claim = Claim::of(queue("replies"), "", 1);
    assert_eq!(engine.claim(claim.clone(), None).await.unwrap().len(), 1);
    publish(&engine, "waits", 0).await;
    publish(&engine, "sleeps", 3_600).await;
    let paused = publish(&engine, "paused", 0).await;
    engine.pause(queue("paused"), true, None).await.unwrap();
    for (name, id) in [("replies", replied), ("paused", paused)] {
        let gone = engine.acknowledge(queue(name), vec![id]).await.unwrap();
        assert_eq!(gone, 1);
    }
    // The first round finds that the queue is empty, the second one marks it, the third one finds the mark, and the last
    // one deletes the queue.
    for seconds in [1.0, 2.0, 3.0, 10.0] {
        assert!(is_known(&engine, "replies").await);
        maintain_after(seconds, &engine, &clock).await;
    }
    assert!(!is_known(&engine, "replies").await);
    for name in ["waits", "sleeps", "paused"] {
        assert!(is_known(&engine, name).await, "{name} is gone");
    }
    // Publishing creates the queue again.
    publish(&engine, "replies", 0).await;
    assert_eq!(engine.claim(claim, None).await.unwrap().len(), 1);
    assert!(engine.check(None).await.unwrap().is_empty());
    engine.close().await;
}

#[tokio::test]
async fn a_queue_that_is_used_in_time_is_kept() {
    let folder = TempDir::new().unwrap();
    let (engine, clock) = open(&folder).await;
    let id = publish(&engine, "q", 0).await;
    engine.acknowledge(queue("q"), vec![id]).await.unwrap();
    let known = async || {
        engine
            .queue(&queue("q"), None)
            .await
            .unwrap()
            .unwrap()
            .queue
    };
    let number = known().await.id;
    for seconds in [1.0, 2.0] {
        assert!(!known().await.forgotten);
        maintain_after(seconds, &engine, &clock).await;
    }
    assert!(known().await.forgotten);
    publish(&engine, "q", 0).await;
    assert!(!known().await.forgotten);
    for seconds in [3.0, 10.0] {
        maintain_after(seconds, &engine, &clock).await;
        assert_eq!(known().await.id, number);
    }
    engine.close().await;
}
