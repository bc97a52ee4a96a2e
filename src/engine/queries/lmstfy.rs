//! Ready jobs of an lmstfy queue, which a consumer could get now. Includes due jobs, and jobs with tries left
//! whose lease has expired, whether or not maintenance has processed them. Excludes jobs whose time to live has ended.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, JobKey, QueueKey};
use crate::engine::model::job_columns::job_columns;
use crate::engine::model::job_rows;
use crate::store::Statement;

impl Engine {
    /// The number of ready jobs in the queue.
    pub async fn count_ready(&self, queue: &QueueKey) -> Result<i64> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(0);
        };
        let now = self.now(None).0;
        let statement = Statement::new(READY, [queue.id.into(), now.into()]);
        let rows = self.readers().rows(statement).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.int(0))?)
    }

    /// The job that the next consumer gets, and the current time.
    pub async fn next_ready_job(&self, queue: &QueueKey) -> Result<Option<(Job, Time)>> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(None);
        };
        let now = self.now(None);
        let statement = Statement::new(HEAD, [queue.id.into(), now.0.into()]);
        let rows = self.readers().rows(statement).await?;
        let job = rows.first().map(job_rows::job).transpose()?;
        Ok(job.map(|(job, _)| (job, now)))
    }

    /// The job, if it is in the queue and its time to live has not ended, and the current time.
    pub async fn unexpired_job(
        &self,
        queue: &QueueKey,
        key: &JobKey,
    ) -> Result<Option<(Job, Time)>> {
        let job = self.job(key).await?;
        let queue = self.known_queues().get(queue);
        let now = self.now(None);
        let is_available =
            |job: &Job| !job.is_expired(now) && queue.is_some_and(|queue| queue.id == job.queue);
        Ok(job.filter(is_available).map(|job| (job, now)))
    }
}

/// Uses the counter of waiting jobs and looks up the few others, up to 20,000 of each kind: maintenance promotes due jobs,
/// ends expired leases, and deletes ended jobs twice a second.
const READY: &str = "
SELECT (SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tallies WHERE kind = {kind_state} AND queue = $1 AND slot = {waiting})
    + (SELECT count(*) FROM (SELECT expires_at FROM jobs WHERE queue = $1 AND state = {scheduled} AND ready_at <= $2
                             LIMIT 20000) AS due
       WHERE expires_at IS NULL OR expires_at > $2)
    + (SELECT count(*) FROM (SELECT expires_at, remaining FROM jobs
                             WHERE queue = $1 AND state = {running} AND lease_until <= $2 LIMIT 20000) AS expired
       WHERE remaining > 0 AND (expires_at IS NULL OR expires_at > $2))
    - (SELECT count(*) FROM (SELECT queue, state FROM jobs WHERE expires_at <= $2 ORDER BY expires_at LIMIT 20000) AS ended
       WHERE queue = $1 AND state = {waiting})";

const HEAD: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM (
        SELECT seq, at FROM (
            SELECT seq, ready_at AS at FROM (SELECT seq, ready_at, expires_at FROM jobs WHERE queue = $1 AND state = {waiting}
                                             ORDER BY priority, ready_at, seq LIMIT 20000) AS first_waiting
            WHERE expires_at IS NULL OR expires_at > $2 LIMIT 1) AS waiting
        UNION ALL
        SELECT seq, at FROM (
            SELECT seq, ready_at AS at FROM (
                SELECT seq, ready_at, expires_at FROM jobs
                WHERE queue = $1 AND state = {scheduled} AND ready_at <= $2
                ORDER BY ready_at, seq LIMIT 20000) AS first_due
            WHERE expires_at IS NULL OR expires_at > $2
            ORDER BY ready_at, seq LIMIT 1) AS due
        UNION ALL
        SELECT seq, at FROM (
            SELECT seq, lease_until AS at FROM (
                SELECT seq, lease_until, remaining, expires_at FROM jobs
                WHERE queue = $1 AND state = {running} AND lease_until <= $2
                ORDER BY lease_until, seq LIMIT 20000) AS first_expired
            WHERE remaining > 0 AND (expires_at IS NULL OR expires_at > $2)
            ORDER BY lease_until, seq LIMIT 1) AS expired
    ) AS c CROSS JOIN jobs AS j WHERE j.seq = c.seq ORDER BY c.at, j.seq LIMIT 1"
);
