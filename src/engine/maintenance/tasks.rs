//! Maintenance tasks, in bounded batches.

use std::collections::HashMap;

use crate::engine::clock::Time;
use crate::engine::maintenance::cursors::{self, Cursors};
use crate::engine::maintenance::{deletions, releases};
use crate::engine::model::job::{JobKey, Protocol};
use crate::engine::model::job_columns::{job_bytes, job_columns};
use crate::engine::model::queue::Queue;
use crate::engine::tokens::EXPIRED_BATCH;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::unit_of_work::long_parts::LONG_PARTS_MAX;
use crate::engine::verbs::admin::queues::{PAUSE_BATCH, end_pauses};
use crate::engine::verbs::batches::MOVED_BYTES_MAX;
use crate::engine::verbs::leases;
use crate::store::{Connection, Row, Statement, StoreError};

/// Rows per task and transaction. Writing that many takes about 20 ms, so requests do not wait long.
pub const BATCH: i64 = 2_000;

/// Leases expired per transaction.
const EXPIRE_BATCH: i64 = 500;

/// The maintenance tasks. Each runs in a transaction of its own, so that a failing or slow one does not hold up the
/// others, and processes a bounded number of rows. Except for `CleanUpStatistics`, it runs again at once while there
/// are more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaintenanceTask {
    /// Changes due jobs from scheduled to waiting.
    PromoteDue,
    /// Releases the dependents of completed jobs that were too large for the transactions of the completions, and whose
    /// server has stopped or whose client has disconnected.
    ReleaseDependents,
    /// Removes pauses that have ended.
    EndPauses,
    /// Ends expired leases, except for qless.
    ExpireLeases,
    /// Deletes jobs whose time to live has ended.
    DeleteExpired,
    /// Deletes Relay jobs that were dead-lettered long ago.
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
    /// Deletes old statistics, audit entries and sessions, and counters that are 0, once per day. Aggregates old
    /// minutes into hours once per hour.
    CleanUpStatistics,
}

impl MaintenanceTask {
    const ALL: [MaintenanceTask; 14] = [
        MaintenanceTask::PromoteDue,
        MaintenanceTask::ReleaseDependents,
        MaintenanceTask::EndPauses,
        // First the leases: a job whose last lease ended before its time to live is dead, not deleted.
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
        MaintenanceTask::CleanUpStatistics,
    ];

    /// The tasks to run. If requests carry the client's time, tasks that delete qless data or end pauses are left out.
    pub fn all(trust_client_clock: bool) -> impl Iterator<Item = MaintenanceTask> {
        let is_by_clock = |task: &MaintenanceTask| {
            use MaintenanceTask::{
                CleanUpStatistics, DeleteOldComplete, DeleteSurplusComplete, EndPauses,
                ForgetWorkers,
            };
            matches!(
                task,
                DeleteOldComplete
                    | DeleteSurplusComplete
                    | EndPauses
                    | ForgetWorkers
                    | CleanUpStatistics
            )
        };
        let all = MaintenanceTask::ALL.into_iter();
        all.filter(move |task| !(trust_client_clock && is_by_clock(task)))
    }

    /// The batch size. A full batch means that there may be more.
    pub fn batch(self) -> i64 {
        match self {
            MaintenanceTask::ExpireLeases => EXPIRE_BATCH,
            MaintenanceTask::EndPauses => PAUSE_BATCH as i64,
            MaintenanceTask::DeleteExpiredTokens => EXPIRED_BATCH as i64,
            _ => BATCH,
        }
    }

    /// Whether it runs only in some rounds, because it is not urgent.
    pub fn is_infrequent(self) -> bool {
        matches!(
            self,
            MaintenanceTask::ForgetWorkers
                | MaintenanceTask::DeleteOldOperations
                | MaintenanceTask::DeleteExpiredTokens
        )
    }

    /// Whether there may be more to do after a transaction that changed or deleted `rows` rows.
    pub fn may_have_more(self, rows: usize) -> bool {
        match self {
            // The size of the jobs may have ended the batch early.
            MaintenanceTask::DeleteExpired
            | MaintenanceTask::DeleteOldDead
            | MaintenanceTask::EmptyDeletedQueues
            | MaintenanceTask::DeleteOldComplete
            | MaintenanceTask::DeleteSurplusComplete
            | MaintenanceTask::ReleaseDependents
            | MaintenanceTask::DeleteOldOperations => rows > 0,
            _ => i64::try_from(rows).is_ok_and(|rows| rows >= self.batch()),
        }
    }
}

/// Runs one batch of a task.
pub async fn run_task(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    cursors: &mut Cursors,
    task: MaintenanceTask,
    trust_client_clock: bool,
) -> Result<(), StoreError> {
    let now = work.now;
    work.maintenance = Some((task, cursors.begin_batch(task)));
    let find = match task {
        MaintenanceTask::PromoteDue if !trust_client_clock => {
            let due = Statement::new(DUE, [now.0.into(), work.batch_max().into()]);
            return promote_due(connection, work, due).await;
        }
        MaintenanceTask::PromoteDue
        | MaintenanceTask::ExpireLeases
        | MaintenanceTask::DeleteOldDead
        | MaintenanceTask::EmptyDeletedQueues => {
            return run_in_queues(connection, work, cursors, task).await;
        }
        MaintenanceTask::ForgetWorkers => {
            let oldest = now.plus_seconds(-work.config.number("max-worker-age"));
            return cursors.forget_workers(connection, work, oldest).await;
        }
        MaintenanceTask::ReleaseDependents => {
            return releases::release(connection, work, None).await;
        }
        MaintenanceTask::DeleteExpired => deletions::expired(work),
        MaintenanceTask::DeleteOldComplete => deletions::old_complete(work),
        MaintenanceTask::DeleteSurplusComplete => deletions::surplus_complete(work),
        MaintenanceTask::EndPauses => {
            end_pauses(work);
            return Ok(());
        }
        // `Runner::run_system_task` handles these.
        MaintenanceTask::DeleteEmptyQueues
        | MaintenanceTask::DeleteOldOperations
        | MaintenanceTask::DeleteExpiredTokens
        | MaintenanceTask::CleanUpStatistics => return Ok(()),
    };
    deletions::delete_found(connection, work, find)
        .await
        .map(drop)
}

/// Runs a task that processes jobs of some queues, in the next part of these.
async fn run_in_queues(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    cursors: &mut Cursors,
    task: MaintenanceTask,
) -> Result<(), StoreError> {
    let (find, includes): (_, fn(&Queue) -> bool) = match task {
        MaintenanceTask::PromoteDue => (cursors::QUEUES_WITH_SCHEDULED, |queue| {
            queue.key.protocol != Protocol::Qless
        }),
        MaintenanceTask::ExpireLeases => (cursors::QUEUES_WITH_RUNNING, |queue| {
            queue.key.protocol != Protocol::Qless
        }),
        MaintenanceTask::DeleteOldDead => (cursors::QUEUES_WITH_DEAD, |queue| {
            queue.key.protocol == Protocol::Relay
        }),
        _ => (cursors::QUEUES_WITH_RECORDS, |queue| queue.forgotten),
    };
    let part = cursors.queues(connection, task, find).await?;
    let queues = part.queues.iter().filter(|id| {
        let queue = work.queue_by_id(**id);
        queue.is_some_and(|queue| includes(&queue))
    });
    let queues: Vec<_> = queues.map(|id| (*id,)).collect();
    if !queues.is_empty() {
        let (now, batch) = (work.now, work.batch_max());
        let in_queues = |sql| Statement::of_rows(sql, &queues).with(batch);
        match task {
            MaintenanceTask::PromoteDue => {
                let due = in_queues(DUE_OF_QUEUES).with(now.0);
                promote_due(connection, work, due).await?;
            }
            MaintenanceTask::ExpireLeases => {
                let expired = in_queues(EXPIRED_LEASES).with(now.0);
                expire_leases(connection, work, expired).await?;
            }
            MaintenanceTask::DeleteOldDead => {
                let dead = deletions::old_dead(work, &queues);
                deletions::delete_found(connection, work, dead).await?;
            }
            _ => {
                let records = deletions::of_deleted_queues(work, &queues);
                deletions::delete_found(connection, work, records).await?;
            }
        }
    }
    if !work.has_more_work && !task.may_have_more(work.affected_rows) {
        cursors.end_part(work, task, &part);
    }
    Ok(())
}

/// The numbers and versions of the jobs that `find` finds; of large ones, only the first, and the next run of the task
/// continues.
async fn find_to_move(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    find: Statement,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let answers = connection.run(vec![find]).await?;
    let rows = answers.iter().flat_map(|answer| &answer.rows);
    let read = |row: &Row| Ok(((row.int(0)?, row.int(1)?), row.int(2)?));
    let found = rows.map(read).collect::<Result<Vec<_>, StoreError>>()?;
    let (count, mut bytes) = (found.len(), 0);
    let fits = |(_, size): &((i64, i64), i64)| {
        let fits = bytes < MOVED_BYTES_MAX as i64;
        bytes += size;
        fits
    };
    let first: Vec<_> = found
        .into_iter()
        .take_while(fits)
        .map(|(job, _)| job)
        .collect();
    work.has_more_work = first.len() < count || count as i64 >= work.batch_max();
    Ok(first)
}

/// Moves the due jobs that `due` finds to waiting.
async fn promote_due(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    due: Statement,
) -> Result<(), StoreError> {
    let jobs = find_to_move(connection, work, due).await?;
    if jobs.is_empty() {
        return Ok(());
    }
    let promote = Statement::of_rows(PROMOTE, &jobs);
    let answers = connection.run(vec![promote]).await?;
    for row in answers.iter().flat_map(|answer| &answer.rows) {
        work.count_promoted(row.int(0)?, 1);
        work.affected_rows += 1;
    }
    Ok(())
}

/// Ends the leases of the jobs that `expired` finds. If they have too many long parts, the next run of the task ends
/// the other leases.
async fn expire_leases(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    expired: Statement,
) -> Result<(), StoreError> {
    let jobs = find_to_move(connection, work, expired).await?;
    if jobs.is_empty() {
        return Ok(());
    }
    let load = Statement::of_rows(LOAD_EXPIRED, &jobs);
    let answers = connection.run(vec![load]).await?;
    let rows = answers.iter().flat_map(|answer| &answer.rows);
    let mut keys = rows
        .map(|row| work.add_row(row))
        .collect::<Result<Vec<_>, _>>()?;
    let long_parts = |keys: &[JobKey], work: &UnitOfWork| {
        work.long_parts_of_expired(keys, leases::moves_at_expiry)
    };
    while long_parts(&keys, work).bytes > LONG_PARTS_MAX && keys.len() > 1 {
        keys.truncate(keys.len() / 2);
        work.has_more_work = true;
    }
    let long = long_parts(&keys, work).statements();
    if !long.is_empty() {
        let answers = connection.run(long).await?;
        work.take_long_parts(answers)?;
    }
    for key in &keys {
        leases::expire_lease(work, key);
        work.affected_rows += 1;
    }
    let writes = work.job_writes();
    if !writes.is_empty() {
        connection.run(writes).await?;
    }
    Ok(())
}

/// The statement that saves when workers were last seen, unless the stored time is later; client time may run
/// backwards. Sorted, so that two servers do not deadlock.
pub fn save_seen(seen: &HashMap<String, Time>, trust_client_clock: bool) -> Statement {
    let mut seen: Vec<_> = seen.iter().collect();
    seen.sort_unstable();
    let save = Statement::of_rows(SAVE_SEEN, &seen).with(i64::from(trust_client_clock));
    save.combinable()
}

// Statements that change or delete jobs which others may change at the same time select them by `seq` and `version`:
// after waiting for a row lock, Postgres checks again only the condition outside the subselect, and a changed row has
// another version.

/// Due jobs: number, version, size.
const DUE: &str = concat!(
    "SELECT j.seq, j.version, ",
    job_bytes!(row),
    " FROM jobs AS j WHERE j.state = {scheduled} AND j.ready_at <= $1 ORDER BY j.ready_at, j.seq LIMIT $2 + 0 {skip_locked}"
);

/// The same in some queues. Used without those of qless, whose time is that of the clients.
const DUE_OF_QUEUES: &str = concat!(
    "SELECT j.seq, j.version, ",
    job_bytes!(row),
    " FROM rows($1) AS k CROSS JOIN jobs AS j
    WHERE j.queue = k.int(0) AND j.state = {scheduled} AND j.ready_at <= $3 LIMIT $2 + 0 {skip_locked:j}"
);

const PROMOTE: &str = "
UPDATE jobs SET state = {waiting}, version = version + 1
WHERE (seq, version) IN (SELECT int(0), int(1) FROM rows($1))
RETURNING queue";

/// Jobs of some queues whose leases have expired: number, version, size. Not used for qless, where a worker may continue
/// after its lease has expired until another one claims the job.
const EXPIRED_LEASES: &str = concat!(
    "SELECT j.seq, j.version, ",
    job_bytes!(row),
    " FROM rows($1) AS k CROSS JOIN jobs AS j
    WHERE j.queue = k.int(0) AND j.state = {running} AND j.lease_until <= $3 LIMIT $2 + 0 {skip_locked:j}"
);

const LOAD_EXPIRED: &str = concat!(
    "SELECT ",
    job_columns!(short),
    " FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) AND j.version = k.int(1)"
);

const SAVE_SEEN: &str = "
INSERT INTO workers (protocol, name, last_seen)
SELECT 'qless', text(0), int(1) FROM rows($1) WHERE true
ON CONFLICT (protocol, name) DO UPDATE SET last_seen = excluded.last_seen
WHERE workers.last_seen < excluded.last_seen OR $2 = 1";

#[cfg(test)]
mod tests;
