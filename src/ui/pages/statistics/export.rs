//! The statistics of a range as CSV and JSON.

use serde_json::{Value, json};

use crate::time::iso;
use crate::ui::model::series::{Series, Span};
use crate::ui::pages::statistics::model::RangeView;

const MICROS: f64 = 1e6;

/// The column names of the CSV, and the field names of the JSON.
const COLUMNS: [&str; 10] = [
    "from",
    "put",
    "claimed",
    "completed",
    "failed",
    "failure_rate",
    "wait_p50_s",
    "wait_p95_s",
    "run_p95_s",
    "waiting",
];

/// The values of the columns after the first.
fn values(span: &Span) -> [Option<f64>; 9] {
    let count = |n: i64| Some(n as f64);
    [
        count(span.put),
        count(span.claimed),
        count(span.completed),
        count(span.failed),
        span.failure_rate().map(rounded),
        span.wait_p50,
        span.wait_p95,
        span.run_p95,
        span.waiting.map(rounded),
    ]
}

/// Rounds a rate or an average to four digits after the point.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

pub fn statistics_csv(view: &RangeView) -> String {
    let mut text = COLUMNS.join(",") + "\r\n";
    for span in &view.series.spans {
        let values =
            values(span).map(|value| value.map_or(String::new(), |value| value.to_string()));
        text.push_str(&format!("{},{}\r\n", iso(span.from), values.join(",")));
    }
    text
}

pub fn statistics_json(view: &RangeView) -> String {
    let spans = |series: &Series| -> Vec<Value> { series.spans.iter().map(span).collect() };
    let queue_ref = view.queue_ref.as_ref();
    let numbers = json!({
        "protocol": queue_ref.map(|queue_ref| queue_ref.protocol.as_str()),
        "namespace": queue_ref.map(|queue_ref| queue_ref.namespace.as_str()),
        "queue": queue_ref.map(|queue_ref| queue_ref.name.as_str()),
        "from": iso(view.from),
        "to": iso(view.to),
        "goes_on": view.is_in_progress,
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
