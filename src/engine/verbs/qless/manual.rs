//! What operators do to one job by hand: retry it with another payload or after a delay, and complete it. A job that
//! has changed since the operator saw it is refused. Both can be undone for a while, as operations.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::events::LogEvent;
use crate::engine::model::body::Body;
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{EffectiveState, Job, JobKey, State};
use crate::engine::operations::JobAction;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::admin::operations::add_ended_operation;
use crate::engine::verbs::leases::announce_lost_lease;
use crate::engine::verbs::lifecycle::leave_queue;
use crate::engine::verbs::qless::complete::become_complete;
use crate::engine::verbs::qless::depend::release_dependents;
use crate::engine::verbs::qless::unfail::requeue_job_after;

/// A job as an operator has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenJob {
    pub key: JobKey,
    pub state: EffectiveState,
    /// When it entered its state: [`Job::state_since`].
    pub since: Time,
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManualActionError {
    #[error("the job no longer exists")]
    Missing,
    #[error(
        "the job has changed since the page was loaded, and is now in state {0}; nothing was changed. Check the job and try again"
    )]
    Changed(EffectiveState),
    #[error("the job is in state {0}; only failed jobs can be retried")]
    NotFailed(EffectiveState),
    #[error("the job is already complete")]
    Complete,
}

impl Engine {
    /// Retries a failed job after `delay` seconds, with another payload if `body` is given. Returns the ID of the
    /// operation that undoes it.
    pub async fn edit_and_retry(
        &self,
        seen: SeenJob,
        body: Option<String>,
        delay: f64,
        who: String,
    ) -> Result<Result<i64, ManualActionError>> {
        let body = body.map(Body::from);
        let needs = Needs {
            jobs: vec![seen.key.clone()],
            bodies: true,
            bytes: body.as_ref().map_or(0, Body::bytes),
            ..Needs::default()
        };
        let retry = move |work: &mut UnitOfWork| {
            Ok(edit_and_retry(work, &seen, body.as_ref(), delay, &who))
        };
        self.write(needs, None, 1, retry).await
    }

    /// Completes a job without a worker. Returns the ID of the operation, and whether it can be undone: not if other
    /// jobs depended on the job.
    pub async fn complete_manually(
        &self,
        seen: SeenJob,
        who: String,
    ) -> Result<Result<(i64, bool), ManualActionError>> {
        let needs = Needs {
            jobs: vec![seen.key.clone()],
            bodies: true,
            releases_dependents: true,
            replaces_dependencies: true,
            ..Needs::default()
        };
        let complete = move |work: &mut UnitOfWork| {
            let done = complete_manually(work, &seen, &who);
            Ok((done, work.number_if_released_later(&seen.key)))
        };
        let (done, later) = self.write(needs, None, 1, complete).await?;
        self.release_dependents(later.into_iter().collect(), None)
            .await;
        Ok(done)
    }
}

/// The job, if it is as the operator has seen it.
fn unchanged(work: &UnitOfWork, seen: &SeenJob) -> Result<Job, ManualActionError> {
    let job = work.job(&seen.key).ok_or(ManualActionError::Missing)?;
    let state = job.effective_state(work.now);
    if job.state_since(work.now) != seen.since || state != seen.state {
        return Err(ManualActionError::Changed(state));
    }
    Ok(job.clone())
}

fn edit_and_retry(
    work: &mut UnitOfWork,
    seen: &SeenJob,
    body: Option<&Body>,
    delay: f64,
    who: &str,
) -> Result<i64, ManualActionError> {
    let (before, now) = (unchanged(work, seen)?, work.now);
    if before.state != State::Failed {
        return Err(ManualActionError::NotFailed(before.effective_state(now)));
    }
    if let (Some(body), Some(job)) = (body, work.job_mut(&seen.key)) {
        job.body = body.clone();
        let note = format!("payload replaced by {who}");
        job.history.push(EventKind::Note, now, Some(&note), None);
    }
    requeue_job_after(work, &seen.key, None, delay);
    let queue = work.queue_key(before.queue);
    let action = JobAction::EditAndRetry;
    Ok(add_ended_operation(work, who, action, before, queue))
}

fn complete_manually(
    work: &mut UnitOfWork,
    seen: &SeenJob,
    who: &str,
) -> Result<(i64, bool), ManualActionError> {
    let (key, now) = (&seen.key, work.now);
    let before = unchanged(work, seen)?;
    if before.state == State::Complete {
        return Err(ManualActionError::Complete);
    }
    let loser = leave_queue(work, key);
    work.set_dependencies(key, &[]);
    if let Some(job) = work.job_mut(key) {
        let note = format!("completed by {who}");
        job.history.push(EventKind::Note, now, Some(&note), None);
        become_complete(job, now);
    }
    if let Some(worker) = loser {
        announce_lost_lease(work, key, &worker);
    }
    let queue = work.queue_name(before.queue);
    work.events.log(&LogEvent::Completed {
        id: &key.id,
        queue: &queue,
    });
    work.publish_tracked("completed", key);
    work.has_final_completion = true;
    release_dependents(work, key);
    // The dependents may run now.
    let can_be_undone = before.dependents.is_empty();
    let queue = work.queue_key(before.queue).filter(|_| can_be_undone);
    let id = add_ended_operation(work, who, JobAction::Complete, before, queue);
    Ok((id, can_be_undone))
}
