//! Reads jobs from rows, and writes sets of jobs.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::engine::clock::Time;
use crate::engine::model::body::Body;
use crate::engine::model::damage::{self, Text};
use crate::engine::model::history::History;
use crate::engine::model::job::{Failure, Job, JobKey, Lease, State};
use crate::engine::model::job_columns::job_columns;
use crate::query;
use crate::store::{ROWS_BOUND_MAX, Row, Statement, StoreError};

// Limits in these statements are written `LIMIT $1 + 0`: SQLite looks into a bare parameter while it compiles the
// statement, and recompiles it whenever one is bound.

/// A job and its version.
pub fn job(row: &Row) -> Result<(Job, i64), StoreError> {
    let (mut job, version, _) = short_job(row)?;
    // Not a stub.
    job.body = row.text(BODY)?.into();
    Ok((job, version))
}

/// The positions of the tags and the body among the columns of a job.
const TAGS: usize = 14;
const BODY: usize = 20;

/// A job, its version, and what `job_columns!(short)` leaves out of it, apart from the body.
pub fn short_job(row: &Row) -> Result<(Job, i64, Omitted), StoreError> {
    let mut omitted = Omitted::default();
    let mut short = |column: usize| -> Result<Option<String>, StoreError> {
        let text = row.text_or_null(column)?;
        let size = text.as_deref().and_then(|text| text.strip_prefix('<'));
        let Some(size) = size.and_then(|size| size.parse::<usize>().ok()) else {
            return Ok(text);
        };
        omitted.texts += size;
        if column == TAGS {
            omitted.tags = size;
        }
        Ok(None)
    };
    let (tags_text, history, work_state) = (short(TAGS)?, short(15)?, short(28)?);
    let lease = match (
        row.text_or_null(8)?,
        row.text_or_null(9)?,
        row.int_or_null(10)?,
    ) {
        (Some(worker), Some(id), Some(until)) => Some(Lease {
            worker,
            id,
            until: Time(until),
            in_grace_period: row.int(23)? != 0,
        }),
        _ => None,
    };
    let mut job = Job {
        lease,
        retries: row.int(11)?,
        remaining: row.int(12)?,
        klass: row.text_or_null(13)?,
        history: history.map_or(History::unread(), History::from_text),
        failure: failure(row)?,
        body: row
            .text_or_null(BODY)?
            .map_or(Body::unread(0), Body::from_column),
        created_at: Time(row.int(21)?),
        spawned_from: row.text_or_null(24)?,
        expires_at: row.int_or_null(25)?.map(Time),
        attributes: row.text_or_null(26)?,
        timeout_s: row.int_or_null(27)?,
        work_state,
        updated_at: row.int_or_null(29)?.map(Time),
        dependencies: lines(row.text_or_null(30)?),
        dependents: lines(row.text_or_null(31)?),
        ..placed_job(row)?
    };
    if let Some(text) = tags_text {
        read_tags(&mut job, text);
    }
    omitted.edges = job.dependencies.len() > DEPENDENCIES_SHORT_MAX
        || job.dependents.len() > DEPENDENCIES_SHORT_MAX;
    Ok((job, row.int(22)?, omitted))
}

/// A job with the columns 0 to 7, with which all lists of columns begin: its number, key, queue, state, priority and
/// times.
pub fn placed_job(row: &Row) -> Result<Job, StoreError> {
    let key = JobKey {
        scope: row.int(1)?,
        id: row.text(2)?,
    };
    Ok(Job {
        seq: row.int(0)?,
        queue: row.int(3)?,
        state: State::from_code(row.int(4)?).ok_or(StoreError::Corrupt("an unknown state"))?,
        priority: row.real(5)?,
        since: Time(row.int(7)?),
        ..Job::new(key, Time(row.int(6)?))
    })
}

fn failure(row: &Row) -> Result<Option<Failure>, StoreError> {
    let Some(group) = row.text_or_null(16)? else {
        return Ok(None);
    };
    Ok(Some(Failure {
        group,
        message: row.text_or_null(17)?.unwrap_or_default(),
        worker: row.text_or_null(18)?.unwrap_or_default(),
        at: Time(row.int_or_null(19)?.unwrap_or_default()),
    }))
}

/// The parts of a job that have not been loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Omitted {
    /// The size in bytes of the history, the tags and the work state, if any of them was left out.
    pub texts: usize,
    /// The size in bytes of the tags, if they were left out.
    pub tags: usize,
    /// Whether dependencies or dependents were left out.
    pub edges: bool,
    /// The number of dependents that were left out, if they were counted.
    pub dependents: usize,
    /// The number of dependencies that were left out, if they were counted.
    pub dependencies: usize,
    /// All dependencies and dependents of a job with too many to load, if a transaction counted them for its size.
    pub edge_counts: Option<EdgeCounts>,
}

/// Numbers of dependencies and dependents.
#[derive(Clone, Copy, Debug, Default)]
pub struct EdgeCounts {
    pub dependencies: usize,
    pub dependents: usize,
}

/// Dependencies, and dependents, of a row of `job_columns!(short)`; the statement reads one more.
pub const DEPENDENCIES_SHORT_MAX: usize = 100;

/// Parses the column `tags`; `None` if that is not possible.
pub fn tags(text: &str) -> Option<Vec<String>> {
    if text == NO_TAGS {
        Some(Vec::new())
    } else {
        serde_json::from_str(text).ok()
    }
}

/// Sets the tags of a job from its column `tags`. A text that cannot be parsed is logged, and kept.
pub fn read_tags(job: &mut Job, text: String) {
    if let Some(tags) = tags(&text) {
        job.set_tags(tags);
    } else {
        damage::report(Text::Tags, job.seq, &job.key.id);
        job.set_tags(Vec::new());
        job.damaged_tags = Some(text);
    }
}

const NO_TAGS: &str = "[]";

pub fn lines(text: Option<String>) -> Vec<String> {
    text.map(|text| text.split('\n').map(str::to_owned).collect())
        .unwrap_or_default()
}

/// The fields of a job that a row has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WrittenColumns {
    /// The fields that change while a job is processed: by claim, heartbeat or completion.
    Progress,
    /// Also the client's settings and the last failure.
    Settings,
    /// Also the fields that never change.
    Identity,
}

/// The most rows whose values are bound as parameters.
const BOUND_MAX: usize = 256 * ROWS_BOUND_MAX;

/// A job to write.
pub struct Written<'a> {
    pub job: &'a Job,
    /// The job as read; `None` if it is new.
    pub before: Option<&'a Job>,
    /// The version as read.
    pub version: i64,
}

/// A job as a flat JSON array. The statements below address its elements by position.
struct Values<'a> {
    written: &'a Written<'a>,
    columns: WrittenColumns,
}

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Values { written, columns } = self;
        let Written {
            job,
            before,
            version,
        } = written;
        let lease = job.lease.as_ref();
        // Postgres would write a long text again even if it is the same.
        let history = job.history.read();
        let history = history.filter(|_| before.is_none_or(|it| it.history != job.history));
        let count = match columns {
            WrittenColumns::Progress => 13,
            WrittenColumns::Settings => 26,
            WrittenColumns::Identity => 31,
        };
        let mut row = serializer.serialize_seq(Some(count))?;
        row.serialize_element(&job.seq)?; // 0
        row.serialize_element(version)?;
        row.serialize_element(&job.queue)?;
        row.serialize_element(&job.state.code())?;
        row.serialize_element(&job.ready_at)?;
        row.serialize_element(&job.since)?; // 5
        row.serialize_element(&lease.map(|lease| &lease.worker))?;
        row.serialize_element(&lease.map(|lease| &lease.id))?;
        row.serialize_element(&lease.map(|lease| lease.until))?;
        row.serialize_element(&job.remaining)?;
        // Null keeps the stored value.
        row.serialize_element(&history)?; // 10
        row.serialize_element(&lease.map_or(0, |lease| u8::from(lease.in_grace_period)))?;
        row.serialize_element(&job.updated_at)?;
        if *columns >= WrittenColumns::Settings {
            let failure = job.failure.as_ref();
            row.serialize_element(&job.priority)?;
            row.serialize_element(&job.retries)?;
            row.serialize_element(&job.klass)?; // 15
            row.serialize_element(&tags_text(job))?;
            row.serialize_element(&failure.map(|failure| &failure.group))?;
            row.serialize_element(&failure.map(|failure| &failure.message))?;
            row.serialize_element(&failure.map(|failure| &failure.worker))?;
            row.serialize_element(&failure.map(|failure| failure.at))?; // 20
            // Null keeps the stored value.
            row.serialize_element(&job.body.column())?;
            row.serialize_element(&job.expires_at)?;
            row.serialize_element(&job.timeout_s)?;
            row.serialize_element(&job.work_state)?;
            row.serialize_element(&label(job))?; // 25
        }
        if *columns >= WrittenColumns::Identity {
            row.serialize_element(&job.key.scope)?;
            row.serialize_element(&job.key.id)?;
            row.serialize_element(&job.created_at)?;
            row.serialize_element(&job.spawned_from)?;
            row.serialize_element(&job.attributes)?;
        }
        row.end()
    }
}

/// The label of a record, by which it is listed and counted.
pub fn label(job: &Job) -> Option<String> {
    match job.state {
        State::Record => query::label(job.work_state.as_deref()),
        _ => None,
    }
}

fn tags_text(job: &Job) -> Cow<'_, str> {
    match &job.damaged_tags {
        Some(text) => Cow::Borrowed(text),
        None if job.tags.is_empty() => Cow::Borrowed(NO_TAGS),
        None => Cow::Owned(serde_json::to_string(&job.tags).unwrap_or_default()),
    }
}

/// Whether fields beyond [`WrittenColumns::Progress`] differ, so that the whole row must be written.
pub fn settings_differ(a: &Job, b: &Job) -> bool {
    a.body != b.body
        || a.expires_at != b.expires_at
        || a.timeout_s != b.timeout_s
        || a.work_state != b.work_state
        || a.failure != b.failure
        || a.tags != b.tags
        || a.damaged_tags != b.damaged_tags
        || a.klass != b.klass
        || a.retries != b.retries
        || a.priority.to_bits() != b.priority.to_bits()
}

/// Inserts new jobs, without [`LongBodies`](super::long_bodies::LongBodies).
pub fn insert(jobs: &[Written<'_>]) -> impl Iterator<Item = Statement> {
    each_written_once(INSERT, jobs, WrittenColumns::Identity)
}

/// Updates jobs of which only the progress has changed.
pub fn update_progress(jobs: &[Written<'_>]) -> impl Iterator<Item = Statement> {
    each_written_once(UPDATE_PROGRESS, jobs, WrittenColumns::Progress)
}

/// Updates dependents of completed jobs, each with the version as read, its state, and when it becomes available.
pub fn release(jobs: &[(i64, i64, i64, i64)]) -> impl Iterator<Item = Statement> {
    each_once(RELEASE, jobs)
}

/// Updates whole jobs, without [`LongBodies`](super::long_bodies::LongBodies).
pub fn update(jobs: &[Written<'_>]) -> impl Iterator<Item = Statement> {
    each_written_once(UPDATE, jobs, WrittenColumns::Settings)
}

/// Increments the versions of jobs that do not change otherwise. Each comes with the version as read.
pub fn increment_versions(jobs: &[(i64, i64)]) -> impl Iterator<Item = Statement> {
    each_once(INCREMENT_VERSIONS, jobs)
}

/// Requires that jobs have not changed. Each comes with the version as read.
pub fn require_versions(jobs: &[(i64, i64)]) -> Option<Statement> {
    (!jobs.is_empty()).then(|| Statement::of_rows(REQUIRE_VERSIONS, jobs).exactly(jobs.len()))
}

/// Deletes jobs, without [`LongBodies`](super::long_bodies::LongBodies). Each comes with the version as read.
pub fn delete(jobs: &[(i64, i64)]) -> impl Iterator<Item = Statement> {
    each_once(DELETE, jobs)
}

/// Statements that write the rows; each must change exactly as many rows as it has. Up to 16,384 rows are bound as
/// parameters, 64 per statement. More rows are passed as JSON in one statement.
fn each_once<T: Serialize>(sql: &'static str, rows: &[T]) -> impl Iterator<Item = Statement> {
    let some = rows.chunks(at_once(rows.len()));
    some.map(move |some| once(sql, some))
}

/// The same for jobs.
fn each_written_once(
    sql: &'static str,
    jobs: &[Written<'_>],
    columns: WrittenColumns,
) -> impl Iterator<Item = Statement> {
    let some = jobs.chunks(at_once(jobs.len()));
    some.map(move |some| {
        let values = |written| Values { written, columns };
        let rows: Vec<_> = some.iter().map(values).collect();
        once(sql, &rows)
    })
}

/// How many of the rows one statement writes.
fn at_once(rows: usize) -> usize {
    match rows {
        0..=BOUND_MAX => ROWS_BOUND_MAX,
        all => all,
    }
}

fn once<T: Serialize>(sql: &'static str, rows: &[T]) -> Statement {
    let statement = Statement::of_rows(sql, rows);
    statement.exactly(rows.len()).combinable()
}

/// Adds rows to the table `tags`: job, tag, time of tagging, and the job's ID.
pub fn add_tags(tags: &[(i64, String, i64, String)]) -> Statement {
    Statement::of_rows(ADD_TAGS, tags)
}

/// Removes rows from the table `tags`: job and tag.
pub fn remove_tags(tags: &[(i64, String)]) -> Statement {
    Statement::of_rows(REMOVE_TAGS, tags)
}

const INSERT: &str = "
INSERT INTO jobs (seq, version, queue, state, ready_at, since, worker, lease_id, lease_until, remaining,
    history, warned, updated_at, priority, retries, klass, tags, failure_group, failure_message, failure_worker,
    failure_at, body, expires_at, timeout_s, work_state, label, scope, id, created_at, spawned_from, attributes)
SELECT int(0), int(1), int(2), int(3), int(4), int(5), text(6), text(7), int(8), int(9),
    text(10), int(11), int(12), real(13), int(14), text(15), text(16), text(17), text(18), text(19),
    int(20), text(21), int(22), int(23), text(24), text(25), int(26), text(27), int(28), text(29), text(30)
FROM rows($1)";

const UPDATE_PROGRESS: &str = "
UPDATE jobs SET version = version + 1, queue = int(2), state = int(3), ready_at = int(4),
    since = int(5), worker = text(6), lease_id = text(7), lease_until = int(8),
    remaining = int(9), history = coalesce(text(10), history), warned = int(11), updated_at = int(12)
FROM rows($1) WHERE jobs.seq = int(0) AND jobs.version = int(1)";

const RELEASE: &str = "
UPDATE jobs SET version = version + 1, state = int(2), ready_at = int(3)
FROM rows($1) WHERE jobs.seq = int(0) AND jobs.version = int(1)";

const UPDATE: &str = "
UPDATE jobs SET version = version + 1, queue = int(2), state = int(3), ready_at = int(4),
    since = int(5), worker = text(6), lease_id = text(7), lease_until = int(8),
    remaining = int(9), history = coalesce(text(10), history), warned = int(11), updated_at = int(12), priority = real(13),
    retries = int(14), klass = text(15), tags = text(16), failure_group = text(17),
    failure_message = text(18), failure_worker = text(19), failure_at = int(20), body = coalesce(text(21), body),
    expires_at = int(22), timeout_s = int(23), work_state = text(24), label = text(25)
FROM rows($1) WHERE jobs.seq = int(0) AND jobs.version = int(1)";

/// The history, tags and work state of jobs by `seq`.
pub const TEXTS: &str = "SELECT j.seq, j.history, j.tags, j.work_state FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0)";

/// The number of dependents of jobs by `seq`. Five columns, so that `take_long_parts` recognizes these rows.
pub const DEPENDENTS_COUNT: &str = "
SELECT j.seq, (SELECT count(*) FROM dependencies AS d WHERE d.needs = j.seq), 0, 0, 0
FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0)";

/// The dependencies and dependents of jobs by `seq`.
pub const EDGES: &str = concat!(
    "SELECT j.seq, ",
    job_columns!(edges),
    " FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0)"
);

const INCREMENT_VERSIONS: &str = "
UPDATE jobs SET version = version + 1 FROM rows($1) WHERE jobs.seq = int(0) AND jobs.version = int(1)";

const REQUIRE_VERSIONS: &str = "
SELECT 1 FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0) AND j.version = k.int(1)";

// By both columns, so that Postgres checks the version again after it had to wait for another server.
const DELETE: &str =
    "DELETE FROM jobs WHERE (seq, version) IN (SELECT int(0), int(1) FROM rows($1))";

const ADD_TAGS: &str = "
INSERT INTO tags (job, tag, tagged_at, id)
SELECT int(0), text(1), int(2), text(3) FROM rows($1) WHERE true
ON CONFLICT (job, tag) DO NOTHING";

const REMOVE_TAGS: &str =
    "DELETE FROM tags WHERE (job, tag) IN (SELECT int(0), text(1) FROM rows($1))";
