//! Exports as CSV and JSON: the jobs that match a search, the audit log, and the statistics of a range.

use std::io;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::authentication::{Principal, RequestInfo, forbid};
use super::export_slots::{ExportSlot, Full, Pace};
use super::{Dashboard, unavailable};
use crate::auth::Role;
use crate::blocking;
use crate::engine::{AuditEntry, Engine, Error, Result, SELECTED_JOBS_MAX};
use crate::search::Search;
use crate::ui::http::compression::with_slot;
use crate::ui::model::job::JobRow;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::audit::export::{audit_csv, audit_json};
use crate::ui::pages::audit::load::load_export;
use crate::ui::pages::audit::model::AuditQuery;
use crate::ui::pages::search::export::{CSV_TITLES, csv_line, json_line, load_numbered, load_part};
use crate::ui::pages::statistics::export::{statistics_csv, statistics_json};
use crate::ui::pages::statistics::load::load_range;
use crate::ui::pages::statistics::model::RangeView;

/// Maximum number of audit entries in an export.
const AUDIT_ENTRIES_MAX: usize = 10_000;

/// Maximum number of jobs in an export, and of jobs that are read to find them.
const JOBS_MAX: usize = 1_000_000;
const SCANNED_MAX: usize = 10_000_000;

/// How many times a part that had to wait too long for other searches is tried again: for about a minute.
const BUSY_MAX: usize = 15;

/// A file's extension and media type.
#[derive(Clone, Copy)]
struct FileType(&'static str, &'static str);

const CSV: FileType = FileType("csv", "text/csv; charset=utf-8");
const JSON: FileType = FileType("json", "application/json");
const JSON_LINES: FileType = FileType("jsonl", "application/jsonl");

impl FileType {
    /// The headers of a file with this name.
    fn headers(self, name: &str) -> HeaderMap {
        let FileType(extension, media_type) = self;
        let disposition = format!("attachment; filename=\"{name}.{extension}\"");
        let disposition = HeaderValue::from_str(&disposition);
        HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (
                header::CONTENT_DISPOSITION,
                disposition.unwrap_or(HeaderValue::from_static("attachment")),
            ),
        ])
    }
}

/// How an export of jobs is written: the first line, and a line for each job.
#[derive(Clone, Copy)]
struct JobFormat {
    file_type: FileType,
    titles: &'static str,
    line: fn(&JobRow) -> String,
}

/// `GET /ui/audit.csv`
pub async fn audit_as_csv(State(dashboard): State<Dashboard>, info: RequestInfo) -> Response {
    audit(dashboard, info, CSV, |entries, _| audit_csv(entries)).await
}

/// `GET /ui/audit.json`
pub async fn audit_as_json(State(dashboard): State<Dashboard>, info: RequestInfo) -> Response {
    audit(dashboard, info, JSON, audit_json).await
}

/// Its text, of up to tens of MiB, reserves memory only when it is complete, so only one is built at a time.
static AUDIT_EXPORT: Semaphore = Semaphore::const_new(1);

async fn audit(
    dashboard: Dashboard,
    info: RequestInfo,
    file_type: FileType,
    text: fn(&[AuditEntry], bool) -> String,
) -> Response {
    if !info.may(Role::Admin) {
        return forbid(dashboard, info, Role::Admin).await;
    }
    let slot = dashboard
        .page_slots
        .take(info.principal.as_ref(), info.from, false);
    let slot = match slot.await {
        Ok(slot) => slot,
        Err(busy) => return busy,
    };
    let _alone = AUDIT_EXPORT.acquire().await;
    let request = PageRequest::with_query(info.uri.query().unwrap_or_default());
    let query = AuditQuery::of(|name| request.param(name).unwrap_or_default());
    let (entries, more) = match load_export(&dashboard.engine, &query, AUDIT_ENTRIES_MAX).await {
        Ok(found) => found,
        Err(error) => return unavailable(&error, "failed to read the audit log"),
    };
    let text = blocking::block_in_place(|| text(&entries, more));
    drop(entries);
    let mut headers = file_type.headers(if more { "audit-newest" } else { "audit" });
    // CSV cannot contain this flag, so a header does.
    let more = HeaderValue::from_static(if more { "true" } else { "false" });
    headers.insert(HeaderName::from_static("x-switchyard-more"), more);
    with_slot((headers, text).into_response(), slot)
}

/// `GET /ui/stats.csv`
pub async fn statistics_as_csv(
    State(dashboard): State<Dashboard>,
    Extension(user): Extension<Principal>,
    uri: Uri,
) -> Response {
    let engine = dashboard.engine_for(user.method);
    statistics(&engine, &uri, CSV, statistics_csv).await
}

/// `GET /ui/stats.json`
pub async fn statistics_as_json(
    State(dashboard): State<Dashboard>,
    Extension(user): Extension<Principal>,
    uri: Uri,
) -> Response {
    let engine = dashboard.engine_for(user.method);
    statistics(&engine, &uri, JSON, statistics_json).await
}

async fn statistics(
    engine: &Engine,
    uri: &Uri,
    file_type: FileType,
    text: fn(&RangeView) -> String,
) -> Response {
    let request = PageRequest::with_query(uri.query().unwrap_or_default());
    let view = match load_range(engine, &request.statistics_query()).await {
        Ok(Some(view)) => view,
        Ok(None) => return (StatusCode::NOT_FOUND, "Queue not found.\n").into_response(),
        Err(error) => return unavailable(&error, "failed to read statistics"),
    };
    if let Some(error) = view.range_error {
        return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response();
    }
    (file_type.headers("statistics"), text(&view)).into_response()
}

/// `GET /ui/jobs.csv`
pub async fn jobs_as_csv(State(dashboard): State<Dashboard>, info: RequestInfo) -> Response {
    let format = JobFormat {
        file_type: CSV,
        titles: CSV_TITLES,
        line: csv_line,
    };
    jobs(dashboard, &info, format).await
}

/// `GET /ui/jobs.jsonl`
pub async fn jobs_as_json_lines(State(dashboard): State<Dashboard>, info: RequestInfo) -> Response {
    let format = JobFormat {
        file_type: JSON_LINES,
        titles: "",
        line: json_line,
    };
    jobs(dashboard, &info, format).await
}

/// The jobs that match the search `q`, newest first; with `after`, only those with lower numbers.
async fn jobs(dashboard: Dashboard, info: &RequestInfo, format: JobFormat) -> Response {
    let request = PageRequest::with_query(info.uri.query().unwrap_or_default());
    if request.param("of").as_deref() == Some("selected") {
        return match dashboard.export_slots.take(info) {
            Ok(slot) => {
                let engine = dashboard.engine_of(info.principal.as_ref());
                with_slot(selected_jobs(&engine, &request, format).await, slot)
            }
            Err(full) => too_many(full),
        };
    }
    let search = match Search::parse(&request.raw_param("q").unwrap_or_default()) {
        Ok(search) => search,
        Err(error) => {
            let why = format!(
                "Invalid search at column {}: {}\n",
                error.from + 1,
                error.why
            );
            return (StatusCode::BAD_REQUEST, why).into_response();
        }
    };
    let slot = match dashboard.export_slots.take(info) {
        Ok(slot) => slot,
        Err(full) => return too_many(full),
    };
    let engine = dashboard.engine_of(info.principal.as_ref());
    let mut export = JobExport {
        engine,
        search,
        line: format.line,
        after: request.param("after").and_then(|after| after.parse().ok()),
        jobs_left: JOBS_MAX,
        scanned: 0,
        is_complete: false,
        pace: Pace::default(),
        _slot: slot,
    };
    // Reads the first part before the response begins, so that an error has a status of its own.
    let first = match export.part().await {
        Ok(first) => first,
        Err(error) => return unavailable(&error, "failed to export jobs"),
    };
    let first = Bytes::from(format.titles.to_owned() + &first);
    export.pace.send(first.len());
    let rest = stream::try_unfold(export, |mut export| async {
        if !export.pace.is_kept() {
            // This frees the slot. The client notices that the file is incomplete.
            return Err(io::Error::other("the client reads too slowly"));
        }
        // In a task: the body is not polled while its client does not read, and the read would keep what it holds.
        let reading = tokio::spawn(async move {
            let part = export.next().await;
            (export, part)
        });
        let (mut export, part) = AbortOnDropHandle::new(reading)
            .await
            .map_err(io::Error::other)?;
        let part = part.map_err(|error| {
            tracing::error!(%error, "failed to export jobs");
            io::Error::other(error)
        })?;
        if part.is_none() && !export.is_complete {
            // The client notices that the file is incomplete, because the response does not end properly.
            return Err(io::Error::other("too many jobs were read"));
        }
        Ok(part.map(|part| {
            export.pace.send(part.len());
            (Bytes::from(part), export)
        }))
    });
    let body = Body::from_stream(stream::once(async { Ok(first) }).chain(rest));
    (format.file_type.headers("jobs"), body).into_response()
}

/// The jobs with the numbers in the parameters `job`.
async fn selected_jobs(engine: &Engine, request: &PageRequest, format: JobFormat) -> Response {
    let numbers = request.params("job");
    let mut numbers: Vec<i64> = numbers.iter().filter_map(|it| it.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let refused = |why: String| (StatusCode::BAD_REQUEST, why).into_response();
    if numbers.is_empty() {
        return refused(
            "No jobs are selected. Go back, and select jobs, or choose all matching jobs.\n"
                .to_owned(),
        );
    }
    if numbers.len() > SELECTED_JOBS_MAX {
        return refused(format!(
            "Too many jobs are selected; the limit is {SELECTED_JOBS_MAX}.\n"
        ));
    }
    let lines = match load_numbered(engine, &numbers, format.line).await {
        Ok(lines) => lines,
        Err(error) => return unavailable(&error, "failed to export jobs"),
    };
    let text = format.titles.to_owned() + &lines;
    (format.file_type.headers("jobs"), text).into_response()
}

/// The response if no slot is free.
fn too_many(full: Full) -> Response {
    let status = match full {
        Full::OfClient => StatusCode::TOO_MANY_REQUESTS,
        Full::OfAll => StatusCode::SERVICE_UNAVAILABLE,
    };
    let later = [(header::RETRY_AFTER, "15")];
    (status, later, format!("{full} Try again in a moment.\n")).into_response()
}

/// An export of jobs that is being sent.
struct JobExport {
    engine: Engine,
    search: Search,
    line: fn(&JobRow) -> String,
    after: Option<i64>,
    jobs_left: usize,
    scanned: usize,
    is_complete: bool,
    pace: Pace,
    _slot: ExportSlot,
}

impl JobExport {
    /// The next lines; `None` at the end, or if too many jobs were read.
    async fn next(&mut self) -> Result<Option<String>> {
        while !self.is_complete && self.scanned < SCANNED_MAX {
            let lines = self.part().await?;
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
        Ok(None)
    }

    /// The lines of the next part; possibly none, although there are more.
    async fn part(&mut self) -> Result<String> {
        let mut attempts = 0;
        let part = loop {
            // Each part counts the jobs of all queues.
            let queues = self.engine.known_queues().count();
            let (after, max) = (self.after, self.jobs_left);
            let part = load_part(&self.engine, &self.search, after, max, self.line);
            match blocking::poll_blocking_if_many(queues, part).await {
                Err(Error::Busy) if attempts < BUSY_MAX => attempts += 1,
                part => break part?,
            }
        };
        self.jobs_left = self.jobs_left.saturating_sub(part.count);
        self.scanned += part.scanned;
        self.after = part.next;
        self.is_complete = part.next.is_none() || self.jobs_left == 0;
        Ok(part.lines)
    }
}
