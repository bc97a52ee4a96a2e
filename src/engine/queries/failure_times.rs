//! Details of failures: when they happened, their messages, and their queues. All queries are bounded.

use std::collections::HashMap;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, QueueId};
use crate::engine::model::job_columns::job_columns;
use crate::engine::model::job_rows;
use crate::search::MESSAGE_CHARS_MAX;
use crate::store::{Row, Statement};

/// Failed jobs of one failure group whose times are read.
pub const TIMES_MAX: usize = 10_000;

/// A failed job and its failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureEntry {
    pub seq: i64,
    pub at: Time,
    /// The beginning of the message, as long as a fingerprint uses.
    pub message: String,
    /// The worker that reported the failure or lost the job.
    pub worker: String,
    pub queue: QueueId,
}

/// When the jobs of a failure group failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureTimes {
    /// The number of failures per time span.
    pub spans: Vec<i64>,
    /// Only the newest [`TIMES_MAX`] were counted.
    pub is_cut: bool,
}

impl Engine {
    /// When the still-failed jobs of these failure groups failed: for each group, the number in each of `count` spans
    /// of `width` microseconds, starting at `from`.
    pub async fn failure_times(
        &self,
        groups: &[&str],
        from: Time,
        width: i64,
        count: usize,
    ) -> Result<Vec<FailureTimes>> {
        let statement = |group: &&str| {
            let max = TIMES_MAX as i64 + 1;
            let args = [
                (*group).into(),
                from.0.into(),
                width.max(1).into(),
                max.into(),
            ];
            Statement::new(TIMES, args)
        };
        let answers = self.readers().read(groups.iter().map(statement).collect());
        let mut found = Vec::new();
        for answer in answers.await? {
            let mut times = FailureTimes {
                spans: vec![0; count],
                is_cut: false,
            };
            let mut all = 0;
            for row in answer.rows {
                let (span, n) = (usize::try_from(row.int(0)?).ok(), row.int(1)?);
                all += n;
                // Jobs that failed after the last span count in it.
                let span = span.map(|span| span.min(count.saturating_sub(1)));
                if let Some(of_span) = span.and_then(|span| times.spans.get_mut(span)) {
                    *of_span += n;
                }
            }
            times.is_cut = all > TIMES_MAX as i64;
            found.push(times);
        }
        Ok(found)
    }

    /// For each of these failure groups, up to `count` jobs that failed at `from` or later, newest first. With `after`
    /// (time and number of a job), only jobs that follow it in this order. Up to 4 KB per job are read.
    pub async fn failed_since(
        &self,
        groups: &[&str],
        from: Time,
        after: Option<(Time, i64)>,
        count: usize,
    ) -> Result<Vec<Vec<FailureEntry>>> {
        let (time, seq) = after.unwrap_or((Time(i64::MAX), i64::MAX));
        let statement = |group: &&str| {
            let args = [
                (*group).into(),
                from.0.into(),
                (count as i64).into(),
                (MESSAGE_CHARS_MAX as i64).into(),
                time.0.into(),
                seq.into(),
            ];
            Statement::new(FAILED_SINCE, args)
        };
        let answers = self.readers().read(groups.iter().map(statement).collect());
        let failed_job = |row: &Row| {
            Ok(FailureEntry {
                seq: row.int(0)?,
                at: Time(row.int(1)?),
                message: row.text(2)?,
                worker: row.text(3)?,
                queue: row.int(4)?,
            })
        };
        let answers = answers.await?;
        let groups = answers
            .iter()
            .map(|answer| answer.rows.iter().map(failed_job).collect());
        groups.collect()
    }

    /// The number of failed jobs per queue, of these failure groups; at most 20,000 pairs of group and queue.
    pub async fn failed_by_queue(
        &self,
        groups: &[&str],
    ) -> Result<HashMap<String, Vec<(QueueId, i64)>>> {
        let mut found: HashMap<String, Vec<(QueueId, i64)>> = HashMap::new();
        let queues = Statement::of_rows(QUEUES, groups).with(QUEUES_MAX);
        for row in self.readers().rows(queues).await? {
            let of_group = found.entry(row.text(0)?).or_default();
            of_group.push((row.int(1)?, row.int(2)?));
        }
        Ok(found)
    }

    /// Those of the jobs with these numbers that are failed, with shortened texts, newest failure first.
    pub async fn failed_jobs(&self, seqs: &[i64]) -> Result<Vec<Job>> {
        self.failed_by_seq(BY_SEQ, seqs).await
    }

    /// The job with this number, with its whole message, if it is failed.
    pub async fn failed_job(&self, seq: i64) -> Result<Option<Job>> {
        Ok(self.failed_by_seq(WITH_MESSAGE, &[seq]).await?.pop())
    }

    async fn failed_by_seq(&self, sql: &'static str, seqs: &[i64]) -> Result<Vec<Job>> {
        let seqs: Vec<(i64,)> = seqs.iter().map(|seq| (*seq,)).collect();
        let found = Statement::of_rows(sql, &seqs);
        let rows = self.readers().rows(found).await?;
        let jobs: Result<Vec<Job>> = rows.iter().map(|row| Ok(job_rows::job(row)?.0)).collect();
        let mut jobs = jobs?;
        jobs.sort_by_key(|job| std::cmp::Reverse((job.since, job.seq)));
        Ok(jobs)
    }
}

const TIMES: &str = "
SELECT (since - $2) / $3, count(*) FROM (
    SELECT j.since FROM jobs AS j WHERE j.state = {failed} AND j.failure_group = $1 AND j.since >= $2
    ORDER BY j.since DESC LIMIT $4 + 0) AS newest GROUP BY 1";

const FAILED_SINCE: &str = "
SELECT j.seq, j.since, substr(coalesce(j.failure_message, ''), 1, CAST($4 AS INTEGER)), coalesce(j.failure_worker, ''), j.queue
FROM jobs AS j WHERE j.state = {failed} AND j.failure_group = $1 AND j.since >= $2
    AND (j.since, j.seq) < ($5, $6)
ORDER BY j.since DESC, j.seq DESC LIMIT $3 + 0";

/// The most pairs of failure group and queue that are read.
const QUEUES_MAX: i64 = 20_000;

const QUEUES: &str = "
SELECT failure_group, queue, CAST(sum(n) AS BIGINT) FROM failure_counts
WHERE failure_group IN (SELECT item() FROM rows($1))
GROUP BY failure_group, queue HAVING sum(n) > 0 ORDER BY failure_group, queue LIMIT $2 + 0";

const BY_SEQ: &str = concat!(
    "SELECT ",
    job_columns!(brief: "1000"),
    " FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) AND j.state = {failed}"
);

// In characters; a message has at most as many bytes.
const WITH_MESSAGE: &str = concat!(
    "SELECT ",
    job_columns!(brief: "65536"),
    " FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) AND j.state = {failed}"
);
