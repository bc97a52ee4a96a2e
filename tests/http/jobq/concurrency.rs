//! Many concurrent clients: every job is claimed once, every state is set once, no event is lost.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{assert_consistent, client, start};
use crate::support::at_once;
use crate::support::jobq::{Jobq, Queue, What, ids, plain, queue};

/// Checks that each name is created once, and that numbers are unique.
pub async fn names_and_numbers_are_unique(clients: &[Jobq]) {
    const CLIENTS: usize = 12;
    const NAMES: usize = 6;
    let won = at_once(clients, CLIENTS, |jobq, number| async move {
        let mut won = Vec::new();
        for name in 0..NAMES {
            // Half of the clients use the reverse order.
            let name = if number % 2 == 0 {
                name
            } else {
                NAMES - 1 - name
            };
            let body = json!({"name": format!("name-{name}")});
            let reply = jobq.post("/queue", &body).await;
            assert!([200, 409].contains(&reply.status), "{reply:?}");
            if reply.status == 200 {
                won.push(reply.ok::<Queue>());
            }
        }
        won
    });
    let mut won = won.await.concat();
    won.sort_by_key(|queue| queue.id);
    let numbers: BTreeSet<i64> = won.iter().map(|queue| queue.id).collect();
    let names: BTreeSet<&str> = won.iter().map(|queue| &*queue.name).collect();
    assert_eq!(
        (won.len(), numbers.len(), names.len()),
        (NAMES, NAMES, NAMES)
    );
    let mut listed = clients[0].queues().await;
    listed.retain(|queue| queue.name.starts_with("name-"));
    assert_eq!(listed, won);
    // The jobs of a queue are numbered consecutively, whichever client creates them.
    let created = at_once(clients, CLIENTS, |jobq, number| async move {
        let mut created = Vec::new();
        for job in 0..10 {
            let payload = json!([number, job]);
            created.push(jobq.put("name-0", &payload).await);
        }
        assert!(created.windows(2).all(|pair| pair[0].id < pair[1].id));
        created
    });
    let mut created = created.await.concat();
    created.sort_by_key(|job| job.id);
    let expected: Vec<i64> = (1..=10 * 12).collect();
    assert_eq!(ids(&created), expected);
    assert_eq!(clients[0].all("name-0").await, created);
}

/// Checks that concurrent polls claim each job once.
pub async fn each_job_is_claimed_once_by_polls(clients: &[Jobq]) {
    const JOBS: usize = 200;
    const POLLERS: usize = 64;
    clients[0].create("once").await;
    at_once(clients, 10, |jobq, _| async move {
        for job in 0..JOBS / 10 {
            jobq.put("once", &json!(job)).await;
        }
    })
    .await;
    let free = json!([["IS", "state", null]]);
    let taken = at_once(clients, POLLERS, |jobq, poller| {
        let free = free.clone();
        async move {
            let mut taken = Vec::new();
            // A poller that loses every job it tries ends early; the one that wins continues, so all jobs are taken.
            while let Some(job) = jobq.poll("once", &free, &json!(["TAKEN", poller])).await {
                taken.push((job.id, poller));
                assert!(
                    taken.len() <= JOBS,
                    "more polls succeeded than there are jobs: {job:?}"
                );
            }
            taken
        }
    });
    let taken = taken.await.concat();
    let by_job: BTreeMap<i64, usize> = taken.iter().copied().collect();
    assert_eq!((taken.len(), by_job.len()), (JOBS, JOBS), "{taken:?}");
    for job in clients[0].all("once").await {
        let state = plain(&json!(["TAKEN", by_job[&job.id]]));
        let advanced = What::Advanced("null".to_owned(), state.clone());
        assert_eq!(job.state, state);
        assert_eq!(job.log(), [What::Created, advanced]);
    }
}

/// Checks that of concurrent polls and state changes of a job, one succeeds.
pub async fn a_poll_and_a_state_change_do_not_both_succeed(clients: &[Jobq]) {
    const JOBS: i64 = 40;
    clients[0].create("both").await;
    for job in 0..JOBS {
        clients[0].put("both", &json!(job)).await;
    }
    let won = at_once(clients, 16, |jobq, number| async move {
        let on_one = json!(["OF", number]);
        let mut won = Vec::new();
        for round in 1..=JOBS {
            if number % 2 == 0 {
                let free = json!([["IS", "state", null]]);
                won.extend(jobq.poll("both", &free, &on_one).await.map(|job| job.id));
                continue;
            }
            let id = if number % 4 == 1 {
                round
            } else {
                JOBS + 1 - round
            };
            let reply = jobq.advance("both", id, &Value::Null, &on_one).await;
            if reply.status == 200 {
                won.push(reply.job().id);
            } else {
                assert_ne!(reply.conflict().state, "null");
            }
        }
        won.into_iter().map(|id| (id, number)).collect::<Vec<_>>()
    });
    let won = won.await.concat();
    let by_job: BTreeMap<i64, usize> = won.iter().copied().collect();
    let jobs = usize::try_from(JOBS).unwrap();
    assert_eq!((won.len(), by_job.len()), (jobs, jobs), "{won:?}");
    for job in clients[0].all("both").await {
        assert_eq!(job.state, plain(&json!(["OF", by_job[&job.id]])));
        assert_eq!(job.events.len(), 2, "{job:?}");
    }
}

/// Checks that a counter and a log that all clients change lose no change.
pub async fn concurrent_changes_are_all_kept(clients: &[Jobq]) {
    const CLIENTS: usize = 8;
    const STEPS: usize = 12;
    clients[0].create("steps").await;
    let id = clients[0].put_in("steps", &json!("n"), &json!(0)).await.id;
    at_once(clients, CLIENTS, |jobq, number| async move {
        for step in 0..STEPS {
            let mut now: i64 = jobq.existing_job("steps", id).await.state.parse().unwrap();
            loop {
                let reply = jobq
                    .advance("steps", id, &json!(now), &json!(now + 1))
                    .await;
                if reply.status == 200 {
                    break;
                }
                let other = reply.conflict().state.parse().unwrap();
                assert!(other > now, "{other} after {now}");
                now = other;
            }
            let logged = json!([number, step]);
            jobq.event("steps", id, &logged).await.job();
        }
    })
    .await;
    let job = clients[0].existing_job("steps", id).await;
    assert_eq!(job.state, (CLIENTS * STEPS).to_string());
    assert_eq!(job.events.len(), 1 + 2 * CLIENTS * STEPS);
    let logged: BTreeSet<String> = job
        .log()
        .into_iter()
        .filter_map(|what| match what {
            What::User(text) => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(logged.len(), CLIENTS * STEPS);
}

/// Checks that polls and writes of deleted jobs and queues are rejected.
pub async fn writes_to_deleted_objects_are_rejected(clients: &[Jobq]) {
    for round in 0..6 {
        clients[0].create("going").await;
        for job in 0..10 {
            clients[0].put("going", &json!(job)).await;
        }
        at_once(clients, 10, |jobq, number| async move {
            let id = i64::try_from(number).unwrap() + 1;
            match number % 5 {
                0 => {
                    let reply = jobq.send(reqwest::Method::DELETE, &queue("going")).await;
                    assert!([200, 404].contains(&reply.status), "{reply:?}");
                }
                1 => {
                    jobq.send_poll("going", &json!([]), &json!(1))
                        .await
                        .maybe_job();
                }
                2 => {
                    jobq.event("going", id, &json!(1)).await.maybe_job();
                }
                3 => {
                    let path = format!("{}/job", queue("going"));
                    jobq.post(&path, &json!({"payload": 1})).await.maybe_job();
                }
                _ => {
                    let reply = jobq.send_query("going", &json!([])).await;
                    assert!([200, 404].contains(&reply.status), "{reply:?}");
                }
            }
        })
        .await;
        let reply = clients[0].get(&format!("{}/job", queue("going"))).await;
        assert_eq!(reply.status, 404, "round {round}: {reply:?}");
        let listed = clients[0].queues().await;
        assert!(listed.iter().all(|queue| queue.name != "going"));
    }
    clients[0].create("going").await;
    assert_eq!(clients[0].all("going").await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrently_created_names_and_numbers_are_unique() {
    let server = start();
    names_and_numbers_are_unique(&[client(&server)]).await;
    assert_consistent(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_concurrent_polls_gets_the_job() {
    let server = start();
    each_job_is_claimed_once_by_polls(&[client(&server)]).await;
    a_poll_and_a_state_change_do_not_both_succeed(&[client(&server)]).await;
    assert_consistent(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_state_changes_lose_no_change() {
    let server = start();
    concurrent_changes_are_all_kept(&[client(&server)]).await;
    writes_to_deleted_objects_are_rejected(&[client(&server)]).await;
    assert_consistent(&server).await;
}
