//! Consumers who wait for a job. Each waits on a connection of its own and has begun to wait before
//! anything happens (`settled`).

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use super::{client, sound, start};
use crate::support::Server;
use crate::support::lmstfy::{Job, Lmstfy};

/// So many consumers who wait.
async fn crowd(server: &Server, lmstfy: &Lmstfy, at: &str, count: usize) -> JoinSet<Job> {
    let mut crowd = JoinSet::new();
    for _ in 0..count {
        crowd.spawn(lmstfy.poll(server, at).await.take());
    }
    lmstfy.settled(server).await;
    crowd
}

#[tokio::test]
async fn whoever_waits_gets_the_job_that_comes() {
    let server = start();
    let lmstfy = client(&server);
    let gone = lmstfy.publish("known", "x").await;
    lmstfy.ack("known", &gone).await;
    for at in [
        "new?timeout=50",
        "known?timeout=50",
        "other,known?timeout=50",
        "other,newer,another?timeout=50&ttr=5",
        "longest?timeout=4294967295",
    ] {
        let queue = at
            .split(['?', ','])
            .nth(usize::from(at.contains(',')))
            .expect("a name");
        let poll = lmstfy.poll(&server, at).await;
        lmstfy.settled(&server).await;
        let id = lmstfy.publish(&format!("{queue}?tries=3"), at).await;
        let job = poll.take().await;
        assert_eq!((job.queue.as_str(), &job.id, job.text()), (queue, &id, at));
        assert_eq!(job.remain_tries, 2);
        assert_eq!(lmstfy.size(queue).await, 0);
    }
    sound(&server).await;
}

/// One after the other: whoever is woken has the job that came, and everybody else goes on waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_job_wakes_one_of_many() {
    const MANY: usize = 20;
    let server = start();
    let lmstfy = client(&server);
    let mut waiting = crowd(&server, &lmstfy, "work?timeout=50", MANY).await;
    for left in (0..MANY).rev() {
        let id = lmstfy.publish("work", "x").await;
        let job = waiting.join_next().await.expect("somebody waits").unwrap();
        assert_eq!(job.id, id);
        assert_eq!(lmstfy.size("work").await, 0);
        assert_eq!(waiting.len(), left);
    }
    sound(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_wait_get_one_job_each() {
    const MANY: usize = 64;
    let server = start();
    let lmstfy = client(&server);
    let many = format!("[{}]", vec!["1"; MANY].join(","));
    for round in 0..3 {
        let waiting = crowd(&server, &lmstfy, "work?timeout=50", MANY).await;
        let mut ids: Vec<String> = match round {
            0 => lmstfy.bulk("work", many.clone()).await,
            // They come while others are being given.
            1 => {
                let mut publishers = JoinSet::new();
                for _ in 0..MANY {
                    let lmstfy = lmstfy.clone();
                    publishers.spawn(async move { lmstfy.publish("work", "x").await });
                }
                publishers.join_all().await
            }
            // They come by themselves.
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
    sound(&server).await;
}

/// What is there before the last one comes goes to whoever is there.
#[tokio::test]
async fn fewer_jobs_than_waiters_leave_the_others_waiting() {
    let server = start();
    let lmstfy = client(&server);
    let mut waiting = crowd(&server, &lmstfy, "work?timeout=50", 5).await;
    let mut ids: BTreeSet<String> = lmstfy.bulk("work", "[1, 2]").await.into_iter().collect();
    for _ in 0..2 {
        let job = waiting.join_next().await.expect("somebody waits").unwrap();
        assert!(ids.remove(&job.id));
    }
    lmstfy.settled(&server).await;
    assert!(waiting.try_join_next().is_none());
    ids.extend(lmstfy.bulk("work", "[1, 2, 3, 4]").await);
    for job in waiting.join_all().await {
        assert!(ids.remove(&job.id));
    }
    // The fourth is nobody's yet.
    assert_eq!(lmstfy.size("work").await, 1);
    assert!(ids.contains(&lmstfy.take("work").await.id));
}

/// Every way in which a job becomes ready.
#[tokio::test]
async fn whichever_way_a_job_becomes_ready_who_waits_gets_it() {
    let server = start();
    let lmstfy = client(&server);
    for way in [
        "publish",
        "bulk",
        "republish",
        "delay",
        "ttr",
        "respawn",
        "ttr0",
    ] {
        // What must be there before.
        let at = format!("{way}?tries=2");
        let mut id = match way {
            "ttr" => {
                let id = lmstfy.publish(&at, "x").await;
                lmstfy.take("ttr?ttr=2").await;
                id
            }
            "respawn" => lmstfy.publish_dead(way, "x").await,
            "republish" => lmstfy.publish("republish?delay=3600", "x").await,
            _ => String::new(),
        };
        let poll = lmstfy
            .poll(&server, &format!("{way}?timeout=50&ttr=0"))
            .await;
        lmstfy.settled(&server).await;
        match way {
            "publish" => id = lmstfy.publish(&at, "x").await,
            "bulk" => id = lmstfy.bulk(&at, "[1]").await.remove(0),
            "republish" => id = lmstfy.republish(&at, &id, "x").await,
            "delay" => id = lmstfy.publish("delay?delay=1", "x").await,
            "respawn" => assert_eq!(lmstfy.respawn(way).await, 1),
            "ttr0" => {
                // One gives it up at once, and the other one gets it.
                let second = lmstfy.poll(&server, "ttr0?timeout=50&ttr=0").await;
                id = lmstfy.publish(&at, "x").await;
                assert_eq!(second.take().await.id, id);
            }
            _ => {}
        }
        let job = poll.take().await;
        assert_eq!((job.queue.as_str(), &job.id), (way, &id), "{way}");
    }
    sound(&server).await;
}

/// As soon as there is one, whoever wants several has no more to wait for.
#[tokio::test]
async fn whoever_waits_for_several_gets_an_array() {
    let server = start();
    let lmstfy = client(&server);
    for at in ["work?timeout=50&count=2", "idle,work?timeout=50&count=100"] {
        let poll = lmstfy.poll(&server, at).await;
        lmstfy.settled(&server).await;
        let id = lmstfy.publish("work", "x").await;
        let jobs = poll.reply().await.consumed_many("ns");
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].id, id);
    }
    let many = lmstfy.poll(&server, "work?timeout=50&count=5").await;
    lmstfy.settled(&server).await;
    let ids = lmstfy.bulk("work", "[1, 2, 3]").await;
    let jobs = many.reply().await.consumed_many("ns");
    let got: Vec<String> = jobs.into_iter().map(|job| job.id).collect();
    // They came together, so they are given together.
    assert_eq!(got, ids);
}

/// What is ready in a queue of higher rank goes first also for whoever comes to wait.
#[tokio::test]
async fn who_waits_at_several_queues_is_served_by_rank() {
    let server = start();
    let lmstfy = client(&server);
    for round in 0..5 {
        let low = lmstfy.poll(&server, "high,low?timeout=50").await;
        lmstfy.settled(&server).await;
        let id = lmstfy.publish("low", "x").await;
        assert_eq!(low.take().await.id, id, "{round}");
        // Both are there when it looks.
        let second = lmstfy.publish("low", "x").await;
        let first = lmstfy.publish("high", "x").await;
        assert_eq!(lmstfy.take("high,low?timeout=50").await.id, first);
        assert_eq!(lmstfy.take("high,low?timeout=50").await.id, second);
    }
    // Both are due at the same time, or nearly: either goes first, and both are given.
    let waiting = crowd(&server, &lmstfy, "high,low?timeout=50", 2).await;
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
async fn who_wait_at_some_of_the_same_queues_get_each_job_once() {
    let server = start();
    let lmstfy = client(&server);
    for _ in 0..5 {
        let mut waiting = JoinSet::new();
        for at in ["a,b", "b,c", "c,a", "a", "b", "c", "c,b,a"] {
            let at = format!("{at}?timeout=50");
            waiting.spawn(lmstfy.poll(&server, &at).await.take());
        }
        lmstfy.settled(&server).await;
        // Each has one for itself whoever takes which: four wait at any queue.
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
    sound(&server).await;
}

#[tokio::test]
async fn whoever_hangs_up_takes_no_job() {
    let server = start();
    let lmstfy = client(&server);
    for round in 0..5 {
        let mut ghosts = Vec::new();
        for at in ["work?timeout=50", "idle,work?timeout=50&count=5"] {
            ghosts.push(lmstfy.poll(&server, at).await);
        }
        lmstfy.settled(&server).await;
        drop(ghosts);
        // That they have gone reaches the server before these requests do.
        lmstfy.settled(&server).await;
        let id = lmstfy.publish("work?tries=3", "x").await;
        lmstfy.settled(&server).await;
        assert_eq!(lmstfy.size("work").await, 1, "{round}");
        assert_eq!(lmstfy.stays("work", &id).await.remain_tries, 3);
        let job = lmstfy.take("work").await;
        assert_eq!((job.id, job.remain_tries), (id, 2));
    }
    sound(&server).await;
}

#[tokio::test]
async fn who_still_waits_gets_what_others_have_left() {
    let server = start();
    let lmstfy = client(&server);
    for _ in 0..5 {
        let mut ghosts = Vec::new();
        for _ in 0..5 {
            ghosts.push(lmstfy.poll(&server, "work?timeout=50").await);
        }
        lmstfy.settled(&server).await;
        let living = lmstfy.poll(&server, "work?timeout=50").await;
        lmstfy.settled(&server).await;
        drop(ghosts);
        lmstfy.settled(&server).await;
        let id = lmstfy.publish("work?tries=3", "x").await;
        let job = living.take().await;
        assert_eq!((job.id, job.remain_tries), (id, 2));
    }
    sound(&server).await;
}

#[tokio::test]
async fn a_server_that_stops_tells_who_waits_that_there_is_no_job() {
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
    lmstfy.settled(&server).await;
    server.terminate();
    for poll in polls {
        poll.reply().await.no_job();
    }
    assert!(server.stopped().await.success());
}

/// How many files this process may open.
fn open_files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let limit = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    limit.unwrap_or(1024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_may_wait() {
    const QUEUES: usize = 10;
    let each = (open_files() - 100).min(1000) / QUEUES;
    let server = start();
    let lmstfy = client(&server);
    let mut waiting = JoinSet::new();
    for number in 0..each * QUEUES {
        let at = format!("q{},idle?timeout=4294967295", number % QUEUES);
        waiting.spawn(lmstfy.poll(&server, &at).await.take());
    }
    lmstfy.settled(&server).await;
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
    sound(&server).await;
}
