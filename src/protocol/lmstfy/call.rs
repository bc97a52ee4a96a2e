//! A request: its token, namespace, queue, parameters and body.
//!
//! Errors are checked in this order: names, pool, token, parameters, body.

use std::collections::HashSet;

use axum::extract::Request;
use axum::http::HeaderValue;
use bytes::Bytes;

use super::Front;
use super::refusal::Refusal;
use crate::engine::{Grant, QueueKey};
use crate::protocol::request::{Asked, Head, NoBody};

/// Maximum length of a namespace or queue name, in bytes (document, The limits on parameters).
const NAME_BYTES_MAX: usize = 255;

/// Maximum number of queues that one request consumes from.
const QUEUES_MAX: usize = 1_000;

/// Maximum number of jobs in a bulk request (document, Publish bulk jobs).
pub const BULK_MAX: usize = 64;

/// Allowance for commas and white space around each job of a bulk request, in bytes.
const SPACE_BYTES_MAX: usize = 1_024;

/// An authorized request.
pub struct Call {
    pub asked: Asked,
    /// The access that the token grants; `None` if tokens are not required.
    pub grant: Option<Grant>,
}

impl Call {
    /// Reads a request. Checks the names and the token before it reads the body.
    pub async fn read(request: Request, front: &Front) -> Result<Call, Refusal> {
        let bulk_max = (front.body_max + SPACE_BYTES_MAX) * BULK_MAX;
        let read = Asked::read_if(request, bulk_max, async |head: &Head| {
            check_names(head)?;
            admit(head, front).await
        });
        let (asked, grant) = read.await?;
        Ok(Call { asked, grant })
    }

    pub fn namespace(&self) -> &str {
        self.asked.part("namespace")
    }

    /// The queue of a path with a single queue.
    pub fn queue(&self) -> Result<QueueKey, Refusal> {
        let queue = self.asked.part("queue");
        if queue.starts_with('_') || !is_plain(queue) {
            return Err(Refusal::Bad("queue name contains forbidden characters"));
        }
        Ok(QueueKey::lmstfy(self.namespace(), queue))
    }

    /// The queues in order of priority, without duplicates.
    pub fn queues(&self) -> Result<Vec<QueueKey>, Refusal> {
        let named = || names(&self.asked).filter(|name| !name.is_empty());
        if !(1..=QUEUES_MAX).contains(&named().count()) {
            return Err(Refusal::Bad("invalid queue name(s)"));
        }
        let mut seen = HashSet::new();
        let each = named().filter(|name| seen.insert(*name));
        Ok(each
            .map(|name| QueueKey::lmstfy(self.namespace(), name))
            .collect())
    }

    pub fn job_id(&self) -> &str {
        self.asked.part("job_id")
    }

    /// The body, if it has at most `max` bytes.
    pub fn body(&self, max: usize) -> Result<&Bytes, Refusal> {
        match &self.asked.body {
            Ok(body) if body.len() > max => Err(Refusal::TooLarge),
            Ok(body) => Ok(body),
            Err(NoBody::TooLarge) => Err(Refusal::TooLarge),
            Err(NoBody::BrokeOff | NoBody::Late) => Err(Refusal::Bad("failed to read body")),
        }
    }

    /// A parameter that is a plain decimal number, or `default` if it is missing.
    pub fn number<N: TryFrom<u64>>(
        &self,
        name: &str,
        default: N,
        refusal: &'static str,
    ) -> Result<N, Refusal> {
        let Some(text) = self.asked.parameter(name) else {
            return Ok(default);
        };
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|_| is_plain);
        let number = number.and_then(|number| N::try_from(number).ok());
        number.ok_or(Refusal::Bad(refusal))
    }
}

/// The queue names in the path.
fn names(head: &Head) -> impl Iterator<Item = &str> {
    head.part("queue").split(',')
}

/// Checks the lengths of the namespace and of each queue name.
fn check_names(head: &Head) -> Result<(), Refusal> {
    let namespace = head.part("namespace");
    let is_too_long = |name: &str| name.len() > NAME_BYTES_MAX;
    if is_too_long(namespace) || names(head).any(is_too_long) {
        return Err(Refusal::Bad("namespace or queue name too long"));
    }
    if !is_plain(namespace) {
        return Err(Refusal::Bad("namespace name contains forbidden characters"));
    }
    if !names(head).filter(|name| !name.is_empty()).all(is_plain) {
        return Err(Refusal::Bad("queue name contains forbidden characters"));
    }
    Ok(())
}

async fn admit(head: &Head, front: &Front) -> Result<Option<Grant>, Refusal> {
    let shown = head.headers.get("x-token").map(HeaderValue::as_bytes);
    let shown = match shown.filter(|token| !token.is_empty()) {
        Some(token) => std::str::from_utf8(token).map_err(|_| Refusal::WrongToken)?,
        None => head.parameter("token").unwrap_or_default(),
    };
    let token = match shown.split_once(':') {
        Some((pool, _)) if pool != POOL => return Err(Refusal::NoSuchPool),
        Some((_, token)) => token,
        None => shown,
    };
    if front.no_auth {
        return Ok(None);
    }
    if token.is_empty() {
        return Err(Refusal::NoToken);
    }
    let grant = front
        .engine
        .authenticate_token(head.part("namespace"), token)
        .await?;
    grant.map(Some).ok_or(Refusal::WrongToken)
}

/// The only pool.
const POOL: &str = "default";

fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(is_plain)
}
