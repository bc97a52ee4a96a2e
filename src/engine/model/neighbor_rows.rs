//! Partial rows of jobs. A transaction reads only a few columns of the jobs that get a new dependent, and of the
//! dependents of completed jobs, because there can be thousands of them.

use crate::engine::clock::Time;
use crate::engine::model::body::Body;
use crate::engine::model::history::History;
use crate::engine::model::job::{Job, JobKey, State};
use crate::engine::model::job_columns::job_bytes;
use crate::engine::model::job_rows::Omitted;
use crate::store::{Row, StoreError};

/// Pairs of scope and ID: the states of the jobs, and how many dependents each has, counted up to `$2`.
// CROSS JOIN keeps SQLite from scanning the jobs and looking each up in the list.
pub const LOAD_CHECKED: &str = "
SELECT j.seq, j.scope, j.id, j.state, j.version,
    (SELECT count(*) FROM (SELECT needs FROM dependencies WHERE needs = j.seq LIMIT $2 + 0) AS c)
FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.int(0) AND j.id = k.text(1)";

/// The number of columns of [`LOAD_CHECKED`]; other rows of jobs have more.
pub const CHECKED_COLUMNS: usize = 6;

/// The dependents of jobs by `seq`, in any order, and how many dependencies each has, counted up to `$2`.
pub const LOAD_DEPENDENTS: &str = "
SELECT j.seq, j.scope, j.id, j.state, j.version,
    (SELECT count(*) FROM (SELECT job FROM dependencies WHERE job = j.seq AND needs > 0 LIMIT $2 + 0) AS c),
    d.needs, j.queue, j.priority, j.ready_at, j.since, j.remaining
FROM rows($1) AS k CROSS JOIN dependencies AS d CROSS JOIN jobs AS j WHERE d.needs = k.int(0) AND j.seq = d.job";

/// Jobs in state depends by `seq`, with the columns of [`LOAD_DEPENDENTS`].
pub const LOAD_DEPENDING: &str = "
SELECT j.seq, j.scope, j.id, j.state, j.version,
    (SELECT count(*) FROM (SELECT job FROM dependencies WHERE job = j.seq AND needs > 0 LIMIT 1) AS c),
    j.seq, j.queue, j.priority, j.ready_at, j.since, j.remaining
FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) AND j.state = {depends}";

/// The size in bytes of the rows of the dependents of jobs by `seq`.
pub const DEPENDENTS_BYTES: &str = concat!(
    "SELECT d.needs, CAST(sum(",
    job_bytes!(row),
    ") AS BIGINT) FROM rows($1) AS k CROSS JOIN dependencies AS d CROSS JOIN jobs AS j
    WHERE d.needs = k.int(0) AND j.seq = d.job GROUP BY d.needs"
);

/// A job and its version from a row of [`LOAD_CHECKED`].
pub fn checked(row: &Row) -> Result<(Job, i64, Omitted), StoreError> {
    let job = bare_job(row)?;
    let omitted = Omitted {
        dependents: count(row)?,
        ..Omitted::default()
    };
    Ok((job, row.int(4)?, omitted))
}

/// The `seq` of the job that is depended on, the dependent, and its version from a row of [`LOAD_DEPENDENTS`].
pub fn dependent(row: &Row) -> Result<(i64, Job, i64, Omitted), StoreError> {
    let job = Job {
        queue: row.int(7)?,
        priority: row.real(8)?,
        ready_at: Time(row.int(9)?),
        since: Time(row.int(10)?),
        remaining: row.int(11)?,
        ..bare_job(row)?
    };
    let omitted = Omitted {
        dependencies: count(row)?,
        ..Omitted::default()
    };
    Ok((row.int(6)?, job, row.int(4)?, omitted))
}

fn count(row: &Row) -> Result<usize, StoreError> {
    Ok(usize::try_from(row.int(5)?).unwrap_or_default())
}

/// A job of which only the key and the state are known.
fn bare_job(row: &Row) -> Result<Job, StoreError> {
    let state = State::from_code(row.int(3)?).ok_or(StoreError::Corrupt("an unknown state"))?;
    let key = JobKey {
        scope: row.int(1)?,
        id: row.text(2)?,
    };
    Ok(Job {
        seq: row.int(0)?,
        state,
        history: History::unread(),
        body: Body::unread(0),
        ..Job::new(key, Time(0))
    })
}
