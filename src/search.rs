//! The language of the job search (`/ui/jobs`): terms separated by spaces, all of which must hold.
//!
//! `search/parse.rs` parses it by hand and reports the position of the first error. `search/matching.rs` checks one job
//! at a time, so a search behaves the same on every database and no user text becomes SQL. [`Search::is_of_queue`],
//! [`Search::may_stand`], [`Search::tag`] and the like return conditions that an index can check. The engine chooses
//! the index and limits the number of jobs it reads.

mod fingerprint;
mod json;
mod matching;
mod parse;
mod pattern;
mod told;
mod when;

use std::cmp::Ordering;

pub use fingerprint::{Fingerprint, LOOKED_AT_MAX};
pub use matching::{Body, Seen};
pub use pattern::Pattern;

use json::Number;
use when::When;
pub use when::span;

/// Maximum length of a search, in characters.
pub const CHARS_MAX: usize = 1_000;
/// Maximum number of terms in a search.
pub const TERMS_MAX: usize = 32;

/// The names of the states, as on the dashboard.
pub const STATES: [&str; 9] = [
    "waiting",
    "scheduled",
    "depends",
    "running",
    "stalled",
    "failed",
    "complete",
    "dead",
    "record",
];

/// The names of the APIs.
pub const APIS: [&str; 4] = ["qless", "lmstfy", "relay", "jobq"];

/// A parsed search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    terms: Vec<Term>,
}

/// A condition that must hold, or must not hold if `not` is set.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    /// The text that was parsed.
    text: String,
    not: bool,
    what: What,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    /// The ID starts with it, or the class contains it, ignoring case.
    Word {
        text: String,
        pattern: Pattern,
    },
    State(Vec<&'static str>),
    Api(Vec<&'static str>),
    Namespace(Pattern),
    Queue(Pattern),
    Class(Pattern),
    Tag(Pattern),
    Worker(Pattern),
    /// The group of the last failure.
    Type(Pattern),
    /// Part of the message of the last failure, ignoring case.
    Error(Pattern),
    /// The hash of the fingerprint of the last failure's message.
    Print(String),
    /// The value at a path of the payload.
    Data(Vec<String>, Wanted),
    Priority(Compare, Number),
    /// Retries left.
    Tries(Compare, Number),
    Created(When),
    /// When the job entered its state.
    Updated(When),
}

/// The condition on a value of the payload.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// Text or number that matches the pattern.
    Is(Pattern),
    /// Number that compares this way with the given one.
    Number(Compare, Number),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Is,
    Over,
    Least,
    Under,
    Most,
}

impl Compare {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Compare::Is => order.is_eq(),
            Compare::Over => order.is_gt(),
            Compare::Least => order.is_ge(),
            Compare::Under => order.is_lt(),
            Compare::Most => order.is_le(),
        }
    }
}

/// A syntax error: characters `from..to` of the text, counted from 0, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {}: {why}", from + 1)]
pub struct Mistake {
    pub from: usize,
    pub to: usize,
    pub why: String,
}

impl Search {
    /// Parses a search. An empty one matches every job.
    ///
    /// # Errors
    /// The first syntax error.
    pub fn parse(text: &str) -> Result<Search, Mistake> {
        parse::parse(text)
    }

    /// For each term, its description and the text of the search without it.
    pub fn terms(&self) -> Vec<(String, String)> {
        let without = |index: usize| {
            let others = self.terms.iter().enumerate();
            let others = others.filter(|(other, _)| *other != index);
            let texts: Vec<&str> = others.map(|(_, term)| term.text.as_str()).collect();
            texts.join(" ")
        };
        let terms = self.terms.iter().enumerate();
        terms
            .map(|(index, term)| (term.told(), without(index)))
            .collect()
    }

    /// Whether the search has no terms and thus matches every job.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The word, if the search is a single word. It may be a complete job ID.
    pub fn id(&self) -> Option<&str> {
        match self.terms.as_slice() {
            [
                Term {
                    not: false,
                    what: What::Word { text, .. },
                    ..
                },
            ] => Some(text),
            _ => None,
        }
    }

    /// Whether jobs of this queue can match.
    pub fn is_of_queue(&self, api: &str, namespace: &str, queue: &str) -> bool {
        self.terms.iter().all(|term| match &term.what {
            What::Api(apis) => apis.contains(&api) != term.not,
            What::Namespace(pattern) => pattern.is(namespace) != term.not,
            What::Queue(pattern) => pattern.is(queue) != term.not,
            _ => true,
        })
    }

    /// Whether jobs in this state can match.
    pub fn may_stand(&self, state: &str) -> bool {
        self.terms.iter().all(|term| match &term.what {
            What::State(states) => states.contains(&state) != term.not,
            _ => true,
        })
    }

    /// A tag that all matching jobs have.
    pub fn tag(&self) -> Option<&str> {
        self.stated(|what| match what {
            What::Tag(pattern) => pattern.exact(),
            _ => None,
        })
    }

    /// The group of the last failure that all matching jobs have.
    pub fn failure(&self) -> Option<&str> {
        self.stated(|what| match what {
            What::Type(pattern) => pattern.exact(),
            _ => None,
        })
    }

    /// Whether only jobs with a worker can match.
    pub fn is_held(&self) -> bool {
        let held = |term: &Term| !term.not && matches!(term.what, What::Worker(_));
        self.terms.iter().any(held)
    }

    /// Whether the search reads payloads.
    pub fn needs_body(&self) -> bool {
        let data = |term: &Term| matches!(term.what, What::Data(..));
        self.terms.iter().any(data)
    }

    fn stated<'s>(&'s self, find: impl Fn(&'s What) -> Option<&'s str>) -> Option<&'s str> {
        let stated = self.terms.iter().filter(|term| !term.not);
        stated.filter_map(|term| find(&term.what)).next()
    }
}

#[cfg(test)]
mod tests;
