//! Describes search terms in words.

use super::json::Number;
use super::time_condition::TimeCondition;
use super::{Compare, Condition, Pattern, Search, Term, ValueCondition};

impl Search {
    /// The terms of an alternative, in words.
    fn describe(&self) -> String {
        let terms: Vec<String> = self.terms.iter().map(Term::describe).collect();
        terms.join(" and ")
    }
}

/// Alternatives in words. Parentheses show what belongs together.
fn alternatives(all: &[Search]) -> String {
    let one = |search: &Search| match search.terms.len() {
        1 => search.describe(),
        _ if all.len() == 1 => search.describe(),
        _ => format!("({})", search.describe()),
    };
    let all: Vec<String> = all.iter().map(one).collect();
    format!("({})", all.join(" or "))
}

impl Term {
    pub fn describe(&self) -> String {
        let prefix = if self.is_negated { "not " } else { "" };
        format!("{prefix}{}", self.condition.describe())
    }
}

impl Condition {
    fn describe(&self) -> String {
        match self {
            Condition::Word { text, .. } => format!("ID or class: {text}"),
            Condition::State(states) => format!("state: {}", states.join(" or ")),
            Condition::Api(apis) => format!("protocol: {}", apis.join(" or ")),
            Condition::Namespace(pattern) => named("namespace", pattern),
            Condition::Queue(pattern) => named("queue", pattern),
            Condition::Class(pattern) => named("class", pattern),
            Condition::Tag(pattern) => named("tag", pattern),
            Condition::Worker(pattern) => named("worker", pattern),
            Condition::Tracked(values) => format!("tracked: {}", values.join(" or ")),
            Condition::FailureGroup(pattern) => named("failure group", pattern),
            Condition::FailureMessage(pattern) => format!("failure message: {}", pattern.to_text()),
            Condition::Fingerprint(hash) => format!("failure fingerprint: {hash}"),
            Condition::Payload(pattern) => format!("payload: {}", pattern.to_text()),
            Condition::Any(all) => alternatives(all),
            Condition::Data(path, ValueCondition::Matches(pattern, _)) => {
                named(&format!("data.{}", path.join(".")), pattern)
            }
            Condition::Data(path, ValueCondition::Number(compare, number)) => {
                numbered(&format!("data.{}", path.join(".")), *compare, number)
            }
            Condition::Priority(compare, number) => numbered("priority", *compare, number),
            Condition::RetriesLeft(compare, number) => numbered("retries left", *compare, number),
            Condition::Created(time) => format!("created {}", time.describe()),
            Condition::Updated(time) => time.describe_since(),
        }
    }
}

fn named(label: &str, pattern: &Pattern) -> String {
    match pattern.exact() {
        Some("") => format!("{label}: “”"),
        _ if pattern.is_any() => format!("{label}: any"),
        _ => format!("{label}: {}", pattern.to_text()),
    }
}

fn numbered(label: &str, compare: Compare, number: &Number) -> String {
    let number = match number {
        Number::Whole(whole) => whole.to_string(),
        Number::Real(real) => real.to_string(),
    };
    let sign = match compare {
        Compare::Is => "",
        Compare::Greater => "> ",
        Compare::GreaterEqual => "≥ ",
        Compare::Less => "< ",
        Compare::LessEqual => "≤ ",
    };
    format!("{label}: {sign}{number}")
}

impl TimeCondition {
    fn describe(&self) -> String {
        match self {
            TimeCondition::Age(compare, _, text) => format!("{} {text} ago", compare.of_ages()),
            TimeCondition::Date(compare, .., text) => {
                let word = match compare {
                    Compare::Is if text.contains('T') => "at",
                    Compare::Is => "on",
                    Compare::Greater => "after",
                    Compare::GreaterEqual => "from",
                    Compare::Less => "before",
                    Compare::LessEqual => "until",
                };
                format!("{word} {text} UTC")
            }
        }
    }

    fn describe_since(&self) -> String {
        match self {
            TimeCondition::Age(compare, _, text) => {
                format!("state unchanged for {} {text}", compare.of_ages())
            }
            TimeCondition::Date(..) => format!("state changed {}", self.describe()),
        }
    }
}

impl Compare {
    fn of_ages(self) -> &'static str {
        match self {
            Compare::Is => "exactly",
            Compare::Greater => "more than",
            Compare::GreaterEqual => "at least",
            Compare::Less => "less than",
            Compare::LessEqual => "at most",
        }
    }
}
