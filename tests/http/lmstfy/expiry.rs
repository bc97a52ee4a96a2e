//! Time to live: an expired job no longer exists, in any state.

use tokio::time::{Duration, Instant};

use super::{assert_consistent, client, start};
use crate::support::eventually;
use crate::support::lmstfy::Lmstfy;

/// Checks that no endpoint shows the job.
async fn is_gone(lmstfy: &Lmstfy, queue: &str, id: &str) {
    assert_eq!(lmstfy.job(queue, id).await, None);
    assert_eq!(lmstfy.peek(queue).await, None);
    assert_eq!(lmstfy.size(queue).await, 0);
    assert_eq!(lmstfy.consume(queue).await, None);
    assert_eq!(lmstfy.dead(queue).await, (0, String::new()));
    assert_eq!(lmstfy.respawn(&format!("{queue}?limit=10")).await, 0);
}

/// The tests of the original server publish with a TTL of 10 s and expect to read 10.
#[tokio::test]
async fn a_new_job_has_its_whole_ttl() {
    let server = start();
    let lmstfy = client(&server);
    for ttl in [10, 100, 86400] {
        let at = format!("work?ttl={ttl}");
        let id = lmstfy.publish(&at, "x").await;
        assert_eq!(lmstfy.existing_job("work", &id).await.lifetime(), ttl);
        assert_eq!(lmstfy.peek("work").await.expect("a job").lifetime(), ttl);
        assert_eq!(lmstfy.take("work").await.lifetime(), ttl);
        let again = lmstfy.republish(&at, &id, "y").await;
        let jobs = lmstfy.consume_many("work?count=2").await;
        assert_eq!((&jobs[0].id, jobs[0].lifetime()), (&again, ttl));
        lmstfy.bulk(&at, "[1]").await;
        assert_eq!(lmstfy.take("work").await.lifetime(), ttl);
    }
}

#[tokio::test]
async fn the_remaining_ttl_decreases_in_every_state() {
    let server = start();
    let lmstfy = client(&server);
    let ready = lmstfy.publish("ready?ttl=100", "x").await;
    let delayed = lmstfy.publish("delayed?ttl=100&delay=90", "x").await;
    let working = lmstfy.publish("working?ttl=100", "x").await;
    lmstfy.take("working?ttr=90").await;
    for (queue, id) in [("ready", ready), ("delayed", delayed), ("working", working)] {
        let less = async || {
            let job = lmstfy.existing_job(queue, &id).await;
            // The TTL may be rounded to the nearest second or up, but must not be too short.
            let passed = 100_000 - job.ttl * 1000;
            assert!(passed <= job.elapsed_ms + 500, "{job:?}");
            job.ttl < 100
        };
        eventually("a second less to live", less).await;
    }
}

#[tokio::test]
async fn a_ttl_of_0_never_expires() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?ttl=0&tries=2", "x").await;
    let passes = async || {
        let job = lmstfy.existing_job("work", &id).await;
        assert_eq!(job.ttl, 0);
        job.elapsed_ms > 1100
    };
    eventually("a second passes", passes).await;
    assert_eq!(lmstfy.take("work?ttr=1").await.ttl, 0);
    assert_eq!(lmstfy.take("work?timeout=30").await.ttl, 0);
}

#[tokio::test]
async fn a_ready_job_expires() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?ttl=1&tries=5", "x").await;
    lmstfy.wait_until_gone("work", &id).await;
    is_gone(&lmstfy, "work", &id).await;
    lmstfy.ack("work", &id).await;
    assert_consistent(&server).await;
}

/// The job becomes due when it expires.
#[tokio::test]
async fn a_delayed_job_expires() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("work?ttl=1&delay=1", "x").await;
    let marker = lmstfy.publish("work?delay=2", "marker").await;
    // The expired job does not wake a waiting consumer, or the consumer continues to wait.
    assert_eq!(lmstfy.take("work?timeout=30").await.id, marker);
    is_gone(&lmstfy, "work", &id).await;
    assert_consistent(&server).await;
}

/// The job expires while it is running: it is neither consumed again nor dead-lettered.
#[tokio::test]
async fn a_running_job_expires() {
    let server = start();
    let lmstfy = client(&server);
    let life = async |queue: &str, tries: u16| {
        // If the job expires before it is read, the test repeats with a longer TTL.
        let mut seconds = 2;
        let (id, marker) = loop {
            let began = Instant::now();
            let publish = async |ttl: u64, body: &'static str| {
                let at = format!("{queue}?ttl={ttl}&tries={tries}");
                lmstfy.publish(&at, body).await
            };
            let (id, marker) = (publish(seconds, "x").await, publish(0, "marker").await);
            let at = format!("{queue}?ttr={}&count=2", seconds + 1);
            let jobs = lmstfy.consume_many(&at).await;
            let job = lmstfy.job(queue, &id).await;
            if began.elapsed() < Duration::from_secs(seconds) {
                assert_eq!((&jobs[0].id, &jobs[1].id), (&id, &marker));
                assert!(job.is_some(), "expired too early");
                break (id, marker);
            }
            for id in [id, marker] {
                lmstfy.ack(queue, &id).await;
            }
            seconds *= 2;
            assert!(seconds < 60, "the server is too slow");
        };
        match queue {
            "again" => assert_eq!(lmstfy.take("again?timeout=60").await.id, marker),
            _ => lmstfy.wait_until_dead(queue, 1).await,
        }
        lmstfy.ack(queue, &marker).await;
        is_gone(&lmstfy, queue, &id).await;
    };
    tokio::join!(life("again", 5), life("last", 1));
    assert_consistent(&server).await;
}

/// If the first job has expired, the original server reports an empty queue, although there is another job.
#[tokio::test]
async fn an_expired_job_does_not_hide_the_next() {
    let server = start();
    let lmstfy = client(&server);
    let mut gone = lmstfy.bulk("work?ttl=1", "[1, 2, 3]").await;
    let live = lmstfy.publish("work?ttl=0", "live").await;
    gone.extend(lmstfy.bulk("work?ttl=1", "[4, 5, 6]").await);
    for id in &gone {
        lmstfy.wait_until_gone("work", id).await;
    }
    assert_eq!(lmstfy.size("work").await, 1);
    assert_eq!(lmstfy.peek("work").await.expect("a job").id, live);
    assert_eq!(lmstfy.take("work?ttr=0").await.id, live);
    lmstfy.wait_until_dead("work", 1).await;
    assert_eq!(lmstfy.respawn("work?limit=10").await, 1);
    let jobs = lmstfy.consume_many("work?count=10").await;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].id, live);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_queue_with_only_expired_jobs_is_skipped() {
    let server = start();
    let lmstfy = client(&server);
    let gone = lmstfy.publish("first?ttl=1", "x").await;
    lmstfy.wait_until_gone("first", &gone).await;
    let live = lmstfy.publish("second", "x").await;
    assert_eq!(lmstfy.take("first,second").await.id, live);
    assert_eq!(lmstfy.consume("first,second").await, None);
}

/// Dead jobs do not expire.
#[tokio::test]
async fn dead_jobs_do_not_expire() {
    let server = start();
    let lmstfy = client(&server);
    // If the job expires before it is dead-lettered, the test repeats with a longer TTL.
    let mut seconds = 2;
    let dead = loop {
        let id = lmstfy.publish(&format!("work?ttl={seconds}"), "x").await;
        lmstfy.consume("work?ttr=0").await;
        let is_over =
            async || lmstfy.dead_size("work").await == 1 || lmstfy.job("work", &id).await.is_none();
        eventually("the job is dead-lettered or expired", is_over).await;
        if lmstfy.dead_size("work").await == 1 {
            break id;
        }
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    };
    let marker = format!("work?ttl={seconds}");
    let marker = lmstfy.publish(&marker, "marker").await;
    lmstfy.wait_until_gone("work", &marker).await;
    assert_eq!(lmstfy.dead("work").await, (1, dead.clone()));
    assert_eq!(lmstfy.existing_job("work", &dead).await.ttl, 0);
    let respawned = Instant::now();
    assert_eq!(lmstfy.respawn("work").await, 1);
    lmstfy.take("work").await.assert_ttl_set(86400, respawned);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_respawned_job_has_the_ttl_of_the_respawn() {
    let server = start();
    let lmstfy = client(&server);
    // If the job expires before it is read, the test repeats with a longer TTL.
    let mut seconds = 2;
    let id = loop {
        let id = lmstfy.publish_dead("work", "x").await;
        let respawned = Instant::now();
        let at = format!("work?ttl={seconds}");
        assert_eq!(lmstfy.respawn(&at).await, 1);
        if let Some(job) = lmstfy.job("work", &id).await {
            job.assert_ttl_set(seconds, respawned);
            break id;
        }
        let passed = respawned.elapsed();
        assert!(
            passed.as_secs_f64() >= f64::from(seconds),
            "expired too early"
        );
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    };
    lmstfy.wait_until_gone("work", &id).await;
    is_gone(&lmstfy, "work", &id).await;
    assert_consistent(&server).await;
}

/// Waiting consumers get no expired jobs, and still get later ones.
#[tokio::test]
async fn waiting_consumers_get_no_expired_jobs() {
    let server = start();
    let lmstfy = client(&server);
    // If the job expires before it is consumed, the test repeats with a longer TTL.
    let mut seconds = 2;
    loop {
        let at = format!("work?ttl={seconds}&tries=5");
        lmstfy.publish(&at, "x").await;
        let at = format!("work?ttr={}", seconds + 1);
        if lmstfy.consume(&at).await.is_some() {
            break;
        }
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    }
    let at = format!("work?timeout={}", seconds + 3);
    assert_eq!(lmstfy.consume(&at).await, None);
    assert_consistent(&server).await;
}
