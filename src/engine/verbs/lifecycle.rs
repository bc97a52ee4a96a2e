//! State changes that several verbs share: a new job, and a job that leaves or enters a queue.

use uuid::{NoContext, Timestamp, Uuid};

use crate::engine::clock::Time;
use crate::engine::model::body::Body;
use crate::engine::model::history::{EventKind, History};
use crate::engine::model::job::{Job, JobKey, State};
use crate::engine::unit_of_work::UnitOfWork;

/// Tries after the first that a new job has (qless-core, Put).
const RETRIES: i64 = 5;

/// 32 hex digits: the time and then chance. What is put together stands together in the index of ids, so
/// that a group of puts writes one page of it and not one each.
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
        key: key.clone(),
        queue: 0,
        state: State::Waiting,
        priority: 0.0,
        ready_at: work.now,
        since: work.now,
        lease: None,
        retries: RETRIES,
        remaining: RETRIES,
        klass: None,
        tags: Vec::new(),
        history: History::default(),
        failure: None,
        body: Body::default(),
        created_at: work.now,
        spawned_from: None,
        expires_at: None,
        attributes: None,
        timeout_s: None,
        work_state: None,
        updated_at: None,
        dependencies: Vec::new(),
        dependents: Vec::new(),
    }
}

/// Takes the job out of where it is: whatever lease or failure it has is undone. Returns the worker that has
/// lost it by this, unless it was told already.
pub fn leave_queue(work: &mut UnitOfWork, key: &JobKey) -> Option<String> {
    if let Some(job) = work.job(key)
        && let (State::Failed, Some(failure)) = (job.state, &job.failure)
    {
        let (queue, at) = (job.queue, failure.at);
        // The statistics of a day that is past keeping are gone, and must not come back.
        if at.day() > work.last_expired_day("stats-history") {
            work.counters.failure_undone(queue, at);
        }
    }
    let lease = work.job_mut(key)?.lease.take()?;
    (!lease.warned).then_some(lease.worker)
}

/// Lets the job enter its queue anew: it waits, is scheduled, or depends on others.
pub fn enter_queue(work: &mut UnitOfWork, key: &JobKey, queue_name: &str, delay: f64) {
    let now = work.now;
    if let Some(job) = work.job_mut(key) {
        job.history
            .push(EventKind::Put, now, Some(queue_name), None);
        job.remaining = job.retries;
        set_available(job, now, delay);
        let queue = job.queue;
        work.counters.put(queue, now);
    }
}

/// Sets the state in which a job that left another waits to be claimed.
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
