//! The jobs that match a search, as CSV and JSON lines.

use serde::Serialize;

use crate::engine::{Engine, Job, Result, SearchLimits};
use crate::search::Search;
use crate::time::iso;
use crate::ui::model::job::JobRow;
use crate::ui::present::csv::line;
use crate::ui::present::rows;

/// The first line of the CSV.
pub const CSV_TITLES: &str = "number,protocol,namespace,queue,id,class,state,state_time,priority,attempts_left,attempts,tags,worker,\
                              failure_group,failure_message,failed_by,failed_at,expires_at,payload\r\n";

/// Matching jobs that are read and sent at once.
const PART: usize = 500;

/// Part of an export.
pub struct ExportPart {
    /// A line of text for each job, and their number.
    pub lines: String,
    pub count: usize,
    /// Jobs that were read to find these.
    pub scanned: usize,
    /// The number of the job after which the next part begins, if there is one.
    pub next: Option<i64>,
}

/// Up to `max` of the next matching jobs after the job with the number `after`, newest first; possibly none, although
/// there are more.
///
/// # Errors
/// If the database cannot be read.
pub async fn load_part(
    engine: &Engine,
    search: &Search,
    after: Option<i64>,
    max: usize,
    line: fn(&JobRow) -> String,
) -> Result<ExportPart> {
    let limits = SearchLimits {
        jobs: PART.min(max),
        ..SearchLimits::default()
    };
    let (mut lines, mut count) = (String::new(), 0);
    let mut on_jobs = |jobs: Vec<Job>| {
        count += jobs.len();
        lines.extend(rows(engine, &jobs).iter().map(line));
    };
    let search = engine.search_in_parts(search, after, limits, &mut on_jobs);
    let found = search.await?;
    Ok(ExportPart {
        lines,
        count,
        scanned: found.scanned,
        next: found.next,
    })
}

/// A line for each of the jobs with these numbers that still exist, newest first.
///
/// # Errors
/// If the database cannot be read.
pub async fn load_numbered(
    engine: &Engine,
    numbers: &[i64],
    line: fn(&JobRow) -> String,
) -> Result<String> {
    let mut lines = String::new();
    let mut on_jobs = |jobs: Vec<Job>| lines.extend(rows(engine, &jobs).iter().map(line));
    engine.numbered_jobs(numbers, &mut on_jobs).await?;
    Ok(lines)
}

/// A job in an export. Times are ISO 8601, UTC.
#[derive(Serialize)]
struct Exported<'a> {
    /// Increases with each job that is put.
    number: i64,
    protocol: &'static str,
    namespace: &'a str,
    queue: &'a str,
    id: &'a str,
    class: Option<&'a str>,
    state: &'static str,
    /// Available since, due, end of the lease, failed, completed or changed, by the state.
    state_time: String,
    priority: f64,
    /// `None` if they are unlimited.
    attempts_left: Option<i64>,
    attempts: Option<i64>,
    tags: &'a [String],
    worker: Option<&'a str>,
    failure_group: Option<&'a str>,
    failure_message: Option<&'a str>,
    failed_by: Option<&'a str>,
    failed_at: Option<String>,
    expires_at: Option<String>,
    /// The beginning of the payload on one line.
    payload: &'a str,
}

impl<'a> Exported<'a> {
    fn of(job: &'a JobRow) -> Self {
        let limited = |attempts: i64| (attempts < i64::MAX).then_some(attempts);
        let (left, attempts) = job.attempts();
        let failure = job.failure.as_ref();
        Exported {
            number: job.seq,
            protocol: job.queue_ref.protocol.as_str(),
            namespace: &job.queue_ref.namespace,
            queue: &job.queue_ref.name,
            id: &job.id,
            class: job.klass.as_deref(),
            state: job.listed_state().as_str(),
            state_time: iso(job.state_time),
            priority: job.priority,
            attempts_left: limited(left),
            attempts: limited(attempts),
            tags: &job.tags,
            worker: job.worker.as_deref(),
            failure_group: failure.map(|failure| failure.group.as_str()),
            failure_message: failure.map(|failure| failure.message.as_str()),
            failed_by: failure.map(|failure| failure.worker.as_str()),
            failed_at: failure.map(|failure| iso(failure.when)),
            expires_at: job.expires_at.map(iso),
            payload: &job.preview,
        }
    }
}

/// The job as a line of JSON.
pub fn json_line(job: &JobRow) -> String {
    let mut line = serde_json::to_string(&Exported::of(job)).unwrap_or_default();
    line.push('\n');
    line
}

/// The job as a line of CSV. The cell of the tags is a JSON array.
pub fn csv_line(job: &JobRow) -> String {
    let job = Exported::of(job);
    let number = |number: Option<i64>| number.map(|n| n.to_string()).unwrap_or_default();
    let tags = serde_json::to_string(job.tags).unwrap_or_default();
    line(&[
        &job.number.to_string(),
        job.protocol,
        job.namespace,
        job.queue,
        job.id,
        job.class.unwrap_or_default(),
        job.state,
        &job.state_time,
        &job.priority.to_string(),
        &number(job.attempts_left),
        &number(job.attempts),
        &tags,
        job.worker.unwrap_or_default(),
        job.failure_group.unwrap_or_default(),
        job.failure_message.unwrap_or_default(),
        job.failed_by.unwrap_or_default(),
        &job.failed_at.unwrap_or_default(),
        &job.expires_at.unwrap_or_default(),
        job.payload,
    ])
}
