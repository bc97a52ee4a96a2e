//! A request: its path, query and body.

use std::sync::Arc;

use axum::extract::Request;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::refusal::Refusal;
use crate::engine::{Engine, Error, Queue, invalid_queue_name_reason};
use crate::protocol::request::{Asked, NoBody};
use crate::query::{self, Query};

/// Maximum number of jobs in a response.
const JOBS_MAX: i64 = 10_000;
/// Default number of jobs in a list.
const LISTED: i64 = 1_000;
/// Default number of jobs in the result of a query.
const QUERIED: i64 = 100;

/// The queue of paths without a queue.
const THE_QUEUE: &str = "default";

/// A request.
pub struct Call(Asked);

#[derive(Deserialize)]
struct NewQueue {
    name: String,
}

#[derive(Deserialize)]
struct NewJob<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(default, borrow)]
    state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Asking<'a> {
    #[serde(default, borrow, deserialize_with = "said")]
    query: Option<&'a RawValue>,
    #[serde(default = "queried")]
    limit: i64,
}

/// Deserializes null as `Some`, to distinguish it from a missing field.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

fn queried() -> i64 {
    QUERIED
}

#[derive(Deserialize)]
struct Polling<'a> {
    #[serde(borrow)]
    query: &'a RawValue,
    #[serde(borrow)]
    state: &'a RawValue,
}

#[derive(Deserialize)]
struct Swapping<'a> {
    #[serde(borrow)]
    old: &'a RawValue,
    #[serde(borrow)]
    new: &'a RawValue,
}

impl Call {
    /// Reads a request, including its body.
    pub async fn read(request: Request, body_max: usize) -> Result<Call, Refusal> {
        Ok(Call(Asked::read(request, body_max).await?))
    }

    /// The queue, given by its number or name. A path without a queue, as clients of the original server use it, means
    /// the queue `default`, which is created if it does not exist.
    pub async fn queue(&self, engine: &Engine) -> Result<Arc<Queue>, Refusal> {
        if self.0.has_part("queue") {
            return Ok(engine.record_queue(self.0.part("queue")).await?);
        }
        match engine.record_queue(THE_QUEUE).await {
            Err(Error::NoSuchQueue { .. }) => {}
            found => return Ok(found?),
        }
        match engine.create_queue(THE_QUEUE).await {
            // Another request may have created the queue at the same time.
            Ok(_) | Err(Error::QueueExists { .. }) => Ok(engine.record_queue(THE_QUEUE).await?),
            Err(error) => Err(error.into()),
        }
    }

    /// The number of the job.
    ///
    /// # Errors
    /// "No such job", also if the path has no number.
    pub fn id(&self) -> Result<i64, Refusal> {
        let id = self.0.part("id");
        let is_plain = id.bytes().all(|byte| byte.is_ascii_digit());
        let number = id.parse().ok().filter(|_| is_plain);
        number.ok_or_else(|| self.no_such_job())
    }

    pub fn no_such_job(&self) -> Refusal {
        let id = self.0.part("id").to_owned();
        Error::NoSuchJob { id }.into()
    }

    /// The ID after which the page starts, and the maximum number of jobs.
    pub fn page(&self) -> Result<(i64, usize), Refusal> {
        let number = |name: &str, default: i64| {
            let text = self.0.parameter(name);
            let number = text.map_or(Ok(default), str::parse);
            number.map_err(|_| Refusal::Bad(format!("{name} must be a whole number")))
        };
        Ok((number("after", 0)?, count(number("limit", LISTED)?)?))
    }

    /// The name of a new queue.
    pub fn name(&self) -> Result<String, Refusal> {
        let NewQueue { name } = self.object()?;
        match invalid_queue_name_reason(&name) {
            Some(why) => Err(Refusal::Bad(why.to_owned())),
            None => Ok(name),
        }
    }

    /// Payload and state of a new job.
    pub fn new_job(&self) -> Result<(String, String), Refusal> {
        let NewJob { payload, state } = self.object()?;
        Ok((
            minified(payload)?,
            minified(state.unwrap_or(RawValue::NULL))?,
        ))
    }

    /// Payload and state of a new job; a body of any other form is the payload.
    pub fn new_job_or_payload(&self) -> Result<(String, String), Refusal> {
        let text = self.text()?;
        let whole: &RawValue = read(text)?;
        match serde_json::from_str::<NewJob<'_>>(whole.get()) {
            Ok(_) if text.trim_ascii_start().starts_with('{') => self.new_job(),
            _ => Ok((minified(whole)?, minified(RawValue::NULL)?)),
        }
    }

    /// A query and the maximum number of jobs.
    pub fn query(&self) -> Result<(Query, usize), Refusal> {
        let Asking { query, limit } = self.object()?;
        let query = Query::parse(query.map_or("[]", RawValue::get))?;
        Ok((query, count(limit)?))
    }

    /// A query and the new state of the job that it finds.
    pub fn poll(&self) -> Result<(Query, String), Refusal> {
        let Polling { query, state } = self.object()?;
        Ok((Query::parse(query.get())?, minified(state)?))
    }

    /// The expected state and the new one.
    pub fn swap(&self) -> Result<(String, String), Refusal> {
        let Swapping { old, new } = self.object()?;
        Ok((minified(old)?, minified(new)?))
    }

    /// An event: any JSON.
    pub fn event(&self) -> Result<String, Refusal> {
        minified(read(self.text()?)?)
    }

    /// The body as an object. Checked here, because serde also accepts an array for a struct.
    fn object<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Refusal> {
        let text = self.text()?;
        if !text.trim_ascii_start().starts_with('{') {
            let _: &RawValue = read(text)?;
            return Err(Refusal::Bad(
                "the request body must be a JSON object".to_owned(),
            ));
        }
        read(text)
    }

    fn text(&self) -> Result<&str, Refusal> {
        let bad = |why: &str| Err(Refusal::Bad(why.to_owned()));
        let body = match &self.0.body {
            Ok(body) => body,
            Err(NoBody::TooLarge) => return Err(Refusal::TooLarge),
            Err(NoBody::BrokeOff) => return bad("the request body ended early"),
            Err(NoBody::Late) => return bad("the request body did not arrive in time"),
        };
        std::str::from_utf8(body).or_else(|_| bad("the request body is not valid UTF-8"))
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Refusal> {
    serde_json::from_str(text)
        .map_err(|error| Refusal::Bad(format!("invalid request body: {error}")))
}

fn minified(json: &RawValue) -> Result<String, Refusal> {
    query::minified(json.get()).map_err(|error| Refusal::Bad(error.to_string()))
}

fn count(limit: i64) -> Result<usize, Refusal> {
    let limit = Some(limit).filter(|limit| (1..=JOBS_MAX).contains(limit));
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    limit.ok_or_else(|| Refusal::Bad(format!("limit must be a whole number from 1 to {JOBS_MAX}")))
}
