//! Checks whether a job matches a search.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::json::{self, Number};
use super::{Fingerprint, LOOKED_AT_MAX, Search, What};
use crate::budget::{Budget, Spent};

/// The properties of a job that a search checks. Times are in microseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub id: &'a str,
    /// A name from [`super::STATES`].
    pub state: &'a str,
    /// A name from [`super::APIS`].
    pub api: &'a str,
    pub namespace: &'a str,
    pub queue: &'a str,
    pub class: Option<&'a str>,
    pub tags: &'a [String],
    /// The worker that runs the job.
    pub worker: Option<&'a str>,
    /// Group and message of the last failure.
    pub failure: Option<(&'a str, &'a str)>,
    /// `None` if the API has no priorities.
    pub priority: Option<f64>,
    pub tries: Option<i64>,
    pub created: i64,
    /// When the job entered its state.
    pub updated: i64,
    pub body: Body<'a>,
}

/// A payload. Only JSON can match a path, also if it is encoded in base64.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    Json(&'a str),
    Base64(&'a str),
}

impl<'a> Body<'a> {
    fn text(self, work: &mut Budget) -> Result<Cow<'a, str>, Spent> {
        Ok(match self {
            Body::Json(text) => Cow::Borrowed(text),
            Body::Base64(text) => {
                work.spend(text.len())?;
                let bytes = BASE64.decode(text).unwrap_or_default();
                Cow::Owned(String::from_utf8(bytes).unwrap_or_default())
            }
        })
    }
}

impl Search {
    /// Whether the job matches at `now`.
    ///
    /// # Errors
    /// [`Spent`], if the check exceeds the budget.
    pub fn matches(&self, job: &Seen<'_>, now: i64, work: &mut Budget) -> Result<bool, Spent> {
        // Payloads last, because they take longest.
        Ok(self.matches_but_payload(job, now, work)? && self.matches_payload(job.body, work)?)
    }

    /// Whether all terms hold, except those on payloads.
    ///
    /// # Errors
    /// [`Spent`].
    pub fn matches_but_payload(
        &self,
        job: &Seen<'_>,
        now: i64,
        work: &mut Budget,
    ) -> Result<bool, Spent> {
        let mut message = Message {
            text: job.failure.map_or("", |(_, message)| message),
            ..Message::default()
        };
        for term in &self.terms {
            work.spend(1)?;
            if matches!(term.what, What::Data(..)) {
                continue;
            }
            if term.what.holds(job, &mut message, now, work)? == term.not {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all terms on payloads hold. Reads the payload once.
    ///
    /// # Errors
    /// [`Spent`].
    pub fn matches_payload(&self, body: Body<'_>, work: &mut Budget) -> Result<bool, Spent> {
        let asked: Vec<json::Asked<'_>> = (self.terms.iter())
            .filter_map(|term| match &term.what {
                What::Data(path, wanted) => Some((path.as_slice(), wanted)),
                _ => None,
            })
            .collect();
        if asked.is_empty() {
            return Ok(true);
        }
        let body = body.text(work)?;
        let held = json::held(&body, &asked, work)?;
        let data = self.terms.iter();
        let data = data.filter(|term| matches!(term.what, What::Data(..)));
        Ok(data.zip(held).all(|(term, held)| held != term.not))
    }
}

/// The message of the last failure, with cached derived texts.
#[derive(Default)]
struct Message<'a> {
    text: &'a str,
    lower: Option<String>,
    hash: Option<String>,
}

impl Message<'_> {
    fn lower(&mut self, work: &mut Budget) -> Result<&str, Spent> {
        // Paid for by each term, because each searches the text.
        work.spend(self.text.len())?;
        let lower = || self.text.to_ascii_lowercase();
        Ok(self.lower.get_or_insert_with(lower))
    }

    fn hash(&mut self, work: &mut Budget) -> Result<&str, Spent> {
        if self.hash.is_none() {
            work.spend(self.text.len().min(4 * LOOKED_AT_MAX))?;
        }
        let hash = || Fingerprint::of(self.text).hash;
        Ok(self.hash.get_or_insert_with(hash))
    }
}

impl What {
    /// Whether the condition holds. Conditions on payloads always do here.
    fn holds(
        &self,
        job: &Seen<'_>,
        message: &mut Message<'_>,
        now: i64,
        work: &mut Budget,
    ) -> Result<bool, Spent> {
        let real = |number: Option<f64>| number.map(Number::Real);
        let whole = |number: Option<i64>| number.map(|number| Number::Whole(number.into()));
        Ok(match self {
            What::Word { pattern, .. } => {
                work.spend(job.id.len() + job.class.map_or(0, str::len))?;
                pattern.begins(&job.id.to_ascii_lowercase())
                    || job
                        .class
                        .is_some_and(|class| pattern.is_in(&class.to_ascii_lowercase()))
            }
            What::State(states) => states.contains(&job.state),
            What::Api(apis) => apis.contains(&job.api),
            What::Namespace(pattern) => pattern.is(job.namespace),
            What::Queue(pattern) => pattern.is(job.queue),
            What::Class(pattern) => {
                work.spend(job.class.map_or(0, str::len))?;
                job.class.is_some_and(|class| pattern.is(class))
            }
            What::Tag(pattern) => {
                work.spend(job.tags.iter().map(String::len).sum())?;
                job.tags.iter().any(|tag| pattern.is(tag))
            }
            What::Worker(pattern) => job.worker.is_some_and(|worker| pattern.is(worker)),
            What::Type(pattern) => job.failure.is_some_and(|(group, _)| pattern.is(group)),
            What::Error(pattern) => job.failure.is_some() && pattern.is_in(message.lower(work)?),
            What::Print(hash) => job.failure.is_some() && message.hash(work)? == hash,
            What::Data(..) => true,
            What::Priority(compare, than) => {
                real(job.priority).is_some_and(|number| number.is(*compare, than))
            }
            What::Tries(compare, than) => {
                whole(job.tries).is_some_and(|number| number.is(*compare, than))
            }
            What::Created(when) => when.holds(job.created, now),
            What::Updated(when) => when.holds(job.updated, now),
        })
    }
}
