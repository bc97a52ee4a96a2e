//! A request: its token, namespace, queue, parameters and body.
//! A request is checked in this order: query string, names, pool, token, parameters, body.

use std::collections::HashSet;

use axum::extract::Request;
use axum::http::HeaderValue;
use bytes::Bytes;

use super::Api;
use super::error::ApiError;
use crate::auth::Rejected;
use crate::engine::{Grant, QueueKey, is_plain_name};
use crate::protocol::request::{BodyError, Head, RequestWithBody, plain_number};

/// Maximum length of a namespace or queue name, in bytes (API document, The limits on parameters).
const NAME_BYTES_MAX: usize = 255;

/// Maximum number of queues that one request consumes from.
const QUEUES_MAX: usize = 1_000;

/// Maximum number of jobs in a bulk request (API document, Publish bulk jobs).
pub const BULK_MAX: usize = 64;

/// Allowance for commas and whitespace around each job of a bulk request, in bytes.
const SEPARATOR_BYTES_MAX: usize = 1_024;

/// An authorized request.
pub struct Call {
    pub request: RequestWithBody,
    /// The access that the token grants; `None` if tokens are not required.
    pub grant: Option<Grant>,
}

impl Call {
    /// Reads a request. Checks the names and the token before it reads the body.
    pub async fn read(request: Request, api: &Api) -> Result<Call, ApiError> {
        let bulk_max = (api.body_max + SEPARATOR_BYTES_MAX) * BULK_MAX;
        let read = RequestWithBody::read_if(request, bulk_max, async |head: &Head| {
            check_names(head)?;
            authorize(head, api).await
        });
        let (request, grant) = read.await?;
        Ok(Call { request, grant })
    }

    pub fn namespace(&self) -> &str {
        self.request.part("namespace")
    }

    /// The queue of a path with a single queue.
    pub fn queue(&self) -> Result<QueueKey, ApiError> {
        let queue = self.request.part("queue");
        if queue.starts_with('_') || !is_plain_name(queue) {
            return Err(ApiError::Bad("queue name contains forbidden characters"));
        }
        Ok(QueueKey::lmstfy(self.namespace(), queue))
    }

    /// The queues in order of priority, without duplicates.
    pub fn queues(&self) -> Result<Vec<QueueKey>, ApiError> {
        let named = || names(&self.request).filter(|name| !name.is_empty());
        if !(1..=QUEUES_MAX).contains(&named().count()) {
            return Err(ApiError::Bad("invalid queue name(s)"));
        }
        let mut seen = HashSet::new();
        let each = named().filter(|name| seen.insert(*name));
        Ok(each
            .map(|name| QueueKey::lmstfy(self.namespace(), name))
            .collect())
    }

    pub fn job_id(&self) -> &str {
        self.request.part("job_id")
    }

    /// The body, if it has at most `max` bytes.
    pub fn body(&self, max: usize) -> Result<&Bytes, ApiError> {
        match &self.request.body {
            Ok(body) if body.len() > max => Err(ApiError::TooLarge),
            Ok(body) => Ok(body),
            Err(BodyError::TooLarge) => Err(ApiError::TooLarge),
            Err(BodyError::Busy) => Err(ApiError::Rejected(Rejected::Busy)),
            Err(BodyError::Incomplete | BodyError::TimedOut) => {
                Err(ApiError::Bad("failed to read body"))
            }
        }
    }

    /// A parameter that is a plain decimal number, or `default` if it is missing.
    pub fn number<N: TryFrom<u64>>(
        &self,
        name: &str,
        default: N,
        message: &'static str,
    ) -> Result<N, ApiError> {
        let Some(text) = self.request.parameter(name) else {
            return Ok(default);
        };
        let number = plain_number::<u64>(text).and_then(|number| N::try_from(number).ok());
        number.ok_or(ApiError::Bad(message))
    }
}

/// The queue names in the path.
fn names(head: &Head) -> impl Iterator<Item = &str> {
    head.part("queue").split(',')
}

/// Checks the lengths of the namespace and of each queue name.
fn check_names(head: &Head) -> Result<(), ApiError> {
    let namespace = head.part("namespace");
    let is_too_long = |name: &str| name.len() > NAME_BYTES_MAX;
    if is_too_long(namespace) || names(head).any(is_too_long) {
        return Err(ApiError::Bad("namespace or queue name too long"));
    }
    if !is_plain_name(namespace) {
        return Err(ApiError::Bad(
            "namespace name contains forbidden characters",
        ));
    }
    if !names(head)
        .filter(|name| !name.is_empty())
        .all(is_plain_name)
    {
        return Err(ApiError::Bad("queue name contains forbidden characters"));
    }
    Ok(())
}

async fn authorize(head: &Head, api: &Api) -> Result<Option<Grant>, ApiError> {
    let given = head.headers.get("x-token").map(HeaderValue::as_bytes);
    let given = match given.filter(|token| !token.is_empty()) {
        Some(token) => std::str::from_utf8(token).map_err(|_| ApiError::WrongToken)?,
        None => head.parameter("token").unwrap_or_default(),
    };
    let token = match given.split_once(':') {
        Some((pool, _)) if pool != POOL => return Err(ApiError::NoSuchPool),
        Some((_, token)) => token,
        None => given,
    };
    if api.no_auth {
        return Ok(None);
    }
    if token.is_empty() {
        return Err(ApiError::NoToken);
    }
    let grant = api
        .engine
        .authenticate_token(head.part("namespace"), token)
        .await?;
    grant.map(Some).ok_or(ApiError::WrongToken)
}

/// The only pool.
const POOL: &str = "default";
