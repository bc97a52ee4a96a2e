//! A request: its path, query, body and sender, and the fields in them.
//!
//! Every error of a field names the field, as the error table of the API document requires.

mod fields;

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{FromRequest, RawPathParams, Request};
use axum::http::Method;
use bytes::Bytes;
use serde_json::value::RawValue;

use fields::check_name;
pub use fields::{Fields, invalid_name_reason};

use super::error::ApiError;
use crate::auth::Rejected;
use crate::budget::UpTo;
use crate::engine::{NAME_BYTES_MAX, OffsetPage, Time};
use crate::memory;
use crate::protocol::body;
use crate::protocol::request::{self, BodyError, BodyReader, PARAMETERS_MAX, plain_number};
use crate::request::ClientAddress;

/// Maximum size of a request body, in bytes.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of items in a request and of entries in a page.
pub const ITEMS_MAX: usize = 10_000;

/// Maximum time that a request waits for jobs, in seconds.
const WAIT_S_MAX: f64 = 60.0;

/// Default number of entries in a page (qless-core, Failed, Jobs, Tag).
const PAGE: usize = 25;

/// A request.
pub struct Call {
    path: RawPathParams,
    query: Vec<(String, String)>,
    body: Bytes,
    peer: Option<IpAddr>,
    has_body: bool,
}

/// Bytes that a short query parameter occupies: two texts and their allocations, with spare capacity, and a copy.
const PAIR_BYTES: usize = 2 * (size_of::<(String, String)>() + 2 * fields::ALLOCATION_OVERHEAD);

impl<S: Send + Sync> FromRequest<S> for Call {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Call, ApiError> {
        let (mut parts, body) = request.into_parts();
        let path = <RawPathParams as axum::extract::FromRequestParts<S>>::from_request_parts(
            &mut parts, state,
        )
        .await
        .map_err(|_| ApiError::bad("path", "the path is not valid UTF-8"))?;
        if path.iter().any(|(_, value)| value.is_empty()) {
            return Err(ApiError::NoSuchEndpoint);
        }
        let peer = ClientAddress::of(&parts.extensions);
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let has_body = matches!(parts.method, Method::POST | Method::PUT);
        let body = BodyReader::of(&parts, body);
        drop(parts);
        let body = body.read(BODY_BYTES_MAX).await;
        // Only after the body, which can arrive slowly: the parsed parameters occupy many times their length.
        let query = body::parse(query.len(), || {
            let pairs = request::pairs(&query, ITEMS_MAX + PARAMETERS_MAX);
            memory::count(pairs.as_ref().map_or(0, Vec::len) * PAIR_BYTES);
            pairs
        });
        let query = query.await?;
        Ok(Call {
            path,
            query: query.map_err(|why| ApiError::bad("query", why.message()))?,
            body: body.map_err(body_error)?,
            peer,
            has_body,
        })
    }
}

fn body_error(why: BodyError) -> ApiError {
    match why {
        BodyError::TooLarge => ApiError::TooLarge,
        BodyError::Incomplete => ApiError::bad("body", "the request body ended early"),
        BodyError::TimedOut => ApiError::bad("body", "the request body did not arrive in time"),
        BodyError::Busy => ApiError::Rejected(Rejected::Busy),
    }
}

impl Call {
    /// A name in the path.
    pub fn name(&self, field: &'static str) -> Result<&str, ApiError> {
        self.name_up_to(field, NAME_BYTES_MAX)
    }

    /// A name in the path, if the route has it.
    pub fn optional_name(&self, field: &'static str) -> Result<Option<&str>, ApiError> {
        self.path(field).map(|_| self.name(field)).transpose()
    }

    /// A name in the path with its own length limit.
    pub fn name_up_to(&self, field: &'static str, bytes_max: usize) -> Result<&str, ApiError> {
        let value = self.path(field).ok_or(ApiError::NoSuchEndpoint)?;
        check_name(field, value, bytes_max)?;
        Ok(value)
    }

    /// All values of a query parameter.
    pub fn names(&self, field: &'static str) -> Result<Vec<&str>, ApiError> {
        let given = self.query.iter().filter(|(name, _)| name == field);
        let names: Vec<&str> = given.map(|(_, value)| value.as_str()).collect();
        if names.len() > ITEMS_MAX {
            return Err(ApiError::bad(
                field,
                &format!("{field} can be given at most {ITEMS_MAX} times"),
            ));
        }
        names
            .iter()
            .try_for_each(|name| check_name(field, name, NAME_BYTES_MAX))?;
        Ok(names)
    }

    /// The count in the path or in the query, from 1 to [`ITEMS_MAX`]; `None` if there is none.
    pub fn count(&self) -> Result<Option<usize>, ApiError> {
        let text = self.path("count").or_else(|| self.query("count"));
        text.map(|text| one_to_max("count", plain_number(text)))
            .transpose()
    }

    /// `limit` of the query, from 1 to [`ITEMS_MAX`], or `default`.
    pub fn limit(&self, default: usize) -> Result<usize, ApiError> {
        self.query("limit")
            .map_or(Ok(default), |text| one_to_max("limit", plain_number(text)))
    }

    /// `wait` of the query: how long to wait for jobs.
    pub fn wait(&self) -> Result<Duration, ApiError> {
        self.query("wait").map_or(Ok(Duration::ZERO), |text| {
            wait(text.parse().unwrap_or(f64::NAN))
        })
    }

    /// A query parameter.
    pub fn parameter(&self, field: &str) -> Option<&str> {
        self.query(field)
    }

    /// A query parameter that is an unsigned number.
    pub fn number(&self, field: &'static str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.query(field) else {
            return Ok(None);
        };
        let number = plain_number::<usize>(text).and_then(|number| i64::try_from(number).ok());
        number
            .map(Some)
            .ok_or_else(|| ApiError::bad(field, &format!("{field} must be a whole number")))
    }

    /// `date` of the path, in seconds since 1970 or as a UTC day YYYY-MM-DD; `None` if the path has none.
    pub fn date(&self) -> Result<Option<Time>, ApiError> {
        let Some(text) = self.path("date") else {
            return Ok(None);
        };
        let moment = text
            .parse::<f64>()
            .ok()
            .and_then(Time::from_seconds)
            .or_else(|| Time::from_date(text));
        moment
            .map(Some)
            .ok_or_else(|| ApiError::bad("date", "date must be Unix seconds or YYYY-MM-DD"))
    }

    /// `offset` and `limit` of the query.
    pub fn page(&self) -> Result<OffsetPage, ApiError> {
        let number = |field: &'static str, default: usize, max: usize| match self.query(field) {
            None => Ok(default),
            Some(text) => plain_number(text)
                .filter(|number| *number <= max)
                .ok_or_else(|| {
                    ApiError::bad(
                        field,
                        &format!("{field} must be an integer from 0 to {max}"),
                    )
                }),
        };
        Ok(OffsetPage {
            offset: number("offset", 0, u32::MAX as usize)?,
            limit: number("limit", PAGE, ITEMS_MAX)?,
        })
    }

    /// A boolean query parameter; false if it is missing.
    pub fn bool_parameter(&self, field: &'static str) -> Result<bool, ApiError> {
        match self.query(field) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(ApiError::bad(
                field,
                &format!("{field} must be true or false"),
            )),
        }
    }

    /// The envelope of a request with or without a body. Without one, there is no `data`.
    pub async fn envelope(&self) -> Result<Envelope<'_>, ApiError> {
        if !self.has_body || self.body.is_empty() {
            return self.envelope_of(&Fields::default());
        }
        let text = std::str::from_utf8(&self.body)
            .map_err(|_| ApiError::bad("body", "the request body is not valid UTF-8"))?;
        // Names and hosts with escapes are copied, however long.
        let read = || {
            let fields = serde_json::from_str(text).map_err(|error| {
                let why = body::reason(&error);
                let why = format!("the request body must be a JSON object: {why}");
                ApiError::bad("body", &why)
            })?;
            self.envelope_of(&fields)
        };
        body::parse(text.len(), read).await?
    }

    fn envelope_of<'a>(&'a self, fields: &Fields<'a>) -> Result<Envelope<'a>, ApiError> {
        let host = match (fields.text("host")?, self.query("host")) {
            (Some(host), _) => host,
            (None, Some(host)) if !self.has_body => Cow::Borrowed(host),
            _ => Cow::Owned(self.peer.map(|it| it.to_string()).unwrap_or_default()),
        };
        check_name("host", &host, NAME_BYTES_MAX)?;
        Ok(Envelope {
            data: fields.get("data"),
            host: host.into_owned(),
            now: fields.get("now"),
            query_now: self.query("now").filter(|_| !self.has_body),
        })
    }

    /// Whether the method of the request has a body.
    pub fn has_body(&self) -> bool {
        self.has_body
    }

    fn path(&self, field: &str) -> Option<&str> {
        self.path
            .iter()
            .find(|(name, _)| *name == field)
            .map(|(_, value)| value)
    }

    fn query(&self, field: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(name, _)| name == field)
            .map(|(_, value)| value.as_str())
    }
}

/// The fields that every request can have.
pub struct Envelope<'a> {
    data: Option<&'a RawValue>,
    /// The name of the worker or client.
    pub host: String,
    now: Option<&'a RawValue>,
    query_now: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    /// The client's time, if the server trusts client clocks.
    pub fn now(&self, trusted: bool) -> Result<Option<Time>, ApiError> {
        if !trusted {
            return Ok(None);
        }
        let text = match (self.now, self.query_now) {
            (Some(raw), _) if raw.get() == "null" => return Ok(None),
            (Some(raw), _) => raw.get(),
            (None, Some(text)) => text,
            (None, None) => return Ok(None),
        };
        let seconds = text.parse::<f64>().ok().and_then(Time::from_seconds);
        seconds
            .map(Some)
            .ok_or_else(|| ApiError::bad("now", "now must be a finite number of Unix seconds"))
    }

    /// `data`, which is required.
    pub fn data(&self) -> Result<&'a RawValue, ApiError> {
        self.data
            .ok_or_else(|| ApiError::bad("data", "data is missing"))
    }

    /// The items of `data`, and whether it is an array. `read` parses an item.
    pub async fn items<T>(
        &self,
        read: impl Fn(&RawValue) -> Result<T, ApiError>,
    ) -> Result<(Vec<Result<T, ApiError>>, bool), ApiError> {
        let data = self.data()?;
        let parsed = body::parse(data.get().len(), || {
            let (items, is_array) = items(data)?;
            // The payloads and messages are copied. The items count twice, because the handlers collect what they have
            // read again.
            let each = 2 * size_of::<Result<T, ApiError>>() + ERROR_BYTES;
            memory::count(data.get().len() + items.len() * each);
            Ok((items.into_iter().map(read).collect(), is_array))
        });
        parsed.await?
    }
}

/// What the texts of an item's error occupy.
const ERROR_BYTES: usize = 400;

/// The items of `data`, and whether it is an array.
fn items(data: &RawValue) -> Result<(Vec<&RawValue>, bool), ApiError> {
    if !data.get().starts_with('[') {
        return Ok((vec![data], false));
    }
    let UpTo::<ITEMS_MAX, &RawValue>(items) = serde_json::from_str(data.get())
        .map_err(|error| ApiError::bad("data", &error.to_string()))?;
    if items.len() > ITEMS_MAX {
        return Err(ApiError::bad(
            "data",
            &format!("data can have at most {ITEMS_MAX} items"),
        ));
    }
    Ok((items, true))
}

/// A time to wait, from 0 to 60 s.
pub fn wait(seconds: f64) -> Result<Duration, ApiError> {
    if (0.0..=WAIT_S_MAX).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(ApiError::bad(
        "wait",
        &format!("wait must be a number of seconds from 0 to {WAIT_S_MAX}"),
    ))
}

/// A number from 1 to [`ITEMS_MAX`].
pub fn one_to_max(field: &'static str, number: Option<usize>) -> Result<usize, ApiError> {
    match number {
        Some(number) if (1..=ITEMS_MAX).contains(&number) => Ok(number),
        _ => Err(ApiError::bad(
            field,
            &format!("{field} must be an integer from 1 to {ITEMS_MAX}"),
        )),
    }
}
