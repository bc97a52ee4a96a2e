//! Dead jobs of Relay, and requeuing them.

use super::*;
use switchyard::engine::{Enqueue, Mode, PageStart, RequeueResult};

fn enqueue(id: &str) -> Enqueue {
    Enqueue {
        queue: QueueKey::relay("q"),
        id: id.to_owned(),
        timeout_s: 0,
        max_retries: Some(0),
        payload: r#"{"n": 1.0}"#.to_owned(),
        state: Some(r#"{"step":  2}"#.to_owned()),
        run_at: None,
    }
}

/// Enqueues jobs with these IDs and lets their retries run out.
async fn dead_letter(engine: &Engine, ids: &[String]) {
    let (queue, before) = (QueueKey::relay("q"), size(engine).await);
    // The maximum number of jobs in a request that enqueues all of them or none.
    for part in ids.chunks(1_600) {
        let jobs = part.iter().map(|id| enqueue(id)).collect();
        engine.enqueue(jobs, Mode::Unique).await.unwrap();
    }
    let claim = Claim::of(queue.clone(), "", ids.len());
    assert_eq!(engine.claim(claim, None).await.unwrap().len(), ids.len());
    while size(engine).await < before + ids.len() as i64 {
        // A claim detects the expired leases.
        let claim = Claim::of(queue.clone(), "", 1);
        assert_eq!(engine.claim(claim, None).await.unwrap(), []);
    }
}

async fn size(engine: &Engine) -> i64 {
    engine
        .dead_letter_summary(&QueueKey::relay("q"))
        .await
        .unwrap()
        .size
}

#[tokio::test]
async fn the_oldest_dead_jobs_are_requeued_and_jobs_with_ids_in_use_stay_dead() {
    let (engine, queue) = (engine().await, QueueKey::relay("q"));
    let ids: Vec<String> = (0..2_500).map(|number| format!("j{number:04}")).collect();
    dead_letter(&engine, &ids).await;
    let taken = ["j0000", "j1000", "j1500"].map(enqueue).to_vec();
    engine.enqueue(taken, Mode::Unique).await.unwrap();

    let revive = |count| engine.requeue_oldest_dead(QueueKey::relay("q"), count);
    let result = |done, conflicts| RequeueResult { done, conflicts };
    assert_eq!(revive(2_400).await.unwrap(), result(2_397, 3));
    assert_eq!(size(&engine).await, 103);
    let job = engine.job_in(&queue, "j0001").await.unwrap().unwrap();
    assert_eq!((job.state, job.remaining), (State::Waiting, 0));
    assert_eq!(&*job.body, r#"{"n": 1.0}"#);
    assert_eq!(job.work_state.as_deref(), Some(r#"{"step":  2}"#));
    assert_eq!(revive(usize::MAX).await.unwrap(), result(100, 3));
    assert_eq!(revive(usize::MAX).await.unwrap(), result(0, 3));
    assert_eq!(engine.delete_dead_letter(queue, 9).await.unwrap(), 3);
    assert_eq!(revive(9).await.unwrap(), result(0, 0));
}

#[tokio::test]
async fn dead_jobs_with_the_same_id_are_identified_by_number() {
    let (engine, queue) = (engine().await, QueueKey::relay("q"));
    for _ in 0..3 {
        dead_letter(&engine, &["twin".to_owned()]).await;
    }
    let dead = engine.job_page(
        EffectiveState::Dead,
        Some(&queue),
        PageStart::First,
        9,
        None,
    );
    let dead = dead.await.unwrap().rows;
    let seqs: Vec<i64> = dead.iter().map(|job| job.seq).collect();
    assert_eq!(engine.short_dead_jobs(&queue, &seqs).await.unwrap(), dead);
    let elsewhere = QueueKey::relay("elsewhere");
    assert_eq!(engine.short_dead_jobs(&elsewhere, &seqs).await.unwrap(), []);

    let keys: Vec<JobKey> = dead.into_iter().map(|job| job.key).collect();
    let each = engine.requeue_dead_jobs(queue.clone(), keys.clone()).await;
    let each = RequeueResult::of(&each.unwrap());
    assert_eq!(
        (each.done, each.conflicts),
        (1, 2),
        "the first job has the ID now"
    );
    let dropped = engine.delete_dead_jobs(elsewhere, keys.clone()).await;
    assert_eq!(dropped, Ok(0), "they are in another queue");
    let living = engine.job_in(&queue, "twin").await.unwrap().unwrap().key;
    let all = [keys, vec![living]].concat();
    assert_eq!(engine.delete_dead_jobs(queue.clone(), all).await, Ok(2));
    assert!(engine.job_in(&queue, "twin").await.unwrap().is_some());
}

/// A read of a running job with an expired lease and the claim that ends it can share a transaction. The read's result
/// is outdated after the claim.
#[tokio::test]
async fn a_job_that_has_ended_does_not_block_the_next_with_its_id() {
    let engine = open(false).await;
    let queue = QueueKey::relay("q");
    let claim = || engine.claim(Claim::of(queue.clone(), "", 1), None);
    for n in 0..20 {
        let id = format!("j{n}");
        let again = || engine.enqueue(vec![enqueue(&id)], Mode::Ignore);
        again().await.unwrap();
        assert_eq!(ids(&claim().await.unwrap()), [id.as_str()]);
        let (looked, claimed) = tokio::join!(again(), claim());
        looked.unwrap();
        claimed.unwrap();
        again().await.unwrap();
        let job = engine.job_in(&queue, &id).await.unwrap();
        assert!(job.is_some(), "acknowledged jobs exist");
        engine.delete(queue.clone(), vec![id]).await.unwrap();
    }
}
