//! Retries, failures, and retrying failed jobs.

use super::*;

#[tokio::test]
async fn retry_uses_a_retry_and_waits_for_its_delay() {
    let engine = engine().await;
    put(&engine, 0.0, with_retries("j", 1)).await;
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
async fn retry_failed_requeues_the_oldest_failures_first() {
    let engine = engine().await;
    let names: Vec<String> = (0..2_500).map(|number| format!("j{number:04}")).collect();
    engine
        .put(
            q(),
            names.iter().map(|id| new(id)).collect(),
            "client".to_owned(),
            at(0.0),
        )
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
        .jobs_of_failure_group(
            "g",
            OffsetPage {
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
            EffectiveState::Waiting,
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
    assert!(engine.failure_groups().await.unwrap().is_empty());
}

/// A claim removes the job from the list of running jobs when it fails the job.
#[tokio::test]
async fn a_job_that_a_claim_has_failed_can_be_requeued_at_once() {
    let engine = engine().await;
    let job = Put {
        retries: Some(0),
        ..new("j")
    };
    put(&engine, 0.0, job).await;
    assert_eq!(pop(&engine, 1.0, "w", 1).await, ["j"]);
    assert_eq!(pop(&engine, 100.0, "v", 1).await, [""; 0]);
    let key = JobKey::qless("j");
    assert_eq!(engine.retry_failed(key, at(101.0)).await, Ok(()));
    assert_eq!(pop(&engine, 102.0, "v", 1).await, ["j"]);
    assert_counts(&engine, 102.0).await;
}
