//! A request: who calls, of which namespace and queue, with which parameters and body.
//!
//! What is wrong is told in this order: names, pool, token, parameters, body.

use std::collections::HashSet;

use axum::extract::Request;
use axum::http::HeaderValue;
use bytes::Bytes;

use super::Front;
use super::refusal::Refusal;
use crate::engine::{Grant, QueueKey};
use crate::protocol::request::{Asked, Head, NoBody};

/// The longest name of a namespace or a queue (document, The limits on parameters).
const NAME_BYTES_MAX: usize = 255;

/// Queues that one request may consume from.
const QUEUES_MAX: usize = 1_000;

/// Jobs in one bulk (document, Publish bulk jobs).
pub const BULK_MAX: usize = 64;

/// In a bulk, what may stand around each job.
const SPACE_BYTES_MAX: usize = 1_024;

/// A request of somebody who may make it.
pub struct Call {
    pub asked: Asked,
    /// What it has shown a token for, where one is needed.
    pub grant: Option<Grant>,
}

impl Call {
    /// Reads a request, whole. Names and token are checked before the body is read.
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

    /// The one queue.
    pub fn queue(&self) -> Result<QueueKey, Refusal> {
        let queue = self.asked.part("queue");
        if queue.starts_with('_') || !is_plain(queue) {
            return Err(Refusal::Bad("queue name contains forbidden characters"));
        }
        Ok(QueueKey::lmstfy(self.namespace(), queue))
    }

    /// The queues, each once, in the order of their priority.
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

    /// A parameter that is a plain decimal number, or what it is if it is not given.
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

/// The queues as they stand in the path.
fn names(head: &Head) -> impl Iterator<Item = &str> {
    head.part("queue").split(',')
}

/// A namespace's and a queue's name. Where several queues may stand, each has this length.
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

/// The only pool there is.
const POOL: &str = "default";

fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(is_plain)
}
