//! Checks whether a job matches a search.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::json::{self, Number};
use super::{Condition, Fingerprint, MESSAGE_CHARS_MAX, Search};
use crate::budget::{Budget, BudgetExceeded};

/// The properties of a job that a search checks. Times are in microseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct JobFacts<'a> {
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
    pub is_tracked: bool,
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
    fn text(self, work: &mut Budget) -> Result<Cow<'a, str>, BudgetExceeded> {
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
    /// [`BudgetExceeded`], if the check exceeds the budget.
    pub fn matches(
        &self,
        job: &JobFacts<'_>,
        now: i64,
        work: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        // Payloads last, because they take longest.
        Ok(
            self.matches_without_payload(job, now, work)?
                && self.matches_payload(job.body, work)?,
        )
    }

    /// Whether all terms hold, except those on payloads.
    ///
    /// # Errors
    /// [`BudgetExceeded`].
    pub fn matches_without_payload(
        &self,
        job: &JobFacts<'_>,
        now: i64,
        work: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        let mut message = Message {
            text: job.failure.map_or("", |(_, message)| message),
            ..Message::default()
        };
        for term in &self.terms {
            work.spend(1)?;
            if matches!(term.condition, Condition::Data(..)) {
                continue;
            }
            if term.condition.holds(job, &mut message, now, work)? == term.is_negated {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all terms on payloads hold. Reads the payload once.
    ///
    /// # Errors
    /// [`BudgetExceeded`].
    pub fn matches_payload(
        &self,
        body: Body<'_>,
        work: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        let conditions: Vec<json::PathCondition<'_>> = (self.terms.iter())
            .filter_map(|term| match &term.condition {
                Condition::Data(path, condition) => Some((path.as_slice(), condition)),
                _ => None,
            })
            .collect();
        if conditions.is_empty() {
            return Ok(true);
        }
        let body = body.text(work)?;
        let matches = json::matching_paths(&body, &conditions, work)?;
        let data = self.terms.iter();
        let data = data.filter(|term| matches!(term.condition, Condition::Data(..)));
        Ok(data
            .zip(matches)
            .all(|(term, is_match)| is_match != term.is_negated))
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
    fn lower(&mut self, work: &mut Budget) -> Result<&str, BudgetExceeded> {
        // Paid for by each term, because each searches the text.
        work.spend(self.text.len())?;
        let lower = || self.text.to_ascii_lowercase();
        Ok(self.lower.get_or_insert_with(lower))
    }

    fn hash(&mut self, work: &mut Budget) -> Result<&str, BudgetExceeded> {
        if self.hash.is_none() {
            work.spend(self.text.len().min(4 * MESSAGE_CHARS_MAX))?;
        }
        let hash = || Fingerprint::of(self.text).hash;
        Ok(self.hash.get_or_insert_with(hash))
    }
}

impl Condition {
    /// Whether the condition holds. Conditions on payloads always do here.
    fn holds(
        &self,
        job: &JobFacts<'_>,
        message: &mut Message<'_>,
        now: i64,
        work: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        let real = |number: Option<f64>| number.map(Number::Real);
        let whole = |number: Option<i64>| number.map(|number| Number::Whole(number.into()));
        Ok(match self {
            Condition::Word { pattern, .. } => {
                work.spend(job.id.len() + job.class.map_or(0, str::len))?;
                pattern.matches_prefix(&job.id.to_ascii_lowercase())
                    || job
                        .class
                        .is_some_and(|class| pattern.matches_part(&class.to_ascii_lowercase()))
            }
            Condition::State(states) => states.contains(&job.state),
            Condition::Api(apis) => apis.contains(&job.api),
            Condition::Namespace(pattern) => pattern.matches(job.namespace),
            Condition::Queue(pattern) => pattern.matches(job.queue),
            Condition::Class(pattern) => {
                work.spend(job.class.map_or(0, str::len))?;
                job.class.is_some_and(|class| pattern.matches(class))
            }
            Condition::Tag(pattern) => {
                work.spend(job.tags.iter().map(String::len).sum())?;
                job.tags.iter().any(|tag| pattern.matches(tag))
            }
            Condition::Worker(pattern) => job.worker.is_some_and(|worker| pattern.matches(worker)),
            Condition::Tracked(values) => {
                values.contains(&if job.is_tracked { "yes" } else { "no" })
            }
            Condition::FailureGroup(pattern) => {
                job.failure.is_some_and(|(group, _)| pattern.matches(group))
            }
            Condition::FailureMessage(pattern) => {
                job.failure.is_some() && pattern.matches_part(message.lower(work)?)
            }
            Condition::Fingerprint(hash) => job.failure.is_some() && message.hash(work)? == hash,
            Condition::Data(..) => true,
            Condition::Priority(compare, than) => {
                real(job.priority).is_some_and(|number| number.satisfies(*compare, than))
            }
            Condition::RetriesLeft(compare, than) => {
                whole(job.tries).is_some_and(|number| number.satisfies(*compare, than))
            }
            Condition::Created(time) => time.holds(job.created, now),
            Condition::Updated(time) => time.holds(job.updated, now),
        })
    }
}
