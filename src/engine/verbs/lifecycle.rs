//! State changes that several verbs share: creating a job, and leaving or entering a queue.

use uuid::{NoContext, Timestamp, Uuid};

use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{Job, JobKey, State};
use crate::engine::unit_of_work::UnitOfWork;

/// Retries of a new job (qless-core, Put).
const RETRIES: i64 = 5;

/// A UUIDv7 as 32 hex digits: time, then randomness. Consecutive IDs are adjacent in the index of IDs, so a batch of
/// puts writes one page of it instead of one per job.
pub fn generated_id(now: Time) -> String {
    let seconds = u64::try_from(now.whole_seconds()).unwrap_or_default();
    let nanos = u32::try_from(now.0.rem_euclid(1_000_000) * 1_000).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanos))
        .simple()
        .to_string()
}

pub fn new_job(work: &mut UnitOfWork, key: &JobKey) -> Job {
    Job {
        seq: work.next_seq(),
        retries: RETRIES,
        remaining: RETRIES,
        ..Job::new(key.clone(), work.now)
    }
}

/// # Errors
/// [`Error::NotDead`].
pub fn check_dead(job: &Job, now: Time) -> Result<()> {
    match job.state {
        State::Dead => Ok(()),
        _ => Err(Error::NotDead {
            id: job.key.id.clone(),
            state: job.effective_state(now),
        }),
    }
}

/// Takes the job out of its queue, clearing its lease and undoing its failure count. Returns the worker that loses its
/// lease, unless it has already been notified.
pub fn leave_queue(work: &mut UnitOfWork, key: &JobKey) -> Option<String> {
    if let Some(job) = work.job(key)
        && let (State::Failed, Some(failure)) = (job.state, &job.failure)
    {
        let (queue, at) = (job.queue, failure.at);
        // Statistics older than their retention have been deleted and must not reappear.
        if at.day() > work.last_expired_day("stats-history") {
            work.counters.failure_undone(queue, at);
        }
    }
    let lease = work.job_mut(key)?.lease.take()?;
    (!lease.in_grace_period).then_some(lease.worker)
}

/// Puts the job into its queue: it becomes waiting, scheduled, or depends on others.
pub fn enter_queue(work: &mut UnitOfWork, key: &JobKey, queue_name: &str, delay: f64) {
    let (now, trace) = (work.now, work.trace.traceparent());
    if let Some(job) = work.job_mut(key) {
        job.history
            .push(EventKind::Put, now, Some(queue_name), trace.as_deref());
        job.remaining = job.retries;
        set_available(job, now, delay);
        let queue = job.queue;
        work.counters.put(queue, now);
    }
}

/// Makes a job available: at once, after `delay` seconds, or when its dependencies are complete.
pub fn set_available(job: &mut Job, now: Time, delay: f64) {
    job.lease = None;
    job.since = now;
    job.ready_at = if delay > 0.0 {
        now.plus_seconds(delay)
    } else {
        now
    };
    job.state = if !job.dependencies.is_empty() {
        State::Depends
    } else if job.ready_at > now {
        State::Scheduled
    } else {
        State::Waiting
    };
}
