//! Maintenance tasks, in bounded batches.

use std::collections::HashMap;

use crate::engine::clock::Time;
use crate::engine::model::job::{JobKey, QueueKey, State};
use crate::engine::model::job_rows;
use crate::engine::model::job_rows::job_columns;
use crate::engine::tokens::EXPIRED_BATCH;
use crate::engine::unit_of_work::long_parts::LONG_PARTS_MAX;
use crate::engine::unit_of_work::{REVISE, UnitOfWork};
use crate::engine::verbs::leases;
use crate::store::{Connection, Statement, StoreError};

/// Rows per task and transaction: takes about 20 ms to write, so requests do not wait long.
pub const BATCH: i64 = 2_000;

/// Seconds for which dead Relay jobs are kept.
const DEAD_KEPT_S: f64 = 30.0 * 86_400.0;

/// Jobs deleted per transaction.
pub const DELETE_BATCH: usize = 2_000;

/// Leases expired per transaction. Their jobs are read with their bodies.
const EXPIRE_BATCH: i64 = 500;

/// Jobs of a queue to delete.
#[derive(Clone, Debug)]
pub struct DeleteJobs {
    pub queue: QueueKey,
    pub set: JobSet,
    /// Deletes at most this many, the first in the queue.
    pub count: usize,
    /// Deletes only jobs that were available, or dead, at this time.
    pub until: Time,
}

/// A set of jobs of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobSet {
    /// The jobs that a consumer could get now.
    Ready,
    /// The dead jobs.
    Dead,
}

/// The maintenance tasks. Each runs in a transaction of its own, so that a failing or slow one does not hold up the
/// others, and processes a bounded number of rows. It runs again at once while there are more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceTask {
    /// Changes due jobs from scheduled to waiting.
    PromoteDue,
    /// Ends expired leases, except for qless.
    ExpireLeases,
    /// Deletes jobs whose time to live has ended.
    DeleteExpired,
    /// Deletes Relay jobs that died long ago.
    DeleteOldDead,
    /// Deletes the records of deleted queues.
    EmptyDeletedQueues,
    /// Deletes complete jobs older than `jobs-history`.
    DeleteOldComplete,
    /// Deletes the oldest complete jobs above `jobs-history-count`.
    DeleteSurplusComplete,
    /// Deletes workers that have been inactive for long.
    ForgetWorkers,
    /// Deletes empty queues.
    DeleteEmptyQueues,
    /// Deletes old operations, and jobs kept for undo that can no longer be restored.
    DeleteOldOperations,
    /// Deletes tokens that expired long ago.
    DeleteExpiredTokens,
    /// Deletes old statistics once per day, and aggregates old minutes into hours once per hour.
    AgeStatistics,
}

impl MaintenanceTask {
    const ALL: [MaintenanceTask; 12] = [
        MaintenanceTask::PromoteDue,
        MaintenanceTask::ExpireLeases,
        MaintenanceTask::DeleteExpired,
        MaintenanceTask::DeleteOldDead,
        MaintenanceTask::EmptyDeletedQueues,
        MaintenanceTask::DeleteOldComplete,
        MaintenanceTask::DeleteSurplusComplete,
        MaintenanceTask::ForgetWorkers,
        MaintenanceTask::DeleteEmptyQueues,
        MaintenanceTask::DeleteOldOperations,
        MaintenanceTask::DeleteExpiredTokens,
        MaintenanceTask::AgeStatistics,
    ];

    /// The tasks to run. If requests carry the client's time, tasks that delete qless data by age are left out.
    pub fn all(trust_client_clock: bool) -> impl Iterator<Item = MaintenanceTask> {
        let is_by_clock = |task: &MaintenanceTask| {
            use MaintenanceTask::{
                AgeStatistics, DeleteOldComplete, DeleteSurplusComplete, ForgetWorkers,
            };
            matches!(
                task,
                DeleteOldComplete | DeleteSurplusComplete | ForgetWorkers | AgeStatistics
            )
        };
        let all = MaintenanceTask::ALL.into_iter();
        all.filter(move |task| !(trust_client_clock && is_by_clock(task)))
    }

    /// The batch size. A full batch means that there may be more.
    fn batch(self) -> i64 {
        match self {
            MaintenanceTask::ExpireLeases => EXPIRE_BATCH,
            MaintenanceTask::DeleteExpiredTokens => EXPIRED_BATCH as i64,
            _ => BATCH,
        }
    }

    /// Whether it runs only in some rounds, because it is not urgent.
    pub fn is_infrequent(self) -> bool {
        matches!(
            self,
            MaintenanceTask::DeleteOldOperations | MaintenanceTask::DeleteExpiredTokens
        )
    }

    /// Whether there may be more to do after a transaction that processed `jobs` jobs.
    pub fn may_have_more(self, jobs: usize) -> bool {
        match self {
            // The size of tags may have ended the batch early.
            MaintenanceTask::DeleteOldComplete | MaintenanceTask::DeleteSurplusComplete => jobs > 0,
            _ => i64::try_from(jobs).is_ok_and(|jobs| jobs >= self.batch()),
        }
    }
}

/// Runs one batch of a task.
pub async fn run_task(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    task: MaintenanceTask,
    trust_client_clock: bool,
) -> Result<(), StoreError> {
    let now = work.now;
    let batch = task.batch().into();
    let deletion = match task {
        MaintenanceTask::PromoteDue => {
            let clients = i64::from(trust_client_clock);
            let promote = Statement::new(PROMOTE, [now.0.into(), batch, clients.into()]);
            let answers = connection.run(vec![promote]).await?;
            for row in answers.iter().flat_map(|answer| &answer.rows) {
                work.count_promoted(row.int(0)?, 1);
                work.affected += 1;
            }
            return Ok(());
        }
        MaintenanceTask::ExpireLeases => {
            let expired = Statement::new(EXPIRED_LEASES, [now.0.into(), batch]);
            let answers = connection.run(vec![expired]).await?;
            let rows = answers.iter().flat_map(|answer| &answer.rows);
            let mut keys = rows
                .map(|row| work.add_row(row))
                .collect::<Result<Vec<_>, _>>()?;
            // The next run of the task expires the others.
            while work.long_texts_of(&keys).bytes > LONG_PARTS_MAX && keys.len() > 1 {
                keys.truncate(keys.len() / 2);
            }
            let long = work.long_texts_of(&keys).statements();
            if !long.is_empty() {
                let answers = connection.run(long).await?;
                work.take_long_parts(&answers)?;
            }
            for key in &keys {
                leases::expire_lease(work, key);
                work.affected += 1;
            }
            let writes = work.job_writes();
            if !writes.is_empty() {
                connection.run(writes).await?;
            }
            return Ok(());
        }
        MaintenanceTask::ForgetWorkers => {
            let oldest = now.plus_seconds(-work.config.number("max-worker-age"));
            let forget = Statement::new(FORGET_WORKERS, [oldest.0.into(), batch]);
            let answers = connection.run(vec![forget]).await?;
            let forgotten: u64 = answers.iter().map(|answer| answer.affected).sum();
            work.affected += usize::try_from(forgotten).unwrap_or(usize::MAX);
            return Ok(());
        }
        MaintenanceTask::DeleteExpired => Statement::new(EXPIRE, [now.0.into(), batch]),
        MaintenanceTask::DeleteOldDead => {
            let oldest = now.plus_seconds(-DEAD_KEPT_S);
            Statement::new(DELETE_OLD_DEAD, [oldest.0.into(), batch])
        }
        MaintenanceTask::EmptyDeletedQueues => Statement::new(EMPTY_DELETED, [batch]),
        MaintenanceTask::DeleteOldComplete => old_complete(work),
        MaintenanceTask::DeleteSurplusComplete => surplus_complete(work),
        // `Runner::run_system_task` handles these.
        MaintenanceTask::DeleteEmptyQueues
        | MaintenanceTask::DeleteOldOperations
        | MaintenanceTask::DeleteExpiredTokens
        | MaintenanceTask::AgeStatistics => return Ok(()),
    };
    run_deletion(connection, work, deletion).await
}

/// Deletes a bounded batch of a queue's jobs.
pub async fn delete_jobs(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    what: &DeleteJobs,
) -> Result<(), StoreError> {
    let Some(queue) = work.queue(&what.queue) else {
        return Ok(());
    };
    let sql = match what.set {
        JobSet::Ready => FIND_READY,
        JobSet::Dead => FIND_DEAD,
    };
    let count = what.count.min(DELETE_BATCH) as i64;
    let args = [queue.id.into(), what.until.0.into(), count.into()];
    let answers = connection.run(vec![Statement::new(sql, args)]).await?;
    let rows = answers.iter().flat_map(|answer| &answer.rows);
    let found: Vec<(i64, i64)> = rows
        .map(|row| Ok((row.int(0)?, row.int(1)?)))
        .collect::<Result<_, StoreError>>()?;
    if found.is_empty() {
        return Ok(());
    }
    let before = work.affected;
    run_deletion(connection, work, Statement::of_rows(DELETE_FOUND, &found)).await?;
    // Another server has changed one of them, so others may be first now: retry.
    if work.affected - before < found.len() {
        return Err(StoreError::Conflict);
    }
    Ok(())
}

/// Deletes complete jobs older than `jobs-history`, then the oldest ones above `jobs-history-count`; a bounded batch of
/// each.
pub async fn delete_complete(
    connection: &mut Connection,
    work: &mut UnitOfWork,
) -> Result<(), StoreError> {
    let old = old_complete(work);
    run_deletion(connection, work, old).await?;
    let surplus = surplus_complete(work);
    run_deletion(connection, work, surplus).await
}

fn old_complete(work: &UnitOfWork) -> Statement {
    let oldest = work.now.plus_seconds(-work.config.number("jobs-history"));
    Statement::new(DELETE_OLD_COMPLETE, [oldest.0.into(), BATCH.into()])
}

fn surplus_complete(work: &UnitOfWork) -> Statement {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a count; a cast that saturates is right"
    )]
    let kept = work.config.number("jobs-history-count") as i64;
    // The stored counters do not include this transaction's changes yet.
    let kept = kept
        .max(0)
        .saturating_sub(work.counters.pending_change(State::Complete));
    Statement::new(DELETE_SURPLUS_COMPLETE, [kept.into(), BATCH.into()])
}

/// Runs a statement that deletes jobs without dependencies and returns each one's queue, `seq`, tags, state and key.
async fn run_deletion(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    statement: Statement,
) -> Result<(), StoreError> {
    let answers = connection.run(vec![statement]).await?;
    let mut tagged = Vec::new();
    for row in answers.into_iter().next().unwrap_or_default().rows {
        let state = State::from_code(row.int(3)?).ok_or(StoreError::Corrupt("an unknown state"))?;
        work.counters.count(row.int(0)?, state, -1);
        work.affected += 1;
        let (scope, id) = (row.int(4)?, row.text(5)?);
        work.forget_cached(JobKey { scope, id });
        // The consistency check removes what remains of tags that cannot be parsed.
        for tag in job_rows::tags(&row.text(2)?).unwrap_or_default() {
            work.counters.count_tag(&tag, -1);
            tagged.push((row.int(1)?, tag));
        }
    }
    if !tagged.is_empty() {
        connection.run(vec![job_rows::remove_tags(&tagged)]).await?;
    }
    Ok(())
}

/// The statement that saves when workers were last seen, unless the stored time is later; client time may run
/// backwards. Sorted, so that two servers do not deadlock.
pub fn save_seen(seen: &HashMap<String, Time>, trust_client_clock: bool) -> Statement {
    let mut seen: Vec<_> = seen.iter().collect();
    seen.sort_unstable();
    Statement::of_rows(SAVE_SEEN, &seen).with(i64::from(trust_client_clock))
}

/// The statements that empty all tables.
pub fn flush() -> Vec<Statement> {
    let all = FLUSH.iter().chain([&REVISE]);
    all.map(|sql| Statement::new(sql, [])).collect()
}

// Statements that change or delete jobs which others may change at the same time select them by `seq` and `version`:
// after waiting for a row lock, Postgres checks again only the condition outside the subselect, and a changed row has
// another version.

const PROMOTE: &str = "
UPDATE jobs SET state = {waiting}, version = version + 1 WHERE state = {scheduled} AND (seq, version) IN (
    SELECT j.seq, j.version FROM queues AS q CROSS JOIN jobs AS j
    WHERE j.queue = q.id AND j.state = {scheduled} AND j.ready_at <= $1 AND (q.protocol <> 'qless' OR $3 = 0)
    LIMIT $2 + 0 {skip_locked:j})
RETURNING queue";

/// Not qless, where a worker may continue after its lease has expired until another one claims the job.
const EXPIRED_LEASES: &str = concat!(
    "SELECT ",
    job_columns!(short),
    " FROM (SELECT j.seq, j.version FROM queues AS q CROSS JOIN jobs AS j
            WHERE q.protocol <> 'qless' AND j.queue = q.id AND j.state = {running} AND j.lease_until <= $1
            LIMIT $2 + 0 {skip_locked:j}) AS c
    CROSS JOIN jobs AS j WHERE j.seq = c.seq AND j.version = c.version"
);

const EXPIRE: &str = "
DELETE FROM jobs WHERE (seq, version) IN (
    SELECT seq, version FROM jobs WHERE expires_at <= $1 ORDER BY expires_at, seq LIMIT $2 + 0 {skip_locked})
RETURNING queue, seq, tags, state, scope, id";

/// Jobs that a consumer could get now, whether or not maintenance has promoted or expired them; with versions.
const FIND_READY: &str = "
SELECT seq, version FROM (
    SELECT seq, version FROM (
        SELECT seq, version FROM jobs WHERE queue = $1 AND state = {waiting} AND ready_at <= $2
        ORDER BY priority, ready_at, seq LIMIT $3 + 0 {skip_locked}) AS waiting
    UNION ALL
    SELECT seq, version FROM (
        SELECT seq, version FROM jobs WHERE queue = $1 AND state = {scheduled} AND ready_at <= $2
        ORDER BY ready_at, seq LIMIT $3 + 0 {skip_locked}) AS due
    UNION ALL
    SELECT seq, version FROM (
        SELECT seq, version FROM jobs WHERE queue = $1 AND state = {running} AND lease_until <= $2 AND remaining > 0
        ORDER BY lease_until, seq LIMIT $3 + 0 {skip_locked}) AS lost
) AS c LIMIT $3 + 0";

const FIND_DEAD: &str = "
SELECT seq, version FROM jobs WHERE queue = $1 AND state = {dead} AND since <= $2
ORDER BY since, seq LIMIT $3 + 0 {skip_locked}";

const DELETE_FOUND: &str = "
DELETE FROM jobs WHERE (seq, version) IN (SELECT int(0), int(1) FROM rows($1))
RETURNING queue, seq, tags, state, scope, id";

const DELETE_OLD_DEAD: &str = "
DELETE FROM jobs WHERE (seq, version) IN (
    SELECT j.seq, j.version FROM queues AS q CROSS JOIN jobs AS j
    WHERE q.protocol = 'relay' AND j.queue = q.id AND j.state = {dead} AND j.since <= $1 LIMIT $2 + 0 {skip_locked:j})
RETURNING queue, seq, tags, state, scope, id";

/// The records of deleted queues.
const EMPTY_DELETED: &str = "
DELETE FROM jobs WHERE (seq, version) IN (
    SELECT j.seq, j.version FROM queues AS q CROSS JOIN jobs AS j
    WHERE q.protocol = 'jobq' AND q.forgotten = 1 AND j.queue = q.id AND j.state = {record} LIMIT $1 + 0 {skip_locked:j})
RETURNING queue, seq, tags, state, scope, id";

// Each tag of a deleted job is a row to delete, too. So a batch has up to 32 KiB of tags, or is a single job.
const DELETE_OLD_COMPLETE: &str = "
DELETE FROM jobs WHERE (seq, version) IN (
    SELECT seq, version FROM (
        SELECT seq, version, sum(octet_length(tags)) OVER (ORDER BY since, seq) - octet_length(tags) AS before FROM (
            SELECT seq, version, since, tags FROM jobs WHERE state = {complete} AND since <= $1
            ORDER BY since, seq LIMIT $2 + 0 {skip_locked}) AS oldest) AS counted
    WHERE before < 32768)
RETURNING queue, seq, tags, state, scope, id";

// SQLite treats a negative limit as no limit.
const DELETE_SURPLUS_COMPLETE: &str = "
DELETE FROM jobs WHERE (seq, version) IN (
    SELECT seq, version FROM (
        SELECT seq, version, sum(octet_length(tags)) OVER (ORDER BY since, seq) - octet_length(tags) AS before FROM (
            SELECT seq, version, since, tags FROM jobs WHERE state = {complete} ORDER BY since, seq
            LIMIT (SELECT CASE WHEN s.n <= $1 THEN 0 WHEN s.n - $1 < $2 THEN s.n - $1 ELSE $2 END
                   FROM (SELECT CAST(coalesce(sum(n), 0) AS BIGINT) AS n FROM tallies WHERE kind = {kind_state} AND slot = {complete}) AS s)
            {skip_locked}) AS oldest) AS counted
    WHERE before < 32768)
RETURNING queue, seq, tags, state, scope, id";

const FORGET_WORKERS: &str = "
DELETE FROM workers WHERE last_seen <= $1 AND (protocol, name) IN (
    SELECT protocol, name FROM workers WHERE last_seen <= $1 LIMIT $2 + 0)";

const SAVE_SEEN: &str = "
INSERT INTO workers (protocol, name, last_seen)
SELECT 'qless', text(0), int(1) FROM rows($1) WHERE true
ON CONFLICT (protocol, name) DO UPDATE SET last_seen = excluded.last_seen
WHERE workers.last_seen < excluded.last_seen OR $2 = 1";

const FLUSH: &[&str] = &[
    "UPDATE state SET last_gone_queue = (
         SELECT coalesce(max(q.id), state.last_gone_queue) FROM queues AS q WHERE q.id > state.last_gone_queue)
     WHERE id = 1",
    "DELETE FROM jobs",
    "DELETE FROM dependencies",
    "DELETE FROM queues",
    "DELETE FROM tallies",
    "DELETE FROM failure_counts",
    "DELETE FROM workers",
    "DELETE FROM config",
    "DELETE FROM tags",
    "DELETE FROM tag_counts",
    "DELETE FROM tracked",
    "DELETE FROM recurring",
    "DELETE FROM events",
    "DELETE FROM operations",
    "DELETE FROM operation_skips",
    "DELETE FROM removed",
];

#[cfg(test)]
mod tests;
