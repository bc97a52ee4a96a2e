//! Concurrent claims on two servers.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Pair;
use crate::support::Server;

const PRODUCERS: usize = 8;
const CONSUMERS: usize = 16;
const JOBS_EACH: usize = 60;

/// Claims jobs on one server and completes them on the other, until all are complete.
async fn consume(take: &Server, done: &Server, consumer: usize) -> Vec<String> {
    let host = format!("consumer-{consumer}");
    let last = format!(
        "/jobs/complete?limit=1&offset={}",
        PRODUCERS * JOBS_EACH - 1
    );
    let mut taken = Vec::new();
    loop {
        let ids = take.by(&host).pop_ids("work", 2 + consumer % 4).await;
        for id in &ids {
            done.by(&host).complete("work", id).await;
        }
        if ids.is_empty() && take.client().get(&last).await.ok() != json!([]) {
            return taken;
        }
        taken.extend(ids);
    }
}

async fn each_job_once(options: &[&str]) {
    let Some(pair) = Pair::start(options).map(Arc::new) else {
        return;
    };
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let pair = Arc::clone(&pair);
        producers.spawn(async move {
            for job in 0..JOBS_EACH {
                let (server, _) = pair.both()[job % 2];
                let id = format!("{producer}-{job}");
                server.client().add_ids("work", &[&id]).await;
            }
        });
    }
    let mut consumers = JoinSet::new();
    for consumer in 0..CONSUMERS {
        let pair = Arc::clone(&pair);
        consumers.spawn(async move {
            let (take, done) = pair.both()[consumer % 2];
            consume(take, done, consumer).await
        });
    }
    producers.join_all().await;
    let taken: Vec<String> = consumers.join_all().await.into_iter().flatten().collect();
    let distinct: HashSet<&String> = taken.iter().collect();
    assert_eq!(taken.len(), distinct.len(), "a job was delivered twice");
    assert_eq!(taken.len(), PRODUCERS * JOBS_EACH, "a job was lost");
    pair.assert_both_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_job_is_claimed_once() {
    each_job_once(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_job_is_claimed_once_without_skip_locked() {
    each_job_once(&["--no-skip-locked"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_available_job_and_one_expired_lease_are_claimed_once() {
    for options in [
        &["--trust-client-clock"][..],
        &["--trust-client-clock", "--no-skip-locked"],
    ] {
        let Some(pair) = Pair::start(options).map(Arc::new) else {
            return;
        };
        let item = json!({"id": "a", "meta": 1, "retries": 100});
        pair.one.at(0).add("work", item).await;
        for round in 1..10 {
            let mut takers = JoinSet::new();
            for taker in 0..8 {
                let pair = Arc::clone(&pair);
                takers.spawn(async move {
                    let (server, _) = pair.both()[taker % 2];
                    let name = format!("taker-{taker}");
                    server.by(&name).at(round * 60).pop("work").await
                });
            }
            let got = takers.join_all().await;
            let got = got.iter().filter(|job| **job != Value::Null).count();
            assert_eq!(got, 1);
        }
        assert_eq!(pair.other.at(600).job("a").await["remaining"], 92);
        pair.assert_both_consistent().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_concurrency_limit_holds_across_servers() {
    let Some(pair) = Pair::start(&[]).map(Arc::new) else {
        return;
    };
    let limit = json!(3);
    let set = pair.one.client().set("work-max-concurrency", limit).await;
    set.accepted();
    let items: Vec<Value> = (0..200).map(|_| json!({"meta": 1})).collect();
    let added = pair.one.client().post("/add/work", items.into()).await;
    added.accepted();
    for round in 0..20 {
        let mut takers = JoinSet::new();
        for taker in 0..8 {
            let pair = Arc::clone(&pair);
            takers.spawn(async move {
                let (server, _) = pair.both()[taker % 2];
                server.by("w").pop_ids("work", 2).await
            });
        }
        let taken: Vec<String> = takers.join_all().await.into_iter().flatten().collect();
        assert_eq!(taken.len(), 3, "round {round}");
        for id in &taken {
            pair.other.by("w").complete("work", id).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_completions_on_both_servers_is_accepted() {
    let Some(pair) = Pair::start(&[]).map(Arc::new) else {
        return;
    };
    for round in 0..10 {
        let id = format!("job{round}");
        let item = json!({"id": id, "meta": 1});
        pair.one.by("w").add_and_pop(item).await;
        let mut tries = JoinSet::new();
        for attempt in 0..8 {
            let (pair, id) = (Arc::clone(&pair), id.clone());
            tries.spawn(async move {
                let (server, _) = pair.both()[attempt % 2];
                let done = json!({"id": id, "meta": attempt});
                let response = server.by("w").post("/complete/work", done).await;
                let accepted = response.status == 200;
                if !accepted {
                    response.assert_rejected(409, "not_running");
                }
                accepted
            });
        }
        let accepted = tries.join_all().await;
        assert_eq!(accepted.iter().filter(|accepted| **accepted).count(), 1);
    }
    pair.assert_both_consistent().await;
}
