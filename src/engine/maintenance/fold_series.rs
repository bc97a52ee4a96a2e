//! Aggregates minute counters into hour counters, and keeps the counters of deleted queues.

use std::collections::HashMap;

use crate::engine::error::Result;
use crate::engine::maintenance::{prune, tasks};
use crate::engine::model::job::QueueId;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::unit_of_work::time_series::{HOUR, minute};
use crate::store::{Connection, Statement, StatementResult, StoreError};

/// Minutes that are kept before they are aggregated into hours.
pub const MINUTES_KEPT: i64 = 25 * HOUR;

/// Hours that are kept: a month, and the one before it for comparison.
pub const HOURS_KEPT: i64 = 62 * 24;

/// Rows of each kind per transaction.
const BATCH: i64 = 5_000;

/// The queue ID that holds the counters of deleted queues.
pub const DELETED_QUEUES: QueueId = 0;

/// How far the hourly aggregation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The queues from this ID.
    From(QueueId),
    Done,
}

impl Progress {
    pub const BEGIN: Progress = Progress::From(QueueId::MIN);
}

/// Aggregates a bounded batch of old minutes of a bounded number of queues into hours, in one transaction so that
/// nothing is lost or counted twice, and deletes a bounded batch of their old hours. Returns how far it has come.
pub async fn fold(
    connection: &mut Connection,
    work: &UnitOfWork,
    progress: Progress,
) -> Result<Progress, StoreError> {
    let Progress::From(from) = progress else {
        return Ok(Progress::Done);
    };
    let (last, has_more) = prune::last_queue(connection, from, tasks::BATCH)
        .await?
        .unwrap_or((from, false));
    let is_all = fold_queues(connection, work, (from, last)).await?;
    Ok(match (is_all, has_more) {
        (false, _) => progress,
        (true, true) => Progress::From(last),
        (true, false) => Progress::Done,
    })
}

/// Returns whether nothing is left to do for these queues.
async fn fold_queues(
    connection: &mut Connection,
    work: &UnitOfWork,
    (from, last): (QueueId, QueueId),
) -> Result<bool, StoreError> {
    let hour = minute(work.now).div_euclid(HOUR);
    let first_minute = (hour - MINUTES_KEPT / HOUR).saturating_mul(HOUR);
    let take_old = |kind: Kind, before: i64| {
        let args = [kind as i64, before, BATCH, from, last].map(Into::into);
        Statement::new(TAKE_OLD, args)
    };
    let batch = vec![
        take_old(Kind::Minute, first_minute),
        take_old(Kind::Hour, hour - HOURS_KEPT),
    ];
    let answers = connection.run(batch).await?;
    let is_all = answers.iter().all(|answer| answer.affected < BATCH as u64);
    let mut hours: HashMap<(QueueId, i64, i64, i64), i64> = HashMap::new();
    for row in answers.first().iter().flat_map(|answer| &answer.rows) {
        let hour = row.int(1)?.div_euclid(HOUR);
        let key = (row.int(0)?, hour, row.int(2)?, row.int(3)?);
        *hours.entry(key).or_default() += row.int(4)?;
    }
    if !hours.is_empty() {
        let rows: Vec<_> = hours
            .into_iter()
            .map(|((queue, hour, slot, server), n)| {
                (Kind::Hour as i64, queue, hour, slot, server, n)
            })
            .collect();
        connection.run(vec![Statement::of_rows(ADD, &rows)]).await?;
    }
    Ok(is_all)
}

/// Rows of statistics of each kind that a transaction moves or deletes before it deletes their queues.
const DELETED_BATCH: i64 = 1_000;

/// Moves a bounded batch of the minutes and hours of these queues, which are about to be deleted, to those of deleted
/// queues, and deletes a bounded batch of their histograms. Returns whether none are left.
pub async fn move_to_deleted_queues(
    connection: &mut Connection,
    queues: &[(QueueId,)],
) -> Result<bool, StoreError> {
    if queues.is_empty() {
        return Ok(true);
    }
    let kinds = [Kind::Minute, Kind::Hour, Kind::Wait, Kind::Run];
    let take = |kind: &Kind| {
        let statement = match kind {
            Kind::Wait | Kind::Run => DROP_HISTOGRAMS,
            _ => TAKE_OF_QUEUES,
        };
        let statement = Statement::of_rows(statement, queues).with(*kind as i64);
        statement.with(DELETED_BATCH)
    };
    let answers = connection.run(kinds.iter().map(take).collect()).await?;
    let mut sums: HashMap<(i64, i64, i64, i64), i64> = HashMap::new();
    for (kind, answer) in kinds.into_iter().zip(&answers) {
        for row in &answer.rows {
            let key = (kind as i64, row.int(0)?, row.int(1)?, row.int(2)?);
            *sums.entry(key).or_default() += row.int(3)?;
        }
    }
    if !sums.is_empty() {
        let rows: Vec<_> = sums
            .into_iter()
            .map(|((kind, day, slot, server), n)| (kind, DELETED_QUEUES, day, slot, server, n))
            .collect();
        connection.run(vec![Statement::of_rows(ADD, &rows)]).await?;
    }
    let is_last = |answer: &StatementResult| answer.affected < DELETED_BATCH as u64;
    Ok(answers.iter().all(is_last))
}

/// The statement that adds the counters of queues, which are being deleted, to those of deleted queues.
pub fn keep_deleted_queues(queues: &[(QueueId,)]) -> Statement {
    Statement::of_rows(KEEP_DELETED, queues).with(DELETED_QUEUES)
}

const TAKE_OLD: &str = "
DELETE FROM tallies WHERE kind = $1 AND (queue, day, slot, server) IN (
    SELECT t.queue, t.day, t.slot, t.server
    FROM (SELECT id FROM queues WHERE id >= $4 AND id <= $5 UNION ALL SELECT 0) AS q CROSS JOIN tallies AS t
    WHERE t.kind = $1 AND t.queue = q.id AND t.day < $2 LIMIT $3 + 0)
RETURNING queue, day, slot, server, n";

const TAKE_OF_QUEUES: &str = "
DELETE FROM tallies WHERE kind = $2 AND (queue, day, slot, server) IN (
    SELECT t.queue, t.day, t.slot, t.server FROM rows($1) AS k CROSS JOIN tallies AS t
    WHERE t.kind = $2 AND t.queue = k.int(0) LIMIT $3 + 0)
RETURNING day, slot, server, n";

// The sums of the days stay until the queue is deleted: `EMPTY` in `empty_queues.rs` compares them.
const DROP_HISTOGRAMS: &str = "
DELETE FROM tallies WHERE kind = $2 AND slot >= 0 AND (queue, day, slot, server) IN (
    SELECT t.queue, t.day, t.slot, t.server FROM rows($1) AS k CROSS JOIN tallies AS t
    WHERE t.kind = $2 AND t.queue = k.int(0) AND t.slot >= 0 LIMIT $3 + 0)";

const ADD: &str = "
INSERT INTO tallies (kind, queue, day, slot, server, n)
SELECT int(0), int(1), int(2), int(3), int(4), int(5) FROM rows($1) WHERE true
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET n = tallies.n + excluded.n";

const KEEP_DELETED: &str = "
INSERT INTO tallies (kind, queue, day, slot, server, n)
SELECT t.kind, $2, t.day, t.slot, t.server, CAST(sum(t.n) AS BIGINT) FROM tallies AS t
WHERE t.kind IN ({kind_minute}, {kind_hour}) AND t.queue IN (SELECT int(0) FROM rows($1)) GROUP BY t.kind, t.day, t.slot, t.server
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET n = tallies.n + excluded.n";
