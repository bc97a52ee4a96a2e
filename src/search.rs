//! The language of the search over all jobs (`/ui/jobs`): terms with blanks between them, all of which must hold.
//!
//! It is read here by hand (`search/parse.rs`), with a place for every mistake, and looked up in one job at a time
//! (`search/matching.rs`), so that it means the same on every database and no text of a user reaches one as SQL. What
//! an index can answer is asked for by [`Search::is_of_queue`], [`Search::may_stand`] and the like; which index, and
//! how many jobs are looked at, is up to the engine.

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

/// The longest text in characters, and the most terms in it.
pub const CHARS_MAX: usize = 1_000;
pub const TERMS_MAX: usize = 32;

/// The states by their names, as the dashboard has them.
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

/// The APIs by their names.
pub const APIS: [&str; 4] = ["qless", "lmstfy", "relay", "jobq"];

/// A search that has been read.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    terms: Vec<Term>,
}

/// Something that must hold, or (`not`) must not.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    /// As it was written.
    text: String,
    not: bool,
    what: What,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    /// The id begins with it, or the class contains it, in upper or lower case.
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
    /// A part of the message of the last failure, in upper or lower case.
    Error(Pattern),
    /// The hash of the fingerprint of that message.
    Print(String),
    /// What stands at a path of the payload.
    Data(Vec<String>, Wanted),
    Priority(Compare, Number),
    /// Retries left.
    Tries(Compare, Number),
    Created(When),
    /// Since when it has been in its state.
    Updated(When),
}

/// What a value of a payload must be.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// This text or number.
    Is(Pattern),
    /// A number in that relation to this one.
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

/// What could not be understood: characters `from..to` of the text, counted from 0, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {}: {why}", from + 1)]
pub struct Mistake {
    pub from: usize,
    pub to: usize,
    pub why: String,
}

impl Search {
    /// Reads a text; an empty one means every job.
    ///
    /// # Errors
    /// The first thing that is not understood.
    pub fn parse(text: &str) -> Result<Search, Mistake> {
        parse::parse(text)
    }

    /// Of each term what it means, in words, and the text of the search without it.
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

    /// Whether it says anything of the jobs it means.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The one word that it is, which may be a job's whole id.
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

    /// Whether jobs of this queue can be meant.
    pub fn is_of_queue(&self, api: &str, namespace: &str, queue: &str) -> bool {
        self.terms.iter().all(|term| match &term.what {
            What::Api(apis) => apis.contains(&api) != term.not,
            What::Namespace(pattern) => pattern.is(namespace) != term.not,
            What::Queue(pattern) => pattern.is(queue) != term.not,
            _ => true,
        })
    }

    /// Whether jobs in this state can be meant.
    pub fn may_stand(&self, state: &str) -> bool {
        self.terms.iter().all(|term| match &term.what {
            What::State(states) => states.contains(&state) != term.not,
            _ => true,
        })
    }

    /// A tag that every job has that is meant.
    pub fn tag(&self) -> Option<&str> {
        self.stated(|what| match what {
            What::Tag(pattern) => pattern.exact(),
            _ => None,
        })
    }

    /// The group of the last failure of every job that is meant.
    pub fn failure(&self) -> Option<&str> {
        self.stated(|what| match what {
            What::Type(pattern) => pattern.exact(),
            _ => None,
        })
    }

    /// Whether only jobs are meant that a worker holds.
    pub fn is_held(&self) -> bool {
        let held = |term: &Term| !term.not && matches!(term.what, What::Worker(_));
        self.terms.iter().any(held)
    }

    /// Whether it looks into payloads.
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
