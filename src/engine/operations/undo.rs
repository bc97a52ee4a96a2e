//! Undo of bulk operations. Removed jobs are stored as text, with the names of their queues, and restored with their
//! ID, insertion number, history and lease. A job that the operation has changed, not removed, gets its former state
//! back if it has not changed since. Time has passed as if the job had been there: its lease may have expired, or it
//! may have become due. Its dependencies are checked again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::events::LogEvent;
use crate::engine::model::body::Body;
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{Job, JobKey, Protocol, QueueKey, State};
use crate::engine::model::queue::Queue;
use crate::engine::operations::{JobAction, Operation, OperationState, Skip};
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::qless::depend::{release_if_ready, unmet_dependencies};
use crate::store::{Row, StoreError};

/// Limit of a batch on the tags and dependencies of its jobs. One job may exceed it.
const RELATIONS_MAX: usize = 1_000;

/// A removed job as stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct RemovedJob {
    pub queue: QueueKey,
    pub job: Job,
}

impl RemovedJob {
    /// The texts to store: the job, and its body if that is long, which would take long to write as JSON.
    pub fn into_texts(mut self) -> (String, Option<Arc<str>>) {
        let body = self.job.body.shared();
        let long_body = body.filter(|_| self.job.body.is_long());
        if long_body.is_some() {
            self.job.body = Body::from("");
        }
        let text = serde_json::to_string(&self);
        (text.unwrap_or_default(), long_body)
    }

    pub fn from_texts(text: &str, long_body: Option<String>) -> Option<RemovedJob> {
        let mut removed: RemovedJob = serde_json::from_str(text).ok()?;
        if let Some(body) = long_body {
            removed.job.body = Body::from(body);
        }
        Some(removed)
    }
}

/// A removed job with its number; `None` if its text cannot be read.
pub type NumberedRemovedJob = (i64, Option<RemovedJob>);

/// The jobs in rows of [`LIST_REMOVED`](super::rows::LIST_REMOVED), up to the limit on tags and dependencies.
pub fn removed_jobs(rows: &[Row]) -> Result<Vec<NumberedRemovedJob>, StoreError> {
    let (mut removed, mut relations) = (Vec::new(), 0);
    for row in rows {
        if relations >= RELATIONS_MAX {
            break;
        }
        let job = RemovedJob::from_texts(&row.text(1)?, row.text_or_null(2)?);
        relations += job
            .as_ref()
            .map_or(0, |it| it.job.tags.len() + it.job.dependencies.len());
        removed.push((row.int(0)?, job));
    }
    Ok(removed)
}

/// Restores a removed job.
///
/// # Errors
/// The reason why it was not restored, as a clause.
pub fn restore(
    work: &mut UnitOfWork,
    removed_job: &RemovedJob,
    operation: &Operation,
) -> Result<(), String> {
    let mut job = removed_job.job.clone();
    if job.is_expired(work.now) {
        return Err("the job has expired".to_owned());
    }
    let queue = work.queue(&removed_job.queue);
    let known = queue.as_ref().map(|queue| queue.id);
    // A new queue of the same name has another ID.
    let is_its_queue =
        |queue: &Arc<Queue>| queue.id == job.queue && queue.first_seen <= job.created_at;
    if removed_job.queue.protocol == Protocol::Jobq && !queue.as_ref().is_some_and(is_its_queue) {
        return Err("its queue was deleted".to_owned());
    }
    job.key = key_in(&job, known);
    match work.job(&job.key) {
        None => {}
        // The operation has not removed the job, but changed it.
        Some(current) if current.seq == job.seq => return revert(work, job, operation),
        Some(_) => return Err("another job now has the same ID".to_owned()),
    }
    // An empty queue may have been deleted meanwhile.
    job.queue = work.get_or_create_queue(&removed_job.queue);
    job.key = key_in(&job, Some(job.queue));
    let needs = std::mem::take(&mut job.dependencies);
    job.dependents.clear();
    let key = job.key.clone();
    let unmet = unmet_dependencies(work, &key, &needs).map_err(|error| error.to_string())?;
    if let (State::Failed, Some(failure)) = (job.state, &job.failure)
        && failure.at.day() > work.last_expired_day("stats-history")
    {
        work.counters.failure_restored(job.queue, failure.at);
    }
    work.insert_again(job);
    work.set_dependencies(&key, &unmet);
    // Its dependencies may be complete or gone by now.
    release_if_ready(work, &key);
    if removed_job.queue.protocol == Protocol::Qless {
        let (id, queue) = (key.id.as_str(), removed_job.queue.name.as_str());
        work.events.log(&LogEvent::Put { id, queue });
        work.publish_tracked("put", &key);
    }
    Ok(())
}

/// Returns a job to what it was before the operation, unless it has changed since.
fn revert(work: &mut UnitOfWork, before: Job, operation: &Operation) -> Result<(), String> {
    let (key, now) = (before.key.clone(), work.now);
    let is_as_left = |job: &Job| {
        let state = match operation.action {
            JobAction::Complete => job.state == State::Complete,
            _ => matches!(
                job.state,
                State::Waiting | State::Scheduled | State::Depends
            ),
        };
        state && job.since == operation.created_at
    };
    if !work.job(&key).is_some_and(is_as_left) {
        return Err("the job has changed since".to_owned());
    }
    let unmet = unmet_dependencies(work, &key, &before.dependencies);
    let unmet = unmet.map_err(|error| error.to_string())?;
    if let (State::Failed, Some(failure)) = (before.state, &before.failure)
        && failure.at.day() > work.last_expired_day("stats-history")
    {
        work.counters.failure_restored(before.queue, failure.at);
    }
    if let Some(job) = work.job_mut(&key) {
        job.history
            .push(EventKind::Note, now, Some("undone by an operator"), None);
        job.state = before.state;
        job.since = before.since;
        job.ready_at = before.ready_at;
        job.lease = before.lease;
        job.remaining = before.remaining;
        job.failure = before.failure;
        job.body = before.body;
    }
    work.set_dependencies(&key, &unmet);
    // Its dependencies may be complete by now.
    release_if_ready(work, &key);
    work.publish_tracked("put", &key);
    Ok(())
}

/// The key of the job if its queue has this ID, which is the scope of Relay and Jobq jobs.
fn key_in(job: &Job, queue: Option<i64>) -> JobKey {
    let scope = match queue {
        Some(queue) if job.key.scope > 0 => queue,
        _ => job.key.scope,
    };
    let id = job.key.id.clone();
    JobKey { scope, id }
}

/// Restores a batch of the jobs that an operation has removed, last first.
pub fn undo_batch(
    work: &mut UnitOfWork,
    (id, version): (i64, i64),
    removed: &[NumberedRemovedJob],
    is_last: bool,
) {
    let Some((operation, found)) = work.operations.get(id) else {
        return;
    };
    if found != version || operation.state != OperationState::Undoing {
        return;
    }
    let mut operation = operation.clone();
    for (n, removed_job) in removed {
        let done = match removed_job {
            Some(removed_job) => restore(work, removed_job, &operation),
            None => Err("its undo data cannot be read".to_owned()),
        };
        work.operations.delete_removed(id, *n);
        match done {
            Ok(()) => operation.restored += 1,
            Err(reason) => {
                let skip = Skip {
                    job: removed_job.as_ref().map_or(0, |it| it.job.seq),
                    queue_and_id: removed_job
                        .as_ref()
                        .map(|it| (it.queue.clone(), it.job.key.id.clone())),
                    reason: format!("not restored: {reason}"),
                };
                work.operations
                    .skip(id, operation.skipped + operation.not_restored, skip);
                operation.not_restored += 1;
            }
        }
    }
    if is_last {
        operation.state = OperationState::Undone;
        operation.undo_until = None;
    }
    work.operations.set(operation);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock::Time;

    #[test]
    fn long_bodies_are_not_stored_as_json() {
        let short_stub = "<0000000003abc";
        for (body, is_long) in [
            ("1", false),
            (&*"x".repeat(20_000), true),
            (short_stub, true),
        ] {
            let mut job = Job::new(JobKey::qless("j"), Time(1));
            job.body = Body::from(body);
            let queue = QueueKey::qless("q");
            let (text, long_body) = RemovedJob { queue, job }.into_texts();
            assert_eq!(long_body.as_deref(), is_long.then_some(body));
            assert!(text.len() < 2_000, "{text}");
            let read = RemovedJob::from_texts(&text, long_body.map(|body| body.to_string()));
            assert_eq!(&*read.unwrap().job.body, body);
        }
    }
}
