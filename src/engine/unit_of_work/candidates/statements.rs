//! The statements that read the jobs that claims may lease.

use crate::engine::model::job_columns::{job_bytes, job_columns};

/// Reads up to `$3` jobs of each kind: jobs with expired leases, for qless jobs taken from their workers, waiting jobs, and
/// due jobs that maintenance has not promoted yet. Of the due jobs, compares only the `$4` that were due first.
///
/// Jobs of other protocols can have a time to live, and are skipped when it has ended. To find enough others, the
/// statement looks at up to `$4`/5 more waiting jobs, because Postgres locks each, and at up to `$4`/10 more jobs with
/// expired leases, because no index has their time to live. Maintenance soon deletes the skipped jobs, and then wakes the
/// polls of the queue.
///
/// The outer limits change nothing: with them, SQLite prepares to sort jobs only if there are any, and opens the table
/// of jobs once instead of once for each part.
macro_rules! next_jobs {
    (qless, $columns:literal, expired: $expired:literal, timed_out: $timed_out:literal, available: $available:literal) => {
        concat!(
            "SELECT ", $columns, " FROM (SELECT ", $expired, " FROM jobs WHERE queue = $1 AND state = {running}
                        AND lease_until <= $2
                    ORDER BY lease_until, seq LIMIT $3 + 0 {skip_locked}) AS expired
            UNION ALL
            SELECT ", $columns, " FROM (SELECT ", $timed_out, " FROM jobs WHERE queue = $1 AND state = {timed_out}
                    ORDER BY since, seq LIMIT $3 + 0 {skip_locked}) AS timed_out
            UNION ALL
            SELECT ", $columns, " FROM (SELECT ", $available, " FROM jobs WHERE queue = $1 AND state = {waiting}
                    ORDER BY priority, ready_at, seq LIMIT $3 + 0 {skip_locked}) AS waiting
            UNION ALL
            SELECT ", $columns, " FROM (
                SELECT ", $columns, " FROM (SELECT ", $available, " FROM (
                                     SELECT seq, priority, ready_at FROM jobs
                                     WHERE queue = $1 AND state = {scheduled} AND ready_at <= $2
                                     ORDER BY ready_at, seq LIMIT $4 + 0) AS soonest
                                 ORDER BY priority, ready_at, seq LIMIT $3 + 0) AS due
                LIMIT CASE WHEN EXISTS (SELECT 1 FROM jobs WHERE queue = $1 AND state = {scheduled} AND ready_at <= $2)
                           THEN $3 ELSE 0 END) AS due_if_any
            LIMIT $3 * 4"
        )
    };
    (others, $columns:literal, expired: $expired:literal, available: $available:literal) => {
        concat!(
            "SELECT ", $columns, " FROM (
                SELECT ", $columns, " FROM (SELECT ", $expired, " FROM (
                                     SELECT seq AS number FROM jobs
                                     WHERE queue = $1 AND state = {running} AND lease_until <= $2
                                     ORDER BY lease_until, seq LIMIT $3 + $4 / 10) AS first_expired CROSS JOIN jobs AS x
                                 WHERE seq = number AND queue = $1 AND state = {running} AND lease_until <= $2
                                     AND (expires_at IS NULL OR expires_at > $2)
                                 ORDER BY lease_until, seq LIMIT $3 + 0 {skip_locked:x}) AS expired
                LIMIT CASE WHEN EXISTS (SELECT 1 FROM jobs WHERE queue = $1 AND state = {running} AND lease_until <= $2)
                           THEN $3 ELSE 0 END) AS expired_if_any
            UNION ALL
            SELECT ", $columns, " FROM (SELECT ", $available, " FROM (
                                     SELECT seq, priority, ready_at, expires_at FROM jobs
                                     WHERE queue = $1 AND state = {waiting}
                                     ORDER BY priority, ready_at, seq LIMIT $3 + $4 / 5 {skip_locked}) AS first_waiting
                                 WHERE expires_at IS NULL OR expires_at > $2 LIMIT $3 + 0) AS waiting
            UNION ALL
            SELECT ", $columns, " FROM (
                SELECT ", $columns, " FROM (SELECT ", $available, " FROM (
                                     SELECT seq, priority, ready_at, expires_at FROM jobs
                                     WHERE queue = $1 AND state = {scheduled} AND ready_at <= $2
                                     ORDER BY ready_at, seq LIMIT $4 + 0) AS soonest
                                 WHERE expires_at IS NULL OR expires_at > $2
                                 ORDER BY priority, ready_at, seq LIMIT $3 + 0) AS due
                LIMIT CASE WHEN EXISTS (SELECT 1 FROM jobs WHERE queue = $1 AND state = {scheduled} AND ready_at <= $2)
                           THEN $3 ELSE 0 END) AS due_if_any
            LIMIT $3 * 3"
        )
    };
}

/// Statements that read the next jobs of a queue.
pub struct NextJobsStatements {
    pub all: &'static str,
    /// Of the same jobs, those before which fewer than `$5` bytes are claimed. The last column is the number of bytes
    /// up to the end of the job: if it is `$5` or more for any of them, there may be others.
    pub first: &'static str,
}

macro_rules! statements {
    ($all:expr, $first:expr) => {
        NextJobsStatements {
            all: concat!(
                "SELECT ",
                job_columns!(short),
                " FROM (",
                $all,
                ") AS c CROSS JOIN jobs AS j WHERE j.seq = c.seq"
            ),
            first: concat!(
                "SELECT ",
                job_columns!(short),
                ", CAST(c.total AS BIGINT)
    FROM (SELECT n.seq, n.bytes,
                sum(n.bytes) OVER (ORDER BY n.kind, n.priority, n.due_at, n.seq ROWS UNBOUNDED PRECEDING) AS total
            FROM (SELECT c.seq, c.kind, c.priority, c.due_at, ",
                job_bytes!(loaded),
                " AS bytes FROM (",
                $first,
                ") AS c CROSS JOIN jobs AS j WHERE j.seq = c.seq) AS n) AS c
    CROSS JOIN jobs AS j WHERE c.total - c.bytes < $5 AND j.seq = c.seq"
            ),
        }
    };
}

pub const OF_QLESS: NextJobsStatements = statements!(
    next_jobs!(qless, "seq", expired: "seq", timed_out: "seq", available: "seq"),
    next_jobs!(
        qless,
        "seq, kind, priority, due_at",
        expired: "seq, 0 AS kind, 0.0 AS priority, lease_until AS due_at",
        timed_out: "seq, 1 AS kind, 0.0 AS priority, since AS due_at",
        available: "seq, 2 AS kind, priority, ready_at AS due_at"
    )
);

pub const OF_OTHERS: NextJobsStatements = statements!(
    next_jobs!(others, "seq", expired: "seq", available: "seq"),
    next_jobs!(
        others,
        "seq, kind, priority, due_at",
        expired: "seq, 0 AS kind, 0.0 AS priority, lease_until AS due_at",
        available: "seq, 2 AS kind, priority, ready_at AS due_at"
    )
);
