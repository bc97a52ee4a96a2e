//! Who may do what with a running job, and heartbeats.

use super::claim::HEARTBEAT_S;
use super::error::{Error, Result};
use super::job::{Job, JobKey, State};
use super::work::Work;

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
pub(super) fn held<'w>(work: &'w Work, key: &JobKey, holder: &Holder) -> Result<&'w Job> {
    let id = || key.id.clone();
    let job = work.job(key).ok_or_else(|| Error::NoSuchJob { id: id() })?;
    let (Some(lease), State::Running) = (&job.lease, job.state) else {
        return Err(Error::NotRunning {
            id: id(),
            state: job.state,
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
/// replaces the job's. Returns the seconds until the next heartbeat is due.
pub(super) fn heartbeat(
    work: &mut Work,
    key: &JobKey,
    holder: &Holder,
    body: Option<&str>,
) -> Result<f64> {
    held(work, key, holder)?;
    work.saw(&holder.worker);
    let until = work.now.plus_seconds(HEARTBEAT_S);
    if let Some(job) = work.job_mut(key) {
        if let Some(lease) = &mut job.lease {
            lease.until = until;
        }
        if let Some(body) = body {
            body.clone_into(&mut job.body);
        }
    }
    Ok(HEARTBEAT_S)
}
