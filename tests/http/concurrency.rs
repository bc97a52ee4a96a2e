//! Many concurrent clients.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_claimed_twice_or_lost() {
    const PRODUCERS: usize = 12;
    const CONSUMERS: usize = 12;
    const JOBS_EACH: usize = 40;
    let server = Arc::new(Server::with(&[]));
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let server = Arc::clone(&server);
        producers.spawn(async move {
            for job in 0..JOBS_EACH / 4 {
                let id = |n: usize| format!("{producer}-{job}-{n}");
                server
                    .client()
                    .add("work", json!({"id": id(0), "meta": null}))
                    .await;
                let three: Vec<Value> =
                    (1..4).map(|n| json!({"id": id(n), "meta": null})).collect();
                server.client().post("/add/work", three.into()).await.ok();
            }
        });
    }
    let mut consumers = JoinSet::new();
    for consumer in 0..CONSUMERS {
        let server = Arc::clone(&server);
        consumers.spawn(async move { consume(&server, consumer, PRODUCERS * JOBS_EACH).await });
    }
    while let Some(done) = producers.join_next().await {
        done.unwrap();
    }
    let mut taken = Vec::new();
    while let Some(ids) = consumers.join_next().await {
        taken.extend(ids.unwrap());
    }
    let distinct: HashSet<&String> = taken.iter().collect();
    assert_eq!(taken.len(), distinct.len(), "a job was delivered twice");
    assert_eq!(taken.len(), PRODUCERS * JOBS_EACH, "a job was lost");
    let queue = server.client().get("/queue/work").await.ok();
    for state in ["waiting", "running", "stalled", "scheduled", "depends"] {
        assert_eq!(queue[state], 0, "{state}");
    }
}

/// Claims and completes jobs, one or several at a time, until all are complete.
async fn consume(server: &Server, consumer: usize, all: usize) -> Vec<String> {
    let host = format!("consumer-{consumer}");
    let me = server.by(&host);
    let mut taken = Vec::new();
    loop {
        let ids = me.pop_ids("work", 2 + consumer % 4).await;
        if ids.is_empty() {
            let path = format!("/jobs/complete?limit=1&offset={}", all - 1);
            if me.get(&path).await.ok() != json!([]) {
                return taken;
            }
            continue;
        }
        for id in &ids {
            me.complete("work", id).await;
        }
        taken.extend(ids);
    }
}

/// The number of jobs that 16 workers get when each claims one at the same time.
async fn claims_of_16_workers(server: &Arc<Server>, now: Option<i32>) -> usize {
    let mut workers = JoinSet::new();
    for number in 0..16 {
        let server = Arc::clone(server);
        workers.spawn(async move {
            let name = format!("worker-{number}");
            let worker = server.by(&name);
            let worker = now.map_or(worker, |now| worker.at(now));
            worker.pop("work").await
        });
    }
    let jobs = workers.join_all().await;
    jobs.iter().filter(|job| **job != Value::Null).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_claims_give_one_job_to_one_worker() {
    let server = Arc::new(Server::with(&[]));
    for round in 0..10 {
        server
            .client()
            .add_ids("work", &[&format!("job{round}")])
            .await;
        assert_eq!(claims_of_16_workers(&server, None).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_claims_give_an_expired_lease_to_one_worker() {
    let server = Arc::new(Server::start());
    server
        .by("old")
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1, "retries": 100}))
        .await;
    for round in 1..10 {
        assert_eq!(claims_of_16_workers(&server, Some(round * 60)).await, 1);
        assert_eq!(
            server.at(round * 60).job("a").await["remaining"],
            100 - round
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_concurrent_completions_is_accepted() {
    let server = Arc::new(Server::with(&[]));
    for round in 0..10 {
        let id = format!("job{round}");
        server
            .by("w")
            .add_and_pop(json!({"id": id, "meta": 1}))
            .await;
        let mut tries = JoinSet::new();
        for attempt in 0..8 {
            let (server, id) = (Arc::clone(&server), id.clone());
            tries.spawn(async move {
                let me = server.by("w");
                let response = match attempt % 3 {
                    0 => {
                        me.post("/complete/work", json!({"id": id, "meta": attempt}))
                            .await
                    }
                    1 => {
                        me.post("/fail", json!({"id": id, "group": "g", "message": "m"}))
                            .await
                    }
                    _ => {
                        me.post("/retry/work", json!({"id": id, "delay": 1000}))
                            .await
                    }
                };
                if response.status != 200 {
                    response.assert_rejected(409, "not_running");
                    return false;
                }
                true
            });
        }
        let accepted = tries
            .join_all()
            .await
            .into_iter()
            .filter(|accepted| *accepted)
            .count();
        assert_eq!(accepted, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_puts_of_one_id_create_one_job() {
    let server = Arc::new(Server::with(&[]));
    let mut putters = JoinSet::new();
    for putter in 0..32 {
        let server = Arc::clone(&server);
        putters.spawn(async move {
            let queue = format!("queue{}", putter % 4);
            server
                .client()
                .add(&queue, json!({"id": "a", "meta": putter}))
                .await
        });
    }
    putters.join_all().await;
    let queues = server.client().get("/queues").await.ok();
    let waiting: u64 = queues
        .as_array()
        .unwrap()
        .iter()
        .map(|queue| queue["waiting"].as_u64().unwrap())
        .sum();
    assert_eq!(waiting, 1);
}
