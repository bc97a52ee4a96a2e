//! What lmstfy's clients get: a job as JSON.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::engine::{Job, QueueKey, State, Time};

/// A job. Consumed ones say that they are new.
#[derive(Serialize)]
pub struct JobView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<&'static str>,
    namespace: &'a str,
    queue: &'a str,
    job_id: &'a str,
    /// Base64.
    data: &'a str,
    /// Seconds that it has to live, those begun counted whole; 0 for ever.
    ttl: i64,
    /// Milliseconds since it was published.
    elapsed_ms: i64,
    /// How many more times it may be consumed.
    remain_tries: i64,
    attributes: Option<&'a RawValue>,
}

const MICROS_A_SECOND: i64 = 1_000_000;
const MICROS_A_MILLI: i64 = 1_000;

impl<'a> JobView<'a> {
    pub fn of(job: &'a Job, queue: &'a QueueKey, now: Time) -> JobView<'a> {
        let left = |at: Time| at.0.saturating_sub(now.0).max(0);
        // Of those that wait, the next try is one more.
        let next = match job.state {
            State::Running | State::Dead => 0,
            _ => 1,
        };
        JobView {
            msg: None,
            namespace: &queue.namespace,
            queue: &queue.name,
            job_id: &job.key.id,
            data: &job.body,
            ttl: job
                .expires_at
                .map_or(0, |at| (left(at) + MICROS_A_SECOND - 1) / MICROS_A_SECOND),
            elapsed_ms: now.0.saturating_sub(job.created_at.0).max(0) / MICROS_A_MILLI,
            remain_tries: (job.remaining + next).max(0),
            attributes: job
                .attributes
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok()),
        }
    }

    /// As its consumer gets it.
    pub fn new_job(self) -> JobView<'a> {
        JobView {
            msg: Some("new job"),
            ..self
        }
    }
}
