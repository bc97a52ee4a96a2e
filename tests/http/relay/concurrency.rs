//! Many concurrent clients: every key is enqueued once, every job is claimed once, every run ends once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{assert_consistent, client, start};
use crate::support::at_once;
use crate::support::relay::{Job, Relay, new, with};

/// Checks that one client succeeds for each key.
pub async fn one_enqueue_succeeds_per_key(clients: &[Relay]) {
    const KEYS: usize = 15;
    let wins = at_once(clients, 12, |relay, number| async move {
        let mut wins = Vec::new();
        for key in 0..KEYS {
            // Half of the clients use the reverse order.
            let key = if number % 2 == 0 { key } else { KEYS - 1 - key };
            let job = with("unique", &key.to_string(), json!({"payload": number}));
            let reply = relay.enqueue("", &json!([job])).await;
            assert!([202, 409].contains(&reply.status), "{reply:?}");
            if reply.status == 202 {
                wins.push((key, number));
            }
        }
        wins
    });
    let wins = wins.await.concat();
    let keys: BTreeSet<usize> = wins.iter().map(|(key, _)| *key).collect();
    assert_eq!((wins.len(), keys.len()), (KEYS, KEYS), "{wins:?}");
    for (key, winner) in wins {
        let job = clients[0].existing_job("unique", &key.to_string()).await;
        assert_eq!(job.payload, winner.to_string());
    }
}

/// Checks that overlapping lists of keys are enqueued completely or not at all.
pub async fn lists_are_enqueued_completely_or_not_at_all(clients: &[Relay]) {
    const LISTS: usize = 24;
    let inside = at_once(clients, LISTS, |relay, number| async move {
        // 2n, 2n + 1 and 2n + 2: each even number is in two lists.
        let ids = [0, 1, 2].map(|n| (2 * number + n).to_string());
        let job = |id: &String| with("list", id, json!({"payload": number}));
        let reply = relay
            .enqueue("unique", &ids.iter().map(job).collect())
            .await;
        assert!([202, 409].contains(&reply.status), "{reply:?}");
        reply.status == 202
    });
    // Responses come in any order, so the jobs show which lists were enqueued.
    let inside = inside.await.into_iter().filter(|inside| *inside).count();
    let mut all = clients[0].next("list", 100).await;
    all.sort_by_key(|job| job.id.parse::<usize>().unwrap());
    assert_eq!(all.len(), 3 * inside);
    for list in all.chunks(3) {
        let owner: usize = list[0].payload.parse().unwrap();
        let ids: Vec<String> = list.iter().map(|job| job.id.clone()).collect();
        assert_eq!(ids, [0, 1, 2].map(|n| (2 * owner + n).to_string()));
        assert!(list.iter().all(|job| job.payload == owner.to_string()));
    }
}

/// Checks that jobs that many clients enqueue, claim and complete are claimed once.
pub async fn each_job_once(clients: &[Relay]) {
    const JOBS: usize = 600;
    let left = Arc::new(AtomicUsize::new(JOBS));
    let puts = at_once(clients, 6, |relay, number| async move {
        for call in 0..10 {
            let jobs = (0..10).map(|n| new("once", &format!("{number}-{call}-{n}")));
            relay.put(&jobs.collect()).await;
        }
    });
    let others: Vec<Relay> = clients.iter().rev().cloned().collect();
    let takes = at_once(clients, 8, |relay, number| {
        let (left, other) = (Arc::clone(&left), others[number % others.len()].clone());
        async move {
            let mut taken: Vec<Job> = Vec::new();
            while left.load(Ordering::Acquire) > 0 {
                let jobs = relay.next("once", 1 + number * 3).await;
                left.fetch_sub(jobs.len(), Ordering::AcqRel);
                for job in &jobs {
                    other.heartbeat_with(job, "1").await.only(202);
                    other.complete(job).await;
                }
                taken.extend(jobs);
            }
            taken
        }
    });
    let (_, taken) = tokio::join!(puts, takes);
    let taken = taken.concat();
    let ids: BTreeSet<&str> = taken.iter().map(|job| &*job.id).collect();
    let runs: BTreeSet<_> = taken.iter().map(Job::run).collect();
    assert_eq!((taken.len(), ids.len(), runs.len()), (JOBS, JOBS, JOBS));
    for job in taken.iter().step_by(50) {
        assert!(!clients[0].exists("once", &job.id).await, "{job:?}");
    }
}

/// Checks that one of many concurrent attempts to end a run succeeds.
pub async fn a_run_ends_once(clients: &[Relay]) {
    let relay = &clients[0];
    for round in 0..6 {
        let id = format!("r{round}");
        relay.put_ids("end", &[&id]).await;
        let job = relay.take("end").await;
        at_once(clients, 12, |relay, number| {
            let job = job.clone();
            async move {
                let jobs = json!([
                    new("after", &format!("{}-{number}", job.id)),
                    new("after", &format!("{}-{number}b", job.id))
                ]);
                relay.requeue(&job, "unique", &jobs).await.only(202);
            }
        })
        .await;
        let after = relay.next_ids("after", 99).await;
        assert_eq!(after.len(), 2, "{after:?}");
        assert_eq!(format!("{}b", after[0]), after[1]);
        assert!(!relay.exists("end", &id).await);
    }
    // Requeues the job with its own key; one job exists afterwards.
    relay.put_ids("self", &["a"]).await;
    let job = relay.take("self").await;
    at_once(clients, 12, |relay, number| {
        let job = job.clone();
        async move {
            let jobs = json!([with("self", "a", json!({"payload": number}))]);
            relay.requeue(&job, "unique", &jobs).await.only(202);
        }
    })
    .await;
    assert_eq!(relay.next_ids("self", 9).await, ["a"]);
}

/// Checks that there is at most one valid run while jobs are replaced and claimed.
pub async fn one_run_at_a_time(clients: &[Relay]) {
    let taken = at_once(clients, 12, |relay, number| async move {
        let mut taken = Vec::new();
        for round in 0..12 {
            let payload: Value = json!(number * 100 + round);
            let jobs = json!([with("turn", "a", json!({"payload": payload}))]);
            relay.enqueue("replace", &jobs).await.only(202);
            taken.extend(relay.next("turn", 5).await);
        }
        taken
    });
    let taken = taken.await.concat();
    let runs: BTreeSet<_> = taken.iter().map(Job::run).collect();
    assert_eq!(runs.len(), taken.len(), "a run ID was used twice");
    let now = clients[0].existing_job("turn", "a").await;
    let mut alive = 0;
    for (number, job) in taken.iter().enumerate() {
        let reply = clients[number % clients.len()].heartbeat(job).await;
        let expected = if job.run_id == now.run_id { 202 } else { 404 };
        assert_eq!(reply.status, expected, "{reply:?}");
        alive += usize::from(reply.status == 202);
    }
    assert_eq!(alive, usize::from(now.run_id.is_some()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_enqueues_of_a_key_succeed_once() {
    let server = start();
    one_enqueue_succeeds_per_key(&[client(&server)]).await;
    lists_are_enqueued_completely_or_not_at_all(&[client(&server)]).await;
    assert_consistent(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_claimed_twice_or_lost() {
    let server = start();
    each_job_once(&[client(&server)]).await;
    assert_consistent(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_ends_of_a_run_succeed_once() {
    let server = start();
    a_run_ends_once(&[client(&server)]).await;
    one_run_at_a_time(&[client(&server)]).await;
    assert_consistent(&server).await;
}
