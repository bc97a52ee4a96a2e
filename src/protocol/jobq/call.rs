//! A request: its path, query and body.

use std::sync::Arc;

use axum::extract::Request;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::ApiError;
use crate::engine::{Engine, Error, Queue, invalid_queue_name_reason};
use crate::memory::{self, SMALL_MAX};
use crate::protocol::body::{self, Whole};
use crate::protocol::common_error::CommonError;
use crate::protocol::request::{RequestWithBody, plain_number};
use crate::query::{self, Query};

/// Maximum number of jobs in a response.
const JOBS_MAX: i64 = 10_000;
/// Default number of jobs in a list.
const LIST_DEFAULT: i64 = 1_000;
/// Default number of jobs in the result of a query.
const QUERY_DEFAULT: i64 = 100;

/// The queue of paths without a queue.
const DEFAULT_QUEUE: &str = "default";

/// A request.
pub struct Call(RequestWithBody);

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
struct QueryBody<'a> {
    #[serde(default, borrow, deserialize_with = "null_as_some")]
    query: Option<&'a RawValue>,
    #[serde(default = "query_default")]
    limit: Whole,
}

/// Deserializes null as `Some`, to distinguish it from a missing field.
fn null_as_some<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

fn query_default() -> Whole {
    Whole(QUERY_DEFAULT)
}

#[derive(Deserialize)]
struct PollBody<'a> {
    #[serde(borrow)]
    query: &'a RawValue,
    #[serde(borrow)]
    state: &'a RawValue,
}

#[derive(Deserialize)]
struct StateChange<'a> {
    #[serde(borrow)]
    old: &'a RawValue,
    #[serde(borrow)]
    new: &'a RawValue,
}

impl Call {
    /// Reads a request, including its body.
    pub async fn read(request: Request, body_max: usize) -> Result<Call, ApiError> {
        Ok(Call(RequestWithBody::read(request, body_max).await?))
    }

    /// The queue, given by its ID or name. A path without a queue, as clients of the original server use it, means
    /// the queue `default`, which is created if it does not exist.
    pub async fn queue(&self, engine: &Engine) -> Result<Arc<Queue>, ApiError> {
        if self.0.has_part("queue") {
            return Ok(engine.record_queue(self.0.part("queue")).await?);
        }
        match engine.record_queue(DEFAULT_QUEUE).await {
            Err(Error::NoSuchQueue { .. }) => {}
            found => return Ok(found?),
        }
        match engine.create_queue(DEFAULT_QUEUE).await {
            // Another request may have created the queue at the same time.
            Ok(_) | Err(Error::QueueExists { .. }) => {
                Ok(engine.record_queue(DEFAULT_QUEUE).await?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The ID of the job.
    ///
    /// # Errors
    /// "No such job", also if the path has no whole number.
    pub fn id(&self) -> Result<i64, ApiError> {
        let number = plain_number(self.0.part("id"));
        number.ok_or_else(|| self.no_such_job())
    }

    pub fn no_such_job(&self) -> ApiError {
        let id = self.0.part("id").to_owned();
        Error::NoSuchJob { id }.into()
    }

    /// The ID after which the page starts, and the maximum number of jobs.
    pub fn page(&self) -> Result<(i64, usize), ApiError> {
        let number = |name: &str, default: i64| {
            let text = self.0.parameter(name);
            let number = text.map_or(Ok(default), str::parse);
            number.map_err(|_| ApiError::Bad(format!("{name} must be a whole number")))
        };
        Ok((number("after", 0)?, count(number("limit", LIST_DEFAULT)?)?))
    }

    /// The name of a new queue.
    pub fn name(&self) -> Result<String, ApiError> {
        let NewQueue { name } = self.object()?;
        match invalid_queue_name_reason(&name) {
            Some(why) => Err(ApiError::Bad(why.to_owned())),
            None => Ok(name),
        }
    }

    /// Payload and state of a new job.
    pub async fn new_job(&self) -> Result<(String, String), ApiError> {
        self.process(|| self.parse_new_job()).await
    }

    fn parse_new_job(&self) -> Result<(String, String), ApiError> {
        let NewJob { payload, state } = self.object()?;
        Ok((
            minified(payload)?,
            minified(state.unwrap_or(RawValue::NULL))?,
        ))
    }

    /// Payload and state of a new job; a body of any other form is the payload.
    pub async fn new_job_or_payload(&self) -> Result<(String, String), ApiError> {
        self.process(|| {
            let text = self.text()?;
            let whole: &RawValue = read(text)?;
            let is_object = text.trim_ascii_start().starts_with('{');
            match is_object && serde_json::from_str::<NewJob<'_>>(whole.get()).is_ok() {
                true => self.parse_new_job(),
                false => Ok((minified(whole)?, minified(RawValue::NULL)?)),
            }
        })
        .await
    }

    /// A query and the maximum number of jobs.
    pub async fn query(&self) -> Result<(Query, usize), ApiError> {
        self.process(|| {
            let QueryBody {
                query,
                limit: Whole(limit),
            } = self.object()?;
            let query = Query::parse(query.map_or("[]", RawValue::get))?;
            Ok((query, count(limit)?))
        })
        .await
    }

    /// A query and the new state of the job that it finds.
    pub async fn poll(&self) -> Result<(Query, String), ApiError> {
        self.process(|| {
            let PollBody { query, state } = self.object()?;
            Ok((Query::parse(query.get())?, minified(state)?))
        })
        .await
    }

    /// The expected state and the new one.
    pub async fn state_change(&self) -> Result<(String, String), ApiError> {
        self.process(|| {
            let StateChange { old, new } = self.object()?;
            Ok((minified(old)?, minified(new)?))
        })
        .await
    }

    /// An event: any JSON.
    pub async fn event(&self) -> Result<String, ApiError> {
        self.process(|| minified(read(self.text()?)?)).await
    }

    /// Parses the body. Reserves the memory of what a large one contains, which is copied.
    async fn process<T>(&self, parse: impl FnOnce() -> Result<T, ApiError>) -> Result<T, ApiError> {
        let bytes = self.0.body.as_ref().map_or(0, Bytes::len);
        if bytes <= SMALL_MAX {
            return parse();
        }
        let counted = || {
            memory::count(bytes);
            parse()
        };
        body::parse(bytes, counted).await?
    }

    /// The body as an object. Checked here, because serde also accepts an array for a struct.
    fn object<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        let text = self.text()?;
        if !text.trim_ascii_start().starts_with('{') {
            let _: &RawValue = read(text)?;
            return Err(ApiError::Bad(
                "the request body must be a JSON object".to_owned(),
            ));
        }
        read(text)
    }

    fn text(&self) -> Result<&str, ApiError> {
        let body = self.0.body.as_ref();
        let body = body.map_err(|error| CommonError::Body(*error))?;
        std::str::from_utf8(body)
            .map_err(|_| ApiError::Bad("the request body is not valid UTF-8".to_owned()))
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ApiError> {
    serde_json::from_str(text)
        .map_err(|error| ApiError::Bad(format!("invalid request body: {}", body::reason(&error))))
}

fn minified(json: &RawValue) -> Result<String, ApiError> {
    query::minified(json.get()).map_err(|error| ApiError::Bad(error.to_string()))
}

fn count(limit: i64) -> Result<usize, ApiError> {
    let limit = Some(limit).filter(|limit| (1..=JOBS_MAX).contains(limit));
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    limit.ok_or_else(|| ApiError::Bad(format!("limit must be a whole number from 1 to {JOBS_MAX}")))
}
