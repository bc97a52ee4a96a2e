//! Publish one job or several, or replace a job.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use serde_json::value::RawValue;

use super::call::{BULK_MAX, Call};
use super::error::ApiError;
use super::{Api, HandlerResult};
use crate::budget::UpTo;
use crate::engine::Publish;
use crate::memory::{self, SMALL_MAX};
use crate::protocol::body;

/// Default time to live of a job, in seconds (API document, Publish a job).
pub const TTL_S: u32 = 86_400;

/// Maximum number of attributes of a job; further ones are ignored. Longer keys and values are truncated.
const ATTRIBUTES_MAX: usize = 16;
const ATTRIBUTE_KEY_BYTES_MAX: usize = 32;
const ATTRIBUTE_VALUE_BYTES_MAX: usize = 128;

/// The prefix of the headers with attributes.
const ATTRIBUTE: &str = "job-attr-";

/// `PUT /api/:namespace/:queue`
pub async fn publish(api: Api, call: Call) -> HandlerResult {
    let (queue, parameters) = (call.queue()?, PublishParameters::of(&call)?);
    let job = parameters.job(call.body(api.body_max)?).await?;
    let ids = api.engine.publish(queue, vec![job]).await?;
    Ok(published(ids.first().map_or("", String::as_str)))
}

/// `PUT /api/:namespace/:queue/job/:job_id`: deletes the job and publishes a new one with another ID.
pub async fn republish(api: Api, call: Call) -> HandlerResult {
    let (queue, parameters) = (call.queue()?, PublishParameters::of(&call)?);
    let job = parameters.job(call.body(api.body_max)?).await?;
    let id = api.engine.republish(queue, call.job_id(), job).await?;
    Ok(published(&id))
}

/// `PUT /api/:namespace/:queue/bulk`: the text of each element of a JSON array is the body of a job.
pub async fn publish_several(api: Api, call: Call) -> HandlerResult {
    let (queue, parameters) = (call.queue()?, PublishParameters::of(&call)?);
    let text = call.body(usize::MAX)?;
    let elements = body::process(text.len(), || serde_json::from_slice(text));
    let UpTo::<BULK_MAX, &RawValue>(elements) =
        elements.map_err(|_| ApiError::Bad("request body should be an array of objects"))?;
    if elements.is_empty() {
        return Err(ApiError::Bad("no jobs"));
    }
    if elements.len() > BULK_MAX {
        return Err(ApiError::Bad("too many jobs"));
    }
    let job = |element: &&RawValue| match element.get().as_bytes() {
        body if body.len() > api.body_max => Err(ApiError::TooLarge),
        body => Ok(parameters.encode(body)),
    };
    let jobs = || elements.iter().map(job).collect::<Result<Vec<_>, _>>();
    let jobs = encoded(text.len(), jobs).await??;
    let ids = api.engine.publish(queue, jobs).await?;
    let body = Json(json!({ "msg": "published", "job_ids": ids }));
    Ok((StatusCode::CREATED, body).into_response())
}

fn published(id: &str) -> axum::response::Response {
    let body = Json(json!({ "msg": "published", "job_id": id }));
    (StatusCode::CREATED, body).into_response()
}

/// The parameters of a publish request.
struct PublishParameters {
    delay_s: u32,
    ttl_s: u32,
    tries: u16,
    versioned: bool,
    attributes: Option<String>,
}

impl PublishParameters {
    fn of(call: &Call) -> Result<PublishParameters, ApiError> {
        let delay_s = call.number("delay", 0, "invalid delay")?;
        let ttl_s = call.number("ttl", TTL_S, "invalid ttl")?;
        if ttl_s > 0 && ttl_s < delay_s {
            return Err(ApiError::Bad("ttl is shorter than delay"));
        }
        let tries = call.number("tries", 1, "invalid tries")?;
        if tries == 0 {
            return Err(ApiError::Bad("tries shouldn't be zero"));
        }
        let versioned = call
            .request
            .headers
            .get("enable-job-version")
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"yes"));
        Ok(PublishParameters {
            delay_s,
            ttl_s,
            tries,
            versioned,
            attributes: if versioned {
                attributes(&call.request.headers)
            } else {
                None
            },
        })
    }

    async fn job(&self, body: &[u8]) -> Result<Publish, ApiError> {
        encoded(body.len(), || self.encode(body)).await
    }

    fn encode(&self, body: &[u8]) -> Publish {
        Publish {
            body: BASE64.encode(body),
            delay_s: self.delay_s,
            ttl_s: self.ttl_s,
            tries: self.tries,
            versioned: self.versioned,
            attributes: self.attributes.clone(),
        }
    }
}

/// Calls `encode` for bodies of this size together, and reserves the memory of what it returns.
async fn encoded<T>(bytes: usize, encode: impl FnOnce() -> T) -> Result<T, ApiError> {
    if bytes <= SMALL_MAX {
        return Ok(encode());
    }
    let counted = || {
        memory::count(base64::encoded_len(bytes, true).unwrap_or(bytes));
        encode()
    };
    Ok(body::parse(bytes, counted).await?)
}

/// The attributes as the JSON text of an object, if there are any. Ignores values that are not valid UTF-8.
fn attributes(headers: &HeaderMap) -> Option<String> {
    let mut attributes = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(ATTRIBUTE)
            && let Ok(value) = std::str::from_utf8(value.as_bytes())
            && attributes.len() < ATTRIBUTES_MAX
        {
            let key = cut(key, ATTRIBUTE_KEY_BYTES_MAX);
            attributes
                .entry(key)
                .or_insert_with(|| cut(value, ATTRIBUTE_VALUE_BYTES_MAX));
        }
    }
    (!attributes.is_empty()).then(|| serde_json::to_string(&attributes).unwrap_or_default())
}

/// The longest prefix of at most `bytes_max` bytes that ends at a character boundary.
fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    /// The attributes that a job gets from these headers.
    fn kept(headers: &[(String, String)]) -> BTreeMap<String, String> {
        let mut map = HeaderMap::new();
        for (key, value) in headers {
            let name = HeaderName::try_from(format!("{ATTRIBUTE}{key}")).unwrap();
            map.append(name, HeaderValue::try_from(value).unwrap());
        }
        serde_json::from_str(&attributes(&map).unwrap()).unwrap()
    }

    #[test]
    fn a_job_has_16_attributes_of_32_and_128_bytes() {
        for (count, expected) in [(15, 15), (16, 16), (17, 16)] {
            let headers = (0..count).map(|n| (format!("k{n}"), "v".to_owned()));
            let headers: Vec<_> = headers.collect();
            assert_eq!(kept(&headers).len(), expected, "{count}");
        }
        for (key, value) in [(31, 127), (32, 128), (33, 129)] {
            let headers = [("k".repeat(key), "v".repeat(value))];
            let cut = ("k".repeat(key.min(32)), "v".repeat(value.min(128)));
            assert_eq!(kept(&headers), BTreeMap::from([cut]));
        }
    }
}
