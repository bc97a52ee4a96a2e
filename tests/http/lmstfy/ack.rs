//! Acknowledging jobs, and destroying queues.

use tokio::time::{Duration, Instant};

use super::{assert_consistent, client, start};
use crate::support::lmstfy::Lmstfy;

#[tokio::test]
async fn an_acknowledged_job_never_returns_from_any_state() {
    let server = start();
    let lmstfy = client(&server);
    // If a busy machine needs longer than the marker is running, the test repeats with more.
    let mut seconds = 3;
    let (marker, last) = loop {
        let dead = lmstfy.publish_dead("work", "dead").await;
        let working = lmstfy.publish("work?tries=9", "working").await;
        let marker = lmstfy.publish("work?tries=9", "marker").await;
        let began = Instant::now();
        let at = format!("work?ttr={seconds}&count=2");
        lmstfy.consume_many(&at).await;
        let ready = lmstfy.publish("work?tries=9", "ready").await;
        let delayed = lmstfy.publish("work?delay=1", "delayed").await;
        for id in [&dead, &working, &ready, &delayed] {
            // Twice, because a client that gets no response repeats its request.
            for _ in 0..2 {
                lmstfy.ack("work", id).await;
                assert_eq!(lmstfy.job("work", id).await, None);
            }
        }
        let size = lmstfy.size("work").await;
        let is_in_time = began.elapsed() < Duration::from_secs(seconds);
        assert_eq!(lmstfy.dead("work").await, (0, String::new()));
        assert_eq!(lmstfy.respawn("work?limit=9").await, 0);
        if is_in_time {
            assert_eq!(size, 0);
            // This job is due last; the other ones would have returned with the marker.
            break (marker, lmstfy.publish("work?delay=1", "last").await);
        }
        lmstfy.ack("work", &marker).await;
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    };
    let mut come = vec![lmstfy.take("work?timeout=30").await.id];
    come.push(lmstfy.take("work?timeout=30").await.id);
    come.sort();
    let mut expected = vec![marker, last];
    expected.sort();
    assert_eq!(come, expected);
    assert_eq!(lmstfy.consume("work").await, None);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn acking_an_unknown_job_succeeds() {
    let server = start();
    let lmstfy = client(&server);
    for queue in ["unknown", "work"] {
        for id in ["x", "0", "job", "日本", "a/b", "'; DROP TABLE jobs; --"] {
            lmstfy.ack(queue, id).await;
        }
        lmstfy.ack(queue, &"x".repeat(2000)).await;
        lmstfy.publish(queue, "x").await;
    }
    assert_eq!(lmstfy.size("work").await, 1);
}

/// The test of the original server acknowledges through another queue, and expects no error.
#[tokio::test]
async fn acking_through_another_queue_deletes_nothing() {
    let server = start();
    let lmstfy = client(&server);
    let stranger = Lmstfy::new(&server, "stranger");
    let ready = lmstfy.publish("work?tries=2", "ready").await;
    let delayed = lmstfy.publish("work?delay=60", "delayed").await;
    lmstfy.publish("other", "x").await;
    stranger.publish("work", "x").await;
    for id in [&ready, &delayed] {
        lmstfy.ack("other", id).await;
        lmstfy.ack("unknown", id).await;
        stranger.ack("work", id).await;
        lmstfy.existing_job("work", id).await;
    }
    assert_eq!(lmstfy.take("work?ttr=0").await.id, ready);
    lmstfy.wait_until_ready("work", 1).await;
    lmstfy.take("work").await;
    lmstfy.ack("other", &ready).await;
    lmstfy.existing_job("work", &ready).await;
    assert_eq!(
        (lmstfy.size("other").await, stranger.size("work").await),
        (1, 1)
    );
    assert_consistent(&server).await;
}

#[tokio::test]
async fn destroying_a_queue_deletes_only_ready_jobs() {
    let server = start();
    let lmstfy = client(&server);
    let dead = lmstfy.publish_dead("work", "dead").await;
    let elsewhere = lmstfy.publish("other", "x").await;
    // Jobs stay delayed or running for some seconds. If a busy machine needs longer to destroy the queue, the test
    // repeats with more.
    let mut seconds = 3;
    let (ids, left) = loop {
        let began = Instant::now();
        let working = lmstfy.publish("work?tries=2", "working").await;
        let last = lmstfy.publish("work?tries=1", "last try").await;
        let at = format!("work?ttr={seconds}&count=2");
        lmstfy.consume_many(&at).await;
        let at = format!("work?delay={seconds}");
        let delayed = lmstfy.publish(&at, "delayed").await;
        let ready = lmstfy.bulk("work", "[1, 2, 3]").await;
        lmstfy.destroy("work").await;
        assert_eq!(lmstfy.existing_job("work", &dead).await.text(), "dead");
        let (size, next) = (lmstfy.size("work").await, lmstfy.peek("work").await);
        let mut left = Vec::new();
        for id in [&working, &last, &delayed].into_iter().chain(&ready) {
            left.push(lmstfy.job("work", id).await.is_some());
        }
        if began.elapsed() < Duration::from_secs(seconds) {
            assert_eq!((size, next), (0, None));
            break ([working, last, delayed], left);
        }
        for id in [working, last, delayed] {
            lmstfy.ack("work", &id).await;
        }
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    };
    assert_eq!(left, [true, true, true, false, false, false]);
    let [working, _, delayed] = ids;
    assert_eq!(lmstfy.drain("other").await, [elsewhere]);
    // They are kept.
    let mut come = vec![lmstfy.take("work?timeout=30").await.id];
    come.push(lmstfy.take("work?timeout=30").await.id);
    come.sort();
    let mut expected = vec![working, delayed];
    expected.sort();
    assert_eq!(come, expected);
    lmstfy.wait_until_dead("work", 2).await;
    assert_eq!(lmstfy.dead("work").await.1, dead);
    assert_eq!(lmstfy.respawn("work?limit=9").await, 2);
    lmstfy.destroy("work").await;
    assert_eq!(lmstfy.respawn("work?limit=9").await, 0);
    assert_eq!(lmstfy.job("work", &dead).await, None);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn destroying_an_unknown_queue_succeeds() {
    let server = start();
    let lmstfy = client(&server);
    lmstfy.destroy("unknown").await;
    lmstfy.publish("work", "x").await;
    lmstfy.destroy("work").await;
    lmstfy.destroy("work").await;
    // Publishing creates it again.
    let id = lmstfy.publish("work", "x").await;
    assert_eq!(lmstfy.drain("work").await, [id]);
    assert_consistent(&server).await;
}

/// More jobs than any batch.
#[tokio::test]
async fn a_large_queue_is_destroyed_completely() {
    let server = start();
    let lmstfy = client(&server);
    let many = format!("[{}]", vec!["1"; 64].join(","));
    for _ in 0..20 {
        lmstfy.bulk("work", many.clone()).await;
    }
    assert_eq!(lmstfy.size("work").await, 1280);
    lmstfy.destroy("work").await;
    assert_eq!(lmstfy.size("work").await, 0);
    assert_eq!(lmstfy.consume("work").await, None);
    assert_consistent(&server).await;
}
