//! Timeout: ends the lease of a running job.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{JobKey, State};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::leases::announce_lost_lease;
use crate::engine::worker_results::RunResult;

impl Engine {
    /// Ends the leases of jobs, which then come before all waiting jobs of their queues.
    pub async fn time_out(&self, keys: Vec<JobKey>, now: Option<Time>) -> ItemResults<()> {
        let need = |needs: &mut Needs, key: &JobKey| {
            needs.job(key);
            needs.keeps_dependencies = true;
        };
        self.apply_in_batches(keys, now, need, time_out).await
    }
}

/// Ends a job's lease without using up a retry. The job then comes before all waiting jobs of its queue.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotRunning`].
pub fn time_out(work: &mut UnitOfWork, key: &JobKey) -> Result<()> {
    let now = work.now;
    let id = || key.id.clone();
    let job = work.job(key).ok_or_else(|| Error::NoSuchJob { id: id() })?;
    if job.state != State::Running {
        return Err(Error::NotRunning {
            id: id(),
            state: job.effective_state(now),
            is_due: job.is_due(now),
        });
    }
    let lease = work.job_mut(key).and_then(|job| job.lease.take());
    let (Some(lease), Some(job)) = (lease, work.job_mut(key)) else {
        return Ok(());
    };
    job.history.push(EventKind::TimedOut, now, None, None);
    job.state = State::TimedOut;
    job.since = now;
    job.ready_at = now;
    let queue = job.queue;
    work.counters
        .run_ended(queue, &lease.worker, RunResult::Lost, now);
    announce_lost_lease(work, key, &lease.worker);
    Ok(())
}
