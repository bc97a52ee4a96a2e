//! The engine's verbs on a real SQLite database, with the time told by the test.

use switchyard::engine::{
    Engine, Error, Fail, Holder, Job, JobKey, Next, Options, Page, Put, QueueKey, Retry, Standing,
    State, Time,
};

const PAGE: Page = Page {
    offset: 0,
    limit: 1_000,
};

async fn engine() -> Engine {
    let options = Options {
        database: "sqlite::memory:".to_owned(),
        trust_client_clock: true,
        ..Options::default()
    };
    Engine::open(&options).await.unwrap()
}

fn at(seconds: f64) -> Option<Time> {
    Time::from_seconds(seconds)
}

fn q() -> QueueKey {
    QueueKey::qless("q")
}

fn new(id: &str) -> Put {
    Put {
        id: Some(id.to_owned()),
        body: "{}".to_owned(),
        ..Put::default()
    }
}

fn holder(worker: &str) -> Holder {
    Holder {
        worker: worker.to_owned(),
        queue: None,
    }
}

async fn put(engine: &Engine, now: f64, job: Put) {
    engine
        .put(q(), vec![job], at(now))
        .await
        .unwrap()
        .remove(0)
        .unwrap();
}

async fn pop(engine: &Engine, now: f64, worker: &str, count: usize) -> Vec<String> {
    ids(&engine
        .claim(q(), worker.to_owned(), count, at(now))
        .await
        .unwrap())
}

async fn complete(engine: &Engine, now: f64, worker: &str, id: &str) -> Result<State, Error> {
    let turn = (JobKey::qless(id), "{}".to_owned(), None);
    engine
        .complete(vec![turn], holder(worker), at(now))
        .await
        .unwrap()
        .remove(0)
}

async fn job(engine: &Engine, id: &str) -> Job {
    engine.job(&JobKey::qless(id)).await.unwrap().unwrap()
}

fn ids(jobs: &[Job]) -> Vec<String> {
    jobs.iter().map(|job| job.key.id.clone()).collect()
}

/// Counts that are kept must equal counts that are counted, by way of the lists.
async fn assert_counts(engine: &Engine, now: f64) {
    for queue in engine.queues(at(now)).await.unwrap() {
        for standing in Standing::ALL {
            let listed = engine
                .jobs(standing, Some(&queue.queue.key), PAGE, at(now))
                .await
                .unwrap();
            let kept = queue.counts.of(standing);
            assert_eq!(
                kept,
                i64::try_from(listed.len()).unwrap(),
                "{} in {:?}",
                standing.as_str(),
                queue.queue.key
            );
        }
    }
    for group in engine.failures().await.unwrap() {
        let (total, jobs) = engine.failed(&group.group, PAGE).await.unwrap();
        assert_eq!(total, i64::try_from(jobs.len()).unwrap());
        assert_eq!(group.count, total);
    }
}

#[tokio::test]
async fn jobs_are_claimed_by_priority_then_availability_then_insertion() {
    let engine = engine().await;
    put(&engine, 5.0, new("late")).await;
    put(
        &engine,
        1.0,
        Put {
            priority: Some(1.0),
            ..new("unimportant")
        },
    )
    .await;
    put(&engine, 1.0, new("b")).await;
    put(&engine, 1.0, new("a")).await;
    put(
        &engine,
        9.0,
        Put {
            priority: Some(-0.5),
            ..new("urgent")
        },
    )
    .await;
    put(
        &engine,
        0.0,
        Put {
            delay: Some(3.0),
            ..new("due")
        },
    )
    .await;
    let order = ["urgent", "b", "a", "due", "late", "unimportant"];
    assert_eq!(ids(&engine.peek(&q(), 10, at(10.0)).await.unwrap()), order);
    assert_counts(&engine, 10.0).await;
    assert_eq!(pop(&engine, 10.0, "w", 10).await, order);
    assert_counts(&engine, 10.0).await;
}

#[tokio::test]
async fn a_lost_lease_is_handed_over_and_its_old_owner_refused() {
    let engine = engine().await;
    put(&engine, 0.0, new("j")).await;
    assert_eq!(pop(&engine, 0.0, "old", 1).await, ["j"]);
    assert_eq!(pop(&engine, 59.9, "new", 1).await, [""; 0]);
    assert_eq!(
        engine
            .queue(&q(), at(60.0))
            .await
            .unwrap()
            .unwrap()
            .counts
            .stalled,
        1
    );
    assert_eq!(pop(&engine, 60.0, "new", 1).await, ["j"]);
    assert_eq!(job(&engine, "j").await.remaining, 4);
    let refused = complete(&engine, 61.0, "old", "j").await;
    assert_eq!(
        refused,
        Err(Error::WrongWorker {
            id: "j".to_owned(),
            worker: "new".to_owned()
        })
    );
    assert_eq!(
        complete(&engine, 62.0, "new", "j").await,
        Ok(State::Complete)
    );
    let again = complete(&engine, 63.0, "new", "j").await;
    assert_eq!(
        again,
        Err(Error::NotRunning {
            id: "j".to_owned(),
            state: State::Complete
        })
    );
    assert_counts(&engine, 63.0).await;
}

#[tokio::test]
async fn the_owner_of_a_lost_lease_may_go_on_while_nobody_has_taken_the_job() {
    let engine = engine().await;
    put(&engine, 0.0, new("j")).await;
    pop(&engine, 0.0, "w", 1).await;
    let beats = vec![(JobKey::qless("j"), Some("[1]".to_owned()))];
    assert_eq!(
        engine
            .heartbeat(beats, holder("w"), at(1_000.0))
            .await
            .unwrap(),
        [Ok(60.0)]
    );
    assert_eq!(job(&engine, "j").await.body, "[1]");
    assert_eq!(pop(&engine, 1_059.0, "other", 1).await, [""; 0]);
    assert_eq!(
        complete(&engine, 5_000.0, "w", "j").await,
        Ok(State::Complete)
    );
}

#[tokio::test]
async fn a_job_without_retries_left_fails_instead_of_being_handed_over() {
    let engine = engine().await;
    put(
        &engine,
        0.0,
        Put {
            retries: Some(1),
            ..new("j")
        },
    )
    .await;
    assert_eq!(pop(&engine, 0.0, "w", 1).await, ["j"]);
    assert_eq!(pop(&engine, 100.0, "w", 1).await, ["j"]);
    assert_eq!(pop(&engine, 200.0, "w", 1).await, [""; 0]);
    let failed = job(&engine, "j").await;
    assert_eq!((failed.state, failed.remaining), (State::Failed, -1));
    let failure = failed.failure.unwrap();
    assert_eq!(failure.group, "failed-retries-q");
    assert_eq!(failure.message, "Job exhausted retries in queue \"q\"");
    assert_eq!(failure.worker, "w");
    assert_counts(&engine, 200.0).await;
}

#[tokio::test]
async fn retry_costs_a_retry_and_waits_for_its_delay() {
    let engine = engine().await;
    put(
        &engine,
        0.0,
        Put {
            retries: Some(1),
            ..new("j")
        },
    )
    .await;
    let retry = |delay| Retry {
        key: JobKey::qless("j"),
        delay,
        reason: None,
    };
    pop(&engine, 0.0, "w", 1).await;
    assert_eq!(
        engine
            .retry(vec![retry(10.0)], holder("w"), at(1.0))
            .await
            .unwrap(),
        [Ok(0)]
    );
    assert_eq!(job(&engine, "j").await.state, State::Scheduled);
    assert_eq!(pop(&engine, 10.9, "w", 1).await, [""; 0]);
    assert_eq!(pop(&engine, 11.0, "w", 1).await, ["j"]);
    assert_eq!(
        engine
            .retry(vec![retry(10.0)], holder("w"), at(12.0))
            .await
            .unwrap(),
        [Ok(-1)]
    );
    assert_eq!(job(&engine, "j").await.state, State::Failed);
    assert_counts(&engine, 12.0).await;
}

#[tokio::test]
async fn dependents_are_released_by_completion_and_not_by_advancing() {
    let engine = engine().await;
    put(&engine, 0.0, new("a")).await;
    put(&engine, 0.0, new("b")).await;
    let depends = Some(vec!["a".to_owned(), "b".to_owned(), "unknown".to_owned()]);
    put(
        &engine,
        1.0,
        Put {
            depends,
            delay: Some(100.0),
            ..new("c")
        },
    )
    .await;
    assert_eq!(job(&engine, "c").await.dependencies, ["a", "b"]);
    assert_eq!(job(&engine, "a").await.dependents, ["c"]);
    assert_eq!(pop(&engine, 2.0, "w", 5).await, ["a", "b"]);
    let next = Some(Next {
        queue: q(),
        delay: 0.0,
        depends: Vec::new(),
    });
    let turn = vec![(JobKey::qless("a"), "{}".to_owned(), next)];
    assert_eq!(
        engine.complete(turn, holder("w"), at(3.0)).await.unwrap(),
        [Ok(State::Waiting)]
    );
    assert_eq!(complete(&engine, 4.0, "w", "b").await, Ok(State::Complete));
    assert_eq!(job(&engine, "c").await.dependencies, ["a"]);
    assert_eq!(pop(&engine, 5.0, "w", 5).await, ["a"]);
    assert_eq!(complete(&engine, 6.0, "w", "a").await, Ok(State::Complete));
    assert_eq!(job(&engine, "c").await.state, State::Scheduled);
    assert_counts(&engine, 6.0).await;
    assert_eq!(pop(&engine, 101.0, "w", 5).await, ["c"]);
}

#[tokio::test]
async fn a_job_may_not_wait_for_itself_even_through_others() {
    let engine = engine().await;
    let waits = |id: &str, on: &str| Put {
        depends: Some(vec![on.to_owned()]),
        ..new(id)
    };
    put(&engine, 0.0, new("a")).await;
    put(&engine, 0.0, waits("b", "a")).await;
    put(&engine, 0.0, waits("c", "b")).await;
    let cycle = |id: &str| vec![Err(Error::DependencyCycle { id: id.to_owned() })];
    assert_eq!(
        engine
            .put(q(), vec![waits("a", "c")], at(1.0))
            .await
            .unwrap(),
        cycle("a")
    );
    assert_eq!(
        engine
            .put(q(), vec![waits("x", "x")], at(1.0))
            .await
            .unwrap(),
        cycle("x")
    );
    // In one request, too: the second of two jobs that would wait for each other is refused.
    put(&engine, 2.0, new("p")).await;
    let both = engine
        .put(q(), vec![waits("r", "p"), waits("p", "r")], at(3.0))
        .await
        .unwrap();
    assert_eq!(
        both,
        [
            Ok("r".to_owned()),
            Err(Error::DependencyCycle { id: "p".to_owned() })
        ]
    );
    assert_counts(&engine, 3.0).await;
}

#[tokio::test]
async fn cancel_takes_a_whole_chain_or_nothing() {
    let engine = engine().await;
    put(&engine, 0.0, new("a")).await;
    put(
        &engine,
        0.0,
        Put {
            depends: Some(vec!["a".to_owned()]),
            ..new("b")
        },
    )
    .await;
    let keys = |ids: &[&str]| ids.iter().map(|id| JobKey::qless(*id)).collect::<Vec<_>>();
    put(&engine, 0.0, new("z")).await;
    let refused = engine.cancel(keys(&["z", "a"]), at(1.0)).await;
    assert_eq!(
        refused,
        Err(Error::HasDependents {
            id: "a".to_owned(),
            dependents: vec!["b".to_owned()]
        })
    );
    assert_eq!(job(&engine, "z").await.state, State::Waiting);
    engine
        .cancel(keys(&["b", "a", "unknown"]), at(2.0))
        .await
        .unwrap();
    assert_eq!(engine.job(&JobKey::qless("a")).await.unwrap(), None);
    assert_eq!(engine.job(&JobKey::qless("b")).await.unwrap(), None);
    assert_counts(&engine, 2.0).await;
}

#[tokio::test]
async fn failures_go_back_to_work_oldest_first_and_in_any_number() {
    let engine = engine().await;
    let names: Vec<String> = (0..2_500).map(|number| format!("j{number:04}")).collect();
    engine
        .put(q(), names.iter().map(|id| new(id)).collect(), at(0.0))
        .await
        .unwrap();
    assert_eq!(pop(&engine, 1.0, "w", 2_500).await, names);
    for (number, id) in names.iter().enumerate().step_by(500) {
        let fails = names[number..number + 500]
            .iter()
            .map(|id| Fail {
                key: JobKey::qless(id),
                group: "g".to_owned(),
                message: id.clone(),
                body: None,
            })
            .collect();
        let failed = engine
            .fail(fails, holder("w"), at(2.0 + number as f64))
            .await
            .unwrap();
        assert!(failed.iter().all(Result::is_ok), "{id}");
    }
    let (total, newest) = engine
        .failed(
            "g",
            Page {
                offset: 0,
                limit: 1,
            },
        )
        .await
        .unwrap();
    assert_eq!((total, ids(&newest)), (2_500, vec!["j2499".to_owned()]));
    assert_eq!(
        engine
            .unfail("g", Some(QueueKey::qless("other")), 25, at(9_000.0))
            .await,
        Ok(25)
    );
    let moved = engine
        .jobs(
            Standing::Waiting,
            Some(&QueueKey::qless("other")),
            PAGE,
            at(9_001.0),
        )
        .await
        .unwrap();
    assert_eq!(ids(&moved), names[..25]);
    assert_eq!(
        engine.unfail("g", None, usize::MAX, at(9_002.0)).await,
        Ok(2_475)
    );
    assert_eq!(
        engine
            .queue(&q(), at(9_003.0))
            .await
            .unwrap()
            .unwrap()
            .counts
            .waiting,
        2_475
    );
    assert_eq!(engine.failures().await.unwrap(), []);
}

#[tokio::test]
async fn a_put_moves_a_job_and_keeps_what_is_not_said_anew() {
    let engine = engine().await;
    let first = Put {
        klass: Some("K".to_owned()),
        priority: Some(3.0),
        tags: Some(vec!["t".to_owned(), "t".to_owned()]),
        retries: Some(1),
        ..new("j")
    };
    put(&engine, 0.0, first).await;
    pop(&engine, 1.0, "w", 1).await;
    let moved = Put {
        body: "2".to_owned(),
        ..new("j")
    };
    engine
        .put(QueueKey::qless("elsewhere"), vec![moved], at(2.0))
        .await
        .unwrap();
    let job = job(&engine, "j").await;
    assert_eq!(
        (job.klass.as_deref(), job.priority, job.retries),
        (Some("K"), 3.0, 1)
    );
    assert_eq!(
        (job.tags, job.body.as_str(), job.lease),
        (vec!["t".to_owned()], "2", None)
    );
    let refused = complete(&engine, 3.0, "w", "j").await;
    assert_eq!(
        refused,
        Err(Error::NotRunning {
            id: "j".to_owned(),
            state: State::Waiting
        })
    );
    assert_counts(&engine, 3.0).await;
}

#[tokio::test]
async fn time_may_be_negative_and_run_backwards() {
    let engine = engine().await;
    put(&engine, -50.5, new("j")).await;
    assert_eq!(pop(&engine, -50.5, "w", 1).await, ["j"]);
    assert_eq!(
        complete(&engine, -100.0, "w", "j").await,
        Ok(State::Complete)
    );
    assert_counts(&engine, -100.0).await;
}

#[tokio::test]
async fn many_at_once_get_every_job_exactly_once() {
    let options = Options {
        database: "sqlite::memory:".to_owned(),
        ..Options::default()
    };
    let engine = Engine::open(&options).await.unwrap();
    let producers = (0..20).map(|producer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for number in 0..50 {
                let done = engine
                    .put(q(), vec![new(&format!("{producer}-{number}"))], None)
                    .await
                    .unwrap();
                assert_eq!(done, [Ok(format!("{producer}-{number}"))]);
            }
        })
    });
    let producers: Vec<_> = producers.collect();
    let workers = (0..20).map(|worker| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let (name, mut mine) = (format!("w{worker}"), Vec::new());
            loop {
                let taken = engine.claim(q(), name.clone(), 3, None).await.unwrap();
                for id in ids(&taken) {
                    let turn = vec![(JobKey::qless(&id), "{}".to_owned(), None)];
                    let done = engine.complete(turn, holder(&name), None).await.unwrap();
                    assert_eq!(done, [Ok(State::Complete)]);
                    mine.push(id);
                }
                let counts = engine
                    .queue(&q(), None)
                    .await
                    .unwrap()
                    .map(|queue| queue.counts)
                    .unwrap_or_default();
                if counts.complete == 1_000 {
                    return mine;
                }
            }
        })
    });
    let workers: Vec<_> = workers.collect();
    for producer in producers {
        producer.await.unwrap();
    }
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    let taken = all.len();
    all.sort();
    all.dedup();
    assert_eq!((taken, all.len()), (1_000, 1_000));
    assert_counts(&engine, 0.0).await;
    engine.close().await;
}
