//! A request: who calls, of which namespace and queue, with which parameters and body.
//!
//! What is wrong is told in this order: names, pool, token, parameters, body.

use axum::extract::Request;
use axum::http::HeaderValue;
use bytes::Bytes;

use super::Front;
use super::refusal::Refusal;
use crate::engine::{Grant, QueueKey};
use crate::protocol::request::{Asked, NoBody};

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
    /// Reads a request, whole, and sees who calls.
    pub async fn read(request: Request, front: &Front) -> Result<Call, Refusal> {
        let bulk_max = (front.body_max + SPACE_BYTES_MAX) * BULK_MAX;
        let asked = Asked::read(request, bulk_max).await?;
        let mut call = Call { asked, grant: None };
        call.check_names()?;
        call.grant = call.admit(front).await?;
        Ok(call)
    }

    /// A namespace's and a queue's name. Where several queues may stand, each has this length.
    fn check_names(&self) -> Result<(), Refusal> {
        let is_too_long = |name: &str| name.len() > NAME_BYTES_MAX;
        if is_too_long(self.namespace()) || self.names().any(is_too_long) {
            return Err(Refusal::Bad("namespace or queue name too long"));
        }
        if !is_plain(self.namespace()) {
            return Err(Refusal::Bad("namespace name contains forbidden characters"));
        }
        let mut names = self.names().filter(|name| !name.is_empty());
        if !names.all(is_plain) {
            return Err(Refusal::Bad("queue name contains forbidden characters"));
        }
        Ok(())
    }

    async fn admit(&self, front: &Front) -> Result<Option<Grant>, Refusal> {
        let shown = self.asked.headers.get("x-token").map(HeaderValue::as_bytes);
        let shown = match shown.filter(|token| !token.is_empty()) {
            Some(token) => std::str::from_utf8(token).map_err(|_| Refusal::WrongToken)?,
            None => self.asked.parameter("token").unwrap_or_default(),
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
        let grant = front.engine.admit(self.namespace(), token).await?;
        grant.map(Some).ok_or(Refusal::WrongToken)
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

    /// The queues as they stand in the path.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.asked.part("queue").split(',')
    }

    /// The queues, each once, in the order of their priority.
    pub fn queues(&self) -> Result<Vec<QueueKey>, Refusal> {
        let mut queues: Vec<QueueKey> = Vec::new();
        for name in self.names().filter(|name| !name.is_empty()) {
            if !queues.iter().any(|queue| queue.name == name) {
                queues.push(QueueKey::lmstfy(self.namespace(), name));
            }
        }
        if queues.is_empty() || queues.len() > QUEUES_MAX {
            return Err(Refusal::Bad("invalid queue name(s)"));
        }
        Ok(queues)
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

/// The only pool there is.
const POOL: &str = "default";

fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(is_plain)
}
