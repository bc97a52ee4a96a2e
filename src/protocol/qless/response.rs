//! Responses: the envelope around the results, and jobs as JSON.

use std::fmt::Write;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use super::call::Fields;
use super::error::ApiError;
use crate::engine::{
    Config, EffectiveState, Error, Event, EventKind, Failure, Job, Queues, State, Time, Tracked,
};
use crate::memory;
use crate::protocol::body;
use crate::request::ErrorCode;

/// The beginning of a response.
const START: &str = "{\"results\":";

/// The result of a handler, as JSON texts: the beginning of the response with `results`, unless they are too large, and
/// further keys.
pub struct Results {
    body: Result<String, Error>,
}

impl Results {
    pub fn new(results: &impl Serialize) -> Results {
        Results {
            body: body::text_after(START, results),
        }
    }

    /// Adds a key next to `results`.
    pub fn with_key(self, key: &'static str, value: &impl Serialize) -> Results {
        self.with_long_key(key, value, 0)
    }

    /// Adds a key with a value of about this many bytes.
    fn with_long_key(self, key: &'static str, value: &impl Serialize, bytes: usize) -> Results {
        let with_key = |body: String| {
            let mut body = body.into_bytes();
            body.reserve(bytes);
            body.extend_from_slice(format!(",\"{key}\":").as_bytes());
            // Cannot fail: the serialized types have text keys and finite numbers.
            serde_json::to_writer(&mut body, value).ok();
            String::from_utf8(body).map_err(|_| Error::ResponseTooLarge)
        };
        Results {
            body: self.body.and_then(with_key),
        }
    }

    /// The response to one item or an array of items. For an array, `results` has one entry per item, `false` for a
    /// failed one, and `errors` is added if any failed. The error of a single item is the error of the request.
    pub async fn of_items<T: Serialize>(
        items: Vec<Result<T, ApiError>>,
        array: bool,
    ) -> Result<Results, ApiError> {
        if !array {
            return match items.into_iter().next() {
                Some(item) => Ok(Results::new(&item?)),
                None => Ok(Results::new(&Value::Null)),
            };
        }
        let results: Vec<_> = items
            .iter()
            .map(|item| OrFalse(item.as_ref().ok()))
            .collect();
        let results = Results::new(&results);
        // The results are dropped before this may wait for memory.
        results
            .with_errors(items.into_iter().map(Result::err).collect())
            .await
    }

    /// Adds `errors`, with one entry per item, if any failed. Reserves memory for them.
    pub async fn with_errors(self, errors: Vec<Option<ApiError>>) -> Result<Results, ApiError> {
        if errors.iter().all(Option::is_none) {
            return Ok(self);
        }
        let bytes = body::process(errors.len() * ERROR_BYTES, || {
            errors.iter().flatten().map(ApiError::json_bytes).sum()
        });
        if memory::reserve_large(bytes).await.is_err() {
            return Err(Error::Busy.into());
        }
        let process = || self.with_long_key("errors", &Errors(&errors), bytes);
        Ok(body::process(bytes, process))
    }
}

/// About the size of an error in a response, in bytes.
const ERROR_BYTES: usize = 100;

/// The errors of items; null for the others.
struct Errors<'a>(&'a [Option<ApiError>]);

impl Serialize for Errors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let objects = self
            .0
            .iter()
            .map(|error| error.as_ref().map(ApiError::to_object));
        serializer.collect_seq(objects)
    }
}

/// A result, or `false`.
struct OrFalse<'a, T>(Option<&'a T>);

impl<T: Serialize> Serialize for OrFalse<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(result) => result.serialize(serializer),
            None => serializer.serialize_bool(false),
        }
    }
}

fn text(value: &impl Serialize) -> String {
    // Cannot fail: the serialized types have text keys and finite numbers.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// `Retry-After` of a request that failed because of an outage or a busy server, in seconds.
const RETRY_AFTER_S: &str = "1";

/// The HTTP response.
pub fn response(outcome: Result<Results, ApiError>, started: Instant) -> Response<Body> {
    let outcome = outcome.and_then(|results| Ok(results.body?));
    let retry_after = outcome.as_ref().is_err_and(ApiError::is_retryable);
    let code = outcome.as_ref().err().map(ApiError::code);
    let (status, mut body) = match outcome {
        Ok(body) => (StatusCode::OK, body),
        Err(error) => {
            if let ApiError::Engine(Error::Store(error)) = &error {
                tracing::error!(%error, "a qless request failed");
            }
            let object = text(&error.to_object());
            let fields = object
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            (
                error.status(),
                format!("{START}null,{}", fields.unwrap_or_default()),
            )
        }
    };
    let total_ms = started.elapsed().as_micros() as f64 / 1_000.0;
    // Cannot fail.
    write!(body, ",\"time\":{{\"total\":{total_ms}}}}}").ok();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    if let Some(code) = code {
        let api = "qless";
        response.extensions_mut().insert(ErrorCode { api, code });
    }
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
    }
    response
}

/// A number of seconds, formatted by [`number`].
pub struct Seconds(pub f64);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        number(self.0).serialize(serializer)
    }
}

/// A JSON number, without a fraction if it is whole: 5, not 5.0.
#[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
pub fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

/// A job in the format of the API document.
pub struct JobView<'a> {
    pub job: &'a Job,
    pub queues: &'a Queues,
    pub tracked: &'a Tracked,
    /// The time of the view; it decides whether a lease has expired.
    pub now: Time,
    /// The options, from which `cutoff` is read. Set only in the response to a claim, which also has `heartbeat`.
    pub claimed: Option<&'a Config>,
}

impl Serialize for JobView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let job = self.job;
        let complete = job.state == State::Complete;
        // A claimed job is shown as running even if its lease has already expired.
        let effective_state = match self.claimed {
            Some(_) => EffectiveState::Running,
            None => job.effective_state(self.now),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &job.key.id)?;
        map.serialize_entry("queue", &(!complete).then(|| self.queues.name(job.queue)))?;
        map.serialize_entry("meta", &body::stored(&job.body))?;
        map.serialize_entry("klass", &job.klass)?;
        map.serialize_entry("state", effective_state.as_str())?;
        map.serialize_entry("worker", &job.lease.as_ref().map(|lease| &lease.worker))?;
        map.serialize_entry(
            "expires",
            &job.lease
                .as_ref()
                .map(|lease| Seconds(lease.until.seconds())),
        )?;
        map.serialize_entry("priority", &number(job.priority))?;
        map.serialize_entry("retries", &job.retries)?;
        map.serialize_entry("remaining", &job.remaining)?;
        map.serialize_entry("tags", &job.tags)?;
        map.serialize_entry("tracked", &self.tracked.contains(&job.key.id))?;
        map.serialize_entry("dependencies", &job.dependencies)?;
        map.serialize_entry("dependents", &job.dependents)?;
        map.serialize_entry("failure", &job.failure.as_ref().map(FailureView))?;
        let events = job.events();
        let shown = |event: &&Event| event.what != EventKind::Retried;
        map.serialize_entry(
            "history",
            &events
                .iter()
                .filter(shown)
                .map(EventView)
                .collect::<Vec<_>>(),
        )?;
        map.serialize_entry("spawned_from", &job.spawned_from)?;
        if let (Some(config), Some(lease)) = (self.claimed, &job.lease) {
            map.serialize_entry("heartbeat", &Seconds(lease.until.seconds_from(job.since)))?;
            if let Some(cutoff) = config.cutoff_s(&self.queues.name(job.queue)) {
                map.serialize_entry("cutoff", &Seconds(cutoff))?;
            }
        }
        map.end()
    }
}

pub struct FailureView<'a>(pub &'a Failure);

impl Serialize for FailureView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("group", &self.0.group)?;
        map.serialize_entry("message", &self.0.message)?;
        map.serialize_entry("when", &self.0.at.whole_seconds())?;
        map.serialize_entry("worker", &self.0.worker)?;
        map.end()
    }
}

/// An event. Its time is truncated to seconds, as in qless-core.
pub struct EventView<'a>(pub &'a Event);

impl Serialize for EventView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event = self.0;
        let mut map = serializer.serialize_map(None)?;
        if event.what == EventKind::Note {
            map.serialize_entry("what", &event.subject)?;
            map.serialize_entry("when", &event.when.whole_seconds())?;
            let data = event.detail.as_deref().unwrap_or("{}");
            let data: Fields<'_> = serde_json::from_str(data).unwrap_or_default();
            for (key, value) in data.all() {
                map.serialize_entry(key, value)?;
            }
            return map.end();
        }
        map.serialize_entry("what", &event.what)?;
        map.serialize_entry("when", &event.when.whole_seconds())?;
        let (subject, detail) = match event.what {
            EventKind::Put => (Some("q"), None),
            EventKind::Popped => (Some("worker"), None),
            EventKind::Failed => (Some("group"), Some("worker")),
            // Without further fields. `Note` is handled above; from `DeadLettered` on, they are of other protocols.
            EventKind::TimedOut
            | EventKind::Retried
            | EventKind::Done
            | EventKind::Note
            | EventKind::DeadLettered
            | EventKind::Respawned
            | EventKind::Created
            | EventKind::Advanced
            | EventKind::Event => (None, None),
        };
        if let (Some(key), Some(value)) = (subject, &event.subject) {
            map.serialize_entry(key, value)?;
        }
        if let (Some(key), Some(value)) = (detail, &event.detail) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
