//! Relay's responses: jobs as JSON, with payload and state as they were stored.

use chrono::{DateTime, SecondsFormat};
use serde::Serialize;
use serde::ser::Serializer;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::engine::{Job, QueueKey, Time, UNLIMITED};
use crate::protocol::body;

/// A job.
#[derive(Serialize)]
pub struct JobView<'a> {
    id: &'a str,
    queue: &'a str,
    timeout: i64,
    max_retries: Option<i64>,
    retries_remaining: Option<i64>,
    payload: &'a RawValue,
    state: Option<&'a RawValue>,
    run_id: Option<Uuid>,
    #[serde(serialize_with = "rfc3339")]
    run_at: Time,
    #[serde(serialize_with = "rfc3339")]
    updated_at: Time,
    #[serde(serialize_with = "rfc3339")]
    created_at: Time,
}

/// Jobs of one queue.
pub fn views<'a>(jobs: impl IntoIterator<Item = &'a Job>, queue: &'a QueueKey) -> Vec<JobView<'a>> {
    let counted = |retries: i64| (retries != UNLIMITED).then_some(retries);
    let raw = |text: &'a str| body::stored(text).unwrap_or(RawValue::NULL);
    let view = |job: &'a Job| JobView {
        id: &job.key.id,
        queue: &queue.name,
        timeout: job.timeout_s.unwrap_or_default(),
        max_retries: counted(job.retries),
        retries_remaining: counted(job.remaining),
        payload: raw(&job.body),
        state: job.work_state.as_deref().map(raw),
        run_id: job
            .lease
            .as_ref()
            .and_then(|lease| Uuid::parse_str(&lease.id).ok()),
        run_at: job.ready_at,
        updated_at: job.updated_at.unwrap_or(job.created_at),
        created_at: job.created_at,
    };
    jobs.into_iter().map(view).collect()
}

/// RFC 3339 with up to microseconds.
fn rfc3339<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    let time = DateTime::from_timestamp_micros(time.0).unwrap_or_default();
    serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}
