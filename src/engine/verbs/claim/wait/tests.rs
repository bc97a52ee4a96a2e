//! That no waiter sleeps while there is a job for it.

use tokio::time::timeout;

use super::*;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::tasks::MaintenanceTask;
use crate::engine::subscriptions::{NextWakeUp, Subscription, Subscriptions};
use crate::engine::{JobKey, Put, quiet as engine};
use std::sync::Arc;

/// A guard against a wake-up that never comes.
const PATIENCE: Duration = Duration::from_secs(60);

fn q() -> QueueKey {
    QueueKey::qless("q")
}

fn long_ago(engine: &Engine) -> Option<Time> {
    Some(engine.now(None).plus_seconds(-1_000.0))
}

async fn put(engine: &Engine, job: Put) {
    let put = engine.put(q(), vec![job], String::new(), long_ago(engine));
    put.await.unwrap().remove(0).unwrap();
}

fn new(id: &str) -> Put {
    Put {
        id: Some(id.to_owned()),
        body: "{}".to_owned(),
        ..Put::default()
    }
}

async fn rings(rings: NextWakeUp) {
    timeout(PATIENCE, rings).await.expect("a wake-up");
}

/// The case where the job becomes due after the waiter's claim and is made waiting before the waiter reads when
/// the alarm has to ring.
#[tokio::test]
async fn a_due_job_wakes_a_waiter_whose_alarm_is_not_set() {
    let engine = engine().await;
    let delay = Some(10.0);
    put(&engine, Put { delay, ..new("a") }).await;
    let seat = engine.waiters().sit(&[q()]);
    let woken = seat.listen();
    engine
        .chore(SystemTask::Upkeep(MaintenanceTask::Promote))
        .await
        .unwrap();
    assert_eq!(engine.waiters().next(), None, "no alarm is set");
    rings(woken).await;
    engine.close().await;
}

#[tokio::test]
async fn an_exhausted_job_does_not_hide_the_next_one_from_a_waiter() {
    let engine = engine().await;
    let retries = Some(0);
    put(
        &engine,
        Put {
            retries,
            ..new("a")
        },
    )
    .await;
    put(&engine, new("b")).await;
    let taken = engine.claim(Claim::of(q(), "w", 2), long_ago(&engine));
    assert_eq!(taken.await.unwrap().len(), 2);
    let claim = Claim::of(q(), "x", 1);
    let jobs = engine.claim_or_wait(claim, PATIENCE, None).await.unwrap();
    assert_eq!(jobs[0].key, JobKey::qless("b"));
    engine.close().await;
}

#[tokio::test]
async fn cancelling_a_running_job_wakes_a_waiter_of_a_limited_queue() {
    let engine = engine().await;
    let limit = Some("1".to_owned());
    let set = engine.configure("q-max-concurrency", limit, None);
    set.await.unwrap();
    put(&engine, new("a")).await;
    let taken = engine.claim(Claim::of(q(), "w", 1), None).await.unwrap();
    let seat = engine.waiters().sit(&[q()]);
    let woken = seat.listen();
    let keys = vec![taken[0].key.clone()];
    engine.cancel(keys, None).await.unwrap();
    rings(woken).await;
    engine.close().await;
}

#[tokio::test]
async fn a_waiter_that_hangs_up_hands_its_wake_up_on() {
    let waiters = Arc::new(Subscriptions::default());
    let (first, second) = (waiters.sit(&[q()]), waiters.sit(&[q()]));
    let (mut rung, waiting) = (first.listen(), second.listen());
    waiters.wake(&q(), 1);
    let queue = Some((&mut rung).await);
    // It listens again before its claim is done.
    let again = first.listen();
    drop((
        PendingWakeUp {
            seat: &first,
            queue,
        },
        again,
    ));
    drop(first);
    rings(waiting).await;
}

#[tokio::test]
async fn a_waiter_that_hangs_up_leaves_the_alarm_to_another() {
    let waiters = Arc::new(Subscriptions::default());
    let (first, second) = (waiters.sit(&[q()]), waiters.sit(&[q()]));
    let waiting = second.listen();
    let unlooked = waiters.unlooked(&[q()]);
    assert!(
        waiters.unlooked(&[q()]).queues.is_empty(),
        "one of them reads"
    );
    drop(unlooked);
    drop(first);
    rings(waiting).await;
    assert_eq!(waiters.unlooked(&[q()]).queues, [q()]);
}

#[tokio::test]
async fn a_wake_up_for_everybody_is_not_lost_among_others() {
    let engine = engine().await;
    put(&engine, new("a")).await;
    let seats = [(); 3].map(|()| engine.waiters().sit(&[q()]));
    let waiting: Vec<NextWakeUp> = seats.iter().map(Subscription::listen).collect();
    let id = engine.known_queues().get(&q()).unwrap().id;
    let verb = move |work: &mut crate::engine::unit_of_work::UnitOfWork| {
        work.rouse(id);
        work.wake(id, 1);
        Ok(())
    };
    let needs = crate::engine::unit_of_work::Needs::default();
    engine.write(needs, None, 1, verb).await.unwrap();
    for woken in waiting {
        rings(woken).await;
    }
    engine.close().await;
}
