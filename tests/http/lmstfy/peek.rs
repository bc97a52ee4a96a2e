//! Reads, which change nothing: peek, peek at one job, size.

use serde_json::json;
use tokio::time::Instant;

use super::{assert_consistent, client, start};
use crate::support::eventually;

#[tokio::test]
async fn peek_shows_the_next_job_and_consumes_nothing() {
    let server = start();
    let lmstfy = client(&server);
    assert_eq!(lmstfy.peek("work").await, None);
    let first = lmstfy.publish("work?tries=2", "first").await;
    let second = lmstfy.publish("work", "second").await;
    for _ in 0..3 {
        let job = lmstfy.peek("work").await.expect("a job");
        assert_eq!(
            (&job.id, job.text(), job.remain_tries),
            (&first, "first", 2)
        );
    }
    assert_eq!(lmstfy.size("work").await, 2);
    assert_eq!(lmstfy.take("work").await.remain_tries, 1);
    assert_eq!(lmstfy.peek("work").await.expect("a job").id, second);
    lmstfy.take("work").await;
    // Running, delayed and dead jobs are skipped.
    lmstfy.publish("work?delay=60", "delayed").await;
    assert_eq!(lmstfy.peek("work").await, None);
    lmstfy.publish_dead("work", "dead").await;
    assert_eq!(lmstfy.peek("work").await, None);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_job_can_be_read_by_id_in_every_state() {
    let server = start();
    let lmstfy = client(&server);
    let dead = lmstfy.publish_dead("work", "dead").await;
    let working = lmstfy.publish("work", "working").await;
    lmstfy.take("work").await;
    let ready = lmstfy.publish("work", "ready").await;
    let delayed = lmstfy.publish("work?delay=60", "delayed").await;
    for (id, text, tries) in [
        (dead, "dead", 0),
        (working, "working", 0),
        (ready, "ready", 1),
        (delayed, "delayed", 1),
    ] {
        let job = lmstfy.existing_job("work", &id).await;
        assert_eq!((job.queue.as_str(), &job.id), ("work", &id));
        assert_eq!((job.text(), job.remain_tries), (text, tries));
        assert_eq!(job.ttl == 0, text == "dead", "{job:?}");
        // Not through another queue.
        assert_eq!(lmstfy.job("other", &id).await, None);
        lmstfy.ack("work", &id).await;
        assert_eq!(lmstfy.job("work", &id).await, None);
    }
    for missing in ["x", "%20", "日本", "a/b", "'; DROP TABLE jobs; --"] {
        assert_eq!(lmstfy.job("work", missing).await, None);
    }
    assert_eq!(lmstfy.job("work", &"x".repeat(2000)).await, None);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn size_is_the_number_of_ready_jobs() {
    let server = start();
    let lmstfy = client(&server);
    let size = lmstfy.get("/unknown/size").await.json(200);
    assert_eq!(
        size,
        json!({"namespace": "ns", "queue": "unknown", "size": 0})
    );
    lmstfy.publish_dead("work", "dead").await;
    let ids = lmstfy.bulk("work?tries=2", "[1, 2, 3, 4]").await;
    assert_eq!(lmstfy.size("work").await, 4);
    lmstfy.publish("work?delay=60", "delayed").await;
    assert_eq!(lmstfy.size("work").await, 4);
    lmstfy.take("work").await;
    assert_eq!(lmstfy.size("work").await, 3);
    lmstfy.ack("work", &ids[2]).await;
    assert_eq!(lmstfy.size("work").await, 2);
    // This job returns.
    assert_eq!(lmstfy.take("work?ttr=0").await.id, ids[1]);
    lmstfy.wait_until_ready("work", 2).await;
    lmstfy.respawn("work").await;
    assert_eq!(lmstfy.size("work").await, 3);
    lmstfy.destroy("work").await;
    assert_eq!(lmstfy.size("work").await, 0);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn elapsed_ms_is_the_time_since_publishing() {
    let server = start();
    let lmstfy = client(&server);
    let before = Instant::now();
    let id = lmstfy.publish("work?ttl=0", "x").await;
    let after = Instant::now();
    let elapses = async || {
        let least = after.elapsed().as_millis();
        let job = lmstfy.existing_job("work", &id).await;
        let elapsed = u128::try_from(job.elapsed_ms).expect("a time");
        // Both times may be truncated to milliseconds.
        assert!(least <= elapsed + 2, "{least} have passed: {job:?}");
        assert!(elapsed <= before.elapsed().as_millis() + 2, "{job:?}");
        elapsed > 1000
    };
    eventually("a second passes", elapses).await;
    assert!(lmstfy.peek("work").await.expect("a job").elapsed_ms > 1000);
    assert!(lmstfy.take("work").await.elapsed_ms > 1000);
}
