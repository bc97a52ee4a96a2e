//! Fail: a job stays failed under a failure group until it is retried or canceled.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::events::{LogEvent, excerpt};
use crate::engine::model::body::Body;
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{Failure, Job, JobKey, State};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::leases::{LeaseHolder, leased_job};
use crate::engine::worker_results::RunResult;

/// The limit on a failure's message in bytes; longer ones are cut.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// A job to fail.
#[derive(Clone, Debug)]
pub struct Fail {
    pub key: JobKey,
    pub group: String,
    pub message: String,
    /// Replaces the job's body, if given.
    pub body: Option<String>,
}

impl Engine {
    /// Fails jobs.
    pub async fn fail(
        &self,
        jobs: Vec<Fail>,
        holder: LeaseHolder,
        now: Option<Time>,
    ) -> ItemResults<()> {
        let with_body = |mut job: Fail| {
            let body = job.body.take().map(Body::from);
            (job, body)
        };
        let jobs = jobs.into_iter().map(with_body).collect();
        let need = |needs: &mut Needs, (job, body): &(Fail, Option<Body>)| {
            needs.job(&job.key);
            needs.keeps_dependencies = true;
            needs.bytes += job.message.len() + body.as_ref().map_or(0, Body::bytes);
        };
        self.apply_in_batches(jobs, now, need, move |work, (job, body)| {
            fail(work, &holder, job, body.as_ref())
        })
        .await
    }
}

/// Fails the job under the failure group `group`. `body` replaces its body, if given.
///
/// # Errors
/// Those of [`leased_job`].
pub fn fail(
    work: &mut UnitOfWork,
    holder: &LeaseHolder,
    fail: &Fail,
    body: Option<&Body>,
) -> Result<()> {
    let (key, group, message) = (&fail.key, &fail.group, truncate_message(&fail.message));
    let queue = leased_job(work, key, holder)?.queue;
    let now = work.now;
    work.counters.failure(queue, now);
    work.counters
        .run_ended(queue, &holder.worker, RunResult::Failed, now);
    let failure = failure(group, message, holder, now);
    if let Some(job) = work.job_mut(key) {
        if let Some(body) = body {
            job.body = body.clone();
        }
        become_failed(job, failure, Some(&holder.worker));
    }
    work.events.log(&LogEvent::Failed {
        id: &key.id,
        group,
        message: excerpt(message),
        worker: &holder.worker,
    });
    work.publish_tracked("failed", key);
    Ok(())
}

/// The message, cut to the limit at a character boundary.
fn truncate_message(message: &str) -> &str {
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
    message.get(..end).unwrap_or_default()
}

pub fn failure(group: &str, message: &str, holder: &LeaseHolder, at: Time) -> Failure {
    let message = truncate_message(message).to_owned();
    let (group, worker) = (group.to_owned(), holder.worker.clone());
    Failure {
        group,
        message,
        worker,
        at,
    }
}

/// Fails a job that has no retries left.
pub fn fail_exhausted(job: &mut Job, queue_name: &str, worker: String, now: Time) {
    let failure = Failure::exhausted(queue_name, worker, now);
    become_failed(job, failure, None);
}

/// Ends the job's run with a failure. `by` is the worker that reported it, if any.
pub fn become_failed(job: &mut Job, failure: Failure, by: Option<&str>) {
    job.history.push_failure(
        EventKind::Failed,
        failure.at,
        &failure.group,
        by,
        &failure.message,
    );
    job.lease = None;
    job.state = State::Failed;
    job.since = failure.at;
    job.failure = Some(failure);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_message_64_kib_are_kept() {
        for (bytes, expected) in [(65_535, 65_535), (65_536, 65_536), (65_537, 65_536)] {
            assert_eq!(
                truncate_message(&"m".repeat(bytes)).len(),
                expected,
                "{bytes} bytes"
            );
        }
        // The last character would end one byte beyond the limit.
        let wide = format!("{}é", "m".repeat(65_535));
        assert_eq!(truncate_message(&wide).len(), 65_535);
    }
}
