//! Complete: ends a run and deletes its job.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::{JobKey, QueueKey};
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::relay::needs_of_jobs;

/// A run of a job. While it lasts, its ID authorizes the worker to update the job.
#[derive(Clone, Debug)]
pub struct Run {
    pub queue: QueueKey,
    pub id: String,
    /// 32 hex digits, as in [`Lease::id`](crate::engine::Lease).
    pub run_id: String,
}

impl Engine {
    /// Ends a run and deletes its job. Returns whether the run existed.
    pub async fn complete_run(&self, run: Run) -> Result<bool> {
        let needs = Needs {
            deletes: true,
            ..needs_of_jobs([(&run.queue, &run.id)])
        };
        self.write(needs, None, 1, move |work| Ok(complete(work, &run)))
            .await
    }
}

/// Ends a run and deletes its job. Returns whether the run existed.
pub fn complete(work: &mut UnitOfWork, run: &Run) -> bool {
    let key = current_run(work, run);
    if let Some(key) = &key {
        end_run(work, key);
    }
    key.is_some()
}

/// The key of the job, if this run is the current one.
pub fn current_run(work: &UnitOfWork, run: &Run) -> Option<JobKey> {
    let key = work.key_in(&run.queue, &run.id)?;
    let lease = work.job(&key)?.lease.as_ref()?;
    (lease.id == run.run_id).then_some(key)
}

/// Counts the run of a job, and deletes the job.
pub fn end_run(work: &mut UnitOfWork, key: &JobKey) {
    if let Some(job) = work.job(key) {
        let (queue, ran) = (job.queue, work.now.seconds_since(job.since));
        work.counters.duration(queue, Kind::Run, ran, work.now);
    }
    work.remove(key);
}
