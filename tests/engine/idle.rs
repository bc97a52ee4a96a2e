//! Idle queues that were created implicitly are deleted.

use std::time::Duration;

use switchyard::engine::{Claim, Engine, Publish, QueueKey};
use tokio::time::{Instant, sleep};

/// A longer wait is a hang.
const PATIENCE: Duration = Duration::from_secs(60);

fn queue(name: &str) -> QueueKey {
    QueueKey::lmstfy("ns", name)
}

async fn publish(engine: &Engine, name: &str, delay_s: u32) -> String {
    let job = Publish {
        body: String::new(),
        delay_s,
        ttl_s: 0,
        tries: 1,
        versioned: false,
        attributes: None,
    };
    let mut ids = engine.publish(queue(name), vec![job]).await.unwrap();
    ids.remove(0)
}

async fn is_known(engine: &Engine, name: &str) -> bool {
    engine.queue(&queue(name), None).await.unwrap().is_some()
}

#[tokio::test]
async fn empty_queues_are_deleted_and_others_are_kept() {
    let engine = super::opened(Duration::from_millis(500)).await;
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
    let began = Instant::now();
    while is_known(&engine, "replies").await {
        assert!(began.elapsed() < PATIENCE, "the empty queue is not deleted");
        sleep(Duration::from_millis(100)).await;
    }
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
    let engine = super::opened(Duration::from_millis(500)).await;
    let id = publish(&engine, "q", 0).await;
    engine.acknowledge(queue("q"), vec![id]).await.unwrap();
    let began = Instant::now();
    let known = async || {
        engine
            .queue(&queue("q"), None)
            .await
            .unwrap()
            .unwrap()
            .queue
    };
    let number = known().await.id;
    while !known().await.forgotten {
        assert!(
            began.elapsed() < PATIENCE,
            "no server marks the empty queue"
        );
        sleep(Duration::from_millis(20)).await;
    }
    publish(&engine, "q", 0).await;
    assert!(!known().await.forgotten);
    assert_eq!(known().await.id, number);
    engine.close().await;
}
