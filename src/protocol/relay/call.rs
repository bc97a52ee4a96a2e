//! A request: its path, query and body. Syntax errors are 400; a wrong type, range or length is 422.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::error::ApiError;
use crate::engine::{Enqueue, Mode, QueueKey, Run, Time};
use crate::memory;
use crate::protocol::body::{self, Whole};
use crate::protocol::common_error::CommonError;
use crate::protocol::request::RequestWithBody;

/// Maximum length of a queue name or ID, in characters (API document, Job Structure).
const NAME_CHARS_MAX: usize = 1_024;

/// Maximum timeout, in seconds (API document, Job Structure).
const TIMEOUT_S_MAX: i64 = 2_147_483_647;
/// Maximum number of retries (API document, Job Structure).
const RETRIES_MAX: i64 = 32_767;

/// A request.
pub struct Call(RequestWithBody);

/// A job in a request. It accepts the jobs of responses, so that a fetched job can be sent back.
#[derive(Deserialize)]
struct NewJob<'a> {
    queue: String,
    id: String,
    timeout: Whole,
    #[serde(default)]
    max_retries: Option<Whole>,
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(default, borrow)]
    state: Option<&'a RawValue>,
    #[serde(default)]
    run_at: Option<DateTime<Utc>>,
}

impl Call {
    /// Reads a request, including its body.
    pub async fn read(request: Request, body_max: usize) -> Result<Call, ApiError> {
        Ok(Call(RequestWithBody::read(request, body_max).await?))
    }

    pub fn queue(&self) -> Result<QueueKey, ApiError> {
        let queue = self.0.part("queue");
        check_name("queue", queue)?;
        Ok(QueueKey::relay(queue))
    }

    pub fn id(&self) -> Result<&str, ApiError> {
        let id = self.0.part("id");
        check_name("id", id)?;
        Ok(id)
    }

    pub fn run(&self) -> Result<Run, ApiError> {
        let run_id = Uuid::parse_str(self.0.part("run_id"));
        let run_id = run_id.map_err(|_| ApiError::Bad("the run ID is not a UUID".to_owned()))?;
        Ok(Run {
            queue: self.queue()?,
            id: self.id()?.to_owned(),
            run_id: run_id.simple().to_string(),
        })
    }

    /// An unknown mode means the default, `unique`, as in the original server.
    pub fn mode(&self) -> Mode {
        match self.0.parameter("mode") {
            Some("ignore") => Mode::Ignore,
            Some("replace") => Mode::Replace,
            _ => Mode::Unique,
        }
    }

    /// The number of requested jobs, at least 1.
    pub fn requested_jobs(&self) -> Result<i64, ApiError> {
        let number = self.0.parameter("num_jobs").map_or(Ok(1), str::parse);
        let number = number.ok().filter(|number| *number >= 1);
        number
            .ok_or_else(|| ApiError::Bad("num_jobs must be a whole number of 1 or more".to_owned()))
    }

    fn body(&self) -> Result<&Bytes, ApiError> {
        let body = self.0.body.as_ref();
        body.map_err(|error| CommonError::Body(*error).into())
    }

    /// The validated jobs of the body.
    pub async fn jobs(&self) -> Result<Vec<Enqueue>, ApiError> {
        let body = self.body()?;
        if !is_json(&self.0.headers) {
            return Err(ApiError::NotJson);
        }
        let parsed = body::parse(body.len(), || {
            let jobs: Vec<NewJob<'_>> =
                serde_json::from_slice(body).map_err(|error| json_error(&error))?;
            // The payloads are copied, and names twice. A small job occupies many times its length.
            memory::count(2 * body.len() + jobs.len() * JOB_BYTES);
            jobs.into_iter().map(enqueue).collect()
        });
        parsed.await?
    }

    /// The new state of the job: `None` to keep it (empty body), `Some(None)` to clear it (null), or JSON text.
    pub async fn state(&self) -> Result<Option<Option<String>>, ApiError> {
        let body = self.body()?;
        if body.trim_ascii().is_empty() {
            return Ok(None);
        }
        let parsed = body::parse(body.len(), || {
            memory::count(body.len());
            let state: &RawValue =
                serde_json::from_slice(body).map_err(|error| json_error(&error))?;
            Ok(Some(stored_state(Some(state))?))
        });
        parsed.await?
    }
}

/// What a job occupies in a list with spare capacity, and in what the verb needs.
const JOB_BYTES: usize = 2 * size_of::<Enqueue>() + 80;

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")
}

fn json_error(error: &serde_json::Error) -> ApiError {
    let why = format!("invalid request body: {}", body::reason(error));
    match error.classify() {
        Category::Data => ApiError::Unprocessable(why),
        Category::Io | Category::Syntax | Category::Eof => ApiError::Bad(why),
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), ApiError> {
    if name.chars().count() > NAME_CHARS_MAX {
        let why = format!("{field} is longer than {NAME_CHARS_MAX} characters");
        return Err(ApiError::Unprocessable(why));
    }
    if name.contains('\0') {
        return Err(ApiError::Unprocessable(format!("{field} contains NUL")));
    }
    Ok(())
}

fn enqueue(job: NewJob<'_>) -> Result<Enqueue, ApiError> {
    check_name("queue", &job.queue)?;
    check_name("id", &job.id)?;
    let of_job = |why: &str| {
        let (id, queue) = (&job.id, &job.queue);
        ApiError::Unprocessable(format!("job \"{id}\" in queue \"{queue}\": {why}"))
    };
    let Whole(timeout_s) = job.timeout;
    if !(0..=TIMEOUT_S_MAX).contains(&timeout_s) {
        return Err(of_job("timeout must be from 0 to 2147483647 s"));
    }
    let max_retries = job.max_retries.map(|Whole(retries)| retries);
    if max_retries.is_some_and(|retries| !(0..=RETRIES_MAX).contains(&retries)) {
        return Err(of_job("max_retries must be from 0 to 32767, or null"));
    }
    if has_nul(job.payload) {
        return Err(of_job("the payload contains NUL"));
    }
    Ok(Enqueue {
        queue: QueueKey::relay(job.queue),
        id: job.id,
        timeout_s,
        max_retries,
        payload: job.payload.get().to_owned(),
        state: stored_state(job.state)?,
        run_at: job.run_at.map(|at| Time(at.timestamp_micros())),
    })
}

/// The state as it is stored: `None` for null.
fn stored_state(state: Option<&RawValue>) -> Result<Option<String>, ApiError> {
    let Some(state) = state.filter(|state| state.get() != "null") else {
        return Ok(None);
    };
    if has_nul(state) {
        return Err(ApiError::Unprocessable("the state contains NUL".to_owned()));
    }
    Ok(Some(state.get().to_owned()))
}

/// Whether a string in the JSON contains NUL, which Postgres cannot store. Searches the text, because parsed JSON can
/// occupy a hundred times its memory.
fn has_nul(json: &RawValue) -> bool {
    let text = json.get().as_bytes();
    memchr::memmem::find_iter(text, b"\\u0000").any(|at| {
        // After an odd number of backslashes, this one is not the beginning of an escape.
        let before = text.get(..at).unwrap_or_default().iter().rev();
        before.take_while(|byte| **byte == b'\\').count() % 2 == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_is_found_in_values_and_names() {
        for (json, expected) in [
            (r#""\u0000""#, true),
            (r#"[{"a\u0000":1}]"#, true),
            (r#""\\\u0000""#, true),
            (r#""\\u0000""#, false),
            (r#""\\\\u0000 u0000 \u00000""#, true),
            (r#""\\\\u0000 u0000 \u0001""#, false),
        ] {
            let json: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(has_nul(json), expected, "{json}");
        }
    }
}
