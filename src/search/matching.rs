//! Whether a job is meant.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::json::{self, Number};
use super::{Fingerprint, Search, Term, What};

/// A job, as a search sees it. Times are microseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub id: &'a str,
    /// By its name in [`super::STATES`].
    pub state: &'a str,
    /// By its name in [`super::APIS`].
    pub api: &'a str,
    pub namespace: &'a str,
    pub queue: &'a str,
    pub class: Option<&'a str>,
    pub tags: &'a [String],
    /// Who holds it.
    pub worker: Option<&'a str>,
    /// Group and message of the last failure.
    pub failure: Option<(&'a str, &'a str)>,
    /// Where the API has them.
    pub priority: Option<f64>,
    pub tries: Option<i64>,
    pub created: i64,
    /// Since when it has been in its state.
    pub updated: i64,
    pub body: Body<'a>,
}

/// A payload. Only JSON can be looked into.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    Json(&'a str),
    Base64(&'a str),
}

impl Body<'_> {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Body::Json(text) => Cow::Borrowed(text),
            Body::Base64(text) => {
                let bytes = BASE64.decode(text).unwrap_or_default();
                Cow::Owned(String::from_utf8(bytes).unwrap_or_default())
            }
        }
    }
}

impl Search {
    /// Whether the job is meant at this moment.
    pub fn matches(&self, job: &Seen<'_>, now: i64) -> bool {
        // Payloads last: they take longest.
        let (data, rest): (Vec<&Term>, Vec<&Term>) =
            (self.terms.iter()).partition(|term| matches!(term.what, What::Data(..)));
        if !rest
            .iter()
            .all(|term| term.what.holds(job, now) != term.not)
        {
            return false;
        }
        if data.is_empty() {
            return true;
        }
        let body = job.body.text();
        data.iter().all(|term| match &term.what {
            What::Data(path, wanted) => json::holds(&body, path, wanted) != term.not,
            _ => true,
        })
    }
}

impl What {
    fn holds(&self, job: &Seen<'_>, now: i64) -> bool {
        let real = |number: Option<f64>| number.map(Number::Real);
        let whole = |number: Option<i64>| number.map(|number| Number::Whole(number.into()));
        match self {
            What::Word { pattern, .. } => {
                pattern.begins(&job.id.to_ascii_lowercase())
                    || job
                        .class
                        .is_some_and(|class| pattern.is_in(&class.to_ascii_lowercase()))
            }
            What::State(states) => states.contains(&job.state),
            What::Api(apis) => apis.contains(&job.api),
            What::Namespace(pattern) => pattern.is(job.namespace),
            What::Queue(pattern) => pattern.is(job.queue),
            What::Class(pattern) => job.class.is_some_and(|class| pattern.is(class)),
            What::Tag(pattern) => job.tags.iter().any(|tag| pattern.is(tag)),
            What::Worker(pattern) => job.worker.is_some_and(|worker| pattern.is(worker)),
            What::Type(pattern) => job.failure.is_some_and(|(group, _)| pattern.is(group)),
            What::Error(pattern) => job
                .failure
                .is_some_and(|(_, message)| pattern.is_in(&message.to_ascii_lowercase())),
            What::Print(hash) => job
                .failure
                .is_some_and(|(_, message)| Fingerprint::of(message).hash == *hash),
            What::Data(path, wanted) => json::holds(&job.body.text(), path, wanted),
            What::Priority(compare, than) => {
                real(job.priority).is_some_and(|number| number.is(*compare, than))
            }
            What::Tries(compare, than) => {
                whole(job.tries).is_some_and(|number| number.is(*compare, than))
            }
            What::Created(when) => when.holds(job.created, now),
            What::Updated(when) => when.holds(job.updated, now),
        }
    }
}
