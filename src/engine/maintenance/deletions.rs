//! Deletes jobs in bounded batches: a statement finds the jobs with their sizes, and another one deletes the first
//! ones.

use std::collections::HashSet;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::maintenance::tasks::BATCH;
use crate::engine::model::config::Config;
use crate::engine::model::dependency_rows;
use crate::engine::model::job::{JobKey, QueueId, QueueKey, State};
use crate::engine::model::job_columns::job_bytes;
use crate::engine::model::job_rows;
use crate::engine::model::long_bodies;
use crate::engine::unit_of_work::UnitOfWork;
use crate::store::{Connection, Row, Statement, StoreError};

/// Bytes of jobs deleted per transaction, not counting the last job: SQLite visits each page of a long text.
const BYTES_MAX: i64 = 32 << 20;

/// Bytes of tags of the jobs deleted per transaction, not counting the last job: each tag is a row to delete, too.
const TAG_BYTES_MAX: i64 = 32 << 10;

/// Dependencies and dependents of the jobs that [`delete_any`] deletes in a transaction, unless a single job has more.
const RELATIONS_MAX: i64 = 4_096;

/// Seconds for which dead Relay jobs are kept.
const DEAD_KEPT_S: f64 = 30.0 * 86_400.0;

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
    let count = i64::try_from(what.count).unwrap_or(BATCH).min(BATCH);
    let args = [queue.id.into(), what.until.0.into(), count.into()];
    let before = work.affected_rows;
    let found = delete_found(connection, work, Statement::new(sql, args)).await?;
    // Another server has changed one of them, so others may be first now: retry.
    if work.affected_rows - before < found {
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
    delete_found(connection, work, old).await?;
    let surplus = surplus_complete(work);
    delete_found(connection, work, surplus).await.map(drop)
}

/// Finds jobs whose time to live has ended.
pub fn expired(work: &UnitOfWork) -> Statement {
    Statement::new(FIND_EXPIRED, [work.now.0, work.batch_max()].map(Into::into))
}

/// Finds jobs of these queues that were dead-lettered long ago.
pub fn old_dead(work: &UnitOfWork, queues: &[(QueueId,)]) -> Statement {
    let oldest = work.now.plus_seconds(-DEAD_KEPT_S);
    Statement::of_rows(FIND_OLD_DEAD, queues)
        .with(work.batch_max())
        .with(oldest.0)
}

/// Finds the records of those of these Jobq queues that are deleted.
pub fn of_deleted_queues(work: &UnitOfWork, queues: &[(QueueId,)]) -> Statement {
    Statement::of_rows(FIND_OF_DELETED_QUEUES, queues).with(work.batch_max())
}

/// Finds complete jobs older than `jobs-history`.
pub fn old_complete(work: &UnitOfWork) -> Statement {
    let oldest = work.now.plus_seconds(-work.config.number("jobs-history"));
    let batch = work.batch_max();
    Statement::new(FIND_OLD_COMPLETE, [oldest.0.into(), batch.into()])
}

impl Engine {
    /// Whether there are more complete jobs than `jobs-history-count`. Sums the counts of all queues, which the writer
    /// need not do in each round of maintenance.
    pub(super) async fn has_surplus_complete(&self) -> Result<bool, StoreError> {
        let rows = self
            .readers()
            .rows(Statement::new(COUNT_COMPLETE, []))
            .await?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(count > kept_complete(self.config()))
    }
}

fn kept_complete(config: &Config) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a count; a cast that saturates is right"
    )]
    let kept = config.number("jobs-history-count") as i64;
    kept.max(0)
}

/// Finds the oldest complete jobs above `jobs-history-count`.
pub fn surplus_complete(work: &UnitOfWork) -> Statement {
    // The stored counters do not include this transaction's changes yet.
    let kept =
        kept_complete(&work.config).saturating_sub(work.counters.pending_change(State::Complete));
    Statement::new(
        FIND_SURPLUS_COMPLETE,
        [kept.into(), work.batch_max().into()],
    )
}

/// A job to delete.
struct Found {
    seq: i64,
    version: i64,
    tag_bytes: i64,
    bytes: i64,
    /// Whether its body has a row of its own.
    has_long_body: bool,
}

impl Found {
    fn from_row(row: &Row) -> Result<Found, StoreError> {
        Ok(Found {
            seq: row.int(0)?,
            version: row.int(1)?,
            tag_bytes: row.int(2)?,
            bytes: row.int(3)?,
            has_long_body: row.int(4)? != 0,
        })
    }
}

/// The first of the jobs, up to the limits of a transaction.
fn first(found: Vec<Found>) -> Vec<Found> {
    let (mut bytes, mut tag_bytes) = (0, 0);
    let fits = |job: &Found| {
        let fits = bytes < BYTES_MAX && tag_bytes < TAG_BYTES_MAX;
        bytes += job.bytes;
        tag_bytes += job.tag_bytes;
        fits
    };
    found.into_iter().take_while(fits).collect()
}

/// Deletes the first of the jobs that the statement finds; these must have no dependencies or dependents. Returns how
/// many it tried to delete; jobs that another server has changed are left.
pub async fn delete_found(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    find: Statement,
) -> Result<usize, StoreError> {
    let found = first(run_find(connection, find).await?);
    delete(connection, work, &found).await?;
    Ok(found.len())
}

/// Deletes the newest jobs, in any state, and their rows in `dependencies`. The newest first, because most jobs are
/// newer than those on which they depend. Returns whether there may be more.
pub async fn delete_any(
    connection: &mut Connection,
    work: &mut UnitOfWork,
) -> Result<bool, StoreError> {
    let all = run_find(connection, Statement::new(FIND_ANY, [BATCH.into()])).await?;
    let count = all.len();
    let mut found = first(all);
    let mut relations = count_relations(connection, &found).await?;
    while relations > RELATIONS_MAX && found.len() > 1 {
        found.truncate(found.len() / 2);
        relations = count_relations(connection, &found).await?;
    }
    let deleted = delete(connection, work, &found).await?;
    if relations > 0 && !deleted.is_empty() {
        let mut deleted: Vec<_> = deleted.into_iter().map(|seq| (seq,)).collect();
        deleted.sort_unstable();
        let both = [
            dependency_rows::remove_all_dependencies(&deleted),
            dependency_rows::remove_all_dependents(&deleted),
        ];
        connection.run(both.into()).await?;
    }
    Ok(found.len() < count || count as i64 >= BATCH)
}

/// The dependencies and dependents of the jobs, or more than [`RELATIONS_MAX`].
async fn count_relations(connection: &mut Connection, jobs: &[Found]) -> Result<i64, StoreError> {
    if jobs.is_empty() {
        return Ok(0);
    }
    let rows: Vec<_> = jobs.iter().map(|job| (job.seq,)).collect();
    let count = |sql| Statement::of_rows(sql, &rows).with(RELATIONS_MAX + 1);
    let counts = [count(COUNT_DEPENDENCIES), count(COUNT_DEPENDENTS)];
    let answers = connection.run(counts.into()).await?;
    let rows = answers.iter().flat_map(|answer| &answer.rows);
    rows.map(|row| row.int(0)).sum()
}

async fn run_find(connection: &mut Connection, find: Statement) -> Result<Vec<Found>, StoreError> {
    let answers = connection.run(vec![find]).await?;
    let rows = answers.iter().flat_map(|answer| &answer.rows);
    rows.map(Found::from_row).collect()
}

/// Deletes the jobs with their tags and long bodies, unless another server has changed them. Returns the `seq` of those
/// that were deleted.
async fn delete(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    found: &[Found],
) -> Result<HashSet<i64>, StoreError> {
    let (mut tagged, mut deleted) = (Vec::new(), HashSet::new());
    if found.is_empty() {
        return Ok(deleted);
    }
    let rows: Vec<_> = found.iter().map(|job| (job.seq, job.version)).collect();
    let answers = connection
        .run(vec![Statement::of_rows(DELETE_FOUND, &rows)])
        .await?;
    for row in answers.into_iter().next().unwrap_or_default().rows {
        let state = State::from_code(row.int(3)?).ok_or(StoreError::Corrupt("an unknown state"))?;
        work.counters.count(row.int(0)?, state, -1);
        if let (State::Failed, Some(group)) = (state, row.text_or_null(6)?) {
            work.counters.count_failed(group, row.int(0)?, -1);
            let failed_at = Time(row.int_or_null(7)?.unwrap_or_default());
            work.counters.failure_undone(row.int(0)?, failed_at);
        }
        if state == State::Waiting {
            // Claims look at a limited number of waiting jobs whose time to live has ended; so others may be found now.
            work.wake(row.int(0)?, 1);
        }
        work.affected_rows += 1;
        deleted.insert(row.int(1)?);
        let (scope, id) = (row.int(4)?, row.text(5)?);
        work.forget_cached(JobKey { scope, id });
        // The consistency check removes what remains of tags that cannot be parsed.
        for tag in job_rows::tags(&row.text(2)?).unwrap_or_default() {
            work.counters.count_tag(&tag, -1);
            tagged.push((row.int(1)?, tag));
        }
    }
    let long = found.iter().filter(|job| job.has_long_body);
    let long = long.map(|job| (job.seq,));
    let long: Vec<_> = long.filter(|(seq,)| deleted.contains(seq)).collect();
    let bodies = (!long.is_empty()).then(|| long_bodies::delete_bodies(&long));
    let tags = (!tagged.is_empty()).then(|| job_rows::remove_tags(&tagged));
    let others: Vec<_> = bodies.into_iter().chain(tags).collect();
    if !others.is_empty() {
        connection.run(others).await?;
    }
    Ok(deleted)
}

// Jobs are selected and deleted by `seq` and `version`: after waiting for a row lock, Postgres checks again only the
// condition outside the subselect, and a changed row has another version.

/// The columns of [`Found`], from `jobs AS j`.
macro_rules! found {
    ($rest:literal) => {
        concat!(
            "SELECT j.seq, j.version, CAST(octet_length(j.tags) AS BIGINT), ",
            job_bytes!(),
            ", CAST(CASE WHEN substr(j.body, 1, 1) = '<' THEN 1 ELSE 0 END AS BIGINT) FROM ",
            $rest
        )
    };
}

/// Not the jobs whose last lease ended first: `ExpireLeases` may still have to dead-letter them. Looks at a bounded number
/// of them.
const FIND_EXPIRED: &str = found!(
    "(
    SELECT seq FROM jobs WHERE expires_at <= $1 ORDER BY expires_at, seq LIMIT $2 + 8000
) AS ended CROSS JOIN jobs AS j
WHERE j.seq = ended.seq AND j.expires_at <= $1 AND NOT (j.state = {running} AND j.lease_until < j.expires_at)
LIMIT $2 + 0 {skip_locked:j}"
);

/// Jobs that a consumer could get now, whether or not maintenance has promoted or expired them.
const FIND_READY: &str = found!(
    "(
    SELECT seq, version FROM (
        SELECT seq, version FROM jobs WHERE queue = $1 AND state = {waiting} AND ready_at <= $2
        ORDER BY priority, ready_at, seq LIMIT $3 + 0 {skip_locked}) AS waiting
    UNION ALL
    SELECT seq, version FROM (
        SELECT seq, version FROM jobs WHERE queue = $1 AND state = {scheduled} AND ready_at <= $2
        ORDER BY ready_at, seq LIMIT $3 + 0 {skip_locked}) AS due
    UNION ALL
    SELECT seq, version FROM (
        SELECT x.seq, x.version FROM (
            SELECT seq FROM jobs WHERE queue = $1 AND state = {running} AND lease_until <= $2
            ORDER BY lease_until, seq LIMIT $3 + 8000) AS first_expired CROSS JOIN jobs AS x
        WHERE x.seq = first_expired.seq AND x.queue = $1 AND x.state = {running} AND x.lease_until <= $2 AND x.remaining > 0
        ORDER BY x.lease_until, x.seq LIMIT $3 + 0 {skip_locked:x}) AS expired
) AS c CROSS JOIN jobs AS j WHERE j.seq = c.seq AND j.version = c.version LIMIT $3 + 0"
);

const FIND_DEAD: &str = found!(
    "jobs AS j WHERE j.queue = $1 AND j.state = {dead} AND j.since <= $2
    ORDER BY j.since, j.seq LIMIT $3 + 0 {skip_locked}"
);

const FIND_OLD_DEAD: &str = found!(
    "rows($1) AS k CROSS JOIN jobs AS j
    WHERE j.queue = k.int(0) AND j.state = {dead} AND j.since <= $3 LIMIT $2 + 0 {skip_locked:j}"
);

const FIND_OF_DELETED_QUEUES: &str = found!(
    "rows($1) AS k CROSS JOIN queues AS q CROSS JOIN jobs AS j
    WHERE q.id = k.int(0) AND q.forgotten = 1 AND j.queue = q.id AND j.state = {record}
    LIMIT $2 + 0 {skip_locked:j}"
);

const FIND_OLD_COMPLETE: &str = found!(
    "jobs AS j WHERE j.state = {complete} AND j.since <= $1
    ORDER BY j.since, j.seq LIMIT $2 + 0 {skip_locked}"
);

// SQLite treats a negative limit as no limit.
const FIND_SURPLUS_COMPLETE: &str = found!(
    "jobs AS j WHERE j.state = {complete} ORDER BY j.since, j.seq
    LIMIT (SELECT CASE WHEN s.n <= $1 THEN 0 WHEN s.n - $1 < $2 THEN s.n - $1 ELSE $2 END
           FROM (SELECT CAST(coalesce(sum(n), 0) AS BIGINT) AS n FROM tallies WHERE kind = {kind_state} AND slot = {complete}) AS s)
    {skip_locked}"
);

/// The number of complete jobs.
const COUNT_COMPLETE: &str = "
SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tallies WHERE kind = {kind_state} AND slot = {complete}";

const DELETE_FOUND: &str = "
DELETE FROM jobs WHERE (seq, version) IN (SELECT int(0), int(1) FROM rows($1))
RETURNING queue, seq, tags, state, scope, id, failure_group, failure_at";

const FIND_ANY: &str = found!("jobs AS j ORDER BY j.seq DESC LIMIT $1 + 0 {skip_locked}");

const COUNT_DEPENDENCIES: &str = "
SELECT count(*) FROM (
    SELECT d.job FROM rows($1) AS k CROSS JOIN dependencies AS d WHERE d.job = k.int(0) LIMIT $2 + 0) AS c";

const COUNT_DEPENDENTS: &str = "
SELECT count(*) FROM (
    SELECT d.job FROM rows($1) AS k CROSS JOIN dependencies AS d WHERE d.needs = k.int(0) LIMIT $2 + 0) AS c";
