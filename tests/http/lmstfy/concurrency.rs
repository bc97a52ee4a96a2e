//! Many concurrent clients: every job is consumed once, and none is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

use super::{assert_consistent, client, start};
use crate::support::lmstfy::Lmstfy;

const PRODUCERS: usize = 8;
const CONSUMERS: usize = 8;
const CALLS_EACH: usize = 20;
/// Alternates between a single job and a bulk of three.
const JOBS: usize = PRODUCERS * CALLS_EACH * 2;

/// Ways to consume, with and without waiting.
const WAYS: [&str; 4] = [
    "a,b?ttr=3600&timeout=1",
    "b,a?ttr=3600&timeout=1&count=5",
    "a,b?ttr=3600",
    "b,a?ttr=3600&count=3",
];

async fn produce(lmstfy: Lmstfy, number: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for call in 0..CALLS_EACH {
        let queue = if (number + call).is_multiple_of(3) {
            "a"
        } else {
            "b"
        };
        if call.is_multiple_of(2) {
            ids.push(lmstfy.publish(queue, format!("{number}-{call}")).await);
        } else {
            ids.extend(
                lmstfy
                    .bulk(queue, format!("[{call}, {call}, {call}]"))
                    .await,
            );
        }
    }
    ids
}

async fn consume(take: Lmstfy, done: Lmstfy, way: &str, left: &AtomicUsize) -> Vec<String> {
    let mut ids = Vec::new();
    while left.load(Ordering::Acquire) > 0 {
        let jobs = if way.contains("count") {
            take.consume_many(way).await
        } else {
            take.consume(way).await.into_iter().collect()
        };
        left.fetch_sub(jobs.len(), Ordering::AcqRel);
        for job in jobs {
            assert_eq!(job.remain_tries, 0);
            done.ack(&job.queue, &job.id).await;
            ids.push(job.id);
        }
    }
    ids
}

/// Runs producers and consumers, which use these servers in turn.
pub async fn each_job_once(clients: &[Lmstfy]) {
    let turn = |number: usize| clients[number % clients.len()].clone();
    let left = Arc::new(AtomicUsize::new(JOBS));
    let mut consumers = JoinSet::new();
    for number in 0..CONSUMERS {
        let (take, done, left) = (turn(number), turn(number + 1), Arc::clone(&left));
        let way = WAYS[number / 2 % WAYS.len()];
        consumers.spawn(async move { consume(take, done, way, &left).await });
    }
    let mut producers = JoinSet::new();
    for number in 0..PRODUCERS {
        producers.spawn(produce(turn(number), number));
    }
    let put: Vec<String> = producers.join_all().await.into_iter().flatten().collect();
    let got: Vec<String> = consumers.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<&String> = got.iter().collect();
    assert_eq!((put.len(), got.len()), (JOBS, JOBS));
    assert_eq!(distinct.len(), JOBS, "a job was delivered twice");
    assert_eq!(distinct, put.iter().collect(), "a job was lost");
    for queue in ["a", "b"] {
        let lmstfy = turn(0);
        assert_eq!(lmstfy.size(queue).await, 0);
        assert_eq!(lmstfy.dead(queue).await, (0, String::new()));
        assert_eq!(lmstfy.job(queue, &put[0]).await, None);
    }
}

/// The results of concurrent calls.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    clients: &[Lmstfy],
    count: usize,
    call: impl Fn(Lmstfy) -> F,
) -> Vec<T> {
    let mut calls = JoinSet::new();
    for number in 0..count {
        calls.spawn(call(clients[number % clients.len()].clone()));
    }
    calls.join_all().await
}

/// Checks that a new job, a returned job and a respawned job are each consumed once.
pub async fn one_job_is_consumed_once(clients: &[Lmstfy]) {
    let lmstfy = &clients[0];
    // How many of 16 clients get a job.
    let takers = async |at: &str| {
        let take = |lmstfy: Lmstfy| {
            let at = at.to_owned();
            async move { lmstfy.consume(&at).await }
        };
        let got = at_once(clients, 16, take).await;
        got.into_iter().flatten().count()
    };
    for _ in 0..5 {
        let id = lmstfy.publish("one", "x").await;
        assert_eq!(takers("one").await, 1);
        lmstfy.ack("one", &id).await;
    }
    // If the TTR ends before all clients have asked, the test repeats with a longer one.
    let mut seconds = 2;
    let id = 'again: loop {
        let id = lmstfy.publish("back?tries=3", "x").await;
        for _ in 0..2 {
            let began = Instant::now();
            let got = takers(&format!("back?ttr={seconds}")).await;
            if began.elapsed() >= Duration::from_secs(seconds) {
                lmstfy.ack("back", &id).await;
                seconds *= 2;
                assert!(seconds < 60, "the server is too slow");
                continue 'again;
            }
            assert_eq!(got, 1);
            lmstfy.wait_until_ready("back", 1).await;
        }
        break id;
    };
    assert_eq!(takers("back?ttr=0").await, 1);
    lmstfy.wait_until_dead("back", 1).await;
    for _ in 0..3 {
        assert_eq!(lmstfy.respawn("back").await, 1);
        assert_eq!(takers("back?ttr=0").await, 1);
        lmstfy.wait_until_dead("back", 1).await;
    }
    assert_eq!(lmstfy.dead("back").await, (1, id));
}

/// Checks that concurrent respawns and deletes of dead jobs process each job once.
pub async fn dead_jobs_are_processed_once(clients: &[Lmstfy]) {
    let lmstfy = &clients[0];
    let many = format!("[{}]", vec!["1"; 40].join(","));
    lmstfy.bulk("dead", many).await;
    lmstfy.consume_many("dead?ttr=0&count=100").await;
    lmstfy.wait_until_dead("dead", 40).await;
    let respawn = |lmstfy: Lmstfy| async move { lmstfy.respawn("dead?limit=3").await };
    let counts = at_once(clients, 8, respawn).await;
    assert_eq!(counts, [3; 8]);
    assert_eq!(
        (lmstfy.size("dead").await, lmstfy.dead("dead").await.0),
        (24, 16)
    );
    let delete = |lmstfy: Lmstfy| async move { lmstfy.delete_dead("dead?limit=1").await };
    at_once(clients, 10, delete).await;
    assert_eq!(lmstfy.dead("dead").await.0, 6);
    let counts = at_once(clients, 8, respawn).await;
    assert_eq!(counts.iter().sum::<u64>(), 6, "{counts:?}");
    assert_eq!(
        (lmstfy.size("dead").await, lmstfy.dead("dead").await.0),
        (30, 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_consumed_twice_or_lost() {
    let server = start();
    each_job_once(&[client(&server)]).await;
    assert_consistent(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_consumes_give_one_job_to_one_client() {
    let server = start();
    one_job_is_consumed_once(&[client(&server)]).await;
    assert_consistent(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_dead_letter_calls_process_each_job_once() {
    let server = start();
    dead_jobs_are_processed_once(&[client(&server)]).await;
    assert_consistent(&server).await;
}

/// Each republish creates a new job; the old one is deleted once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_republishes_delete_the_old_job_once() {
    let server = start();
    let lmstfy = client(&server);
    let old = lmstfy.publish("work", "old").await;
    let again = |lmstfy: Lmstfy| {
        let old = old.clone();
        async move { lmstfy.republish("work", &old, "new").await }
    };
    let ids = at_once(std::slice::from_ref(&lmstfy), 8, again).await;
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), 8);
    assert_eq!(lmstfy.job("work", &old).await, None);
    assert_eq!(lmstfy.size("work").await, 8);
    assert_consistent(&server).await;
}
