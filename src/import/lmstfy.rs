//! Translates the keys of lmstfy; `import/keys.rs` describes them.
//!
//! An element of a ready queue or a dead-letter queue is Lua's `struct.pack("HHc0", tries, #id, id)`, one of
//! `timer_set` is `struct.pack("Hc0Hc0HHc0", #namespace, namespace, #queue, queue, tries, #id, id)`, with 16 bits each
//! in little-endian order. The tries are the remaining ones. The ID is a ULID, whose last four bytes are the delay in
//! seconds; with a digit before it, the body is JSON with `body` and `attributes`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::Result;
use super::keys::{Keys, TIMERS};
use super::redis::{PAGE, Redis, Reply};
use super::target::Target;
use crate::engine::{Error, EventKind, Import, Lease, Protocol, QueueKey, State, Time};

const LMSTFY: &str = "lmstfy";
const TOKENS: &str = "tokens";

/// Characters of a ULID.
const ULID_CHARS: usize = 26;

/// How far the time at which a delayed job is due may be from what its ID says, in seconds.
const DELAY_TOLERANCE_S: f64 = 2.0;

/// Where a job was found, which determines its state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SourceList {
    Ready,
    /// Delayed or running until this time.
    Timer(Time),
    Dead,
}

impl SourceList {
    fn state(self) -> &'static str {
        let state = match self {
            SourceList::Ready => State::Waiting,
            SourceList::Timer(_) => State::Running,
            SourceList::Dead => State::Dead,
        };
        state.as_str()
    }
}

/// A job in a list.
#[derive(Debug, PartialEq)]
struct Element {
    namespace: String,
    queue: String,
    /// Deliveries that are left.
    tries: u16,
    id: String,
}

impl Element {
    /// The key of its body.
    fn key(&self) -> String {
        format!("j/{}/{}/{}", self.namespace, self.queue, self.id)
    }
}

/// The body of a job whose publisher uses attributes.
#[derive(Deserialize)]
struct Payload<'a> {
    /// Base64.
    #[serde(default)]
    body: Option<String>,
    #[serde(borrow, default)]
    attributes: Option<&'a serde_json::value::RawValue>,
}

/// Imports jobs, oldest first, and the tokens of a pool.
///
/// # Errors
/// If the source cannot be read or the target cannot be written.
pub async fn import(
    redis: &mut Redis,
    keys: &Keys,
    pool: &str,
    target: &mut Target<'_>,
) -> Result<()> {
    import_tokens(redis, keys, pool, target).await?;
    let mut jobs = Jobs {
        now: now(redis).await?,
        last: Time::default(),
        gone: 0,
    };
    for (prefix, place, queues) in [
        ("q", SourceList::Ready, &keys.ready),
        ("d", SourceList::Dead, &keys.dead),
    ] {
        for (namespace, queue) in queues {
            let key = format!("{prefix}/{namespace}/{queue}");
            jobs.last = Time::default();
            let place = (namespace.as_str(), queue.as_str(), place);
            jobs.import_list(redis, target, &key, place).await?;
        }
    }
    jobs.last = Time::default();
    jobs.import_timers(redis, target).await?;
    if jobs.gone > 0 {
        target.report.note(&format!(
            "lmstfy entries left out because their jobs are acknowledged or expired: {}",
            jobs.gone
        ));
    }
    Ok(())
}

/// The source's clock.
async fn now(redis: &mut Redis) -> Result<Time> {
    let reply = redis.call(&["TIME"]).await?.list();
    let seconds = reply.first().and_then(Reply::number);
    Ok(seconds.and_then(Time::from_seconds).unwrap_or_default())
}

struct Jobs {
    now: Time,
    /// The earliest time at which the previous job of the list can have become available. A list is in this order.
    last: Time,
    /// Entries without a body.
    gone: u64,
}

impl Jobs {
    async fn import_list(
        &mut self,
        redis: &mut Redis,
        target: &mut Target<'_>,
        key: &str,
        (namespace, queue, place): (&str, &str, SourceList),
    ) -> Result<()> {
        let mut end = redis.count(&["LLEN", key]).await?;
        // Jobs are added at the front and taken from the end.
        while end > 0 {
            let start = end.saturating_sub(PAGE);
            let (first, last) = (start.to_string(), (end - 1).to_string());
            let page = redis.call(&["LRANGE", key, &first, &last]).await?.list();
            let page = page.into_iter().rev().map(|packed| {
                let element = unpack(packed.bytes().unwrap_or_default(), namespace, queue);
                (element, place)
            });
            self.import_page(redis, target, page.collect()).await?;
            end = start;
        }
        Ok(())
    }

    async fn import_timers(&mut self, redis: &mut Redis, target: &mut Target<'_>) -> Result<()> {
        let mut start = 0;
        loop {
            let page = redis.sorted_page(TIMERS, start, false).await?;
            start += page.len();
            let is_last = page.len() < PAGE;
            let page = page.into_iter().map(|(packed, score)| {
                let until = Time::from_seconds(score).unwrap_or_default();
                let element = unpack_timer(packed.bytes().unwrap_or_default());
                (element, SourceList::Timer(until))
            });
            self.import_page(redis, target, page.collect()).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    async fn import_page(
        &mut self,
        redis: &mut Redis,
        target: &mut Target<'_>,
        page: Vec<(Option<Element>, SourceList)>,
    ) -> Result<()> {
        let mut jobs = Vec::with_capacity(page.len());
        for (element, place) in page {
            match element {
                Some(element) => jobs.push((element.key(), element, place)),
                None => target.skip(Protocol::Lmstfy, place.state(), "", "its entry is damaged"),
            }
        }
        let mut commands = Vec::with_capacity(2 * jobs.len());
        for (key, ..) in &jobs {
            commands.push(vec!["GET", key.as_str()]);
            commands.push(vec!["PTTL", key.as_str()]);
        }
        redis.send(&commands).await?;
        for (_, element, place) in jobs {
            let (body, ttl) = (redis.reply().await?, redis.reply().await?);
            match self.translate(&element, place, &body, &ttl) {
                Ok(Some(import)) => target.job(import).await?,
                Ok(None) => self.gone += 1,
                Err(reason) => {
                    target.skip(Protocol::Lmstfy, place.state(), &element.id, reason);
                }
            }
        }
        Ok(())
    }

    /// Translates a job. `None` if its body is gone.
    ///
    /// # Errors
    /// The reason why it cannot be imported.
    fn translate(
        &mut self,
        element: &Element,
        place: SourceList,
        body: &Reply,
        ttl: &Reply,
    ) -> std::result::Result<Option<Import>, &'static str> {
        let body = match body {
            Reply::Null => return Ok(None),
            Reply::TooLong => return Err("its body exceeds 16 MiB"),
            body => body.bytes().ok_or("its body is not a string")?,
        };
        let id = &element.id;
        let (created_at, delay_s) = ulid(id).unwrap_or((self.now, 0.0));
        let created_at = created_at.min(self.now);
        let (body, attributes) = match id.len() > ULID_CHARS {
            false => (STANDARD.encode(body), None),
            true => versioned(body)
                .ok_or("its ID is that of a job with attributes, but its body has none")?,
        };
        let queue = QueueKey::lmstfy(element.namespace.as_str(), element.queue.as_str());
        let mut import = Import::new(queue, id.clone(), body.as_str().into(), created_at);
        let job = &mut import.job;
        let tries = i64::from(element.tries);
        let left = (tries - 1).max(0);
        job.attributes = attributes;
        job.history
            .push(EventKind::Put, created_at, Some(&element.queue), None);
        if let Reply::Int(millis @ 1..) = ttl {
            job.expires_at = Some(Time(
                self.now.0.saturating_add(millis.saturating_mul(1_000)),
            ));
        }
        (job.retries, job.remaining) = (left, left);
        let ordered = created_at.max(self.last);
        match place {
            SourceList::Ready => {
                (job.since, job.ready_at, self.last) = (ordered, ordered, ordered);
            }
            SourceList::Dead => {
                job.state = State::Dead;
                (job.since, job.ready_at, self.last) = (ordered, ordered, ordered);
                (job.retries, job.remaining, job.expires_at) = (0, -1, None);
                job.history
                    .push(EventKind::DeadLettered, ordered, None, None);
            }
            SourceList::Timer(until) if is_delayed(element, created_at, delay_s, until) => {
                job.state = State::Scheduled;
                job.ready_at = until;
            }
            SourceList::Timer(until) => {
                job.state = State::Running;
                // The delivery has already been counted.
                (job.retries, job.remaining) = (tries, tries);
                job.lease = Some(Lease {
                    worker: String::new(),
                    id: uuid::Uuid::new_v4().simple().to_string(),
                    until,
                    in_grace_period: false,
                });
            }
        }
        Ok(Some(import))
    }
}

/// Whether an entry of `timer_set` is a delayed job, and not a running one: it is due when its ID says.
fn is_delayed(element: &Element, created_at: Time, delay_s: f64, until: Time) -> bool {
    let due = created_at.plus_seconds(delay_s);
    element.tries > 0 && delay_s > 0.0 && until.seconds_from(due).abs() <= DELAY_TOLERANCE_S
}

/// The body in base64, and the attributes, of a job whose publisher uses them.
fn versioned(body: &[u8]) -> Option<(String, Option<String>)> {
    let payload: Payload<'_> = serde_json::from_slice(body).ok()?;
    let body = payload.body.unwrap_or_default();
    STANDARD.decode(&body).ok()?;
    let attributes = payload.attributes.map(|it| it.get().to_owned());
    Some((body, attributes.filter(|it| it.starts_with('{'))))
}

/// The time in a ULID, and the delay in seconds that lmstfy puts into its last four bytes.
#[expect(clippy::cast_possible_truncation, reason = "32 and 48 bits")]
fn ulid(id: &str) -> Option<(Time, f64)> {
    const DIGITS: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let digits = id.get(id.len().checked_sub(ULID_CHARS)?..)?;
    let mut number: u128 = 0;
    for digit in digits.chars() {
        let digit = DIGITS.find(digit.to_ascii_uppercase())?;
        number = number.checked_mul(32)?.checked_add(digit as u128)?;
    }
    let millis = (number >> 80) as u64;
    let delay_s = (number as u32).swap_bytes();
    let created_at = Time::from_seconds(millis as f64 / 1_000.0)?;
    Some((created_at, f64::from(delay_s)))
}

fn unpack(packed: &[u8], namespace: &str, queue: &str) -> Option<Element> {
    let (tries, rest) = number(packed)?;
    let (id, rest) = text(rest)?;
    rest.is_empty().then(|| Element {
        namespace: namespace.to_owned(),
        queue: queue.to_owned(),
        tries,
        id,
    })
}

fn unpack_timer(packed: &[u8]) -> Option<Element> {
    let (namespace, rest) = text(packed)?;
    let (queue, rest) = text(rest)?;
    unpack(rest, &namespace, &queue)
}

fn number(packed: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = packed.split_first_chunk::<2>()?;
    Some((u16::from_le_bytes(*number), rest))
}

fn text(packed: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = number(packed)?;
    let (text, rest) = rest.split_at_checked(length.into())?;
    Some((String::from_utf8(text.to_vec()).ok()?, rest))
}

async fn import_tokens(
    redis: &mut Redis,
    keys: &Keys,
    wanted: &str,
    target: &mut Target<'_>,
) -> Result<()> {
    for (pool, namespace) in &keys.tokens {
        let tokens = redis.hash(&format!("tk/{pool}/{namespace}")).await?;
        for (token, description) in tokens {
            target.report.count(LMSTFY, TOKENS).found += 1;
            if pool != wanted {
                let reason = format!("of the pool {pool}; see --lmstfy-pool");
                target.report.skip(LMSTFY, TOKENS, namespace, reason);
                continue;
            }
            let created = match target.engine() {
                Some(engine) => {
                    let created = engine.create_token(namespace, &description, Some(token));
                    created.await.map(drop)
                }
                None => Ok(()),
            };
            match created {
                Ok(()) => target.report.count(LMSTFY, TOKENS).imported += 1,
                Err(Error::BadToken(crate::engine::TokenError::Exists)) => {
                    target.report.count(LMSTFY, TOKENS).existing += 1;
                }
                Err(error @ (Error::BadToken(_) | Error::TooMany { .. })) => {
                    let reason = error.to_string();
                    target.report.skip(LMSTFY, TOKENS, namespace, reason);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_unpacked_as_lua_packs_them() {
        let id = "01AN4Z07BY79KA1307SR9X4MV3";
        let tail = |tries: u8| [&[tries, 0, 26, 0], id.as_bytes()].concat();
        let element = |tries| {
            Some(Element {
                namespace: "ns".to_owned(),
                queue: "mail".to_owned(),
                tries,
                id: id.to_owned(),
            })
        };
        assert_eq!(unpack(&tail(3), "ns", "mail"), element(3));
        let timer = [b"\x02\0ns\x04\0mail", tail(0).as_slice()].concat();
        assert_eq!(unpack_timer(&timer), element(0));
        for end in 0..timer.len() {
            assert_eq!(unpack_timer(&timer[..end]), None, "{end} bytes");
        }
    }

    #[test]
    fn a_ulid_has_a_time_and_a_delay() {
        // The time of the ULID specification's example.
        let (time, _) = ulid("01ARYZ6S41TSV4RRFFQ69G5FAV").unwrap();
        assert_eq!(time.0, 1_469_918_176_385_000);
        // Four bytes 0x3c 0 0 0: 60 s, in little-endian order.
        let bits: u128 = (1_469_918_176_385 << 80) | 0x3c00_0000;
        let digits = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let id: String = (0..26)
            .rev()
            .map(|n| digits[usize::try_from((bits >> (5 * n)) & 31).unwrap()] as char)
            .collect();
        assert_eq!(ulid(&format!("1{id}")), Some((time, 60.0)));
        assert_eq!(ulid("short"), None);
        assert_eq!(ulid("01ARYZ6S41TSV4RRFFQ69G5FAU!"), None);
    }
}
