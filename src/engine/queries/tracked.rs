//! Tracked jobs.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, JobKey};

impl Engine {
    /// The tracked jobs by the time of tracking, and the tracked IDs without a job.
    ///
    /// # Errors
    /// [`ResponseTooLarge`, `Busy`](crate::engine::Error).
    pub async fn tracked(&self) -> Result<(Vec<Job>, Vec<String>)> {
        let keys = self.tracked_keys().await?;
        let found = self.jobs_by_key(&keys).await?;
        Ok(split_missing(keys, found))
    }

    /// The keys of the tracked jobs.
    pub async fn tracked_keys(&self) -> Result<Vec<JobKey>> {
        self.refresh_cache().await?;
        let tracked = self.known_tracked();
        Ok(tracked.ids().iter().map(JobKey::qless).collect())
    }
}

fn split_missing(keys: Vec<JobKey>, found: Vec<Option<Job>>) -> (Vec<Job>, Vec<String>) {
    let (mut jobs, mut missing) = (Vec::new(), Vec::new());
    for (key, job) in keys.into_iter().zip(found) {
        match job {
            Some(job) => jobs.push(job),
            None => missing.push(key.id),
        }
    }
    (jobs, missing)
}
