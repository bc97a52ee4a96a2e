//! Exports as CSV and JSON: the jobs that match a search, the audit log, and the statistics of a range.

use std::io;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use tokio::sync::OwnedSemaphorePermit;

use super::authentication::{RequestInfo, forbid};
use super::{Dashboard, unavailable};
use crate::auth::Role;
use crate::engine::{Engine, Result};
use crate::search::Search;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::audit::export::{audit_csv, audit_json};
use crate::ui::pages::audit::load::load_export;
use crate::ui::pages::audit::model::AuditQuery;
use crate::ui::pages::search::export::{CSV_TITLES, csv_line, json_line, load_part};
use crate::ui::pages::statistics::export::{statistics_csv, statistics_json};
use crate::ui::pages::statistics::load::load_range;

/// Maximum number of audit entries in an export.
const AUDIT_ENTRIES_MAX: usize = 10_000;

/// Maximum number of exports of jobs at the same time.
pub const JOB_EXPORTS_MAX: usize = 4;

/// Maximum number of jobs in an export, and of jobs that are read to find them.
const JOBS_MAX: usize = 1_000_000;
const SCANNED_MAX: usize = 10_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Json,
    JsonLines,
}

impl Format {
    /// The headers of a file with this name.
    fn headers(self, name: &str) -> HeaderMap {
        let (extension, media_type) = match self {
            Format::Csv => ("csv", "text/csv; charset=utf-8"),
            Format::Json => ("json", "application/json"),
            Format::JsonLines => ("jsonl", "application/jsonl"),
        };
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

/// `GET /ui/audit.csv`
pub async fn audit_as_csv(State(dashboard): State<Dashboard>, info: RequestInfo) -> Response {
    audit(dashboard, info, Format::Csv).await
}

/// `GET /ui/audit.json`
pub async fn audit_as_json(State(dashboard): State<Dashboard>, info: RequestInfo) -> Response {
    audit(dashboard, info, Format::Json).await
}

async fn audit(dashboard: Dashboard, info: RequestInfo, format: Format) -> Response {
    if !info.may(Role::Admin) {
        return forbid(dashboard, info, Role::Admin).await;
    }
    let request = PageRequest::with_query(info.uri.query().unwrap_or_default());
    let query = AuditQuery::of(|name| request.param(name).unwrap_or_default());
    let (entries, more) = match load_export(&dashboard.engine, &query, AUDIT_ENTRIES_MAX).await {
        Ok(found) => found,
        Err(error) => return unavailable(&error, "failed to read the audit log"),
    };
    let text = match format {
        Format::Csv => audit_csv(&entries),
        Format::Json | Format::JsonLines => audit_json(&entries, more),
    };
    let mut headers = format.headers(if more { "audit-newest" } else { "audit" });
    // CSV cannot contain this flag, so a header does.
    let more = HeaderValue::from_static(if more { "true" } else { "false" });
    headers.insert(HeaderName::from_static("x-switchyard-more"), more);
    (headers, text).into_response()
}

/// `GET /ui/stats.csv`
pub async fn statistics_as_csv(State(dashboard): State<Dashboard>, uri: Uri) -> Response {
    statistics(&dashboard, &uri, Format::Csv).await
}

/// `GET /ui/stats.json`
pub async fn statistics_as_json(State(dashboard): State<Dashboard>, uri: Uri) -> Response {
    statistics(&dashboard, &uri, Format::Json).await
}

async fn statistics(dashboard: &Dashboard, uri: &Uri, format: Format) -> Response {
    let request = PageRequest::with_query(uri.query().unwrap_or_default());
    let view = match load_range(&dashboard.engine, &request.statistics_query()).await {
        Ok(Some(view)) => view,
        Ok(None) => return (StatusCode::NOT_FOUND, "Queue not found.\n").into_response(),
        Err(error) => return unavailable(&error, "failed to read statistics"),
    };
    if let Some(error) = view.range_error {
        return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response();
    }
    let text = match format {
        Format::Csv => statistics_csv(&view),
        Format::Json | Format::JsonLines => statistics_json(&view),
    };
    (format.headers("statistics"), text).into_response()
}

/// `GET /ui/jobs.csv`
pub async fn jobs_as_csv(State(dashboard): State<Dashboard>, uri: Uri) -> Response {
    jobs(dashboard, &uri, Format::Csv).await
}

/// `GET /ui/jobs.jsonl`
pub async fn jobs_as_json_lines(State(dashboard): State<Dashboard>, uri: Uri) -> Response {
    jobs(dashboard, &uri, Format::JsonLines).await
}

/// The jobs that match the search `q`, newest first; with `after`, only those with lower numbers.
async fn jobs(dashboard: Dashboard, uri: &Uri, format: Format) -> Response {
    let request = PageRequest::with_query(uri.query().unwrap_or_default());
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
    let Ok(permit) = dashboard.job_exports.try_acquire_owned() else {
        let why = format!("{JOB_EXPORTS_MAX} exports are running. Try again in a moment.\n");
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    let mut export = JobExport {
        engine: dashboard.engine,
        search,
        format,
        after: request.param("after").and_then(|after| after.parse().ok()),
        jobs_left: JOBS_MAX,
        scanned: 0,
        is_complete: false,
        _permit: permit,
    };
    // Reads the first part before the response begins, so that an error has a status of its own.
    let first = match export.part().await {
        Ok(first) => first,
        Err(error) => return unavailable(&error, "failed to export jobs"),
    };
    let titles = match format {
        Format::Csv => CSV_TITLES,
        Format::Json | Format::JsonLines => "",
    };
    let first = Bytes::from(titles.to_owned() + &first);
    let rest = stream::try_unfold(export, |mut export| async {
        let part = export.next().await.map_err(|error| {
            tracing::error!(%error, "failed to export jobs");
            io::Error::other(error)
        })?;
        if part.is_none() && !export.is_complete {
            // The client notices that the file is incomplete, because the response does not end properly.
            return Err(io::Error::other("too many jobs were read"));
        }
        Ok(part.map(|part| (Bytes::from(part), export)))
    });
    let body = Body::from_stream(stream::once(async { Ok(first) }).chain(rest));
    (format.headers("jobs"), body).into_response()
}

/// An export of jobs that is being sent.
struct JobExport {
    engine: Engine,
    search: Search,
    format: Format,
    after: Option<i64>,
    jobs_left: usize,
    scanned: usize,
    is_complete: bool,
    _permit: OwnedSemaphorePermit,
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
        let mut part = load_part(&self.engine, &self.search, self.after).await?;
        part.jobs.truncate(self.jobs_left);
        self.jobs_left -= part.jobs.len();
        self.scanned += part.scanned;
        self.after = part.next;
        self.is_complete = part.next.is_none() || self.jobs_left == 0;
        let line = match self.format {
            Format::Csv => csv_line,
            Format::Json | Format::JsonLines => json_line,
        };
        Ok(part.jobs.iter().map(line).collect())
    }
}
