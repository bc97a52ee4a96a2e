//! lmstfy's responses: a job as JSON.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::engine::{Job, QueueKey, State, Time};

/// A job. `msg` is set for consumed jobs.
#[derive(Serialize)]
pub struct JobView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<&'static str>,
    namespace: &'a str,
    queue: &'a str,
    job_id: &'a str,
    /// Base64.
    data: &'a str,
    /// Seconds until the job expires, rounded up; 0 if it never expires.
    ttl: i64,
    /// Milliseconds since the job was published.
    elapsed_ms: i64,
    /// How many more times the job can be consumed.
    remain_tries: i64,
    attributes: Option<&'a RawValue>,
}

const MICROS_A_SECOND: i64 = 1_000_000;
const MICROS_A_MILLI: i64 = 1_000;

impl<'a> JobView<'a> {
    pub fn of(job: &'a Job, queue: &'a QueueKey, now: Time) -> JobView<'a> {
        let left = |at: Time| at.0.saturating_sub(now.0).max(0);
        // `remaining` does not count the next try of a job that is neither running nor dead.
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

    /// The job in the response to a consumer.
    pub fn new_job(self) -> JobView<'a> {
        JobView {
            msg: Some("new job"),
            ..self
        }
    }
}
