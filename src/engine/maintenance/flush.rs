//! Deletes all jobs, queues, options and statistics, of all protocols, most of it in bounded transactions, so that other
//! requests are served meanwhile.

use crate::engine::cache::refresh::FORGET_DELETED;
use crate::engine::maintenance::deletions;
use crate::engine::maintenance::tasks::BATCH;
use crate::engine::unit_of_work::UnitOfWork;
use crate::store::{Connection, Statement, StoreError};

/// Deletes a bounded part: jobs, or rows of one table that can become long. `work.affected_rows` is the number of
/// deleted rows; 0 if so little is left that [`everything`] takes a short time.
pub async fn part(connection: &mut Connection, work: &mut UnitOfWork) -> Result<(), StoreError> {
    if deletions::delete_any(connection, work).await? {
        return Ok(());
    }
    let deleted = work.affected_rows;
    for (sql, batch) in PARTS {
        let answers = connection
            .run(vec![Statement::new(sql, [(*batch).into()])])
            .await?;
        let rows: u64 = answers.iter().map(|answer| answer.affected).sum();
        if rows >= batch.unsigned_abs() {
            work.affected_rows = deleted + usize::try_from(rows).unwrap_or(usize::MAX);
            return Ok(());
        }
    }
    work.affected_rows = 0;
    Ok(())
}

/// The statements that delete the rest: jobs, queues, options, statistics, events and operations.
pub fn everything() -> Vec<Statement> {
    let all = ALL.iter().chain([&FORGET_DELETED]);
    all.map(|sql| Statement::new(sql, [])).collect()
}

/// Statements that delete a batch, and its size: smaller for rows that can be long. The numbers of jobs in each state
/// are left, because they must agree with the jobs.
const PARTS: &[(&str, i64)] = &[
    (
        "DELETE FROM events WHERE first IN (SELECT first FROM events ORDER BY first LIMIT $1 + 0)",
        50,
    ),
    (
        "DELETE FROM recurring WHERE id IN (SELECT id FROM recurring LIMIT $1 + 0)",
        20,
    ),
    (
        "DELETE FROM removed WHERE (operation, n) IN (SELECT operation, n FROM removed LIMIT $1 + 0)",
        200,
    ),
    (
        "DELETE FROM operation_skips WHERE (operation, n) IN (
             SELECT operation, n FROM operation_skips LIMIT $1 + 0)",
        BATCH,
    ),
    (
        "DELETE FROM tallies WHERE kind > {kind_state} AND (kind, queue, day, slot, server) IN (
             SELECT kind, queue, day, slot, server FROM tallies WHERE kind > {kind_state} LIMIT $1 + 0)",
        BATCH,
    ),
    (
        "DELETE FROM tag_counts WHERE n = 0 AND (tag, server) IN (
             SELECT tag, server FROM tag_counts WHERE n = 0 LIMIT $1 + 0)",
        BATCH,
    ),
    (
        "DELETE FROM failure_counts WHERE n = 0 AND (failure_group, queue, server) IN (
             SELECT failure_group, queue, server FROM failure_counts WHERE n = 0 LIMIT $1 + 0)",
        BATCH,
    ),
    (
        "DELETE FROM workers WHERE (protocol, name) IN (SELECT protocol, name FROM workers LIMIT $1 + 0)",
        BATCH,
    ),
];

const ALL: &[&str] = &[
    "UPDATE state SET last_gone_queue = (
         SELECT coalesce(max(q.id), state.last_gone_queue) FROM queues AS q WHERE q.id > state.last_gone_queue)
     WHERE id = 1",
    "DELETE FROM jobs",
    "DELETE FROM long_bodies",
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
