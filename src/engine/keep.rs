//! Upkeep: what the server does of its own accord, in bounded batches.

use std::collections::HashMap;

use super::audit;
use super::clock::Time;
use super::dead;
use super::job::{JobKey, QueueKey, State};
use super::rows::{self, job_columns};
use super::sessions;
use super::work::{REVISE, Work};
use crate::store::{Answer, Connection, Statement, StoreError};

/// Rows of each kind that one round of upkeep concerns.
const BATCH: i64 = 10_000;

/// For how many seconds a job is kept that is gone for Relay, for want of retries.
const GONE_KEPT_S: f64 = 30.0 * 86_400.0;

/// Jobs that are dropped in one transaction.
pub const DROP_BATCH: usize = 10_000;

/// Lost leases that one round of upkeep takes away; the jobs are read with their bodies.
const LAPSE_BATCH: i64 = 500;

/// What is to be dropped of a queue.
#[derive(Clone, Debug)]
pub struct Drop {
    pub queue: QueueKey,
    pub heap: Heap,
    /// At most so many, the first in line.
    pub count: usize,
    /// Only what has been there since this moment.
    pub until: Time,
}

/// Which jobs of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heap {
    /// Those that a consumer would get now.
    Ready,
    /// The dead letter.
    Dead,
}

/// Starts what is due, drops what is old, takes lost leases away where the protocol asks for it. A bounded
/// batch of each; the next round goes on. Where clients tell the time, nothing of that happens to qless.
pub async fn upkeep(
    connection: &mut Connection,
    work: &mut Work,
    clients_tell_time: bool,
) -> Result<(), StoreError> {
    let now = work.now;
    let gone = now.plus_seconds(-work.config.known("max-worker-age"));
    let clients = i64::from(clients_tell_time);
    let mut batch = vec![
        Statement::new(PROMOTE, [now.0.into(), BATCH.into(), clients.into()]),
        Statement::new(LOST, [now.0.into(), LAPSE_BATCH.into()]),
    ];
    if !clients_tell_time {
        batch.push(Statement::new(FORGET_WORKERS, [gone.0.into()]));
    }
    let mut answers = connection.run(batch).await?.into_iter();
    for queue in queues_of(answers.next())? {
        work.promoted(queue, 1);
    }
    for row in answers.next().unwrap_or_default().rows {
        let (job, version) = rows::job(&row)?;
        let key = job.key.clone();
        work.prime(job, version);
        dead::lapse(work, &key);
    }
    let writes = work.job_writes();
    if !writes.is_empty() {
        connection.run(writes).await?;
    }
    let expired = Statement::new(EXPIRE, [now.0.into(), BATCH.into()]);
    drop_jobs(connection, work, expired).await?;
    let forgotten = now.plus_seconds(-GONE_KEPT_S);
    let gone = Statement::new(FORGET_GONE, [forgotten.0.into(), BATCH.into()]);
    drop_jobs(connection, work, gone).await?;
    let expunged = Statement::new(DROP_EXPUNGED, [BATCH.into()]);
    drop_jobs(connection, work, expunged).await?;
    if clients_tell_time {
        return Ok(());
    }
    retire(connection, work).await
}

/// Drops jobs of a queue, up to a bounded batch of them.
pub async fn drop_of(
    connection: &mut Connection,
    work: &mut Work,
    drop: &Drop,
) -> Result<(), StoreError> {
    let Some(queue) = work.queue(&drop.queue) else {
        return Ok(());
    };
    let sql = match drop.heap {
        Heap::Ready => FIND_READY,
        Heap::Dead => FIND_DEAD,
    };
    let count = drop.count.min(DROP_BATCH) as i64;
    let args = [queue.id.into(), drop.until.0.into(), count.into()];
    let answers = connection.run(vec![Statement::new(sql, args)]).await?;
    let rows = answers.iter().flat_map(|answer| &answer.rows);
    let found: Vec<(i64, i64)> = rows
        .map(|row| Ok((row.int(0)?, row.int(1)?)))
        .collect::<Result<_, StoreError>>()?;
    if found.is_empty() {
        return Ok(());
    }
    let before = work.dropped;
    drop_jobs(connection, work, Statement::of_rows(DROP_FOUND, &found)).await?;
    // Another server was faster with one of them: there may be others in its place.
    if work.dropped - before < found.len() {
        return Err(StoreError::Conflict);
    }
    Ok(())
}

/// Drops complete jobs that are older than `jobs-history`, then those that are more than
/// `jobs-history-count`.
pub async fn retire(connection: &mut Connection, work: &mut Work) -> Result<(), StoreError> {
    let oldest = work.now.plus_seconds(-work.config.known("jobs-history"));
    let old = Statement::new(RETIRE_OLD, [oldest.0.into(), BATCH.into()]);
    drop_jobs(connection, work, old).await?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a count; a cast that saturates is right"
    )]
    let kept = work.config.known("jobs-history-count") as i64;
    // What this group has completed and dropped is not in the tallies yet.
    let kept = kept
        .max(0)
        .saturating_sub(work.tally.pending(State::Complete));
    let surplus = Statement::new(RETIRE_SURPLUS, [kept.into(), BATCH.into()]);
    drop_jobs(connection, work, surplus).await
}

/// Runs a statement that deletes jobs without edges and returns of each the queue, `seq`, tags, state and key.
async fn drop_jobs(
    connection: &mut Connection,
    work: &mut Work,
    statement: Statement,
) -> Result<(), StoreError> {
    let answers = connection.run(vec![statement]).await?;
    let mut tagged = Vec::new();
    for row in answers.into_iter().next().unwrap_or_default().rows {
        let state = State::from_code(row.int(3)?).ok_or(StoreError::Corrupt("an unknown state"))?;
        work.tally.count(row.int(0)?, state, -1);
        work.dropped += 1;
        let (scope, id) = (row.int(4)?, row.text(5)?);
        work.let_go(JobKey { scope, id });
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
/// today being the first; counts that count nothing any more; and, unless clients tell the time, what is old of the audit
/// and of sessions.
pub fn prune(work: &Work, clients_tell_time: bool) -> Vec<Statement> {
    let mut statements = vec![
        Statement::new(PRUNE_STATS, [work.past_keeping("stats-history").into()]),
        Statement::new(
            PRUNE_HISTOGRAMS,
            [work.past_keeping("histogram-history").into()],
        ),
        Statement::new(PRUNE_TAG_COUNTS, []),
        Statement::new(PRUNE_FAILURE_COUNTS, []),
    ];
    if !clients_tell_time {
        statements.extend(audit::drop_old(work.now));
        statements.extend(sessions::drop_old(work.now));
    }
    statements
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
    WHERE j.queue = q.id AND j.state = 2 AND j.ready_at <= $1 AND (q.protocol <> 'qless' OR $3 = 0)
    LIMIT $2 + 0)
RETURNING queue";

/// By qless's rules whoever lost a lease may go on until somebody else claims the job.
const LOST: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM queues AS q CROSS JOIN jobs AS j
    WHERE q.protocol <> 'qless' AND j.queue = q.id AND j.state = 4 AND j.lease_until <= $1 LIMIT $2 + 0"
);

const EXPIRE: &str = "
DELETE FROM jobs WHERE expires_at <= $1 AND seq IN (
    SELECT seq FROM jobs WHERE expires_at <= $1 ORDER BY expires_at, seq LIMIT $2 + 0)
RETURNING queue, seq, tags, state, scope, id";

/// What a consumer would get now, whether or not anybody has looked; with versions.
const FIND_READY: &str = "
SELECT seq, version FROM (
    SELECT seq, version FROM (
        SELECT seq, version FROM jobs WHERE queue = $1 AND state = 1 AND ready_at <= $2
        ORDER BY priority, ready_at, seq LIMIT $3 + 0 {skip_locked}) AS waiting
    UNION ALL
    SELECT seq, version FROM (
        SELECT seq, version FROM jobs WHERE queue = $1 AND state = 2 AND ready_at <= $2
        ORDER BY ready_at, seq LIMIT $3 + 0 {skip_locked}) AS due
    UNION ALL
    SELECT seq, version FROM (
        SELECT seq, version FROM jobs WHERE queue = $1 AND state = 4 AND lease_until <= $2 AND remaining > 0
        ORDER BY lease_until, seq LIMIT $3 + 0 {skip_locked}) AS lost
) AS c LIMIT $3 + 0";

const FIND_DEAD: &str = "
SELECT seq, version FROM jobs WHERE queue = $1 AND state = 8 AND since <= $2
ORDER BY since, seq LIMIT $3 + 0 {skip_locked}";

const DROP_FOUND: &str = "
DELETE FROM jobs WHERE (seq, version) IN (SELECT int(0), int(1) FROM rows($1))
RETURNING queue, seq, tags, state, scope, id";

const FORGET_GONE: &str = "
DELETE FROM jobs WHERE seq IN (
    SELECT j.seq FROM queues AS q CROSS JOIN jobs AS j
    WHERE q.protocol = 'relay' AND j.queue = q.id AND j.state = 8 AND j.since <= $1 LIMIT $2 + 0)
RETURNING queue, seq, tags, state, scope, id";

/// What is in queues that were deleted.
const DROP_EXPUNGED: &str = "
DELETE FROM jobs WHERE seq IN (
    SELECT j.seq FROM queues AS q CROSS JOIN jobs AS j
    WHERE q.protocol = 'jobq' AND q.forgotten = 1 AND j.queue = q.id AND j.state = 9 LIMIT $1 + 0)
RETURNING queue, seq, tags, state, scope, id";

const RETIRE_OLD: &str = "
DELETE FROM jobs WHERE seq IN (
    SELECT seq FROM jobs WHERE state = 6 AND since <= $1 ORDER BY since, seq LIMIT $2 + 0)
RETURNING queue, seq, tags, state, scope, id";

// A negative limit would mean none.
const RETIRE_SURPLUS: &str = "
DELETE FROM jobs WHERE seq IN (
    SELECT seq FROM jobs WHERE state = 6 ORDER BY since, seq
    LIMIT (SELECT CASE WHEN s.n <= $1 THEN 0 WHEN s.n - $1 < $2 THEN s.n - $1 ELSE $2 END
           FROM (SELECT CAST(coalesce(sum(n), 0) AS BIGINT) AS n FROM tallies WHERE kind = 0 AND slot = 6) AS s))
RETURNING queue, seq, tags, state, scope, id";

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
