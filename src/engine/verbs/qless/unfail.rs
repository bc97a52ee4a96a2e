//! What an operator does with jobs: cancel, retry what has failed, move.

use std::collections::HashSet;

use crate::engine::error::{Error, Result};
use crate::engine::events::Said;
use crate::engine::model::history::What;
use crate::engine::model::job::{JobKey, QueueKey, State};
use crate::engine::unit_of_work::Work;
use crate::engine::verbs::qless::put::{announce, enter, leave};

/// Cancels all of these jobs or none: they are gone, with everything that is known of them.
/// Ids that are not there are passed over.
///
/// # Errors
/// [`Error::AlreadyComplete`]; [`Error::HasDependents`] if a job that is not among them waits for one.
pub fn cancel(work: &mut Work, keys: &[JobKey]) -> Result<()> {
    let ids = keys.iter().map(|key| key.id.clone()).collect();
    for key in keys {
        dependents_if_cancellable(work, key, &ids)?;
    }
    for key in keys {
        let Some(job) = work.job(key) else { continue };
        let (queue, lease) = (work.queue_name(job.queue), job.lease.clone());
        leave(work, key);
        work.remove(key);
        let said = Said::Canceled {
            id: &key.id,
            queue: &queue,
            worker: lease.as_ref().map(|lease| lease.worker.as_str()),
        };
        work.events.log(&said);
        if let Some(lease) = &lease {
            work.events.worker(&lease.worker, &said);
        }
        work.tell("canceled", key);
    }
    Ok(())
}

/// The jobs that wait for this one, if it may be cancelled together with those of `ids`.
///
/// # Errors
/// [`Error::AlreadyComplete`]; [`Error::HasDependents`] if a job that is not in `ids` waits for it.
pub fn dependents_if_cancellable(
    work: &Work,
    key: &JobKey,
    ids: &HashSet<String>,
) -> Result<Vec<String>> {
    let Some(job) = work.job(key) else {
        return Ok(Vec::new());
    };
    if job.state == State::Complete {
        return Err(Error::AlreadyComplete { id: key.id.clone() });
    }
    let others = job.dependents.iter().filter(|id| !ids.contains(*id));
    let others: Vec<String> = others.cloned().collect();
    if others.is_empty() {
        return Ok(job.dependents.clone());
    }
    Err(Error::HasDependents {
        id: key.id.clone(),
        dependents: others,
    })
}

/// Puts failed jobs back to work, into `queue` or else each into its own, with all their retries.
/// What is not failed any more is passed over. Returns how many were moved.
pub fn unfail(work: &mut Work, keys: &[JobKey], queue: Option<&QueueKey>) -> usize {
    let failed: Vec<&JobKey> = keys.iter().filter(|key| is_failed(work, key)).collect();
    for key in &failed {
        revive(work, key, queue);
    }
    failed.len()
}

/// Puts one failed job back to work in its own queue.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotFailed`].
pub fn unfail_one(work: &mut Work, key: &JobKey) -> Result<()> {
    let job = work
        .job(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })?;
    if job.state != State::Failed {
        return Err(Error::NotFailed {
            id: key.id.clone(),
            state: job.standing(work.now),
        });
    }
    revive(work, key, None);
    Ok(())
}

/// Moves a job, whatever its state, to another queue, where it is put anew with what it has.
///
/// # Errors
/// [`Error::NoSuchJob`].
pub fn relocate(work: &mut Work, key: &JobKey, queue: &QueueKey) -> Result<()> {
    if work.job(key).is_none() {
        return Err(Error::NoSuchJob { id: key.id.clone() });
    }
    revive(work, key, Some(queue));
    Ok(())
}

/// Gives a job another priority; where it waits, its place changes at once, among equals by the moment at
/// which it became available.
///
/// # Errors
/// [`Error::NoSuchJob`].
pub fn prioritize(work: &mut Work, key: &JobKey, priority: f64) -> Result<()> {
    let job = work
        .job_mut(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })?;
    job.priority = priority;
    Ok(())
}

/// Adds a word to the history of a job, whatever its state; `data` is the JSON text of an object.
///
/// # Errors
/// [`Error::NoSuchJob`].
pub fn note(work: &mut Work, key: &JobKey, message: &str, data: Option<&str>) -> Result<()> {
    let now = work.now;
    let job = work
        .job_mut(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })?;
    job.history.push(What::Note, now, Some(message), data);
    Ok(())
}

fn is_failed(work: &Work, key: &JobKey) -> bool {
    work.job(key).is_some_and(|job| job.state == State::Failed)
}

fn revive(work: &mut Work, key: &JobKey, queue: Option<&QueueKey>) {
    let Some(job) = work.job(key) else { return };
    let (id, name) = match queue {
        Some(queue) => (work.queue_for(queue), queue.name.clone()),
        None => (job.queue, work.queue_name(job.queue)),
    };
    let loser = leave(work, key);
    if let Some(job) = work.job_mut(key) {
        job.queue = id;
    }
    enter(work, key, &name, 0.0);
    announce(work, key, &name, loser.as_deref());
}
