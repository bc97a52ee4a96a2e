//! Retry: a worker returns its job to the queue.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::history::EventKind;
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::leases::{LeaseHolder, leased_job};
use crate::engine::verbs::lifecycle::set_available;
use crate::engine::verbs::qless::fail::{become_failed, fail_exhausted, failure};
use crate::engine::worker_results::RunResult;

/// A job to return.
#[derive(Clone, Debug)]
pub struct Retry {
    pub key: JobKey,
    /// Seconds before it becomes available again; 0 or less means now.
    pub delay: f64,
    /// The failure group and message of a failure.
    pub reason: Option<(String, String)>,
}

impl Engine {
    /// Returns jobs to their queues. Per job, the remaining retries; negative if the job failed instead.
    pub async fn retry(
        &self,
        jobs: Vec<Retry>,
        holder: LeaseHolder,
        now: Option<Time>,
    ) -> ItemResults<i64> {
        let need = |needs: &mut Needs, job: &Retry| {
            needs.job(&job.key);
            needs.keeps_dependencies = true;
            needs.bytes += job.reason.as_ref().map_or(0, |(_, message)| message.len());
        };
        self.apply_in_batches(jobs, now, need, move |work, job| retry(work, &holder, job))
            .await
    }
}

/// Returns the job to its queue, which uses up one retry; a job without retries left fails instead. Returns the
/// remaining retries; negative if it failed.
///
/// # Errors
/// Those of [`leased_job`].
pub fn retry(work: &mut UnitOfWork, holder: &LeaseHolder, retry: &Retry) -> Result<i64> {
    let key = &retry.key;
    let queue = leased_job(work, key, holder)?.queue;
    let queue_name = work.queue_name(queue);
    let now = work.now;
    let Some(job) = work.job_mut(key) else {
        return Ok(0);
    };
    job.remaining -= 1;
    let remaining = job.remaining;
    let reason = retry.reason.as_ref();
    let failure = reason.map(|(group, message)| failure(group, message, holder, now));
    if remaining >= 0 {
        match failure {
            Some(failure) => {
                let (group, message) = (&failure.group, &failure.message);
                let worker = Some(failure.worker.as_str());
                let what = EventKind::Retried;
                job.history.push_failure(what, now, group, worker, message);
                job.failure = Some(failure);
            }
            None => job.history.push(EventKind::Retried, now, None, None),
        }
        set_available(job, now, retry.delay);
        work.counters.retried(queue);
        work.counters
            .run_ended(queue, &holder.worker, RunResult::Retried, now);
        return Ok(remaining);
    }
    match failure {
        Some(failure) => become_failed(job, failure, None),
        None => fail_exhausted(job, &queue_name, holder.worker.clone(), now),
    }
    work.counters.failure(queue, now);
    work.counters
        .run_ended(queue, &holder.worker, RunResult::Failed, now);
    // As in qless-core's retry.lua: a tracked job publishes this failure like that of `fail`.
    work.publish_tracked("failed", key);
    Ok(remaining)
}
