//! Leases: checking the holder, and expiry.

use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::events::LogEvent;
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{Job, JobKey, LMSTFY_SCOPE, QueueId, State, UNLIMITED};
use crate::engine::unit_of_work::UnitOfWork;

/// The worker that reports on a running job, and the queue if the request names one.
#[derive(Clone, Debug)]
pub struct LeaseHolder {
    pub worker: String,
    pub queue: Option<String>,
}

/// The job, if it is running and `holder` has its lease.
///
/// # Errors
/// In this order: [`Error::NoSuchJob`], [`Error::NotRunning`], [`Error::WrongWorker`], [`Error::WrongQueue`].
pub fn leased_job<'w>(work: &'w UnitOfWork, key: &JobKey, holder: &LeaseHolder) -> Result<&'w Job> {
    let id = || key.id.clone();
    let job = work.job(key).ok_or_else(|| Error::NoSuchJob { id: id() })?;
    let (Some(lease), State::Running) = (&job.lease, job.state) else {
        return Err(Error::NotRunning {
            id: id(),
            state: job.effective_state(work.now),
            is_due: job.is_due(work.now),
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

/// Publishes, first on the worker's channel, that the worker has lost the job.
pub fn announce_lost_lease(work: &mut UnitOfWork, key: &JobKey, worker: &str) {
    let event = LogEvent::LockLost {
        id: &key.id,
        worker,
    };
    work.events.worker(worker, &event);
    work.events.log(&event);
}

/// Ends expired leases before jobs of the queue are claimed. Jobs with attempts left are queued again; see
/// [`expire_lease`].
pub fn expire_leases(work: &mut UnitOfWork, queue: QueueId) {
    let mut back = Vec::new();
    while let Some(key) = work.next_expired_lease(queue) {
        if expire_lease(work, &key) {
            back.push(key);
        }
    }
    work.add_waiting(queue, back);
}

/// Ends an expired lease, and returns whether the job waits again. A job with attempts left waits again: an lmstfy job
/// as if it had been put when its lease ended, a Relay job at its previous position. A job without attempts left is
/// dead-lettered. A job whose time to live ended first is deleted.
pub fn expire_lease(work: &mut UnitOfWork, key: &JobKey) -> bool {
    let now = work.now;
    let Some(lease) = work.job_mut(key).and_then(|job| job.lease.take()) else {
        return false;
    };
    let Some(job) = work.job_mut(key) else {
        return false;
    };
    if job.is_expired(lease.until) {
        work.remove(key);
        return false;
    }
    job.history
        .push(EventKind::TimedOut, lease.until, None, None);
    if job.remaining != UNLIMITED {
        job.remaining -= 1;
    }
    let (queue, waits) = (job.queue, job.remaining >= 0);
    if waits {
        job.state = State::Waiting;
        job.since = lease.until;
        if key.scope == LMSTFY_SCOPE {
            job.ready_at = lease.until;
        }
    } else {
        dead_letter(work, key, lease.until);
        work.counters.dead_lettered(queue, now);
    }
    work.counters.lease_expired(queue, now);
    waits
}

/// Whether the job moves to a new row when its lease expires. Its body is then needed.
pub fn moves_at_expiry(job: &Job) -> bool {
    job.key.scope != LMSTFY_SCOPE && job.remaining <= 0
}

/// Dead-letters a job. Relay: the job gets a new key, so that another job may use the old one.
fn dead_letter(work: &mut UnitOfWork, key: &JobKey, at: Time) {
    let Some(job) = work.job_mut(key) else { return };
    job.history.push(EventKind::DeadLettered, at, None, None);
    job.state = State::Dead;
    job.since = at;
    job.expires_at = None;
    if key.scope == LMSTFY_SCOPE {
        return;
    }
    let job = job.clone();
    work.remove(key);
    let seq = work.next_seq();
    work.insert(Job {
        seq,
        key: JobKey::dead_relay(seq, &*key.id),
        ..job
    });
}
