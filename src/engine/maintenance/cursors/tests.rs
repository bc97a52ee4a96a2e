//! How much of a table one transaction looks at, and how many jobs whose leases or times to live have ended.

use std::time::Duration;

use tokio::time::timeout;

use super::*;
use crate::engine::maintenance::SystemTask;
use crate::engine::model::job::QueueKey;
use crate::engine::test_support::run_sql;
use crate::engine::unit_of_work::Needs;
use crate::engine::verbs::lmstfy::publish;
use crate::engine::{Claim, Engine, EngineSettings, Publish, engine_without_tasks};

/// What one transaction of the task processes, and whether the task continues.
async fn run(engine: &Engine, task: MaintenanceTask) -> (usize, bool) {
    let done = engine.submit_system_task(SystemTask::Maintain(task), None);
    let done = done.await.unwrap();
    (done.affected_rows, done.has_more_work)
}

fn queue(n: usize) -> QueueKey {
    QueueKey::lmstfy("ns", format!("q{n}"))
}

/// Publishes a job in each of `queues` queues.
async fn fill(engine: &Engine, queues: usize) {
    publish(engine, (0..queues).map(queue).collect()).await;
}

/// Publishes a job in each of these queues.
async fn publish(engine: &Engine, queues: Vec<QueueKey>) {
    let job = Publish {
        body: String::new(),
        delay_s: 0,
        ttl_s: 0,
        tries: 2,
        versioned: false,
        attributes: None,
    };
    let published = engine.write(Needs::default(), None, 1, move |work| {
        for queue in &queues {
            publish::publish(work, queue, &job);
        }
        Ok(())
    });
    published.await.unwrap();
}

/// How many jobs a claim of one gets from the first queue.
async fn claim(engine: &Engine) -> usize {
    let claim = Claim {
        lease_s: Some(1_000.0),
        ..Claim::of(queue(0), "", 1)
    };
    engine.claim(claim, None).await.unwrap().len()
}

/// Lets all jobs run; the lease of the job in the last queue has expired.
const RUN: &str = "
UPDATE jobs SET state = {running}, lease_id = 'lease', worker = '',
    lease_until = CASE WHEN queue = (SELECT max(id) FROM queues) THEN 1 ELSE 9000000000000000 END
WHERE (seq, version) IN (SELECT seq, version FROM jobs)";

#[tokio::test]
async fn a_transaction_ends_expired_leases_of_1000_queues_with_running_jobs() {
    let engine = engine_without_tasks().await;
    fill(&engine, QUEUES_MAX + 1).await;
    run_sql(&engine, RUN).await;
    let task = MaintenanceTask::ExpireLeases;
    assert_eq!(run(&engine, task).await, (0, true));
    assert_eq!(run(&engine, task).await, (1, false));
    assert_eq!(run(&engine, task).await, (0, true), "begins again");
    engine.close().await;
}

/// Schedules all jobs; the job in the last queue is due.
const SCHEDULE: &str = "
UPDATE jobs SET state = {scheduled},
    ready_at = CASE WHEN queue = (SELECT max(id) FROM queues) THEN 1 ELSE 9000000000000000 END
WHERE (seq, version) IN (SELECT seq, version FROM jobs)";

#[tokio::test]
async fn with_the_clock_of_clients_a_transaction_promotes_due_jobs_of_1000_queues() {
    let options = EngineSettings {
        database: "sqlite::memory:".to_owned(),
        trust_client_clock: true,
        without_tasks: true,
        ..EngineSettings::default()
    };
    let engine = Engine::open(&options).await.unwrap();
    fill(&engine, QUEUES_MAX + 1).await;
    run_sql(&engine, SCHEDULE).await;
    let task = MaintenanceTask::PromoteDue;
    assert_eq!(run(&engine, task).await, (0, true));
    assert_eq!(run(&engine, task).await, (1, false));
    engine.close().await;
}

/// 2,001 workers, the last of which was seen long ago.
const ADD_WORKERS: &str = "
INSERT INTO workers (protocol, name, last_seen)
WITH RECURSIVE numbers (n) AS (SELECT 10000 UNION ALL SELECT n + 1 FROM numbers WHERE n < 12000)
SELECT 'qless', 'w' || n, CASE n WHEN 12000 THEN 1 ELSE 9000000000000000 END FROM numbers";

#[tokio::test]
async fn a_transaction_looks_at_2000_workers() {
    let engine = engine_without_tasks().await;
    run_sql(&engine, ADD_WORKERS).await;
    let task = MaintenanceTask::ForgetWorkers;
    assert_eq!(run(&engine, task).await, (0, true));
    assert_eq!(run(&engine, task).await, (1, false));
    assert_eq!(run(&engine, task).await, (0, true), "begins again");
    assert_eq!(run(&engine, task).await, (0, false));
    engine.close().await;
}

/// The jobs run, and their leases and times to live have ended; not the time of the last job.
const END: &str = "
UPDATE jobs SET state = {running}, lease_id = 'lease', worker = '', lease_until = seq,
    expires_at = CASE WHEN seq = (SELECT max(seq) FROM jobs) THEN NULL ELSE 1 END
WHERE (seq, version) IN (SELECT seq, version FROM jobs)";

/// No index shows which of the jobs with expired leases have ended.
#[tokio::test]
async fn a_claim_looks_at_1000_more_expired_leases_than_it_wants_and_maintenance_deletes_what_has_ended()
 {
    let engine = engine_without_tasks().await;
    for (ended, claimed) in [(1_000, 1), (1_001, 0)] {
        publish(&engine, vec![queue(0); ended + 1]).await;
        run_sql(&engine, END).await;
        assert_eq!(claim(&engine).await, claimed, "{ended}");
        engine.maintain().await.unwrap();
        assert_eq!(claim(&engine).await, 1 - claimed, "{ended}");
        engine.flush().await.unwrap();
    }
    engine.close().await;
}

/// The times to live of all waiting jobs but the last one have ended.
const END_WAITING: &str = "
UPDATE jobs SET expires_at = CASE WHEN seq = (SELECT max(seq) FROM jobs) THEN NULL ELSE 1 END
WHERE (seq, version) IN (SELECT seq, version FROM jobs)";

#[tokio::test]
async fn a_claim_looks_at_2000_more_waiting_jobs_than_it_wants_and_the_deletion_of_ended_ones_wakes_polls()
 {
    let engine = engine_without_tasks().await;
    for (ended, claimed) in [(2_000, 1), (2_001, 0)] {
        publish(&engine, vec![queue(0); ended + 1]).await;
        run_sql(&engine, END_WAITING).await;
        assert_eq!(claim(&engine).await, claimed, "{ended}");
        let subscription = engine.subscriptions().subscribe(&[queue(0)]).unwrap();
        let wake_up = subscription.next_wake_up();
        run(&engine, MaintenanceTask::DeleteExpired).await;
        timeout(Duration::from_secs(60), wake_up).await.unwrap();
        assert_eq!(claim(&engine).await, 1 - claimed, "{ended}");
        engine.flush().await.unwrap();
    }
    engine.close().await;
}

#[test]
fn batches_are_halved_after_a_failure_and_doubled_after_a_commit() {
    let (task, other) = (MaintenanceTask::PromoteDue, MaintenanceTask::ExpireLeases);
    let mut cursors = Cursors::default();
    for _ in 0..2 {
        assert_eq!(cursors.begin_batch(task), 2_000);
        cursors.end_batch(task);
    }
    cursors.begin_batch(task);
    assert_eq!(cursors.begin_batch(other), 500, "another task");
    cursors.end_batch(other);
    let sizes = [(); 8].map(|()| cursors.begin_batch(task));
    assert_eq!(sizes, [1_000, 500, 250, 125, 62, 31, 31, 31]);
    for larger in [62, 125] {
        cursors.end_batch(task);
        assert_eq!(cursors.begin_batch(task), larger);
    }
}

/// The clock was 5 h ahead when the jobs were published.
const OF_A_LATER_CLOCK: &str = "
UPDATE jobs SET ready_at = ready_at + 18000000000 WHERE (seq, version) IN (SELECT seq, version FROM jobs)";

#[tokio::test]
async fn a_lease_does_not_begin_with_a_clock_that_has_been_corrected() {
    let engine = engine_without_tasks().await;
    publish(&engine, vec![queue(0)]).await;
    run_sql(&engine, OF_A_LATER_CLOCK).await;
    let claim = Claim {
        lease_s: Some(60.0),
        ..Claim::of(queue(0), "", 1)
    };
    let claimed = engine.claim(claim, None).await.unwrap();
    let until = claimed[0].lease.as_ref().unwrap().until;
    assert!(until <= engine.now(None).plus_seconds(60.0), "{until:?}");
    engine.close().await;
}
