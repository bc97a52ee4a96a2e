//! The language of the job search (`/ui/jobs`): terms separated by spaces, all of which must hold. `OR` separates
//! alternatives, and parentheses group them.
//!
//! `search/parse.rs` parses it by hand and reports the position of the first error. `search/matching.rs` checks one job
//! at a time, so a search behaves the same on every database and no user text becomes SQL. [`Search::may_match_queue`],
//! [`Search::may_match_state`], [`Search::tag`] and the like return conditions that an index can check. The engine
//! chooses the index and limits the number of jobs it reads.
//!
//! [`Search::may_match_queue`]: crate::search::Search::may_match_queue
//! [`Search::may_match_state`]: crate::search::Search::may_match_state
//! [`Search::tag`]: crate::search::Search::tag

mod describe;
mod fingerprint;
mod json;
mod matching;
mod parse;
mod pattern;
mod time_condition;

use std::cell::Cell;
use std::cmp::Ordering;

pub use fingerprint::{Fingerprint, MESSAGE_CHARS_MAX};
pub use matching::{Body, JobFacts};
pub use pattern::Pattern;

use crate::budget::{Budget, BudgetExceeded};
use json::Number;
use time_condition::TimeCondition;
pub use time_condition::parse_duration;

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

/// The values of the term `tracked`.
const YES_OR_NO: [&str; 2] = ["yes", "no"];

/// The names of the protocols.
pub const PROTOCOLS: [&str; 4] = ["qless", "lmstfy", "relay", "jobq"];

/// A parsed search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    terms: Vec<Term>,
}

/// A condition that must hold, or must not hold if `is_negated` is set.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    /// The text that was parsed.
    text: String,
    is_negated: bool,
    condition: Condition,
}

#[derive(Debug, Clone, PartialEq)]
enum Condition {
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
    /// Whether the job is tracked.
    Tracked(Vec<&'static str>),
    /// The failure group of the last failure.
    FailureGroup(Pattern),
    /// Part of the message of the last failure, ignoring case.
    FailureMessage(Pattern),
    /// The hash of the fingerprint of the last failure's message.
    Fingerprint(String),
    /// Part of the text of the payload, ignoring case.
    Payload(Pattern),
    /// At least one of these searches matches.
    Any(Vec<Search>),
    /// The value at a path of the payload.
    Data(Vec<String>, ValueCondition),
    Priority(Compare, Number),
    RetriesLeft(Compare, Number),
    Created(TimeCondition),
    /// When the job entered its state; for a Jobq job, the time of its last change.
    Updated(TimeCondition),
}

/// The condition on a value of the payload.
#[derive(Debug, Clone, PartialEq)]
enum ValueCondition {
    /// Text or number that matches the pattern, or is the same number.
    Matches(Pattern, Option<Number>),
    /// Number that compares this way with the given one.
    Number(Compare, Number),
}

impl ValueCondition {
    fn of(pattern: Pattern) -> ValueCondition {
        let number = pattern.exact().and_then(Number::read);
        ValueCondition::Matches(pattern, number)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Is,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

impl Compare {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Compare::Is => order.is_eq(),
            Compare::Greater => order.is_gt(),
            Compare::GreaterEqual => order.is_ge(),
            Compare::Less => order.is_lt(),
            Compare::LessEqual => order.is_le(),
        }
    }
}

/// A syntax error: characters `from..to` of the text, counted from 0, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {}: {why}", from + 1)]
pub struct SyntaxError {
    pub from: usize,
    pub to: usize,
    pub why: String,
}

impl Search {
    /// Parses a search. An empty one matches every job.
    ///
    /// # Errors
    /// The first syntax error.
    pub fn parse(text: &str) -> Result<Search, SyntaxError> {
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
            .map(|(index, term)| (term.describe(), without(index)))
            .collect()
    }

    /// Whether the search has no terms, so that it matches every job.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The word, if the search is a single word. It may be a complete job ID.
    pub fn id(&self) -> Option<&str> {
        match self.terms.as_slice() {
            [
                Term {
                    is_negated: false,
                    condition: Condition::Word { text, .. },
                    ..
                },
            ] => Some(text),
            _ => None,
        }
    }

    /// Whether jobs of this queue can match.
    ///
    /// # Errors
    /// If the budget is not enough to decide that.
    pub fn may_match_queue(
        &self,
        api: &str,
        namespace: &str,
        queue: &str,
        budget: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        let (left, spent) = (Cell::new(*budget), Cell::new(None));
        let decide = |condition: &Condition| {
            let mut budget = left.get();
            let holds = budget.spend(1).and_then(|()| {
                Ok(match condition {
                    Condition::Api(apis) => Some(apis.contains(&api)),
                    Condition::Namespace(pattern) => Some(pattern.matches(namespace, &mut budget)?),
                    Condition::Queue(pattern) => Some(pattern.matches(queue, &mut budget)?),
                    _ => None,
                })
            });
            left.set(budget);
            holds.unwrap_or_else(|exceeded| {
                spent.set(Some(exceeded));
                None
            })
        };
        let decided = self.decided(&decide);
        *budget = left.get();
        match spent.get() {
            Some(exceeded) => Err(exceeded),
            None => Ok(decided != Some(false)),
        }
    }

    /// Whether jobs in this state can match.
    pub fn may_match_state(&self, state: &str) -> bool {
        let decide = |condition: &Condition| match condition {
            Condition::State(states) => Some(states.contains(&state)),
            _ => None,
        };
        self.decided(&decide) != Some(false)
    }

    /// Whether the search matches, if `decide` knows whether some of the conditions hold; `None` if the others matter.
    fn decided(&self, decide: &dyn Fn(&Condition) -> Option<bool>) -> Option<bool> {
        all_of(self.terms.iter().map(|term| {
            let holds = match &term.condition {
                Condition::Any(all) => any_of(all.iter().map(|search| search.decided(decide))),
                condition => decide(condition),
            };
            holds.map(|holds| holds != term.is_negated)
        }))
    }

    /// A tag that all matching jobs have.
    pub fn tag(&self) -> Option<&str> {
        self.required(|condition| match condition {
            Condition::Tag(pattern) => pattern.exact(),
            _ => None,
        })
    }

    /// The failure group of the last failure that all matching jobs have.
    pub fn failure(&self) -> Option<&str> {
        self.required(|condition| match condition {
            Condition::FailureGroup(pattern) => pattern.exact(),
            _ => None,
        })
    }

    /// The class that all matching jobs have.
    pub fn class(&self) -> Option<&str> {
        self.required(|condition| match condition {
            Condition::Class(pattern) => pattern.exact(),
            _ => None,
        })
    }

    /// Whether the queue, the state and the class of a job decide whether it matches.
    pub fn needs_only_indexes(&self) -> bool {
        self.terms.iter().all(|term| match &term.condition {
            Condition::State(_) | Condition::Api(_) | Condition::Namespace(_) => true,
            Condition::Queue(_) => true,
            Condition::Class(pattern) => !term.is_negated && pattern.exact().is_some(),
            _ => false,
        })
    }

    /// Whether only tracked jobs can match.
    pub fn requires_tracked(&self) -> bool {
        let is_tracked = |term: &Term| match &term.condition {
            Condition::Tracked(values) => {
                values[..] == [if term.is_negated { "no" } else { "yes" }]
            }
            _ => false,
        };
        self.terms.iter().any(is_tracked)
    }

    /// Whether only jobs with a worker can match.
    pub fn requires_worker(&self) -> bool {
        let needs_worker =
            |term: &Term| !term.is_negated && matches!(term.condition, Condition::Worker(_));
        self.terms.iter().any(needs_worker)
    }

    /// Whether the search reads payloads.
    pub fn needs_body(&self) -> bool {
        self.terms
            .iter()
            .any(|term| term.condition.payload_conditions() > 0)
    }

    fn required<'s>(&'s self, find: impl Fn(&'s Condition) -> Option<&'s str>) -> Option<&'s str> {
        let required = self.terms.iter().filter(|term| !term.is_negated);
        required.filter_map(|term| find(&term.condition)).next()
    }
}

impl Condition {
    /// The number of conditions on the payload in it.
    fn payload_conditions(&self) -> usize {
        match self {
            Condition::Payload(_) | Condition::Data(..) => 1,
            Condition::Any(all) => all.iter().map(Search::payload_conditions).sum(),
            _ => 0,
        }
    }
}

impl Search {
    fn payload_conditions(&self) -> usize {
        let terms = self.terms.iter();
        terms.map(|term| term.condition.payload_conditions()).sum()
    }
}

/// Whether all are true; `None` if that depends on unknown ones.
fn all_of(all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any_of(all.map(|one| one.map(|one| !one))).map(|any| !any)
}

/// Whether any is true; `None` if that depends on unknown ones.
fn any_of(all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut any = Some(false);
    for one in all {
        match one {
            Some(true) => return Some(true),
            Some(false) => {}
            None => any = None,
        }
    }
    any
}

#[cfg(test)]
mod tests;
