//! The statements of a search, and the fields of a job that it reads.

use crate::engine::clock::Time;
use crate::engine::model::job::{Failure, Job, Lease, State};
use crate::engine::model::job_columns::{job_bytes, job_columns};
use crate::engine::model::job_rows;
use crate::store::{Row, StoreError};

/// A job with only the fields that a search reads.
pub fn scanned_job(row: &Row) -> Result<Job, StoreError> {
    let lease = match (row.text_or_null(8)?, row.int_or_null(9)?) {
        (Some(worker), Some(until)) => Some(Lease {
            worker,
            id: String::new(),
            until: Time(until),
            in_grace_period: false,
        }),
        _ => None,
    };
    let failure = match row.text_or_null(13)? {
        Some(group) => Some(Failure {
            group,
            message: row.text_or_null(14)?.unwrap_or_default(),
            worker: String::new(),
            at: Time(0),
        }),
        None => None,
    };
    // Payloads are read separately.
    let mut job = Job {
        lease,
        remaining: row.int(10)?,
        klass: row.text_or_null(11)?,
        failure,
        created_at: Time(row.int(15)?),
        updated_at: row.int_or_null(16)?.map(Time),
        expires_at: row.int_or_null(17)?.map(Time),
        ..job_rows::placed_job(row)?
    };
    job_rows::read_tags(&mut job, row.text(12)?);
    Ok(job)
}

/// The column with the size of a job's texts; [`scanned_job`] reads the columns before it.
pub const SIZE: usize = 18;

/// The columns that [`scanned_job`] reads, and [`SIZE`]. The limit on the message is that of stored messages.
macro_rules! scan_columns {
    ($rest:literal) => {
        concat!(
            "SELECT j.seq, j.scope, j.id, j.queue, j.state, j.priority, j.ready_at, j.since, j.worker, j.lease_until,
             j.remaining, j.klass, j.tags, j.failure_group, substr(j.failure_message, 1, 65536), j.created_at,
             j.updated_at, j.expires_at, ",
            job_bytes!(),
            " FROM ",
            $rest
        )
    };
}

pub const NEXT: &str = scan_columns!("jobs AS j WHERE j.seq < $1 ORDER BY j.seq DESC LIMIT $2 + 0");
pub const BY_SEQ: &str =
    scan_columns!("rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) ORDER BY j.seq DESC");

/// The memory in bytes of the longest texts that [`scanned_job`] reads. Short tags occupy several times their length.
macro_rules! scan_sizes {
    ($rest:literal) => {
        concat!(
            "SELECT j.seq, CAST(4 * octet_length(j.tags) + coalesce(octet_length(j.failure_message), 0)
             + coalesce(octet_length(j.klass), 0) AS BIGINT) FROM ",
            $rest
        )
    };
}

pub const NEXT_SIZES: &str =
    scan_sizes!("jobs AS j WHERE j.seq < $1 ORDER BY j.seq DESC LIMIT $2 + 0");
pub const SIZES_BY_SEQ: &str =
    scan_sizes!("rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) ORDER BY j.seq DESC");

pub const SUMMARIES: &str = concat!(
    "SELECT ",
    job_columns!(listed),
    " FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) ORDER BY j.seq DESC"
);

// The scopes of qless and lmstfy, and those of up to 10,000 Relay and Jobq queues. Without those of dead Relay jobs,
// each of which has a scope of its own.
pub const EXACT: &str = concat!(
    "SELECT ",
    job_columns!(brief: "1000"),
    " FROM (SELECT 0 AS scope UNION ALL SELECT -1 UNION ALL
       SELECT id FROM (SELECT q.id FROM queues AS q WHERE q.protocol IN ('relay', 'jobq') LIMIT 10000) AS o) AS s
      CROSS JOIN jobs AS j WHERE j.scope = s.scope AND j.id = $1 ORDER BY j.seq DESC LIMIT $2 + 0"
);

pub const TAG_COUNT: &str =
    "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tag_counts WHERE tag = $1";

pub const GROUP_COUNT: &str =
    "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM failure_counts WHERE failure_group = $1";

// Here and below, the unary plus keeps SQLite from scanning all rows in the order of `seq`.
pub const TAGGED: &str = "SELECT t.job FROM tags AS t WHERE +t.job < $1 AND t.tag = $2 ORDER BY +t.job DESC LIMIT $3 + 0";

pub const TRACKED: &str = "
SELECT j.seq FROM tracked AS t CROSS JOIN jobs AS j WHERE j.scope = {qless_scope} AND j.id = t.id AND +j.seq < $1
ORDER BY +j.seq DESC LIMIT $2 + 0";

pub const FAILED_WITH: &str = "
SELECT j.seq FROM jobs AS j WHERE +j.seq < $1 AND j.state = {failed} AND j.failure_group = $2
ORDER BY +j.seq DESC LIMIT $3 + 0";

pub const OF_CLASS: &str = "SELECT j.seq FROM jobs AS j WHERE j.klass = $2 AND j.seq < $1 ORDER BY j.seq DESC LIMIT $3 + 0";

/// Which jobs of a state: of scheduled jobs by the time when they are due, of running ones by the end of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Any,
    Past,
    Future,
}

// The state is a literal, because each state has its own partial index.
macro_rules! in_state {
    ($state:literal $(, $condition:literal)?) => {
        concat!(
            "SELECT j.seq FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.queue = k.int(0) AND j.state = ",
            $state,
            $(" AND j.", $condition, " $4",)?
            " AND +j.seq < $2 ORDER BY +j.seq DESC LIMIT $3 + 0"
        )
    };
}

/// The statement that reads the numbers of the jobs in this state, in the given queues; unless `when` is any, with the
/// time as its last argument.
pub fn in_state(state: State, when: When) -> &'static str {
    match (state, when) {
        (State::Scheduled, When::Past) => in_state!("{scheduled}", "ready_at <="),
        (State::Scheduled, When::Future) => in_state!("{scheduled}", "ready_at >"),
        (State::Running, When::Past) => in_state!("{running}", "lease_until <="),
        (State::Running, When::Future) => in_state!("{running}", "lease_until >"),
        (State::Waiting, _) => in_state!("{waiting}"),
        (State::Scheduled, When::Any) => in_state!("{scheduled}"),
        (State::Depends, _) => in_state!("{depends}"),
        (State::Running, When::Any) => in_state!("{running}"),
        (State::Failed, _) => in_state!("{failed}"),
        (State::Complete, _) => IN_COMPLETE,
        (State::TimedOut, _) => in_state!("{timed_out}"),
        (State::Dead, _) => in_state!("{dead}"),
        (State::Record, _) => in_state!("{record}"),
    }
}

// `jobs_complete` has the queue of each job, so that the jobs themselves are not read.
const IN_COMPLETE: &str = "
SELECT j.seq FROM jobs AS j WHERE j.state = {complete} AND +j.seq < $2 AND j.queue IN (SELECT int(0) FROM rows($1))
ORDER BY +j.seq DESC LIMIT $3 + 0";
