//! A request that fails does not affect the other requests of its transaction.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::transaction::{Verb, WriteRequest, too_large};
use crate::engine::unit_of_work::{Needs, UnitOfWork, WantedJobs};
use crate::engine::verbs::claim::Claim;
use crate::engine::verbs::qless;
use crate::engine::verbs::qless::put::need_of_put;
use crate::engine::{Engine, Error, Put, QueueKey, Result, engine_without_tasks as engine};
use crate::memory::hold_until_done;
use crate::store::{Statement, StatementResult, WEIGHT_MAX};
use crate::traces::Trace;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3_600);

async fn put(engine: &Engine, id: String) -> Result<String> {
    let job = Put {
        id: Some(id),
        body: "1".to_owned(),
        ..Put::default()
    };
    let put = engine.put(QueueKey::qless("q"), vec![job], String::new(), None);
    put.await?.remove(0)
}

async fn write(engine: &Engine, verb: fn(&mut UnitOfWork) -> Result<()>) -> Result<()> {
    engine.write(Needs::default(), None, 1, verb).await
}

/// Runs many puts at once, and one request that fails among them: all puts succeed.
async fn only_one_request_fails(verb: fn(&mut UnitOfWork) -> Result<()>) {
    let engine = engine().await;
    for round in 0..5 {
        let some = |half: &str| {
            let ids = (0..40).map(|n| format!("{round}-{half}-{n}"));
            join_all(ids.map(|id| put(&engine, id)).collect::<Vec<_>>())
        };
        let (before, refused, after) =
            futures::join!(some("before"), write(&engine, verb), some("after"));
        assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
        for done in before.into_iter().chain(after) {
            done.unwrap();
        }
    }
    let jobs = engine.queue(&QueueKey::qless("q"), None).await.unwrap();
    assert_eq!(jobs.unwrap().counts.waiting, 400);
    assert_eq!(engine.check(None).await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn a_request_that_the_database_refuses_fails_alone() {
    only_one_request_fails(|work| {
        work.add_statements([Statement::new("INSERT INTO tags (job) VALUES (NULL)", [])]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_verb_that_panics_fails_alone_and_the_writer_lives() {
    only_one_request_fails(|_| panic!("a verb that is wrong")).await;
}

/// A poll on many queues first looks for jobs with a read of its own, which does not wait for the transaction.
#[tokio::test]
async fn a_poll_that_begins_while_a_transaction_adds_a_job_gets_it() {
    let engine = engine().await;
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let (finish, finished) = std::sync::mpsc::channel();
    let job = Put {
        id: Some("j".to_owned()),
        ..Put::default()
    };
    let mut needs = Needs::default();
    need_of_put(&mut needs, &job);
    let adding = engine.write(needs, None, 1, move |work| {
        let (queue, body) = (QueueKey::qless("q9"), "1".into());
        let added = qless::put::put(work, &queue, &job, &body, "");
        begun.send(()).unwrap();
        finished.recv().unwrap();
        added
    });
    has_begun.recv().await;
    let queues = (1..=9).map(|n| QueueKey::qless(format!("q{n}")));
    let claim = Claim {
        queues: queues.collect(),
        ..Claim::of(QueueKey::qless("q"), "w", 1)
    };
    let polling = tokio::spawn({
        let engine = engine.clone();
        async move { engine.claim_or_wait(claim, LONG, None).await }
    });
    // The read has found no job, and the claim waits for the transaction.
    while engine.0.writer.queued() < 2 {
        tokio::task::yield_now().await;
    }
    finish.send(()).unwrap();
    adding.await.unwrap();
    let polled = timeout(LONG / 60, polling)
        .await
        .expect("the poll was not woken");
    assert_eq!(polled.unwrap().unwrap()[0].key.id, "j");
    engine.close().await;
}

/// Another server's change of a limit arrives while the transaction of a claim waits for the database.
#[tokio::test]
async fn a_limit_that_changes_meanwhile_does_not_confuse_a_claim() {
    let engine = engine().await;
    put(&engine, "j".to_owned()).await.unwrap();
    let claim = write(&engine, |work| {
        let key = QueueKey::qless("q");
        let (config, none) = (work.config.clone(), HashSet::new());
        for limits in [[Some("1"), None], [None, Some("1")]] {
            let [before, after] = limits.map(|limit| limit.map(str::to_owned));
            config.apply("q-max-concurrency", before);
            let wanted = [WantedJobs {
                queue: work.queue(&key).unwrap().id,
                count: 1,
                limit: work.config.concurrency_max(&key),
            }];
            let statements = work.candidate_statements(&wanted, &none);
            config.apply("q-max-concurrency", after);
            let mut answers = statements.iter().map(|_| StatementResult::default());
            work.take_candidates(&wanted, &none, answers.by_ref())
                .unwrap();
            assert_eq!(answers.len(), 0, "each result is read");
        }
        Ok(())
    });
    claim.await.unwrap();
    engine.close().await;
}

/// Also requests that are not what is too large: they would otherwise share such a group again and again.
#[test]
fn of_requests_that_are_too_large_together_each_weighs_twice_as_much() {
    let request = |weight| WriteRequest {
        needs: Needs::default(),
        now: None,
        weight,
        loaded_weight: 0,
        task: Box::new(Verb {
            verb: |_: &mut UnitOfWork| Ok(()),
            result: None,
            sender: oneshot::channel().0,
        }),
        actor: None,
        trace: Trace::NONE,
        held: hold_until_done(),
    };
    let mut requests = [0, 1, 300, 1_100, usize::MAX].map(request);
    let weights = |requests: &[WriteRequest]| -> Vec<usize> {
        requests.iter().map(|request| request.weight).collect()
    };
    too_large(&mut requests, |request| {
        usize::from(request.weight == 300) * 500
    });
    assert_eq!(weights(&requests)[..4], [1, 2, 600, 2_200]);
    assert_eq!(weights(&requests)[4], usize::MAX);
    too_large(&mut requests, |_| 1_100);
    assert_eq!(weights(&requests)[..4], [1_100, 1_100, 1_200, 4_400]);
    // Then it shares a group with no other.
    too_large(&mut requests, |_| 0);
    assert!(weights(&requests).iter().all(|weight| *weight > WEIGHT_MAX));
}

#[tokio::test]
async fn the_sizes_of_many_named_jobs_are_read_before_the_jobs() {
    let engine = engine().await;
    put(&engine, "0".to_owned()).await.unwrap();
    let job = Put {
        id: Some("1".to_owned()),
        body: format!("\"{}\"", "x".repeat(5_000)),
        depends: Some(vec!["0".to_owned()]),
        ..Put::default()
    };
    let put = engine.put(QueueKey::qless("q"), vec![job], String::new(), None);
    put.await.unwrap().remove(0).unwrap();
    let needs = |count: u32| Needs {
        jobs: (0..count).map(|n| JobKey::qless(n.to_string())).collect(),
        ..Needs::default()
    };
    let statements = engine.write(Needs::default(), None, 1, move |work| {
        Ok([128, 129].map(|count| work.load_sizes_statement([&needs(count)].into_iter())))
    });
    let [few, many] = statements.await.unwrap();
    assert!(few.is_none());
    let rows = engine.readers().rows(many.unwrap()).await.unwrap();
    let results = [StatementResult { rows, affected: 0 }];
    let sizes = UnitOfWork::load_sizes(&results).unwrap();
    let of = |id: &str| sizes[&(0, id.to_owned())];
    assert_eq!(sizes.len(), 2);
    assert!(
        (257..1_000).contains(&of("0")),
        "with a dependent: {sizes:?}"
    );
    assert!(
        (5_258..6_000).contains(&of("1")),
        "with a dependency: {sizes:?}"
    );
    engine.close().await;
}
