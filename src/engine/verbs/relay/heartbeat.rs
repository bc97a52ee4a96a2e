//! Heartbeat: renews the lease of a run.

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::relay::complete::{Run, current_run};
use crate::engine::verbs::relay::needs_of_jobs;

impl Engine {
    /// Renews the lease of a run. `state`, if given, replaces the job's state.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`](crate::engine::Error) if there is no such run.
    pub async fn heartbeat_run(&self, run: Run, state: Option<Option<String>>) -> Result<()> {
        let mut needs = needs_of_jobs([(&run.queue, &run.id)]);
        needs.bytes = state.iter().flatten().map(String::len).sum();
        self.write(needs, None, 1, move |work| {
            heartbeat(work, &run, state.as_ref())
        })
        .await
    }
}

/// Renews the lease of a run. `state` replaces the job's state; `Some(None)` removes it.
///
/// # Errors
/// [`Error::NoSuchRun`] if there is no such run.
pub fn heartbeat(work: &mut UnitOfWork, run: &Run, state: Option<&Option<String>>) -> Result<()> {
    let now = work.now;
    let key = current_run(work, run);
    let job = key.and_then(|key| work.job_mut(&key));
    let job = job.ok_or_else(|| Error::NoSuchRun { id: run.id.clone() })?;
    let timeout_s = job.timeout_s.unwrap_or_default() as f64;
    if let Some(lease) = &mut job.lease {
        lease.until = now.plus_seconds(timeout_s);
    }
    job.updated_at = Some(now);
    if let Some(state) = state {
        job.work_state.clone_from(state);
    }
    Ok(())
}
