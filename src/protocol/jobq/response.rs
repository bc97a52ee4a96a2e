//! Jobq's responses. Payloads and states are the JSON that was stored, without whitespace.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::engine::{Error, Queue, Record};
use crate::protocol::body;
use crate::protocol::request::json;

/// A queue.
#[derive(Serialize)]
pub struct QueueView<'a> {
    pub id: i64,
    pub name: &'a str,
}

/// All queues.
#[derive(Serialize)]
pub struct QueuesView<'a> {
    pub queues: Vec<QueueView<'a>>,
}

impl QueueView<'_> {
    pub fn of(queue: &Queue) -> QueueView<'_> {
        QueueView {
            id: queue.id,
            name: &queue.key.name,
        }
    }
}

/// A job with all of its fields.
#[derive(Serialize)]
struct JobView<'a> {
    id: i64,
    payload: &'a RawValue,
    events: Box<RawValue>,
    state: &'a RawValue,
    /// Seconds since 1970.
    modified: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

/// A job of a list. Its log is formatted only when it is written, so that one log is in memory at a time.
struct Listed<'a>(&'a Record);

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        view(self.0, None).serialize(serializer)
    }
}

/// A list of jobs.
#[derive(Serialize)]
struct JobsView<'a> {
    jobs: Vec<Listed<'a>>,
    /// The ID after which the next page starts, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<i64>,
}

fn view<'a>(record: &'a Record, error: Option<&'static str>) -> JobView<'a> {
    JobView {
        id: record.id,
        payload: raw(&record.payload),
        events: RawValue::from_string(record.events()).unwrap_or_default(),
        state: raw(record.state_text()),
        modified: record.modified.whole_seconds(),
        error,
    }
}

fn raw(text: &str) -> &RawValue {
    body::stored(text).unwrap_or(RawValue::NULL)
}

/// A job.
pub fn job(record: &Record) -> Response {
    single(record, None)
}

/// A job whose state differs from the one that the client expected.
pub fn conflict(record: &Record) -> Response {
    single(record, Some("the state has changed"))
}

fn single(record: &Record, error: Option<&'static str>) -> Response {
    body::process(record.bytes(), || json(&view(record, error)))
}

/// A list of jobs, and the ID after which the next page starts.
///
/// # Errors
/// [`Error::ResponseTooLarge`].
pub fn jobs(records: &[Record], next: Option<i64>) -> Result<Response, Error> {
    let bytes = records.iter().map(Record::bytes).sum();
    let text = body::process(bytes, || {
        let jobs = records.iter().map(Listed).collect();
        body::text(&JobsView { jobs, next })
    })?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}
