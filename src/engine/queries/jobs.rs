//! Single jobs.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, JobKey, QueueKey, can_look_up};
use crate::engine::model::job_columns::job_columns;
use crate::engine::model::job_rows;
use crate::engine::model::long_bodies::body;
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

    /// The size in bytes of the job's body; `None` if the job does not exist.
    pub async fn body_bytes(&self, key: &JobKey) -> Result<Option<usize>> {
        if !can_look_up(&key.id) {
            return Ok(None);
        }
        let statement = Statement::new(BODY_BYTES, [key.scope.into(), key.id.as_str().into()]);
        let rows = self.readers().keyed_rows(statement).await?;
        let bytes = rows.first().map(|row| row.int(0)).transpose()?;
        Ok(bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
    }

    /// The body of the job; `None` if the job does not exist, or its body is longer than `bytes_max`. The caller
    /// reserves memory for it.
    pub async fn body_up_to(&self, key: &JobKey, bytes_max: usize) -> Result<Option<String>> {
        if !can_look_up(&key.id) {
            return Ok(None);
        }
        let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
        let args = [key.scope.into(), key.id.as_str().into(), bytes_max.into()];
        let rows = self
            .readers()
            .keyed_rows(Statement::new(BODY_UP_TO, args))
            .await?;
        Ok(rows.first().map(|row| row.text(0)).transpose()?)
    }
}

const JOB: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.scope = $1 AND j.id = $2"
);

const BODY_BYTES: &str = concat!(
    "SELECT CAST(",
    body!(bytes),
    " AS BIGINT) FROM jobs AS j WHERE j.scope = $1 AND j.id = $2"
);

const BODY_UP_TO: &str = concat!(
    "SELECT ",
    body!(),
    " FROM jobs AS j WHERE j.scope = $1 AND j.id = $2 AND ",
    body!(bytes),
    " <= $3"
);
