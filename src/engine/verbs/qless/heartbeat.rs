//! Heartbeat: renews the lease of a running job.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::body::Body;
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::leases::{LeaseHolder, leased_job};

impl Engine {
    /// Renews leases, optionally replacing the jobs' bodies. Returns, per job, the seconds until the next heartbeat is
    /// due.
    pub async fn heartbeat(
        &self,
        jobs: Vec<(JobKey, Option<String>)>,
        holder: LeaseHolder,
        now: Option<Time>,
    ) -> ItemResults<f64> {
        let jobs = jobs.into_iter();
        let jobs = jobs.map(|(key, body)| (key, body.map(Body::from)));
        let need = |needs: &mut Needs, (key, body): &(JobKey, Option<Body>)| {
            needs.job(key);
            needs.keeps_dependencies = true;
            needs.bytes += body.as_ref().map_or(0, Body::bytes);
        };
        self.apply_in_batches(jobs.collect(), now, need, move |work, (key, body)| {
            heartbeat(work, key, &holder, body.as_ref())
        })
        .await
    }
}

/// Renews the lease, even if it has expired, as long as no other worker has claimed the job. Returns the seconds until
/// the next heartbeat is due: the queue's `heartbeat`, but not beyond its `cutoff`.
pub fn heartbeat(
    work: &mut UnitOfWork,
    key: &JobKey,
    holder: &LeaseHolder,
    body: Option<&Body>,
) -> Result<f64> {
    let job = leased_job(work, key, holder)?;
    let (queue, since) = (work.queue_name(job.queue), job.since);
    work.worker_seen(&holder.worker);
    let next = work.now.plus_seconds(work.config.heartbeat_s(&queue));
    let until = match work.config.cutoff_s(&queue) {
        Some(cutoff_s) => next.min(since.plus_seconds(cutoff_s)),
        None => next,
    };
    let due_s = until.seconds_from(work.now);
    if let Some(job) = work.job_mut(key) {
        if let Some(lease) = &mut job.lease {
            lease.until = until;
            lease.in_grace_period = false;
        }
        if let Some(body) = body {
            job.body = body.clone();
        }
    }
    Ok(due_s)
}
