//! No poll waits while a job is available for it.

use tokio::time::timeout;

use super::*;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::tasks::MaintenanceTask;
use crate::engine::subscriptions::{NextWakeUp, Subscription, Subscriptions};
use crate::engine::{JobKey, Put, engine_without_tasks as engine};
use std::sync::Arc;

/// How long to wait for a wake-up before the test fails.
const TIMEOUT: Duration = Duration::from_secs(60);

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

async fn woken(wake_up: NextWakeUp) {
    timeout(TIMEOUT, wake_up).await.expect("a wake-up");
}

/// The job becomes due after the claim of the poll, and maintenance moves it to waiting before the poll sets the timer.
#[tokio::test]
async fn a_due_job_wakes_a_poll_whose_timer_is_not_set() {
    let engine = engine().await;
    let delay = Some(10.0);
    put(&engine, Put { delay, ..new("a") }).await;
    let subscription = engine.subscriptions().subscribe(&[q()]).unwrap();
    let wake_up = subscription.next_wake_up();
    engine
        .run_system_task(SystemTask::Maintain(MaintenanceTask::PromoteDue))
        .await
        .unwrap();
    assert_eq!(
        engine.subscriptions().next_available(),
        None,
        "no timer is set"
    );
    woken(wake_up).await;
    engine.close().await;
}

#[tokio::test]
async fn a_job_without_retries_does_not_hide_the_next_job_from_a_poll() {
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
    let jobs = engine.claim_or_wait(claim, TIMEOUT, None).await.unwrap();
    assert_eq!(jobs[0].key, JobKey::qless("b"));
    engine.close().await;
}

#[tokio::test]
async fn canceling_a_running_job_wakes_a_poll_of_a_limited_queue() {
    let engine = engine().await;
    let limit = Some("1".to_owned());
    let set = engine.configure("q-max-concurrency", limit, None);
    set.await.unwrap();
    put(&engine, new("a")).await;
    let taken = engine.claim(Claim::of(q(), "w", 1), None).await.unwrap();
    let subscription = engine.subscriptions().subscribe(&[q()]).unwrap();
    let wake_up = subscription.next_wake_up();
    let keys = vec![taken[0].key.clone()];
    engine.cancel(keys, None).await.unwrap();
    woken(wake_up).await;
    engine.close().await;
}

#[tokio::test]
async fn a_poll_that_disconnects_passes_its_wake_up_on() {
    let subscriptions = Arc::new(Subscriptions::default());
    let subscribe = || subscriptions.subscribe(&[q()]).unwrap();
    let (first, second) = (subscribe(), subscribe());
    let (mut wake_up, waiting) = (first.next_wake_up(), second.next_wake_up());
    subscriptions.wake(&q(), 1);
    let queue = Some((&mut wake_up).await);
    // The poll waits again before it has used its wake-up.
    let again = first.next_wake_up();
    drop((
        PendingWakeUp {
            subscription: &first,
            queue,
        },
        again,
    ));
    drop(first);
    woken(waiting).await;
}

/// However many polls there are, and even if the first one disconnects.
#[test]
fn one_task_sets_the_timers_of_all_polls() {
    let subscriptions = Arc::new(Subscriptions::default());
    let queues = [q(), QueueKey::qless("other")];
    let first = subscriptions.subscribe(&[q()]).unwrap();
    assert!(subscriptions.request_timers(&[q()], Time(5)));
    let _second = subscriptions.subscribe(&queues).unwrap();
    assert!(!subscriptions.request_timers(&queues, Time(4)));
    drop(first);
    let mut requested = subscriptions.take_requested_timers().unwrap();
    requested.0.sort();
    let mut expected = queues.clone();
    expected.sort();
    assert_eq!(requested, (expected.to_vec(), Time(4)));
    assert!(!subscriptions.request_timers(&queues, Time(6)), "known");
    assert_eq!(subscriptions.take_requested_timers(), None);
    let unknown = QueueKey::qless("third");
    let _third = subscriptions
        .subscribe(std::slice::from_ref(&unknown))
        .unwrap();
    assert!(
        subscriptions.request_timers(&[unknown], Time(7)),
        "the task has ended"
    );
}

#[tokio::test]
async fn a_wake_up_for_all_polls_is_not_lost_among_others() {
    let engine = engine().await;
    put(&engine, new("a")).await;
    let polls = [(); 3].map(|()| engine.subscriptions().subscribe(&[q()]).unwrap());
    let waiting: Vec<NextWakeUp> = polls.iter().map(Subscription::next_wake_up).collect();
    let id = engine.known_queues().get(&q()).unwrap().id;
    let verb = move |work: &mut crate::engine::unit_of_work::UnitOfWork| {
        work.wake_all(id);
        work.wake(id, 1);
        Ok(())
    };
    let needs = crate::engine::unit_of_work::Needs::default();
    engine.write(needs, None, 1, verb).await.unwrap();
    for wake_up in waiting {
        woken(wake_up).await;
    }
    engine.close().await;
}

#[tokio::test]
async fn all_polls_together_wait_for_up_to_400000_queues() {
    let engine = engine().await;
    let queues = |count: usize| -> Vec<QueueKey> {
        let names = (0..count).map(|n| format!("queue {n}"));
        names.map(|name| QueueKey::lmstfy("ns", &name)).collect()
    };
    let (thousand, eleven, ten) = (queues(1_000), queues(11), queues(10));
    let subscribe = |queues: &[QueueKey]| engine.subscriptions().subscribe(queues);
    let mut polls: Vec<_> = (0..399).map(|_| subscribe(&thousand).unwrap()).collect();
    polls.push(subscribe(&queues(989)).unwrap());
    let last = subscribe(&eleven);
    assert!(last.is_some(), "400,000 queues");
    assert!(subscribe(&eleven).is_none());
    assert!(subscribe(&ten).is_some(), "a poll of a few queues");
    let claim = Claim {
        queues: eleven.clone(),
        ..Claim::of(q(), "w", 1)
    };
    let wait = Duration::from_secs(60);
    let outcome = engine.claim_or_wait(claim.clone(), wait, None).await;
    assert_eq!(outcome.map(|jobs| jobs.len()), Err(Error::Busy));
    drop(last);
    assert!(subscribe(&eleven).is_some());
    drop(polls);
    engine.close().await;
}
