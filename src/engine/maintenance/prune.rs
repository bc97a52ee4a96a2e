//! Deletes old statistics, audit entries, sessions, and counters that are 0. A transaction reads and deletes a bounded
//! part of each table, in the order of its key, so that requests do not wait for a large table.

use crate::engine::audit;
use crate::engine::maintenance::tasks::BATCH;
use crate::engine::model::config::default_number;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::unit_of_work::counters::{Kind, SUMMARY_SLOT};
use crate::engine::verbs::admin::sessions;
use crate::store::{Connection, Row, Statement, StatementResult, StoreError};

/// How far the daily deletion has come: the first key of the next part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The statistics of the queues from this ID.
    Statistics(i64),
    /// Old audit entries and sessions.
    Entries,
    /// The counts of the tags from this one.
    TagCounts(String),
    /// The counts of the failure groups from this one, and in it of the queues from this ID.
    FailureCounts(String, i64),
    Done,
}

impl Progress {
    pub const BEGIN: Progress = Progress::Statistics(i64::MIN);
}

/// The options of [`prune`]: a change of one of them can make more statistics too old.
pub const OPTIONS: [&str; 2] = ["stats-history", "histogram-history"];

/// Deletes statistics older than `stats-history` days and histograms older than `histogram-history` days (today is the
/// first day), counters that are 0, and, unless requests carry the client's time, old audit entries and sessions.
/// Processes up to [`BATCH`] rows of a table. Returns how far it has come.
pub async fn prune(
    connection: &mut Connection,
    work: &UnitOfWork,
    trust_client_clock: bool,
    mut progress: Progress,
) -> Result<Progress, StoreError> {
    loop {
        let (next, is_full) = match progress {
            Progress::Statistics(from) => prune_statistics(connection, work, from).await?,
            Progress::Entries => {
                if !trust_client_clock && prune_entries(connection, work).await? {
                    (Progress::Entries, true)
                } else {
                    (Progress::TagCounts(String::new()), false)
                }
            }
            Progress::TagCounts(from) => prune_tag_counts(connection, from).await?,
            Progress::FailureCounts(group, queue) => {
                prune_failure_counts(connection, group, queue).await?
            }
            Progress::Done => return Ok(Progress::Done),
        };
        progress = next;
        if is_full {
            return Ok(progress);
        }
    }
}

/// The next part, and whether this one was full, so that the rest of the work waits for the next transaction.
type Step = (Progress, bool);

async fn prune_statistics(
    connection: &mut Connection,
    work: &UnitOfWork,
    from: i64,
) -> Result<Step, StoreError> {
    let Some((last, is_full)) = last_queue(connection, from, BATCH).await? else {
        return Ok((Progress::Entries, false));
    };
    let prune = |kind: Kind, day: (i64, i64), slot: i64| {
        let (qless, others) = day;
        let args = [kind as i64, qless, slot, BATCH, from, last, others].map(Into::into);
        Statement::new(PRUNE_COUNTERS, args)
    };
    // Clients of qless can set the options, and must not delete statistics of other protocols.
    let days = |option: &str| {
        let by_option = work.last_expired_day(option);
        let by_default = work.now.day() - default_number(option).unwrap_or_default();
        (by_option, by_option.min(by_default))
    };
    let (statistics, histograms) = (days("stats-history"), days("histogram-history"));
    let answers = connection
        .run(vec![
            prune(Kind::Wait, statistics, SUMMARY_SLOT),
            prune(Kind::Run, statistics, SUMMARY_SLOT),
            prune(Kind::Outcome, statistics, SUMMARY_SLOT),
            prune(Kind::Wait, histograms, 0),
            prune(Kind::Run, histograms, 0),
        ])
        .await?;
    let has_more = |answer: &StatementResult| answer.affected >= BATCH as u64;
    if answers.iter().any(has_more) {
        return Ok((Progress::Statistics(from), true));
    }
    let next = match is_full {
        true => Progress::Statistics(last),
        false => Progress::Entries,
    };
    Ok((next, is_full))
}

/// Returns whether there may be more old audit entries.
async fn prune_entries(connection: &mut Connection, work: &UnitOfWork) -> Result<bool, StoreError> {
    let mut old = vec![audit::delete_old(work.now)];
    old.extend(sessions::delete_old(work.now));
    let answers = connection.run(old).await?;
    Ok(answers
        .first()
        .is_some_and(|answer| answer.affected >= audit::DELETED_MAX as u64))
}

async fn prune_tag_counts(connection: &mut Connection, from: String) -> Result<Step, StoreError> {
    let slice = Statement::new(TAGS, [from.as_str().into(), BATCH.into()]);
    let begin = || Progress::FailureCounts(String::new(), i64::MIN);
    let Some((last, is_full)) = last_of(connection, slice, BATCH, |row| row.text(0)).await? else {
        return Ok((begin(), false));
    };
    let range = [from.into(), last.as_str().into()];
    connection
        .run(vec![Statement::new(PRUNE_TAG_COUNTS, range)])
        .await?;
    let next = match is_full {
        true => Progress::TagCounts(last),
        false => begin(),
    };
    Ok((next, is_full))
}

async fn prune_failure_counts(
    connection: &mut Connection,
    group: String,
    queue: i64,
) -> Result<Step, StoreError> {
    let args = [group.as_str().into(), queue.into(), BATCH.into()];
    let slice = Statement::new(FAILURES, args);
    let key = |row: &Row| Ok((row.text(0)?, row.int(2)?));
    let Some((last, is_full)) = last_of(connection, slice, BATCH, key).await? else {
        return Ok((Progress::Done, false));
    };
    let range = [
        group.into(),
        queue.into(),
        last.0.as_str().into(),
        last.1.into(),
    ];
    connection
        .run(vec![Statement::new(PRUNE_FAILURE_COUNTS, range)])
        .await?;
    let next = match is_full {
        true => Progress::FailureCounts(last.0, last.1),
        false => Progress::Done,
    };
    Ok((next, is_full))
}

/// The last of up to `max` queues from the ID `from`, and whether there may be more; `None` if there is none.
pub async fn last_queue(
    connection: &mut Connection,
    from: i64,
    max: i64,
) -> Result<Option<(i64, bool)>, StoreError> {
    let slice = Statement::new(QUEUES, [from.into(), max.into()]);
    last_of(connection, slice, max, |row| row.int(0)).await
}

/// The last key of a part of a table with up to `max` rows, and whether the part is full, so that there may be more;
/// `None` if it is empty.
pub async fn last_of<T>(
    connection: &mut Connection,
    slice: Statement,
    max: i64,
    key: impl FnOnce(&Row) -> Result<T, StoreError>,
) -> Result<Option<(T, bool)>, StoreError> {
    let answers = connection.run(vec![slice]).await?;
    let Some(row) = answers.first().and_then(|answer| answer.rows.first()) else {
        return Ok(None);
    };
    Ok(Some((key(row)?, row.int(1)? >= max)))
}

// The last key of a part, and its number of rows. A part begins with the last key of the one before it, because that
// key may have rows of more servers.

const QUEUES: &str = "
WITH slice AS (SELECT id FROM queues WHERE id >= $1 ORDER BY id LIMIT $2 + 0)
SELECT id, (SELECT count(*) FROM slice) FROM slice ORDER BY id DESC LIMIT 1";

const TAGS: &str = "
WITH slice AS (SELECT tag FROM tag_counts WHERE tag >= $1 ORDER BY tag, server LIMIT $2 + 0)
SELECT tag, (SELECT count(*) FROM slice) FROM slice ORDER BY tag DESC LIMIT 1";

const FAILURES: &str = "
WITH slice AS (
    SELECT failure_group, queue FROM failure_counts WHERE (failure_group, queue) >= ($1, $2)
    ORDER BY failure_group, queue, server LIMIT $3 + 0
)
SELECT failure_group, (SELECT count(*) FROM slice), queue FROM slice ORDER BY failure_group DESC, queue DESC LIMIT 1";

// The join with `queues` lets the primary key (kind, queue, day, ...) find the rows.
// Deletes rows of qless queues up to day $2, and those of other protocols up to day $7, which is not after $2.
const PRUNE_COUNTERS: &str = "
DELETE FROM tallies WHERE kind = $1 AND day <= $2 AND slot >= $3 AND (queue, day, slot, server) IN (
    SELECT t.queue, t.day, t.slot, t.server FROM queues AS q CROSS JOIN tallies AS t
    WHERE q.id >= $5 AND q.id <= $6 AND t.kind = $1 AND t.queue = q.id AND t.slot >= $3
    AND t.day <= CASE q.protocol WHEN 'qless' THEN $2 ELSE $7 END LIMIT $4 + 0)";

// A count is the sum of one row per server. Locked rows that add up to 0 can be deleted even while another server adds
// to its own row.
const PRUNE_TAG_COUNTS: &str = "
WITH kept AS (
    SELECT tag, server, n FROM tag_counts
    WHERE tag IN (SELECT tag FROM tag_counts WHERE tag >= $1 AND tag <= $2 GROUP BY tag HAVING sum(n) = 0)
    ORDER BY tag, server {locked}
)
DELETE FROM tag_counts WHERE (tag, server, n) IN (
    SELECT tag, server, n FROM kept WHERE tag IN (SELECT tag FROM kept GROUP BY tag HAVING sum(n) = 0))";

const PRUNE_FAILURE_COUNTS: &str = "
WITH kept AS (
    SELECT failure_group, queue, server, n FROM failure_counts
    WHERE (failure_group, queue) IN (
        SELECT failure_group, queue FROM failure_counts
        WHERE (failure_group, queue) >= ($1, $2) AND (failure_group, queue) <= ($3, $4)
        GROUP BY failure_group, queue HAVING sum(n) = 0)
    ORDER BY failure_group, queue, server {locked}
)
DELETE FROM failure_counts WHERE (failure_group, queue, server, n) IN (
    SELECT failure_group, queue, server, n FROM kept
    WHERE (failure_group, queue) IN (
        SELECT failure_group, queue FROM kept GROUP BY failure_group, queue HAVING sum(n) = 0))";
