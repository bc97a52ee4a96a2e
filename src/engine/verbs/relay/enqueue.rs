//! Relay's verbs: enqueue and requeue, and what a runner says of a job that it has.

use std::collections::HashSet;

use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::What;
use crate::engine::model::job::{FOR_EVER, Job, JobKey, QueueKey, State};
use crate::engine::unit_of_work::Work;
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::verbs::qless::put::new_job;

/// What becomes of a job whose key is taken (document, Mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is enqueued at all.
    Unique,
    /// It is passed over.
    Ignore,
    /// It takes the place of the other one, whose runner loses it.
    Replace,
}

/// A job to be enqueued.
#[derive(Clone, Debug)]
pub struct Enqueue {
    pub queue: QueueKey,
    pub id: String,
    /// Seconds that a runner has until it must heartbeat.
    pub timeout_s: i64,
    /// Runs allowed after the first; `None` for any number.
    pub max_retries: Option<i64>,
    /// JSON text.
    pub payload: String,
    /// JSON text.
    pub state: Option<String>,
    /// Now, if not said.
    pub run_at: Option<Time>,
}

/// A run of a job: while it lasts, its runner may speak for the job.
#[derive(Clone, Debug)]
pub struct Run {
    pub queue: QueueKey,
    pub id: String,
    /// 32 hex digits, as in [`Lease::id`](crate::engine::Lease).
    pub run_id: String,
}

/// Enqueues jobs in mode [`Mode::Unique`], in order, all of them or (if one is refused) none.
///
/// # Errors
/// [`Error::AlreadyThere`].
pub fn enqueue(work: &mut Work, jobs: &[Enqueue]) -> Result<()> {
    check_unique(work, jobs, None)?;
    for job in jobs {
        put(work, job, Mode::Unique);
    }
    Ok(())
}

/// Ends a run and the job with it, and enqueues others, or nothing of both. Whether there was that run.
///
/// # Errors
/// [`Error::AlreadyThere`].
pub fn requeue(work: &mut Work, run: &Run, jobs: &[Enqueue], mode: Mode) -> Result<bool> {
    let Some(key) = running(work, run) else {
        return Ok(false);
    };
    if mode == Mode::Unique {
        check_unique(work, jobs, Some(&key))?;
    }
    end(work, &key);
    for job in jobs {
        put(work, job, mode);
    }
    Ok(true)
}

/// Whether all these keys are free, and no two of them the same. `leaving` counts as gone.
fn check_unique(work: &Work, jobs: &[Enqueue], leaving: Option<&JobKey>) -> Result<()> {
    let mut named = HashSet::new();
    for job in jobs {
        let key = work.key_in(&job.queue, &job.id);
        let is_taken = key.is_some_and(|key| leaving != Some(&key) && work.job(&key).is_some());
        if is_taken || !named.insert((&job.queue, &job.id)) {
            return Err(Error::AlreadyThere {
                id: job.id.clone(),
                queue: job.queue.name.clone(),
            });
        }
    }
    Ok(())
}

/// Enqueues a job; `mode` says what happens to one of the same key.
pub fn put(work: &mut Work, enqueue: &Enqueue, mode: Mode) {
    let key = JobKey {
        scope: work.queue_for(&enqueue.queue),
        id: enqueue.id.clone(),
    };
    if work.job(&key).is_none() {
        let mut job = new_job(work, &key);
        job.queue = key.scope;
        work.insert(job);
    } else if mode == Mode::Ignore {
        return;
    }
    let now = work.now;
    if let Some(job) = work.job_mut(&key) {
        fill(job, enqueue, now);
        work.tally.put(key.scope, now);
    }
}

/// Makes of a job what is to be enqueued; only when it was created stays.
fn fill(job: &mut Job, enqueue: &Enqueue, now: Time) {
    job.timeout_s = Some(enqueue.timeout_s);
    job.retries = enqueue.max_retries.unwrap_or(FOR_EVER);
    job.remaining = job.retries;
    job.body.clone_from(&enqueue.payload);
    job.work_state.clone_from(&enqueue.state);
    job.updated_at = Some(now);
    job.history
        .push(What::Put, now, Some(&enqueue.queue.name), None);
    job.lease = None;
    job.since = now;
    job.ready_at = enqueue.run_at.unwrap_or(now);
    job.state = if job.ready_at > now {
        State::Scheduled
    } else {
        State::Waiting
    };
}

/// Renews the lease of a run. `state` takes the place of what the job has; `Some(None)` takes that away.
///
/// # Errors
/// [`Error::NoSuchJob`] if there is no such run.
pub fn beat(work: &mut Work, run: &Run, state: Option<&Option<String>>) -> Result<()> {
    let now = work.now;
    let key = running(work, run);
    let job = key.and_then(|key| work.job_mut(&key));
    let job = job.ok_or_else(|| Error::NoSuchJob { id: run.id.clone() })?;
    let timeout_s = job.timeout_s.unwrap_or_default() as f64;
    if let Some(lease) = &mut job.lease {
        lease.until = now.plus_seconds(timeout_s);
    }
    job.updated_at = Some(now);
    if let Some(state) = state {
        job.work_state.clone_from(state);
    }
    Ok(())
}

/// Ends a run, and the job with it. Whether there was that run.
pub fn finish(work: &mut Work, run: &Run) -> bool {
    let key = running(work, run);
    if let Some(key) = &key {
        end(work, key);
    }
    key.is_some()
}

/// Deletes a job, whatever its state. Whether it was there.
pub fn delete(work: &mut Work, queue: &QueueKey, id: &str) -> bool {
    let key = work.key_in(queue, id);
    let Some(key) = key.filter(|key| work.job(key).is_some()) else {
        return false;
    };
    work.remove(&key);
    true
}

/// Enqueues a dead job anew, with its payload and its last state.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotDead`], [`Error::AlreadyThere`].
pub fn revive(work: &mut Work, queue: &QueueKey, dead: &JobKey) -> Result<()> {
    let now = work.now;
    let id = || dead.id.clone();
    let job = work
        .job(dead)
        .ok_or_else(|| Error::NoSuchJob { id: id() })?;
    if job.state != State::Dead {
        return Err(Error::NotDead {
            id: id(),
            state: job.standing(now),
        });
    }
    let (history, created_at) = (job.history.clone(), job.created_at);
    let again = Enqueue {
        queue: queue.clone(),
        id: id(),
        timeout_s: job.timeout_s.unwrap_or_default(),
        max_retries: (job.retries != FOR_EVER).then_some(job.retries),
        payload: job.body.clone(),
        state: job.work_state.clone(),
        run_at: None,
    };
    enqueue(work, &[again])?;
    work.remove(dead);
    if let Some(key) = work.key_in(queue, &dead.id)
        && let Some(job) = work.job_mut(&key)
    {
        job.history = history;
        job.history.push(What::Respawned, now, None, None);
        job.created_at = created_at;
    }
    Ok(())
}

/// The key of the job that is running, if it is in this run.
fn running(work: &Work, run: &Run) -> Option<JobKey> {
    let key = work.key_in(&run.queue, &run.id)?;
    let lease = work.job(&key)?.lease.as_ref()?;
    (lease.id == run.run_id).then_some(key)
}

fn end(work: &mut Work, key: &JobKey) {
    if let Some(job) = work.job(key) {
        let (queue, ran) = (job.queue, work.now.seconds_since(job.since));
        work.tally.duration(queue, Kind::Run, ran, work.now);
    }
    work.remove(key);
}
