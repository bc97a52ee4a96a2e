//! Delays, tries, and jobs that are not acknowledged.

use tokio::time::{Duration, Instant};

use super::{assert_consistent, client, start};
use crate::support::eventually;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_delayed_job_is_not_consumed_before_it_is_due() {
    let server = start();
    let lmstfy = client(&server);
    let began = Instant::now();
    let id = lmstfy.publish("work?delay=1", "x").await;
    // Until it is consumed, no other endpoint shows it as ready.
    eventually("the job is delivered", async || {
        let size = lmstfy.size("work").await;
        let (peeked, job) = (lmstfy.peek("work").await, lmstfy.consume("work").await);
        let Some(job) = job else {
            return false;
        };
        assert!(size <= 1);
        assert!(peeked.is_none_or(|peeked| peeked.id == id));
        assert_eq!((job.id, job.remain_tries), (id.clone(), 0));
        assert!(job.elapsed_ms >= 1000, "too early");
        true
    })
    .await;
    assert!(began.elapsed() >= SECOND, "too early");
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_delayed_job_can_only_be_read_by_its_id() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?delay=4294967295&ttl=0", "later").await;
    assert_eq!(lmstfy.existing_job("work", &id).await.text(), "later");
    assert_eq!(lmstfy.peek("work").await, None);
    assert_eq!(lmstfy.size("work").await, 0);
    assert_eq!(lmstfy.consume("work").await, None);
}

/// Jobs are ordered by the time at which they became ready, not by publishing.
#[tokio::test]
async fn a_due_job_is_behind_the_ready_jobs() {
    let server = start();
    let lmstfy = client(&server);
    // If the job is due before the next one is published, the test repeats with a longer delay.
    let mut seconds = 2;
    let (late, early) = loop {
        let began = Instant::now();
        let at = format!("work?delay={seconds}");
        let late = lmstfy.publish(&at, "late").await;
        let early = lmstfy.publish("work", "early").await;
        if began.elapsed() < SECOND * seconds {
            break (late, early);
        }
        for id in [late, early] {
            lmstfy.ack("work", &id).await;
        }
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    };
    lmstfy.wait_until_ready("work", 2).await;
    let last = lmstfy.publish("work", "last").await;
    assert_eq!(lmstfy.drain("work").await, [early, late, last]);
}

#[tokio::test]
async fn tries_decrease_with_each_consume() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?tries=3&ttl=0", "x").await;
    assert_eq!(lmstfy.peek("work").await.expect("a job").remain_tries, 3);
    assert_eq!(lmstfy.existing_job("work", &id).await.remain_tries, 3);
    for remaining in [2, 1, 0] {
        let job = lmstfy.take("work?ttr=1&timeout=30").await;
        assert_eq!((&job.id, job.remain_tries), (&id, remaining));
        // The original server returns a wrong number here.
        assert_eq!(
            lmstfy.existing_job("work", &id).await.remain_tries,
            remaining
        );
    }
    lmstfy.wait_until_dead("work", 1).await;
    assert_eq!(lmstfy.dead("work").await, (1, id.clone()));
    let dead = lmstfy.existing_job("work", &id).await;
    assert_eq!((dead.remain_tries, dead.ttl), (0, 0));
    assert_eq!(lmstfy.size("work").await, 0);
    assert_eq!(lmstfy.consume("work").await, None);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_job_is_consumed_again_after_its_ttr_and_not_before() {
    let server = start();
    let lmstfy = client(&server);
    // If a busy machine needs longer than the TTR before it looks, the test repeats with a longer one.
    let (mut seconds, mut queues) = (2, vec!["several", "one"]);
    while let Some(queue) = queues.pop() {
        let id = lmstfy.publish(&format!("{queue}?tries=2"), "x").await;
        let began = Instant::now();
        let at = format!("{queue}?ttr={seconds}");
        let first = match queue {
            "one" => lmstfy.take(&at).await,
            _ => lmstfy
                .consume_many(&format!("{at}&count=5"))
                .await
                .remove(0),
        };
        assert_eq!((&first.id, first.remain_tries), (&id, 1));
        let peeked = lmstfy.peek(queue).await;
        if began.elapsed() >= SECOND * seconds {
            lmstfy.ack(queue, &id).await;
            queues.push(queue);
            seconds *= 2;
            assert!(seconds < 60, "the server is too slow");
            continue;
        }
        assert_eq!(peeked, None);
        lmstfy.existing_job(queue, &id).await;
        let again = lmstfy.take(&format!("{queue}?timeout=60")).await;
        assert!(began.elapsed() >= SECOND * seconds, "too early");
        assert_eq!((again.id, again.remain_tries), (id, 0));
        assert!(
            again.elapsed_ms >= i64::from(seconds) * 1_000,
            "it counts from the publishing"
        );
    }
    assert_consistent(&server).await;
}

/// The default TTR of two minutes does not end during the test.
#[tokio::test]
async fn a_running_job_is_not_consumed_again() {
    let server = start();
    let lmstfy = client(&server);
    let held = lmstfy.publish("work?tries=5", "held").await;
    let marker = lmstfy.publish("work?tries=5", "marker").await;
    assert_eq!(lmstfy.take("work").await.id, held);
    assert_eq!(lmstfy.take("work?ttr=1").await.id, marker);
    assert_eq!(lmstfy.take("work?timeout=30").await.id, marker);
    assert_eq!(lmstfy.consume("work").await, None);
    assert_eq!(lmstfy.existing_job("work", &held).await.remain_tries, 4);
}

#[tokio::test]
async fn a_returned_job_is_behind_the_ready_jobs() {
    let server = start();
    let lmstfy = client(&server);
    // If the job returns before the next ones are published, the test repeats with a longer TTR.
    let mut seconds = 2;
    let (first, second, third) = loop {
        let first = lmstfy.publish("work?tries=2", "first").await;
        let began = Instant::now();
        let at = format!("work?ttr={seconds}");
        assert_eq!(lmstfy.take(&at).await.id, first);
        let second = lmstfy.publish("work", "second").await;
        let third = lmstfy.publish("work", "third").await;
        if began.elapsed() < SECOND * seconds {
            break (first, second, third);
        }
        for id in [first, second, third] {
            lmstfy.ack("work", &id).await;
        }
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    };
    lmstfy.wait_until_ready("work", 3).await;
    let last = lmstfy.publish("work", "last").await;
    assert_eq!(lmstfy.drain("work").await, [second, third, first, last]);
    assert_consistent(&server).await;
}

/// Jobs return in the order in which their TTR ended.
#[tokio::test]
async fn jobs_return_in_the_order_of_their_timeouts() {
    let server = start();
    let lmstfy = client(&server);
    let (slow, quick) = lmstfy.publish_slow_and_quick_apart("work", 2).await;
    lmstfy.wait_until_ready("work", 2).await;
    assert_eq!(lmstfy.drain("work").await, [quick, slow]);
    // Even if one run of maintenance returns both.
    for round in 0..3 {
        let queue = format!("work{round}");
        let (slow, quick) = lmstfy.publish_slow_and_quick(&queue, 2).await;
        lmstfy.wait_until_ready(&queue, 2).await;
        assert_eq!(lmstfy.drain(&queue).await, [quick, slow]);
    }
}

#[tokio::test]
async fn a_ttr_of_0_ends_at_once() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?tries=3", "x").await;
    for remaining in [2, 1] {
        let job = lmstfy.take("work?ttr=0&timeout=30").await;
        assert_eq!((&job.id, job.remain_tries), (&id, remaining));
        lmstfy.wait_until_ready("work", 1).await;
    }
    let other = lmstfy.publish("work", "y").await;
    assert_eq!(lmstfy.take("work?ttr=0").await.id, id);
    lmstfy.wait_until_dead("work", 1).await;
    assert_eq!(lmstfy.dead("work").await.1, id);
    assert_eq!(lmstfy.drain("work").await, [other]);
    assert_consistent(&server).await;
}

/// A late ack succeeds, and deletes the job.
#[tokio::test]
async fn a_late_ack_counts() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?tries=9", "x").await;
    lmstfy.take("work?ttr=0").await;
    lmstfy.wait_until_ready("work", 1).await;
    lmstfy.ack("work", &id).await;
    assert_eq!(lmstfy.job("work", &id).await, None);
    assert_eq!(lmstfy.size("work").await, 0);
    assert_eq!(lmstfy.consume("work").await, None);
    // Even if another consumer has the job.
    let id = lmstfy.publish("work?tries=9", "x").await;
    lmstfy.take("work?ttr=0").await;
    lmstfy.take("work?ttr=1&timeout=30").await;
    lmstfy.ack("work", &id).await;
    assert_eq!(lmstfy.consume("work?timeout=2").await, None);
    assert_eq!(lmstfy.dead("work").await, (0, String::new()));
    assert_consistent(&server).await;
}
