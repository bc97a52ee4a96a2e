//! Retry: a worker gives its job back to the queue.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::history::EventKind;
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::Each;
use crate::engine::verbs::leases::{LeaseHolder, leased_job};
use crate::engine::verbs::lifecycle::set_available;
use crate::engine::verbs::qless::fail::{become_failed, fail_exhausted, failure};

/// A job to be given back.
#[derive(Clone, Debug)]
pub struct Retry {
    pub key: JobKey,
    /// Seconds before it becomes available again; 0 or less means now.
    pub delay: f64,
    /// A failure's group and message.
    pub reason: Option<(String, String)>,
}

impl Engine {
    /// Gives jobs back to be tried again. Per job, the retries left; negative if it was failed instead.
    pub async fn retry(
        &self,
        jobs: Vec<Retry>,
        holder: LeaseHolder,
        now: Option<Time>,
    ) -> Each<i64> {
        let need = |needs: &mut Needs, job: &Retry| {
            needs.job(&job.key);
            needs.keeps_edges = true;
            needs.bytes += job.reason.as_ref().map_or(0, |(_, message)| message.len());
        };
        self.each(jobs, now, need, move |work, job| retry(work, &holder, job))
            .await
    }
}

/// Gives the job back to its queue, at the cost of one retry; without one left it is failed. Returns the retries left; negative if it was failed.
///
/// # Errors
/// Those of [`held`].
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
        job.history.push(
            EventKind::Retried,
            now,
            failure.as_ref().map(|failure| failure.group.as_str()),
            None,
        );
        if failure.is_some() {
            job.failure = failure;
        }
        set_available(job, now, retry.delay);
        return Ok(remaining);
    }
    match failure {
        Some(failure) => become_failed(job, failure, None),
        None => fail_exhausted(job, &queue_name, holder.worker.clone(), now),
    }
    work.counters.failure(queue, now);
    // As in qless-core's retry.lua: a tracked job announces this failure as it does that of `fail`.
    work.publish_tracked("failed", key);
    Ok(remaining)
}
