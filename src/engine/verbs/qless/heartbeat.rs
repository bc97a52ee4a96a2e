//! Who may do what with a running job, and heartbeats.

use crate::engine::error::{Error, Result};
use crate::engine::model::history::What;
use crate::engine::model::job::{Job, JobKey, State};
use crate::engine::unit_of_work::Work;
use crate::engine::verbs::qless::put::lock_lost;

/// Who says something about a running job, and of which queue, if it names one.
#[derive(Clone, Debug)]
pub struct Holder {
    pub worker: String,
    pub queue: Option<String>,
}

/// The job, if it is running and `holder` has its lease.
///
/// # Errors
/// In this order: [`Error::NoSuchJob`], [`Error::NotRunning`], [`Error::WrongWorker`], [`Error::WrongQueue`].
pub fn held<'w>(work: &'w Work, key: &JobKey, holder: &Holder) -> Result<&'w Job> {
    let id = || key.id.clone();
    let job = work.job(key).ok_or_else(|| Error::NoSuchJob { id: id() })?;
    let (Some(lease), State::Running) = (&job.lease, job.state) else {
        return Err(Error::NotRunning {
            id: id(),
            state: job.standing(work.now),
        });
    };
    if lease.worker != holder.worker {
        return Err(Error::WrongWorker {
            id: id(),
            worker: lease.worker.clone(),
        });
    }
    if let Some(name) = &holder.queue {
        let queue = work.queue_name(job.queue);
        if queue != *name {
            return Err(Error::WrongQueue { id: id(), queue });
        }
    }
    Ok(job)
}

/// Renews the lease; also one that is lost, as long as nobody else has claimed the job. A body
/// replaces the job's. Returns the seconds until the next heartbeat is due: those of the queue's
/// `heartbeat`, but never beyond its `cutoff`.
pub fn heartbeat(
    work: &mut Work,
    key: &JobKey,
    holder: &Holder,
    body: Option<&str>,
) -> Result<f64> {
    let job = held(work, key, holder)?;
    let (queue, since) = (work.queue_name(job.queue), job.since);
    work.saw(&holder.worker);
    let next = work.now.plus_seconds(work.config.heartbeat_s(&queue));
    let until = match work.config.cutoff_s(&queue) {
        Some(cutoff_s) => next.min(since.plus_seconds(cutoff_s)),
        None => next,
    };
    let due_s = until.seconds_from(work.now);
    if let Some(job) = work.job_mut(key) {
        if let Some(lease) = &mut job.lease {
            lease.until = until;
            lease.warned = false;
        }
        if let Some(body) = body {
            body.clone_into(&mut job.body);
        }
    }
    Ok(due_s)
}

/// Takes the job from its worker, at no cost: it waits for another, ahead of all others.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotRunning`].
pub fn time_out(work: &mut Work, key: &JobKey) -> Result<()> {
    let now = work.now;
    let id = || key.id.clone();
    let job = work
        .job_mut(key)
        .ok_or_else(|| Error::NoSuchJob { id: id() })?;
    let (Some(lease), State::Running) = (job.lease.take(), job.state) else {
        return Err(Error::NotRunning {
            id: id(),
            state: job.standing(now),
        });
    };
    job.history.push(What::TimedOut, now, None, None);
    job.state = State::Stalled;
    job.since = now;
    job.ready_at = now;
    lock_lost(work, key, &lease.worker);
    Ok(())
}
