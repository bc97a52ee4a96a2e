//! Bulk operations as rows.

use crate::engine::clock::Time;
use crate::engine::model::job::QueueKey;
use crate::engine::model::job_columns::job_bytes;
use crate::engine::model::page::{Direction, PageStatements};
use crate::engine::operations::{
    JobAction, JobSelection, Operation, OperationState, Skip, UNDO_GRACE_S, UNDO_S,
};
use crate::store::{Connection, Row, Statement, StoreError};

/// Operations that are kept, and seconds that they are kept after their end.
const KEPT_MAX: i64 = 1_000;
const KEPT_S: f64 = 30.0 * 86_400.0;

/// Removed jobs, and operations with up to 1,000 skips each, that are deleted per transaction of maintenance.
const BATCH: i64 = 10_000;
const DELETE_BATCH: i64 = 10;

/// Bytes of removed jobs that are deleted per transaction, not counting the last one.
const BYTES_MAX: i64 = 32 << 20;

/// Columns of an operation. Other rows that a transaction reads have other numbers of columns.
pub const COLUMNS: usize = 21;

macro_rules! columns {
    () => {
        "id, version, created_at, who, action, search, jobs, stage, total, is_least, down_to, done, skipped, restored,
         lost, keeps, kept_bytes, started_at, ended_at, undo_until, why"
    };
}

/// Reads an operation and the version of its row.
pub fn operation(row: &Row) -> Result<(Operation, i64), StoreError> {
    let time = |column| Ok::<_, StoreError>(row.int_or_null(column)?.map(Time));
    let code = row.int(7)?;
    let state = OperationState::ALL
        .into_iter()
        .find(|it| *it as i64 == code);
    let operation = Operation {
        id: row.int(0)?,
        created_at: Time(row.int(2)?),
        who: row.text(3)?,
        action: serde_json::from_str::<JobAction>(&row.text(4)?)
            .map_err(|_| StoreError::Corrupt("an unknown action"))?,
        selection: match row.text_or_null(5)? {
            Some(search) => JobSelection::Search(search),
            None => JobSelection::Jobs(
                serde_json::from_str(&row.text_or_null(6)?.unwrap_or_default())
                    .map_err(|_| StoreError::Corrupt("an operation without targets"))?,
            ),
        },
        state: state.ok_or(StoreError::Corrupt("an unknown state of an operation"))?,
        total: row.int(8)?,
        is_lower_bound: row.int(9)? != 0,
        processed_down_to: row.int(10)?,
        done: row.int(11)?,
        skipped: row.int(12)?,
        restored: row.int(13)?,
        not_restored: row.int(14)?,
        keeps_removed: row.int(15)? != 0,
        removed_bytes: row.int(16)?,
        started_at: time(17)?,
        ended_at: time(18)?,
        undo_until: time(19)?,
        error: row.text_or_null(20)?,
    };
    Ok((operation, row.int(1)?))
}

/// The statement that reads operations by ID.
pub fn load(ids: &[i64]) -> Statement {
    let ids: Vec<_> = ids.iter().map(|id| (*id,)).collect();
    Statement::of_rows(LOAD, &ids)
}

/// The statement that adds a new operation.
pub fn add(operation: &Operation) -> Statement {
    let (search, jobs) = match &operation.selection {
        JobSelection::Search(text) => (Some(text), None),
        JobSelection::Jobs(numbers) => (None, serde_json::to_string(numbers).ok()),
    };
    let action = serde_json::to_string(&operation.action).unwrap_or_default();
    let row = (
        operation.id,
        operation.created_at,
        &operation.who,
        action,
        search,
        jobs,
        operation.state as i64,
        operation.total,
        i64::from(operation.is_lower_bound),
        operation.processed_down_to,
        operation.done,
        i64::from(operation.keeps_removed),
        operation.removed_bytes,
        operation.started_at,
        operation.ended_at,
        operation.undo_until,
    );
    Statement::of_rows(ADD, &[row]).exactly(1)
}

/// The statement that stores the progress of an operation. `version` is the version as read.
pub fn save(operation: &Operation, version: i64) -> Statement {
    let row = (
        operation.id,
        version,
        operation.state as i64,
        operation.processed_down_to,
        operation.done,
        operation.skipped,
        operation.restored,
        operation.not_restored,
        operation.removed_bytes,
        operation.started_at,
        operation.ended_at,
        operation.undo_until,
        &operation.error,
    );
    Statement::of_rows(SAVE, &[row]).exactly(1)
}

/// Reads a skipped job.
pub fn skip(row: &Row) -> Result<Skip, StoreError> {
    let protocol = row.text(1)?.parse().ok();
    let (namespace, name, id) = (row.text(2)?, row.text(3)?, row.text(4)?);
    let queue_and_id = protocol.map(|protocol| {
        let queue = QueueKey {
            protocol,
            namespace,
            name,
        };
        (queue, id)
    });
    Ok(Skip {
        job: row.int(0)?,
        queue_and_id,
        reason: row.text(5)?,
    })
}

/// Deletes removed jobs that can no longer be restored, and operations that ended long ago or exceed the limit, with
/// their skips. Scans the few operations, not all removed jobs. Returns the number of deleted removed jobs.
pub async fn delete_old(connection: &mut Connection, now: Time) -> Result<usize, StoreError> {
    let (over, old) = (now.plus_seconds(-UNDO_GRACE_S), now.plus_seconds(-KEPT_S));
    // Keeps an operation while it can be undone, so that its result stays visible.
    let young = now.plus_seconds(-UNDO_S);
    let limits = [old.0, young.0, KEPT_MAX, DELETE_BATCH];
    let batch = vec![
        Statement::new(
            DELETE_OLD_REMOVED,
            [over.0.into(), BATCH.into(), BYTES_MAX.into()],
        ),
        Statement::new(DELETE_OLD, limits.map(Into::into)),
    ];
    let answers = connection.run(batch).await?;
    let removed = answers.first().map_or(0, |answer| answer.affected);
    let deleted = answers.iter().flat_map(|answer| &answer.rows);
    let deleted: Vec<(i64,)> = deleted
        .map(|row| Ok((row.int(0)?,)))
        .collect::<Result<_, StoreError>>()?;
    if !deleted.is_empty() {
        let skips = Statement::of_rows(DELETE_SKIPS, &deleted);
        connection.run(vec![skips]).await?;
    }
    Ok(usize::try_from(removed).unwrap_or(usize::MAX))
}

const LOAD: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM operations WHERE id IN (SELECT int(0) FROM rows($1))"
);

/// Operations that have not ended, oldest first.
pub const ACTIVE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM operations WHERE stage IN ({operation_running}, {operation_undoing}) ORDER BY id LIMIT $1 + 0"
);

pub const NEWEST: PageStatements = PageStatements {
    direction: Direction::Descending,
    forward: concat!(
        "SELECT ",
        columns!(),
        " FROM operations WHERE id > $2 AND id < $3 ORDER BY id DESC LIMIT $1 + 0"
    ),
    backward: concat!(
        "SELECT ",
        columns!(),
        " FROM operations WHERE id > $2 AND id < $3 ORDER BY id LIMIT $1 + 0"
    ),
};

pub const COUNT: &str = "SELECT count(*) FROM operations";

pub const COUNT_ACTIVE: &str =
    "SELECT count(*) FROM operations WHERE stage IN ({operation_running}, {operation_undoing})";

const ADD: &str = "
INSERT INTO operations (id, version, created_at, who, action, search, jobs, stage, total, is_least, down_to, done,
    skipped, restored, lost, keeps, kept_bytes, started_at, ended_at, undo_until)
SELECT int(0), 1, int(1), text(2), text(3), text(4), text(5), int(6), int(7), int(8), int(9), int(10), 0, 0, 0,
    int(11), int(12), int(13), int(14), int(15)
FROM rows($1)";

const SAVE: &str = "
UPDATE operations SET version = version + 1, stage = int(2), down_to = int(3), done = int(4), skipped = int(5),
    restored = int(6), lost = int(7), kept_bytes = int(8), started_at = int(9), ended_at = int(10),
    undo_until = int(11), why = text(12)
FROM rows($1) WHERE operations.id = int(0) AND operations.version = int(1)";

pub const ADD_SKIPS: &str = "
INSERT INTO operation_skips (operation, n, job, protocol, namespace, queue, id, why)
SELECT int(0), int(1), int(2), text(3), text(4), text(5), text(6), text(7) FROM rows($1)";

pub const SKIPS: PageStatements = PageStatements {
    direction: Direction::Ascending,
    forward: "
SELECT job, protocol, namespace, queue, id, why, n FROM operation_skips WHERE operation = $4 AND n > $2 AND n < $3
ORDER BY n LIMIT $1 + 0",
    backward: "
SELECT job, protocol, namespace, queue, id, why, n FROM operation_skips WHERE operation = $4 AND n > $2 AND n < $3
ORDER BY n DESC LIMIT $1 + 0",
};

pub const ADD_REMOVED: &str = "
INSERT INTO removed (operation, n, job) SELECT int(0), int(1), text(2) FROM rows($1)";

pub const ADD_REMOVED_WITH_BODY: &str = "
INSERT INTO removed (operation, n, job, body) VALUES ($1, $2, $3, $4)";

/// The last removed jobs of an operation, up to $2 and up to $3 bytes without the last one, and how many of the $2 there
/// are.
pub const LIST_REMOVED: &str = "
SELECT r.n, r.job, r.body, s.listed FROM (
    SELECT l.n, count(*) OVER () AS listed, sum(l.bytes) OVER (ORDER BY l.n DESC ROWS UNBOUNDED PRECEDING) - l.bytes AS before
    FROM (SELECT n, octet_length(job) + coalesce(octet_length(body), 0) AS bytes FROM removed
          WHERE operation = $1 ORDER BY n DESC LIMIT $2 + 0) AS l) AS s
CROSS JOIN removed AS r WHERE r.operation = $1 AND r.n = s.n AND s.before < $3 ORDER BY r.n DESC";

pub const DELETE_REMOVED: &str = "
DELETE FROM removed WHERE (operation, n) IN (SELECT int(0), int(1) FROM rows($1))";

/// Jobs by number, with keys. The caller looks up their queues.
pub const LISTED: &str = concat!(
    "SELECT j.seq, j.scope, j.id, j.queue, ",
    job_bytes!(),
    "
    FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0)"
);

const DELETE_OLD_REMOVED: &str = "
DELETE FROM removed WHERE (operation, n) IN (
    SELECT r.operation, r.n FROM (
        SELECT f.operation, f.n, sum(f.bytes) OVER (ORDER BY f.operation, f.n ROWS UNBOUNDED PRECEDING) - f.bytes AS before
        FROM (SELECT r.operation, r.n, octet_length(r.job) + coalesce(octet_length(r.body), 0) AS bytes
              FROM operations AS o CROSS JOIN removed AS r
              WHERE r.operation = o.id AND o.keeps = 1 AND o.stage NOT IN ({operation_running}, {operation_undoing})
                  AND (o.undo_until IS NULL OR o.undo_until <= $1) ORDER BY o.id, r.n LIMIT $2 + 0) AS f) AS r
    WHERE r.before < $3)";

/// An operation is deleted after the jobs it removed.
const DELETE_OLD: &str = "
DELETE FROM operations WHERE stage NOT IN ({operation_running}, {operation_undoing}) AND id IN (
    SELECT o.id FROM operations AS o WHERE o.stage NOT IN ({operation_running}, {operation_undoing})
        AND (o.ended_at <= $1 OR o.ended_at <= $2
        AND o.id < (SELECT min(id) FROM (SELECT id FROM operations ORDER BY id DESC LIMIT $3 + 0) AS newest))
        AND NOT EXISTS (SELECT 1 FROM removed AS r WHERE r.operation = o.id)
    ORDER BY o.id LIMIT $4 + 0)
RETURNING id";

const DELETE_SKIPS: &str = "
DELETE FROM operation_skips WHERE operation IN (SELECT int(0) FROM rows($1))";

#[cfg(test)]
mod tests;
