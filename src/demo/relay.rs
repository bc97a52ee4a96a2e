//! Demo traffic of Relay. Runners report their progress in heartbeats. Some stop, so that their jobs run again, and
//! some jobs are dead-lettered.

use std::time::Duration;

use super::{BACKLOG_MAX, one_in, sleep_until_next, until_dead_exceed, up_to, waiting};
use crate::engine::{Claim, Engine, Enqueue, Job, Mode, QueueKey, Run};

/// How the jobs of one queue behave.
struct QueueProfile {
    queue: &'static str,
    /// Milliseconds between two jobs.
    every_ms: u64,
    /// Maximum number of heartbeats in a run.
    heartbeats: u64,
    /// Milliseconds between two heartbeats.
    heartbeat_ms: u64,
    runners: usize,
    /// Percentage of runs that stop sending heartbeats.
    silent: u64,
    /// `None` for unlimited retries.
    retries: Option<i64>,
    payload: fn(u64) -> String,
}

const PROFILES: &[QueueProfile] = &[
    QueueProfile {
        queue: "imports",
        every_ms: 1_200,
        heartbeats: 6,
        heartbeat_ms: 700,
        runners: 3,
        silent: 12,
        retries: Some(2),
        payload: import,
    },
    QueueProfile {
        queue: "webhooks",
        every_ms: 500,
        heartbeats: 1,
        heartbeat_ms: 300,
        runners: 2,
        silent: 3,
        retries: Some(0),
        payload: webhook,
    },
    // Runs can requeue their own job.
    QueueProfile {
        queue: "mail",
        every_ms: 20_000,
        heartbeats: 2,
        heartbeat_ms: 900,
        runners: 1,
        silent: 5,
        retries: None,
        payload: digest,
    },
];

/// Lease of a run without heartbeats, in seconds.
const TIMEOUT_S: i64 = 4;

/// Above this number of dead jobs, some are enqueued again.
const DEAD_MAX: i64 = 30;
/// How many dead jobs are enqueued again at a time.
const REQUEUED: usize = 20;

/// How long a runner sleeps when there is no job. Relay has no long polls.
const IDLE_DELAY: Duration = Duration::from_millis(400);

fn import(number: u64) -> String {
    format!(
        r#"{{"file": "orders-{number}.csv", "rows": {}, "owner": {{"id": {}}}}}"#,
        200 + up_to(9_000),
        1_000 + up_to(9_000)
    )
}

fn webhook(number: u64) -> String {
    format!(
        r#"{{"url": "https://example.com/hooks/{}", "event": "order.paid", "delivery": {number}}}"#,
        up_to(40)
    )
}

fn digest(number: u64) -> String {
    format!(r#"{{"digest": {number}, "to": "ada@example.com"}}"#)
}

/// Starts the demo tasks. They run until the process ends.
pub fn start(engine: &Engine) {
    for profile in PROFILES {
        tokio::spawn(produce(engine.clone(), profile));
        tokio::spawn(tidy_up(engine.clone(), profile));
        for _ in 0..profile.runners {
            tokio::spawn(run_all(engine.clone(), profile));
        }
    }
}

/// Enqueues dead jobs again before there are too many.
async fn tidy_up(engine: Engine, profile: &'static QueueProfile) {
    let queue = QueueKey::relay(profile.queue);
    loop {
        until_dead_exceed(&engine, &queue, DEAD_MAX).await;
        drop(engine.requeue_oldest_dead(queue.clone(), REQUEUED).await);
    }
}

async fn produce(engine: Engine, profile: &'static QueueProfile) {
    let queue = QueueKey::relay(profile.queue);
    for number in 1_u64.. {
        if waiting(&engine, &queue).await < BACKLOG_MAX {
            let later = one_in(6).then(|| engine.now(None).plus_seconds(10.0 + up_to(120) as f64));
            let job = Enqueue {
                run_at: later,
                ..job(
                    profile,
                    format!("{}/{number}", profile.queue),
                    (profile.payload)(number),
                )
            };
            drop(engine.enqueue(vec![job], Mode::Unique).await);
        }
        sleep_until_next(profile.every_ms).await;
    }
}

fn job(profile: &QueueProfile, id: String, payload: String) -> Enqueue {
    Enqueue {
        queue: QueueKey::relay(profile.queue),
        id,
        timeout_s: TIMEOUT_S,
        max_retries: profile.retries,
        payload,
        state: None,
        run_at: None,
    }
}

async fn run_all(engine: Engine, profile: &'static QueueProfile) {
    let queue = QueueKey::relay(profile.queue);
    loop {
        let claimed = engine.claim(Claim::of(queue.clone(), "", 1), None).await;
        match claimed.unwrap_or_default().pop() {
            Some(job) => run(&engine, profile, job).await,
            None => tokio::time::sleep(IDLE_DELAY).await,
        }
    }
}

async fn run(engine: &Engine, profile: &QueueProfile, of: Job) {
    let run = Run {
        queue: QueueKey::relay(profile.queue),
        id: of.key.id.clone(),
        run_id: of.lease.map(|lease| lease.id).unwrap_or_default(),
    };
    let heartbeats = 1 + up_to(profile.heartbeats);
    let silent_after = (up_to(100) < profile.silent).then(|| up_to(heartbeats));
    for number in 0..heartbeats {
        tokio::time::sleep(Duration::from_millis(profile.heartbeat_ms)).await;
        if silent_after == Some(number) {
            return;
        }
        let state = format!(r#"{{"step": {}, "of": {heartbeats}}}"#, number + 1);
        drop(engine.heartbeat_run(run.clone(), Some(Some(state))).await);
    }
    if profile.retries.is_none() {
        let again = Enqueue {
            run_at: Some(engine.now(None).plus_seconds(15.0)),
            ..job(profile, of.key.id, of.body.into())
        };
        // Only half of the runs requeue their job; otherwise the number of such jobs would grow without limit.
        if one_in(2) {
            drop(engine.requeue_run(run, vec![again], Mode::Unique).await);
            return;
        }
    }
    drop(engine.complete_run(run).await);
}
