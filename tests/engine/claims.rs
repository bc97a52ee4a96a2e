//! Claims, leases and retries.

use super::*;

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
async fn an_expired_lease_passes_to_the_next_claim_and_its_old_owner_is_rejected() {
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
            state: EffectiveState::Complete,
            is_due: false,
        })
    );
    assert_counts(&engine, 63.0).await;
}

#[tokio::test]
async fn the_owner_of_an_expired_lease_may_continue_until_another_claim() {
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
    assert_eq!(&*job(&engine, "j").await.body, "[1]");
    assert_eq!(pop(&engine, 1_059.0, "other", 1).await, [""; 0]);
    assert_eq!(
        complete(&engine, 5_000.0, "w", "j").await,
        Ok(State::Complete)
    );
}

#[tokio::test]
async fn a_job_without_retries_left_fails_instead_of_being_claimed_again() {
    let engine = engine().await;
    put(&engine, 0.0, with_retries("j", 1)).await;
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
async fn put_moves_an_existing_job_and_keeps_unset_options() {
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
        .put(
            QueueKey::qless("elsewhere"),
            vec![moved],
            "client".to_owned(),
            at(2.0),
        )
        .await
        .unwrap();
    let job = job(&engine, "j").await;
    assert_eq!(
        (job.klass.as_deref(), job.priority, job.retries),
        (Some("K"), 3.0, 1)
    );
    assert_eq!(
        (job.tags, &*job.body, job.lease),
        (vec!["t".to_owned()], "2", None)
    );
    let refused = complete(&engine, 3.0, "w", "j").await;
    assert_eq!(
        refused,
        Err(Error::NotRunning {
            id: "j".to_owned(),
            state: EffectiveState::Waiting,
            is_due: false,
        })
    );
    assert_counts(&engine, 3.0).await;
}

#[tokio::test]
async fn negative_and_decreasing_times_are_accepted() {
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
async fn concurrent_claims_get_every_job_exactly_once() {
    let engine = open(false).await;
    let producers = (0..20).map(|producer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for number in 0..50 {
                let done = engine
                    .put(
                        q(),
                        vec![new(&format!("{producer}-{number}"))],
                        "client".to_owned(),
                        None,
                    )
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
            let (name, mut on_one) = (format!("w{worker}"), Vec::new());
            loop {
                let taken = engine
                    .claim(Claim::of(q(), name.as_str(), 3), None)
                    .await
                    .unwrap();
                for id in ids(&taken) {
                    let turn = vec![(JobKey::qless(&id), "{}".to_owned(), None)];
                    let done = engine.complete(turn, holder(&name), None).await.unwrap();
                    assert_eq!(done, [Ok(State::Complete)]);
                    on_one.push(id);
                }
                let counts = engine
                    .queue(&q(), None)
                    .await
                    .unwrap()
                    .map(|queue| queue.counts)
                    .unwrap_or_default();
                if counts.complete == 1_000 {
                    return on_one;
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
