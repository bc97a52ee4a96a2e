//! When the oldest waiting job of a queue became available.

use super::*;

async fn put_with_priority(engine: &Engine, now: f64, id: &str, priority: f64) {
    let job = Put {
        priority: Some(priority),
        ..new(id)
    };
    put(engine, now, job).await;
}

/// The time in seconds, of the queue alone and in the list of all queues.
async fn oldest(engine: &Engine) -> Option<f64> {
    let now = at(1e6);
    let alone = engine.queue(&q(), now).await.unwrap().unwrap();
    let all = engine.queues(now).await.unwrap();
    assert_eq!(all[0].oldest_waiting, alone.oldest_waiting);
    alone.oldest_waiting.map(|time| time.0 as f64 / 1e6)
}

#[tokio::test]
async fn the_oldest_waiting_job_counts_regardless_of_its_priority() {
    let engine = engine().await;
    put_with_priority(&engine, 10.0, "old", 0.0).await;
    put_with_priority(&engine, 18.0, "urgent", -5.0).await;
    put_with_priority(&engine, 19.0, "patient", 7.5).await;
    put_with_priority(&engine, 20.0, "new", 0.0).await;
    assert_eq!(oldest(&engine).await, Some(10.0));
    // Claims go by priority.
    assert_eq!(pop(&engine, 30.0, "w", 1).await, ["urgent"]);
    assert_eq!(oldest(&engine).await, Some(10.0));
    assert_eq!(pop(&engine, 30.0, "w", 1).await, ["old"]);
    assert_eq!(oldest(&engine).await, Some(19.0));
    assert_eq!(pop(&engine, 30.0, "w", 2).await, ["new", "patient"]);
    assert_eq!(oldest(&engine).await, None);
    engine.close().await;
}

#[tokio::test]
async fn with_many_priorities_the_lowest_100_and_the_highest_count() {
    let engine = engine().await;
    for n in 0..150 {
        let number = f64::from(n);
        put_with_priority(&engine, 1_000.0 - number, &n.to_string(), number).await;
    }
    // The worst priority has the oldest job.
    assert_eq!(oldest(&engine).await, Some(851.0));
    put_with_priority(&engine, 2_000.0, "last", 1_000.0).await;
    assert_eq!(
        oldest(&engine).await,
        Some(901.0),
        "the 100 lowest priorities"
    );
    engine.close().await;
}
