//! Blocking consumes. Each uses a connection of its own and waits before anything happens (`wait_until_polling`). Tests of
//! several cases have a namespace for each, so that all polls can start before the first wait.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use super::{assert_consistent, client, start};
use crate::support::Server;
use crate::support::lmstfy::{Job, Lmstfy};
use crate::support::metrics::wait_until_polling;

/// Starts `count` consumers that wait.
async fn start_consumers(server: &Server, lmstfy: &Lmstfy, at: &str, count: usize) -> JoinSet<Job> {
    let mut polls = JoinSet::new();
    for _ in 0..count {
        polls.spawn(lmstfy.poll(server, at).await.take());
    }
    wait_until_polling(server, count).await;
    polls
}

#[tokio::test]
async fn a_waiting_consumer_gets_the_next_job() {
    let server = start();
    let mut polls = Vec::new();
    for (number, at) in [
        "new?timeout=50",
        "known?timeout=50",
        "other,known?timeout=50",
        "other,newer,another?timeout=50&ttr=5",
        "longest?timeout=4294967295",
    ]
    .into_iter()
    .enumerate()
    {
        let lmstfy = Lmstfy::new(&server, &format!("ns{number}"));
        let gone = lmstfy.publish("known", "x").await;
        lmstfy.ack("known", &gone).await;
        let poll = lmstfy.poll(&server, at).await;
        polls.push((lmstfy, at, poll));
    }
    wait_until_polling(&server, polls.len()).await;
    for (lmstfy, at, poll) in polls {
        let queue = at
            .split(['?', ','])
            .nth(usize::from(at.contains(',')))
            .expect("a name");
        let id = lmstfy.publish(&format!("{queue}?tries=3"), at).await;
        let job = poll.take().await;
        assert_eq!((job.queue.as_str(), &job.id, job.text()), (queue, &id, at));
        assert_eq!(job.remain_tries, 2);
        assert_eq!(lmstfy.size(queue).await, 0);
    }
    assert_consistent(&server).await;
}

/// Job by job: one consumer gets the job, and the others keep waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_job_wakes_one_of_many_consumers() {
    const MANY: usize = 20;
    let server = start();
    let lmstfy = client(&server);
    let mut waiting = start_consumers(&server, &lmstfy, "work?timeout=50", MANY).await;
    for left in (0..MANY).rev() {
        let id = lmstfy.publish("work", "x").await;
        let job = waiting
            .join_next()
            .await
            .expect("a consumer waits")
            .unwrap();
        assert_eq!(job.id, id);
        assert_eq!(lmstfy.size("work").await, 0);
        assert_eq!(waiting.len(), left);
    }
    assert_consistent(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_waiting_consumers_get_one_job_each() {
    const MANY: usize = 64;
    let server = start();
    let lmstfy = client(&server);
    let many = format!("[{}]", vec!["1"; MANY].join(","));
    for round in 0..3 {
        let waiting = start_consumers(&server, &lmstfy, "work?timeout=50", MANY).await;
        let mut ids: Vec<String> = match round {
            0 => lmstfy.bulk("work", many.clone()).await,
            // Published while others are consumed.
            1 => {
                let mut publishers = JoinSet::new();
                for _ in 0..MANY {
                    let lmstfy = lmstfy.clone();
                    publishers.spawn(async move { lmstfy.publish("work", "x").await });
                }
                publishers.join_all().await
            }
            // Become ready after their delay.
            _ => lmstfy.bulk("work?delay=1", many.clone()).await,
        };
        let mut got: Vec<String> = waiting
            .join_all()
            .await
            .into_iter()
            .map(|job| job.id)
            .collect();
        ids.sort();
        got.sort();
        assert_eq!(got, ids);
    }
    assert_eq!(lmstfy.consume("work").await, None);
    assert_consistent(&server).await;
}

/// Ready jobs go to the consumers that are waiting.
#[tokio::test]
async fn with_fewer_jobs_than_consumers_the_others_keep_waiting() {
    let server = start();
    let lmstfy = client(&server);
    let mut waiting = start_consumers(&server, &lmstfy, "work?timeout=50", 5).await;
    let mut ids: BTreeSet<String> = lmstfy.bulk("work", "[1, 2]").await.into_iter().collect();
    for _ in 0..2 {
        let job = waiting
            .join_next()
            .await
            .expect("a consumer waits")
            .unwrap();
        assert!(ids.remove(&job.id));
    }
    wait_until_polling(&server, 3).await;
    assert!(waiting.try_join_next().is_none());
    ids.extend(lmstfy.bulk("work", "[1, 2, 3, 4]").await);
    for job in waiting.join_all().await {
        assert!(ids.remove(&job.id));
    }
    // The fourth job is still ready.
    assert_eq!(lmstfy.size("work").await, 1);
    assert!(ids.contains(&lmstfy.take("work").await.id));
}

/// Every way in which a job becomes ready.
#[tokio::test]
async fn a_waiting_consumer_gets_a_job_however_it_becomes_ready() {
    let server = start();
    let lmstfy = client(&server);
    let mut polls = Vec::new();
    for way in [
        "publish",
        "bulk",
        "republish",
        "delay",
        "respawn",
        "ttr0",
        "ttr",
    ] {
        // Preparations.
        let id = match way {
            "ttr" => {
                // Last, because this job is ready after 2 s even if the other polls are not waiting yet.
                wait_until_polling(&server, polls.len()).await;
                let id = lmstfy.publish("ttr?tries=2", "x").await;
                lmstfy.take("ttr?ttr=2").await;
                id
            }
            "respawn" => lmstfy.publish_dead(way, "x").await,
            "republish" => lmstfy.publish("republish?delay=3600", "x").await,
            _ => String::new(),
        };
        let at = format!("{way}?timeout=50&ttr=0");
        polls.push((way, id, lmstfy.poll(&server, &at).await));
    }
    for (way, mut id, poll) in polls {
        let at = format!("{way}?tries=2");
        match way {
            "publish" => id = lmstfy.publish(&at, "x").await,
            "bulk" => id = lmstfy.bulk(&at, "[1]").await.remove(0),
            "republish" => id = lmstfy.republish(&at, &id, "x").await,
            "delay" => id = lmstfy.publish("delay?delay=1", "x").await,
            "respawn" => assert_eq!(lmstfy.respawn(way).await, 1),
            "ttr0" => {
                // One consumer gets it with a TTR of 0, and the other one gets it next.
                let second = lmstfy.poll(&server, "ttr0?timeout=50&ttr=0").await;
                id = lmstfy.publish(&at, "x").await;
                assert_eq!(second.take().await.id, id);
            }
            _ => {}
        }
        let job = poll.take().await;
        assert_eq!((job.queue.as_str(), &job.id), (way, &id), "{way}");
    }
    assert_consistent(&server).await;
}

/// A consume of several jobs ends as soon as there is one.
#[tokio::test]
async fn a_waiting_consume_of_several_jobs_returns_an_array() {
    let server = start();
    let lmstfy = client(&server);
    let (one, other) = (Lmstfy::new(&server, "one"), Lmstfy::new(&server, "other"));
    let first = one.poll(&server, "work?timeout=50&count=2").await;
    let second = "idle,work?timeout=50&count=100";
    let second = other.poll(&server, second).await;
    let many = lmstfy.poll(&server, "work?timeout=50&count=5").await;
    wait_until_polling(&server, 3).await;
    for (lmstfy, namespace, poll) in [(one, "one", first), (other, "other", second)] {
        let id = lmstfy.publish("work", "x").await;
        let jobs = poll.reply().await.consumed_many(namespace);
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].id, id);
    }
    let ids = lmstfy.bulk("work", "[1, 2, 3]").await;
    let jobs = many.reply().await.consumed_many("ns");
    let got: Vec<String> = jobs.into_iter().map(|job| job.id).collect();
    // The jobs became ready together, so one response has all of them.
    assert_eq!(got, ids);
}

/// Ready jobs of an earlier queue come first for new consumers, too.
#[tokio::test]
async fn a_consumer_of_several_queues_prefers_earlier_queues() {
    let server = start();
    let mut polls = Vec::new();
    for round in 0..5 {
        let lmstfy = Lmstfy::new(&server, &format!("ns{round}"));
        let low = lmstfy.poll(&server, "high,low?timeout=50").await;
        polls.push((round, lmstfy, low));
    }
    wait_until_polling(&server, polls.len()).await;
    for (round, lmstfy, low) in polls {
        let id = lmstfy.publish("low", "x").await;
        assert_eq!(low.take().await.id, id, "{round}");
        // Both jobs are ready when the consumer starts.
        let second = lmstfy.publish("low", "x").await;
        let first = lmstfy.publish("high", "x").await;
        assert_eq!(lmstfy.take("high,low?timeout=50").await.id, first);
        assert_eq!(lmstfy.take("high,low?timeout=50").await.id, second);
    }
    // Both jobs become due at about the same time. They can be consumed in any order.
    let lmstfy = client(&server);
    let waiting = start_consumers(&server, &lmstfy, "high,low?timeout=50", 2).await;
    let mut ids = lmstfy.bulk("low?delay=1", "[1]").await;
    ids.extend(lmstfy.bulk("high?delay=1", "[1]").await);
    let mut got: Vec<String> = waiting
        .join_all()
        .await
        .into_iter()
        .map(|job| job.id)
        .collect();
    got.sort();
    ids.sort();
    assert_eq!(got, ids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_with_overlapping_queues_get_each_job_once() {
    let server = start();
    let queues = ["a,b", "b,c", "c,a", "a", "b", "c", "c,b,a"];
    let mut rounds = Vec::new();
    for round in 0..5 {
        let lmstfy = Lmstfy::new(&server, &format!("ns{round}"));
        let mut waiting = JoinSet::new();
        for at in queues {
            let at = format!("{at}?timeout=50");
            waiting.spawn(lmstfy.poll(&server, &at).await.take());
        }
        rounds.push((lmstfy, waiting));
    }
    wait_until_polling(&server, rounds.len() * queues.len()).await;
    for (lmstfy, waiting) in rounds {
        // Each consumer gets a job in any order, because at most four wait for one queue.
        let mut ids = BTreeSet::new();
        for queue in ["a", "b", "c"] {
            ids.extend(lmstfy.bulk(queue, "[1, 2, 3, 4]").await);
        }
        for job in waiting.join_all().await {
            assert!(ids.remove(&job.id), "{job:?} came twice");
        }
        while let Some(job) = lmstfy.consume("a,b,c").await {
            assert!(ids.remove(&job.id), "{job:?} came twice");
        }
        assert_eq!(ids, BTreeSet::new());
    }
    assert_consistent(&server).await;
}

/// Clients of five namespaces.
fn clients(server: &Server) -> Vec<Lmstfy> {
    let namespaces = (0..5).map(|number| format!("ns{number}"));
    let clients = namespaces.map(|namespace| Lmstfy::new(server, &namespace));
    clients.collect()
}

#[tokio::test]
async fn a_consumer_that_disconnects_gets_no_job() {
    let server = start();
    let clients = clients(&server);
    let mut ghosts = Vec::new();
    for lmstfy in &clients {
        for at in ["work?timeout=50", "idle,work?timeout=50&count=5"] {
            ghosts.push(lmstfy.poll(&server, at).await);
        }
    }
    wait_until_polling(&server, ghosts.len()).await;
    drop(ghosts);
    wait_until_polling(&server, 0).await;
    for (round, lmstfy) in clients.iter().enumerate() {
        let id = lmstfy.publish("work?tries=3", "x").await;
        assert_eq!(lmstfy.size("work").await, 1, "{round}");
        assert_eq!(lmstfy.existing_job("work", &id).await.remain_tries, 3);
        let job = lmstfy.take("work").await;
        assert_eq!((job.id, job.remain_tries), (id, 2));
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn jobs_of_disconnected_consumers_go_to_waiting_ones() {
    let server = start();
    let clients = clients(&server);
    let (mut ghosts, mut living) = (Vec::new(), Vec::new());
    for lmstfy in &clients {
        for _ in 0..5 {
            ghosts.push(lmstfy.poll(&server, "work?timeout=50").await);
        }
    }
    wait_until_polling(&server, ghosts.len()).await;
    for lmstfy in &clients {
        living.push(lmstfy.poll(&server, "work?timeout=50").await);
    }
    wait_until_polling(&server, ghosts.len() + living.len()).await;
    drop(ghosts);
    wait_until_polling(&server, living.len()).await;
    for (lmstfy, living) in clients.iter().zip(living) {
        let id = lmstfy.publish("work?tries=3", "x").await;
        let job = living.take().await;
        assert_eq!((job.id, job.remain_tries), (id, 2));
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_stop_ends_waiting_consumers_without_a_job() {
    let mut server = start();
    let lmstfy = client(&server);
    let mut polls = Vec::new();
    for at in [
        "work?timeout=50",
        "a,b?timeout=4294967295",
        "work?timeout=50&count=5",
    ] {
        polls.push(lmstfy.poll(&server, at).await);
    }
    wait_until_polling(&server, polls.len()).await;
    server.terminate();
    for poll in polls {
        poll.reply().await.no_job();
    }
    assert!(server.stopped().await.success());
}

/// The number of files that this process may open.
fn open_files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let limit = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    limit.unwrap_or(1024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_consumers_can_wait() {
    const QUEUES: usize = 10;
    let each = (open_files() - 100).min(1000) / QUEUES;
    let server = start();
    let lmstfy = client(&server);
    let mut waiting = JoinSet::new();
    for number in 0..each * QUEUES {
        let at = format!("q{},idle?timeout=4294967295", number % QUEUES);
        waiting.spawn(lmstfy.poll(&server, &at).await.take());
    }
    wait_until_polling(&server, each * QUEUES).await;
    let mut ids = BTreeSet::new();
    for queue in 0..QUEUES {
        let mut left = each;
        while left > 0 {
            let some = left.min(64);
            let jobs = format!("[{}]", vec!["1"; some].join(","));
            ids.extend(lmstfy.bulk(&format!("q{queue}"), jobs).await);
            left -= some;
        }
    }
    for job in waiting.join_all().await {
        assert!(ids.remove(&job.id), "{job:?} came twice");
    }
    assert_eq!(ids, BTreeSet::new());
    assert_consistent(&server).await;
}
