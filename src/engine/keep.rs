//! Upkeep: what the server does of its own accord, in bounded batches.

use std::collections::HashMap;

use super::clock::Time;
use super::job::State;
use super::rows;
use super::work::{REVISE, Work};
use crate::store::{Answer, Connection, Statement, StoreError};

/// Rows of each kind that one round of upkeep concerns.
const BATCH: i64 = 10_000;

/// Starts what is due, drops what is old. A bounded batch of each; the next round goes on.
pub async fn upkeep(connection: &mut Connection, work: &mut Work) -> Result<(), StoreError> {
    let now = work.now;
    let gone = now.plus_seconds(-work.config.known("max-worker-age"));
    let batch = vec![
        Statement::new(PROMOTE, [now.0.into(), BATCH.into()]),
        Statement::new(FORGET_WORKERS, [gone.0.into()]),
    ];
    let mut answers = connection.run(batch).await?.into_iter();
    for queue in queues_of(answers.next())? {
        work.promoted(queue, 1);
    }
    retire(connection, work).await
}

/// Drops complete jobs that are older than `jobs-history`, then those that are more than
/// `jobs-history-count`.
pub async fn retire(connection: &mut Connection, work: &mut Work) -> Result<(), StoreError> {
    let oldest = work.now.plus_seconds(-work.config.known("jobs-history"));
    drop_complete(
        connection,
        work,
        Statement::new(RETIRE_OLD, [oldest.0.into(), BATCH.into()]),
    )
    .await?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a count; a cast that saturates is right"
    )]
    let kept = work.config.known("jobs-history-count") as i64;
    // What this group has completed and dropped is not in the tallies yet.
    let kept = kept
        .max(0)
        .saturating_sub(work.tally.pending(State::Complete));
    drop_complete(
        connection,
        work,
        Statement::new(RETIRE_SURPLUS, [kept.into(), BATCH.into()]),
    )
    .await
}

async fn drop_complete(
    connection: &mut Connection,
    work: &mut Work,
    statement: Statement,
) -> Result<(), StoreError> {
    let answers = connection.run(vec![statement]).await?;
    let mut tagged = Vec::new();
    for row in answers.into_iter().next().unwrap_or_default().rows {
        work.tally.count(row.int(0)?, State::Complete, -1);
        let tags: Vec<String> = serde_json::from_str(&row.text(2)?).unwrap_or_default();
        for tag in tags {
            work.tally.tagged(&tag, -1);
            tagged.push((row.int(1)?, tag));
        }
    }
    if !tagged.is_empty() {
        connection.run(vec![rows::remove_tags(&tagged)]).await?;
    }
    Ok(())
}

/// Drops statistics older than `stats-history` days and histograms older than `histogram-history` days,
/// today being the first; and counts that count nothing any more.
pub fn prune(work: &Work) -> Vec<Statement> {
    vec![
        Statement::new(PRUNE_STATS, [work.past_keeping("stats-history").into()]),
        Statement::new(
            PRUNE_HISTOGRAMS,
            [work.past_keeping("histogram-history").into()],
        ),
        Statement::new(PRUNE_TAG_COUNTS, []),
        Statement::new(PRUNE_FAILURE_COUNTS, []),
    ]
}

fn queues_of(answer: Option<Answer>) -> Result<Vec<i64>, StoreError> {
    answer
        .unwrap_or_default()
        .rows
        .iter()
        .map(|row| row.int(0))
        .collect()
}

/// Notes when workers were seen last, unless another server knows better; where clients tell the time, it may
/// run backwards. In order, so that two servers that saw the same workers do not wait for each other.
pub fn save_seen(seen: &HashMap<String, Time>, clients_tell_time: bool) -> Statement {
    let mut seen: Vec<_> = seen.iter().collect();
    seen.sort_unstable();
    Statement::of_rows(SAVE_SEEN, &seen).with(i64::from(clients_tell_time))
}

/// Empties every table.
pub fn flush() -> Vec<Statement> {
    let all = FLUSH.iter().chain([&REVISE]);
    all.map(|sql| Statement::new(sql, [])).collect()
}

const PROMOTE: &str = "
UPDATE jobs SET state = 1, version = version + 1 WHERE seq IN (
    SELECT j.seq FROM queues AS q CROSS JOIN jobs AS j
    WHERE j.queue = q.id AND j.state = 2 AND j.ready_at <= $1 LIMIT $2 + 0)
RETURNING queue";

const RETIRE_OLD: &str = "
DELETE FROM jobs WHERE seq IN (
    SELECT seq FROM jobs WHERE state = 6 AND since <= $1 ORDER BY since, seq LIMIT $2 + 0)
RETURNING queue, seq, tags";

// A negative limit would mean none.
const RETIRE_SURPLUS: &str = "
DELETE FROM jobs WHERE seq IN (
    SELECT seq FROM jobs WHERE state = 6 ORDER BY since, seq
    LIMIT (SELECT CASE WHEN s.n <= $1 THEN 0 WHEN s.n - $1 < $2 THEN s.n - $1 ELSE $2 END
           FROM (SELECT CAST(coalesce(sum(n), 0) AS BIGINT) AS n FROM tallies WHERE kind = 0 AND slot = 6) AS s))
RETURNING queue, seq, tags";

const PRUNE_STATS: &str = "DELETE FROM tallies WHERE kind IN (1, 2, 3) AND day <= $1";

const PRUNE_HISTOGRAMS: &str =
    "DELETE FROM tallies WHERE kind IN (1, 2) AND slot >= 0 AND day <= $1";

const PRUNE_TAG_COUNTS: &str = "
DELETE FROM tag_counts WHERE tag IN (SELECT tag FROM tag_counts GROUP BY tag HAVING sum(n) = 0)";

const PRUNE_FAILURE_COUNTS: &str = "
DELETE FROM failure_counts WHERE failure_group IN (
    SELECT failure_group FROM failure_counts GROUP BY failure_group HAVING sum(n) = 0)";

const FORGET_WORKERS: &str = "DELETE FROM workers WHERE last_seen <= $1";

const SAVE_SEEN: &str = "
INSERT INTO workers (protocol, name, last_seen)
SELECT 'qless', text(0), int(1) FROM rows($1) WHERE true
ON CONFLICT (protocol, name) DO UPDATE SET last_seen = excluded.last_seen
WHERE workers.last_seen < excluded.last_seen OR $2 = 1";

const FLUSH: &[&str] = &[
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
];
