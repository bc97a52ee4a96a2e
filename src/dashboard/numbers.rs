//! The statistics of a range as a file, for spreadsheets and programs.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Dashboard;
use crate::api::turn;
use crate::api::views::{RangeView, Series, Span};
use crate::app::visit::{Visit, iso};

const MICROS: f64 = 1e6;

/// The columns of the CSV, and the fields of the JSON.
const COLUMNS: [&str; 9] = [
    "from",
    "put",
    "claimed",
    "completed",
    "failed",
    "failure_rate",
    "wait_p50_s",
    "wait_p95_s",
    "run_p95_s",
];

/// `GET /ui/stats.csv`
pub async fn csv(State(dashboard): State<Dashboard>, uri: Uri) -> Response {
    answer(&dashboard, &uri, "csv", "text/csv; charset=utf-8", as_csv).await
}

/// `GET /ui/stats.json`
pub async fn json(State(dashboard): State<Dashboard>, uri: Uri) -> Response {
    answer(&dashboard, &uri, "json", "application/json", as_json).await
}

async fn answer(
    dashboard: &Dashboard,
    uri: &Uri,
    kind: &str,
    media: &'static str,
    write: fn(&RangeView) -> String,
) -> Response {
    let visit = Visit {
        query: uri.query().unwrap_or_default().to_owned(),
        ..Visit::default()
    };
    let view = match turn::range(&dashboard.engine, &visit.asked()).await {
        Ok(Some(view)) => view,
        Ok(None) => return (StatusCode::NOT_FOUND, "Queue not found.\n").into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to read statistics");
            let why = "The database is unavailable. Try again in a moment.\n";
            return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        }
    };
    if let Some(flaw) = view.flaw {
        return (StatusCode::BAD_REQUEST, format!("{flaw}\n")).into_response();
    }
    let name = format!("attachment; filename=\"statistics.{kind}\"");
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media)),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("attachment")),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, write(&view)).into_response()
}

/// What stands in the columns after the first.
fn values(span: &Span) -> [Option<f64>; 8] {
    let count = |n: i64| Some(n as f64);
    [
        count(span.put),
        count(span.claimed),
        count(span.completed),
        count(span.failed),
        span.failure_rate().map(rounded),
        span.wait_p50.map(rounded),
        span.wait_p95.map(rounded),
        span.run_p95.map(rounded),
    ]
}

/// What is estimated has no more digits than it deserves.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn as_csv(view: &RangeView) -> String {
    let mut text = COLUMNS.join(",") + "\r\n";
    for span in &view.series.spans {
        let values =
            values(span).map(|value| value.map_or(String::new(), |value| value.to_string()));
        text.push_str(&format!("{},{}\r\n", iso(span.from), values.join(",")));
    }
    text
}

fn as_json(view: &RangeView) -> String {
    let spans = |series: &Series| -> Vec<Value> { series.spans.iter().map(span).collect() };
    let place = view.place.as_ref();
    let numbers = json!({
        "protocol": place.map(|place| place.api.as_str()),
        "namespace": place.map(|place| place.namespace.as_str()),
        "queue": place.map(|place| place.name.as_str()),
        "from": iso(view.from),
        "to": iso(view.to),
        "goes_on": view.goes_on,
        "width_s": view.series.width as f64 / MICROS,
        "spans": spans(&view.series),
        "before": view.before.as_ref().map(spans),
    });
    numbers.to_string()
}

fn span(span: &Span) -> Value {
    let mut fields = serde_json::Map::new();
    fields.insert("from".to_owned(), iso(span.from).into());
    let counts = [span.put, span.claimed, span.completed, span.failed];
    for (name, n) in COLUMNS.iter().skip(1).zip(counts) {
        fields.insert((*name).to_owned(), n.into());
    }
    for (name, value) in COLUMNS.iter().skip(1).zip(values(span)).skip(counts.len()) {
        fields.insert((*name).to_owned(), value.into());
    }
    Value::Object(fields)
}
