//! Deletes old statistics, audit entries, sessions, and counters that are 0.

use crate::engine::audit;
use crate::engine::maintenance::tasks::BATCH;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::unit_of_work::counters::{Kind, SUMMARY_SLOT};
use crate::engine::verbs::admin::sessions;
use crate::store::{Connection, Statement, StatementResult, StoreError};

/// Deletes statistics older than `stats-history` days and histograms older than `histogram-history` days (today is the
/// first day), counters that are 0, and, unless requests carry the client's time, old audit entries and sessions. A
/// bounded batch of each. Returns whether nothing is left to do.
pub async fn prune(
    connection: &mut Connection,
    work: &UnitOfWork,
    trust_client_clock: bool,
) -> Result<bool, StoreError> {
    let statistics = work.last_expired_day("stats-history");
    let histograms = work.last_expired_day("histogram-history");
    let prune = |kind: Kind, day: i64, slot: i64| {
        let args = [kind as i64, day, slot, BATCH].map(Into::into);
        Statement::new(PRUNE_COUNTERS, args)
    };
    let mut batch = vec![
        prune(Kind::Wait, statistics, SUMMARY_SLOT),
        prune(Kind::Run, statistics, SUMMARY_SLOT),
        prune(Kind::Outcome, statistics, SUMMARY_SLOT),
        prune(Kind::Wait, histograms, 0),
        prune(Kind::Run, histograms, 0),
        Statement::new(PRUNE_TAG_COUNTS, [BATCH.into()]),
        Statement::new(PRUNE_FAILURE_COUNTS, [BATCH.into()]),
    ];
    if !trust_client_clock {
        batch.extend(audit::drop_old(work.now));
        batch.extend(sessions::drop_old(work.now));
    }
    let answers = connection.run(batch).await?;
    let is_full = |answer: &StatementResult| answer.affected >= BATCH as u64;
    Ok(!answers.iter().take(PRUNED).any(is_full))
}

/// The number of batch-limited statements in [`prune`]; the others delete few rows.
const PRUNED: usize = 7;

// The join with `queues` lets the primary key (kind, queue, day, ...) find the rows.
const PRUNE_COUNTERS: &str = "
DELETE FROM tallies WHERE kind = $1 AND day <= $2 AND slot >= $3 AND (queue, day, slot, server) IN (
    SELECT t.queue, t.day, t.slot, t.server FROM queues AS q CROSS JOIN tallies AS t
    WHERE t.kind = $1 AND t.queue = q.id AND t.day <= $2 AND t.slot >= $3 LIMIT $4 + 0)";

// A count is the sum of one row per server. Locked rows that add up to 0 can be deleted even while another server adds
// to its own row.
const PRUNE_TAG_COUNTS: &str = "
WITH kept AS (
    SELECT tag, server, n FROM tag_counts
    WHERE tag IN (SELECT tag FROM tag_counts GROUP BY tag HAVING sum(n) = 0 LIMIT $1 + 0)
    ORDER BY tag, server {locked}
)
DELETE FROM tag_counts WHERE (tag, server, n) IN (
    SELECT tag, server, n FROM kept WHERE tag IN (SELECT tag FROM kept GROUP BY tag HAVING sum(n) = 0))";

const PRUNE_FAILURE_COUNTS: &str = "
WITH kept AS (
    SELECT failure_group, queue, server, n FROM failure_counts
    WHERE failure_group IN (
        SELECT failure_group FROM failure_counts GROUP BY failure_group HAVING sum(n) = 0 LIMIT $1 + 0)
    ORDER BY failure_group, queue, server {locked}
)
DELETE FROM failure_counts WHERE (failure_group, queue, server, n) IN (
    SELECT failure_group, queue, server, n FROM kept
    WHERE failure_group IN (SELECT failure_group FROM kept GROUP BY failure_group HAVING sum(n) = 0))";
