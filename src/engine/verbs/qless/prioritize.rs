//! Prioritize: changes the priority of a job.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;

impl Engine {
    /// Sets the priorities of jobs.
    pub async fn prioritize(&self, jobs: Vec<(JobKey, f64)>, now: Option<Time>) -> ItemResults<()> {
        let need = |needs: &mut Needs, (key, _): &(JobKey, f64)| {
            needs.job(key);
            needs.keeps_dependencies = true;
        };
        self.apply_in_batches(jobs, now, need, |work, (key, priority)| {
            prioritize(work, key, *priority)
        })
        .await
    }
}

/// Sets a job's priority. A waiting job moves in its queue at once; jobs of equal priority are ordered by the time they
/// became available.
///
/// # Errors
/// [`Error::NoSuchJob`].
pub fn prioritize(work: &mut UnitOfWork, key: &JobKey, priority: f64) -> Result<()> {
    let job = work
        .job_mut(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })?;
    job.priority = priority;
    Ok(())
}
