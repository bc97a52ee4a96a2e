//! The dead jobs of a queue.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, JobKey, QueueKey};
use crate::engine::queries::job_lists::{List, jobs, list};
use crate::store::{Row, Statement};

/// The dead jobs of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterSummary {
    pub size: i64,
    /// The ID of the job that was dead-lettered first.
    pub head: Option<String>,
}

impl Engine {
    /// The dead job of the queue with this number; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::ResponseTooLarge`](crate::engine::Error::ResponseTooLarge),
    /// [`Error::Busy`](crate::engine::Error::Busy).
    pub async fn dead_job(&self, queue: &QueueKey, seq: i64) -> Result<Option<Job>> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(None);
        };
        let found = Statement::of_rows(DEAD_BY_SEQ.pages.whole, &[(seq,)]).with(queue.id);
        let found = self.read_whole(&DEAD_BY_SEQ, &found.args).await?;
        Ok(found.into_iter().next())
    }

    /// Those of the jobs with these numbers that are dead jobs of the queue, oldest first, with shortened texts.
    pub async fn short_dead_jobs(&self, queue: &QueueKey, seqs: &[i64]) -> Result<Vec<Job>> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(Vec::new());
        };
        let seqs: Vec<(i64,)> = seqs.iter().map(|seq| (*seq,)).collect();
        let found = Statement::of_rows(DEAD_BY_SEQ.brief, &seqs).with(queue.id);
        let mut found = jobs(&self.readers().rows(found).await?)?;
        found.sort_by_key(|job| (job.since, job.seq));
        Ok(found)
    }

    /// The keys of up to `count` dead jobs, oldest first, that were dead-lettered at or before `until` and come after
    /// the position `after`. Also returns the position of the last one.
    pub(in crate::engine) async fn dead_keys(
        &self,
        queue: &QueueKey,
        after: Option<(i64, i64)>,
        until: Time,
        count: usize,
    ) -> Result<(Vec<JobKey>, Option<(i64, i64)>)> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok((Vec::new(), None));
        };
        let (since, seq) = after.unwrap_or((i64::MIN, i64::MIN));
        let args = [queue.id, until.0, since, seq, count as i64];
        let found = Statement::new(DEAD_KEYS, args.map(Into::into));
        let rows = self.readers().rows(found).await?;
        let key = |row: &Row| {
            Ok(JobKey {
                scope: row.int(2)?,
                id: row.text(3)?,
            })
        };
        let place = |row: &Row| Ok((row.int(0)?, row.int(1)?));
        let keys: Result<Vec<JobKey>> = rows.iter().map(key).collect();
        let last: Result<Option<(i64, i64)>> = rows.last().map(place).transpose();
        Ok((keys?, last?))
    }

    /// The number of the queue's dead jobs, and the oldest one.
    pub async fn dead_letter_summary(&self, queue: &QueueKey) -> Result<DeadLetterSummary> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(DeadLetterSummary::default());
        };
        let batch = [COUNT, HEAD].map(|sql| Statement::new(sql, [queue.id.into()]));
        let mut answers = self.readers().read(batch.into()).await?.into_iter();
        let mut rows = || answers.next().unwrap_or_default().rows;
        let size = rows().first().map_or(Ok(0), |row| row.int(0))?;
        let head = rows().first().map(|row| row.text(0)).transpose()?;
        Ok(DeadLetterSummary { size, head })
    }
}

const DEAD_BY_SEQ: List = list!(
    "rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) AND j.queue = $2 AND j.state = {dead}"
);

const DEAD_KEYS: &str = "
SELECT since, seq, scope, id FROM jobs
WHERE queue = $1 AND state = {dead} AND since <= $2 AND (since, seq) > ($3, $4) ORDER BY since, seq LIMIT $5 + 0";

const COUNT: &str = "
SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tallies WHERE kind = {kind_state} AND queue = $1 AND slot = {dead}";

const HEAD: &str =
    "SELECT id FROM jobs WHERE queue = $1 AND state = {dead} ORDER BY since, seq LIMIT 1";
