//! Enqueue: adds jobs with IDs chosen by the client.

use std::collections::HashSet;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{Job, JobKey, QueueKey, State, UNLIMITED};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::lifecycle::new_job;

/// Jobs, and different queues, in one atomic request. It takes one transaction, and all other writes wait for it: 10 to
/// 30 µs per job, and 40 µs per new queue.
const ATOMIC_MAX: usize = 1_600;

const ATOMIC_QUEUES_MAX: usize = 500;

/// What happens if a job's key is in use (API document, Mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The whole request fails.
    Unique,
    /// The new job is ignored.
    Ignore,
    /// The new job replaces the old one, whose run ends.
    Replace,
}

/// A job to enqueue.
#[derive(Clone, Debug)]
pub struct Enqueue {
    pub queue: QueueKey,
    pub id: String,
    /// Seconds after which a run's lease expires without a heartbeat.
    pub timeout_s: i64,
    /// Runs allowed after the first; `None` for any number.
    pub max_retries: Option<i64>,
    /// JSON text.
    pub payload: String,
    /// JSON text.
    pub state: Option<String>,
    /// `None` means now.
    pub run_at: Option<Time>,
}

impl Engine {
    /// Enqueues jobs. [`Mode::Unique`] enqueues all or none, at most [`ATOMIC_MAX`]. In the other modes the jobs are
    /// independent, and large requests are split over several transactions.
    ///
    /// # Errors
    /// [`JobExists`, `TooMany`, `NameTooLong`](crate::engine::Error).
    pub async fn enqueue(&self, jobs: Vec<Enqueue>, mode: Mode) -> Result<()> {
        let room = self.reserve_room(jobs.iter().map(|job| &job.queue))?;
        self.check_indexable(&jobs)?;
        if mode != Mode::Unique {
            let put = move |work: &mut UnitOfWork, job: &Enqueue| {
                put(work, job, mode);
                Ok(())
            };
            let need = move |needs: &mut Needs, job: &Enqueue| need(needs, job, mode);
            let writes = || self.apply_in_batches(jobs, None, need, put);
            return room.hold(writes).await?.into_iter().collect();
        }
        check_atomic(&jobs)?;
        let mut needs = Needs::default();
        jobs.iter().for_each(|job| need(&mut needs, job, mode));
        let write = || self.write(needs, None, jobs.len(), move |work| enqueue(work, &jobs));
        room.hold(write).await
    }
}

/// Maximum length of an indexed text on Postgres, in bytes: below a third of a page.
const INDEXED_BYTES_MAX: usize = 2_600;

impl Engine {
    /// Refuses names that Postgres cannot index, before they reach the writer, where they would delay other requests.
    pub(super) fn check_indexable(&self, jobs: &[Enqueue]) -> Result<()> {
        let mut names = jobs.iter().flat_map(|job| [&job.queue.name, &job.id]);
        match self.readers().is_shared() && names.any(|name| name.len() > INDEXED_BYTES_MAX) {
            true => Err(Error::NameTooLong),
            false => Ok(()),
        }
    }
}

pub fn check_atomic(jobs: &[Enqueue]) -> Result<()> {
    let too_many = |what, max| Err(Error::TooMany { what, max });
    if jobs.len() > ATOMIC_MAX {
        return too_many("jobs in one atomic request", ATOMIC_MAX);
    }
    // Queues can exceed their limit only if the jobs do.
    let queues = || jobs.iter().map(|job| &job.queue).collect::<HashSet<_>>();
    if jobs.len() > ATOMIC_QUEUES_MAX && queues().len() > ATOMIC_QUEUES_MAX {
        let what = "queues in one atomic request";
        return too_many(what, ATOMIC_QUEUES_MAX);
    }
    Ok(())
}

/// Adds what the job to enqueue needs: only a job that it replaces is changed.
pub fn need(needs: &mut Needs, job: &Enqueue, mode: Mode) {
    let key = (job.queue.clone(), job.id.clone());
    match mode {
        Mode::Replace => needs.in_queues.push(key),
        Mode::Unique | Mode::Ignore => needs.checked.push(key),
    }
    needs.bytes += job.payload.len() + job.state.as_ref().map_or(0, String::len);
    needs.adds_jobs = true;
}

/// Enqueues jobs in mode [`Mode::Unique`], in order, all or none.
///
/// # Errors
/// [`Error::JobExists`].
pub fn enqueue(work: &mut UnitOfWork, jobs: &[Enqueue]) -> Result<()> {
    check_unique(work, jobs, None)?;
    for job in jobs {
        put(work, job, Mode::Unique);
    }
    Ok(())
}

/// Fails unless all keys are unused and different. `leaving` counts as unused.
pub fn check_unique(work: &UnitOfWork, jobs: &[Enqueue], leaving: Option<&JobKey>) -> Result<()> {
    let mut named = HashSet::new();
    for job in jobs {
        let key = work.key_in(&job.queue, &job.id);
        let is_taken = key.is_some_and(|key| leaving != Some(&key) && work.job(&key).is_some());
        if is_taken || !named.insert((&job.queue, &job.id)) {
            return Err(Error::JobExists {
                id: job.id.clone(),
                queue: job.queue.name.clone(),
            });
        }
    }
    Ok(())
}

/// Enqueues a job. `mode` decides what happens if its key is in use.
pub fn put(work: &mut UnitOfWork, enqueue: &Enqueue, mode: Mode) {
    let key = JobKey {
        scope: work.get_or_create_queue(&enqueue.queue),
        id: enqueue.id.clone(),
    };
    if work.job(&key).is_none() {
        let mut job = new_job(work, &key);
        job.queue = key.scope;
        work.insert(job);
    } else if mode == Mode::Ignore {
        return;
    }
    let (now, trace) = (work.now, work.trace.traceparent());
    if let Some(job) = work.job_mut(&key) {
        fill(job, enqueue, now);
        let queue = Some(enqueue.queue.name.as_str());
        job.history
            .push(EventKind::Put, now, queue, trace.as_deref());
        work.counters.put(key.scope, now);
    }
}

/// Overwrites a job with the one to enqueue, except for its creation time and history.
fn fill(job: &mut Job, enqueue: &Enqueue, now: Time) {
    job.timeout_s = Some(enqueue.timeout_s);
    job.retries = enqueue.max_retries.unwrap_or(UNLIMITED);
    job.remaining = job.retries;
    job.body = enqueue.payload.as_str().into();
    job.work_state.clone_from(&enqueue.state);
    job.updated_at = Some(now);
    job.lease = None;
    job.since = now;
    job.ready_at = enqueue.run_at.unwrap_or(now);
    job.state = if job.ready_at > now {
        State::Scheduled
    } else {
        State::Waiting
    };
}
