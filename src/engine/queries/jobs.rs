//! Single jobs.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, JobKey, QueueKey, can_look_up};
use crate::engine::model::job_columns::job_columns;
use crate::engine::model::job_rows;
use crate::memory;
use crate::store::Statement;

impl Engine {
    /// The job; `None` if it does not exist.
    pub async fn job(&self, key: &JobKey) -> Result<Option<Job>> {
        self.refresh_cache().await?;
        self.read_job(key).await
    }

    /// Like [`Engine::job`], for callers that have refreshed the cache. Reserves memory for a large job.
    pub(in crate::engine) async fn read_job(&self, key: &JobKey) -> Result<Option<Job>> {
        if !can_look_up(&key.id) {
            return Ok(None);
        }
        let statement = Statement::new(JOB, [key.scope.into(), key.id.as_str().into()]);
        let job = {
            let rows = self.readers().keyed_rows(statement).await?;
            let job = rows.first().map(job_rows::job).transpose()?;
            job.map(|(job, _)| job)
        };
        // After it was loaded, because measuring it first would take another statement.
        memory::reserve_large(job.as_ref().map_or(0, Job::loaded_bytes)).await?;
        Ok(job)
    }

    /// The job of this queue; `None` if it does not exist.
    pub async fn job_in(&self, queue: &QueueKey, id: &str) -> Result<Option<Job>> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(None);
        };
        let (scope, id) = (queue.id, id.to_owned());
        self.read_job(&JobKey { scope, id }).await
    }
}

const JOB: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.scope = $1 AND j.id = $2"
);
