//! A flush deletes a bounded part in each transaction, and what is left agrees with the counters.

use crate::engine::maintenance::SystemTask;
use crate::engine::model::job::JobKey;
use crate::engine::test_support::read_number;
use crate::engine::{
    Claim, Engine, Fail, LeaseHolder, Put, QueueKey, engine_without_tasks as engine,
};

fn job(id: String, depends: &[&str]) -> Put {
    Put {
        id: Some(id),
        body: "1".to_owned(),
        tags: Some(vec!["a".to_owned(), "b".to_owned()]),
        depends: Some(depends.iter().map(|&id| id.to_owned()).collect()),
        ..Put::default()
    }
}

async fn put(engine: &Engine, queue: &str, jobs: Vec<Put>) {
    let put = engine.put(QueueKey::qless(queue), jobs, String::new(), None);
    put.await
        .unwrap()
        .into_iter()
        .for_each(|id| drop(id.unwrap()));
}

async fn part(engine: &Engine) -> usize {
    engine.run_system_task(SystemTask::FlushPart).await.unwrap()
}

/// Checks that each statement counts no row.
async fn assert_empty(engine: &Engine, counts: &[&'static str]) {
    for sql in counts {
        assert_eq!(read_number(engine, sql).await, 0, "{sql}");
    }
}

/// Jobs in each state of qless, with tags, dependencies and a long body.
async fn fill(engine: &Engine) {
    let many = (0..2_500).map(|n| job(format!("many-{n}"), &[]));
    put(engine, "many", many.collect()).await;
    let ids = ["a", "b", "c", "d"].map(str::to_owned);
    put(engine, "q", ids.map(|id| job(id, &[])).into()).await;
    let claimed = engine.claim(Claim::of(QueueKey::qless("q"), "w", 3), None);
    let keys: Vec<JobKey> = claimed
        .await
        .unwrap()
        .into_iter()
        .map(|job| job.key)
        .collect();
    let holder = LeaseHolder {
        worker: "w".to_owned(),
        queue: None,
    };
    let done = vec![(keys[0].clone(), "2".to_owned(), None)];
    engine.complete(done, holder.clone(), None).await.unwrap()[0]
        .as_ref()
        .unwrap();
    let failed = vec![Fail {
        key: keys[1].clone(),
        group: "g".to_owned(),
        message: "m".to_owned(),
        body: None,
    }];
    engine.fail(failed, holder, None).await.unwrap()[0]
        .as_ref()
        .unwrap();
    for on in ["c", "d"] {
        let leaves = (0..1_900).map(|n| job(format!("leaf-{on}-{n}"), &[on]));
        put(engine, "leaves", leaves.collect()).await;
    }
    let mut long = job("long".to_owned(), &[]);
    long.body = format!("\"{}\"", "x".repeat(100_000));
    put(engine, "q", vec![long]).await;
}

#[tokio::test]
async fn a_flush_deletes_bounded_parts_and_the_counters_agree_after_each() {
    let engine = engine().await;
    fill(&engine).await;
    assert_eq!(engine.check(None).await.unwrap(), []);
    let (mut parts, mut before) = (Vec::new(), read_number(&engine, JOBS).await);
    loop {
        let deleted = part(&engine).await;
        let left = read_number(&engine, JOBS).await;
        assert_eq!(engine.check(None).await.unwrap(), [], "{left} left");
        assert!(before - left <= 2_000, "{before} jobs, then {left}");
        before = left;
        if deleted == 0 {
            break;
        }
        parts.push(deleted);
    }
    assert!(parts.len() >= 3, "{parts:?}");
    assert_eq!(before, 0);
    assert_empty(
        &engine,
        &[
            "SELECT count(*) FROM tags",
            "SELECT count(*) FROM dependencies",
            "SELECT count(*) FROM long_bodies",
        ],
    )
    .await;
    engine.close().await;
}

#[tokio::test]
async fn a_flush_deletes_what_was_added_meanwhile_and_leaves_a_usable_engine() {
    let engine = engine().await;
    fill(&engine).await;
    assert!(part(&engine).await > 0);
    put(&engine, "q", vec![job("new".to_owned(), &["c"])]).await;
    engine.flush().await.unwrap();
    assert_empty(
        &engine,
        &[
            JOBS,
            "SELECT count(*) FROM tallies",
            "SELECT count(*) FROM tag_counts",
            "SELECT count(*) FROM failure_counts",
            "SELECT count(*) FROM events",
            "SELECT count(*) FROM queues",
        ],
    )
    .await;
    put(&engine, "q", vec![job("a".to_owned(), &[])]).await;
    let claimed = engine.claim(Claim::of(QueueKey::qless("q"), "w", 3), None);
    assert_eq!(claimed.await.unwrap().len(), 1);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

const JOBS: &str = "SELECT count(*) FROM jobs";
