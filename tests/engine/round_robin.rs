//! Round-robin claims: one job of each queue in turn, in as many transactions as needed.

use std::collections::VecDeque;

use futures::StreamExt;
use switchyard::engine::{Order, QueueKey, Recur};

use super::*;

fn queue(n: usize) -> QueueKey {
    QueueKey::qless(format!("q{n:03}"))
}

fn round_robin(queues: usize, count: usize) -> Claim {
    Claim {
        queues: (0..queues).map(queue).collect(),
        order: Order::RoundRobin,
        ..Claim::of(q(), "w", count)
    }
}

/// What claims return, without a limit on what is loaded.
struct Model {
    queues: Vec<VecDeque<String>>,
    next: usize,
}

impl Model {
    fn claim(&mut self, count: usize) -> Vec<String> {
        let (mut jobs, mut empty) = (Vec::new(), 0);
        while jobs.len() < count && empty < self.queues.len() {
            let job = self.queues[self.next].pop_front();
            if let Some(job) = job {
                jobs.push(job);
                empty = 0;
            } else {
                empty += 1;
            }
            self.next = (self.next + 1) % self.queues.len();
        }
        jobs
    }
}

/// How many jobs claims request.
const COUNTS: [usize; 9] = [1, 250, 5, 2, 400, 1, 37, 250, 300];

/// Compares claims with the model. `counts` has the number of jobs of each claim, and `jobs` the number of jobs of each
/// queue; a queue without jobs does not exist.
async fn assert_takes_one_job_of_each_queue_in_turn(jobs: &[usize], counts: &[usize]) {
    assert_takes_one_job_in_turn(&engine().await, jobs, counts).await;
}

/// Each queue has a concurrency limit that no claim reaches. A transaction does not count the running jobs of all.
async fn assert_limits_make_no_difference(jobs: &[usize], counts: &[usize]) {
    let engine = engine().await;
    for n in 0..jobs.len() {
        let option = format!("{}-max-concurrency", queue(n).name);
        let limit = Some("10000".to_owned());
        engine.configure(&option, limit, None).await.unwrap();
    }
    assert_takes_one_job_in_turn(&engine, jobs, counts).await;
}

async fn assert_takes_one_job_in_turn(engine: &Engine, jobs: &[usize], counts: &[usize]) {
    let mut model = Model {
        queues: Vec::new(),
        next: 0,
    };
    let mut puts = Vec::new();
    for (n, count) in jobs.iter().enumerate() {
        let ids: Vec<String> = (0..*count).map(|job| format!("{n}-{job:03}")).collect();
        if !ids.is_empty() {
            let jobs = ids.iter().map(|id| new(id)).collect();
            puts.push(engine.put(queue(n), jobs, "client".to_owned(), at(0.0)));
        }
        model.queues.push(ids.into());
    }
    // A few at a time: a put that waits too long for others is refused.
    let mut puts = futures::stream::iter(puts).buffered(8);
    while let Some(put) = puts.next().await {
        put.unwrap().into_iter().for_each(|id| drop(id.unwrap()));
    }
    for &count in counts {
        let claimed = engine.claim(round_robin(jobs.len(), count), at(1.0)).await;
        assert_eq!(ids(&claimed.unwrap()), model.claim(count), "{count}");
    }
    assert_counts(engine, 1.0).await;
}

#[tokio::test]
async fn a_round_robin_claim_takes_one_job_in_turn_of_queues_with_concurrency_limits() {
    let few = [6, 0, 0, 7, 0, 1, 0, 0, 0, 0].repeat(4);
    assert_limits_make_no_difference(&few, &[1, 25, 5, 2, 40, 1, 37]).await;
    assert_limits_make_no_difference(&[40, 2, 9], &[1, 25, 5, 2, 40]).await;
    let mut last = [0; 150];
    last[149] = 3;
    assert_limits_make_no_difference(&last, &[1, 5]).await;
}

/// Of the second queue, there are more jobs than the transaction has memory for.
#[tokio::test]
async fn an_ordered_claim_takes_all_jobs_of_the_first_queue() {
    let engine = engine().await;
    for (n, count, bytes) in [(0, 700, 1), (1, 300, 20 << 10)] {
        let job = |job| Put {
            body: "1".repeat(bytes),
            ..new(&format!("{n}-{job:03}"))
        };
        for first in [0, 100, 200, 300, 400, 500, 600] {
            let jobs = (first..count.min(first + 100)).map(job).collect();
            let put = engine.put(queue(n), jobs, "client".to_owned(), at(0.0));
            put.await.unwrap();
        }
    }
    let claim = Claim {
        order: Order::Ordered,
        ..round_robin(2, 800)
    };
    let claimed = engine.claim(claim, at(1.0)).await.unwrap();
    let expected = (0..700).map(|job| format!("0-{job:03}"));
    let expected = expected.chain((0..100).map(|job| format!("1-{job:03}")));
    assert_eq!(ids(&claimed), expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn concurrent_claims_of_queues_with_high_concurrency_limits_get_jobs() {
    let engine = engine().await;
    for n in 0..50 {
        let option = format!("{}-max-concurrency", queue(n).name);
        let limit = Some("10000".to_owned());
        engine.configure(&option, limit, None).await.unwrap();
        let put = engine.put(queue(n), vec![new(&n.to_string())], String::new(), at(0.0));
        put.await.unwrap();
    }
    let claims = (0..50).map(|n| engine.claim(Claim::of(queue(n), "w", 1), None));
    for (n, claimed) in futures::future::join_all(claims).await.iter().enumerate() {
        assert_eq!(ids(claimed.as_ref().unwrap()), [n.to_string()]);
    }
}

#[tokio::test]
async fn an_ordered_claim_visits_queues_with_high_concurrency_limits_in_order() {
    let engine = engine().await;
    let jobs = [0, 2, 1, 0, 3];
    for (n, count) in jobs.into_iter().enumerate() {
        let option = format!("{}-max-concurrency", queue(n).name);
        let limit = Some("10000".to_owned());
        engine.configure(&option, limit, None).await.unwrap();
        let jobs = (0..count).map(|job| new(&format!("{n}-{job}"))).collect();
        let put = engine.put(queue(n), jobs, "client".to_owned(), at(0.0));
        put.await.unwrap();
    }
    let mut claimed = Vec::new();
    for count in [1, 3, 5] {
        let claim = Claim {
            order: Order::Ordered,
            ..round_robin(jobs.len(), count)
        };
        claimed.push(ids(&engine.claim(claim, at(1.0)).await.unwrap()));
    }
    let expected = [&["1-0"][..], &["1-1", "2-0", "4-0"], &["4-1", "4-2"]];
    assert_eq!(claimed, expected);
}

#[tokio::test]
async fn a_round_robin_claim_takes_one_job_in_turn_of_queues_with_many() {
    assert_takes_one_job_of_each_queue_in_turn(&[400, 2, 90], &COUNTS).await;
}

#[tokio::test]
async fn a_round_robin_claim_takes_more_jobs_of_one_queue_than_a_transaction_loads() {
    for queues in [&[990][..], &[990, 0]] {
        assert_takes_one_job_of_each_queue_in_turn(queues, &[1, 900, 50, 50]).await;
    }
}

#[tokio::test]
async fn a_round_robin_claim_takes_one_job_in_turn_of_queues_with_many_few_or_none() {
    let few = [60, 0, 0, 7, 0, 1, 0, 0, 0, 0].repeat(4);
    assert_takes_one_job_of_each_queue_in_turn(&few, &COUNTS).await;
}

#[tokio::test]
async fn a_round_robin_claim_finds_the_jobs_of_two_among_a_hundred_queues() {
    let mut two = [0; 100];
    (two[41], two[99]) = (300, 300);
    assert_takes_one_job_of_each_queue_in_turn(&two, &COUNTS).await;
}

#[tokio::test]
async fn a_round_robin_claim_takes_one_job_in_turn_of_300_queues_with_few() {
    assert_takes_one_job_of_each_queue_in_turn(&[1, 2, 3].repeat(100), &COUNTS).await;
}

/// A transaction does not load the bodies of all that it claims.
#[tokio::test]
async fn a_round_robin_claim_takes_one_long_job_in_turn() {
    let engine = engine().await;
    for n in 0..2 {
        for job in 0..10 {
            let job = Put {
                body: "1".repeat(1 << 20),
                ..new(&format!("{n}-{job}"))
            };
            let put = engine.put(queue(n), vec![job], "client".to_owned(), at(0.0));
            put.await.unwrap().remove(0).unwrap();
        }
    }
    for first in [0, 2] {
        let claimed = engine.claim(round_robin(2, 4), at(1.0)).await.unwrap();
        let in_turn = (first..first + 2).flat_map(|job| [format!("0-{job}"), format!("1-{job}")]);
        assert_eq!(ids(&claimed), in_turn.collect::<Vec<_>>());
    }
}

/// Each claim creates as many children of a recurring job as it loads.
#[tokio::test]
async fn a_round_robin_claim_loads_few_jobs_of_each_of_many_queues() {
    let engine = engine().await;
    for n in 0..100 {
        let recurring = Recur {
            id: Some(format!("r{n}")),
            body: "{}".to_owned(),
            interval_s: 0.001,
            ..Recur::default()
        };
        let made = engine.recur(queue(n), vec![recurring], at(0.0)).await;
        made.unwrap().into_iter().for_each(|id| drop(id.unwrap()));
    }
    let claimed = engine.claim(round_robin(100, 250), at(10.0)).await.unwrap();
    assert_eq!(claimed.len(), 250);
    for n in 0..100 {
        let recurring = engine.recurring(&format!("r{n}")).await.unwrap().unwrap();
        // At most 250 / 100 in each of two transactions.
        let created = recurring.children_count;
        assert!((2..=4).contains(&created), "{created} of queue {n}");
    }
}

#[tokio::test]
async fn a_round_robin_claim_obeys_limits_on_running_jobs_and_skips_paused_queues() {
    let engine = engine().await;
    let limit = engine.configure("q001-max-concurrency", Some("1".to_owned()), at(0.0));
    limit.await.unwrap();
    for n in 0..3 {
        let jobs = (0..200).map(|job| new(&format!("{n}-{job:03}"))).collect();
        let put = engine.put(queue(n), jobs, "client".to_owned(), at(0.0));
        drop(put.await.unwrap());
    }
    engine.pause(queue(2), true, at(0.0)).await.unwrap();
    let claimed = engine.claim(round_robin(3, 250), at(1.0)).await.unwrap();
    let of = |prefix: &str| {
        let its = claimed.iter().filter(|job| job.key.id.starts_with(prefix));
        its.count()
    };
    assert_eq!([of("0-"), of("1-"), of("2-")], [200, 1, 0]);
    assert_eq!(ids(&claimed)[..3], ["0-000", "1-000", "0-001"]);
}
