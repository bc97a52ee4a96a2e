//! Exports as CSV and JSON: the audit log, and the statistics of a range.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::authentication::{RequestInfo, forbid};
use super::{Dashboard, unavailable};
use crate::auth::Role;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::audit::export::{audit_csv, audit_json};
use crate::ui::pages::audit::load::load_export;
use crate::ui::pages::audit::model::AuditQuery;
use crate::ui::pages::statistics::export::{statistics_csv, statistics_json};
use crate::ui::pages::statistics::load::load_range;

/// Maximum number of audit entries in an export.
const AUDIT_ENTRIES_MAX: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Json,
}

impl Format {
    /// The headers of a file with this name.
    fn headers(self, name: &str) -> HeaderMap {
        let (extension, media_type) = match self {
            Format::Csv => ("csv", "text/csv; charset=utf-8"),
            Format::Json => ("json", "application/json"),
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
        Format::Json => audit_json(&entries, more),
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
        Format::Json => statistics_json(&view),
    };
    (format.headers("statistics"), text).into_response()
}
