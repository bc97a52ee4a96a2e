//! Describes search terms in words.

use super::json::Number;
use super::when::When;
use super::{Compare, Pattern, Term, Wanted, What};

impl Term {
    pub fn told(&self) -> String {
        let not = if self.not { "not " } else { "" };
        format!("{not}{}", self.what.told())
    }
}

impl What {
    fn told(&self) -> String {
        match self {
            What::Word { text, .. } => format!("ID or class: {text}"),
            What::State(states) => format!("state: {}", states.join(" or ")),
            What::Api(apis) => format!("protocol: {}", apis.join(" or ")),
            What::Namespace(pattern) => named("namespace", pattern),
            What::Queue(pattern) => named("queue", pattern),
            What::Class(pattern) => named("class", pattern),
            What::Tag(pattern) => named("tag", pattern),
            What::Worker(pattern) => named("worker", pattern),
            What::Type(pattern) => named("failure", pattern),
            What::Error(pattern) => format!("failure message: {}", pattern.shown()),
            What::Print(hash) => format!("failure fingerprint: {hash}"),
            What::Data(path, Wanted::Is(pattern)) => {
                named(&format!("data.{}", path.join(".")), pattern)
            }
            What::Data(path, Wanted::Number(compare, number)) => {
                numbered(&format!("data.{}", path.join(".")), *compare, number)
            }
            What::Priority(compare, number) => numbered("priority", *compare, number),
            What::Tries(compare, number) => numbered("retries left", *compare, number),
            What::Created(when) => format!("created {}", when.told()),
            What::Updated(when) => when.told_since(),
        }
    }
}

fn named(what: &str, pattern: &Pattern) -> String {
    match pattern.exact() {
        Some("") => format!("{what}: “”"),
        _ if pattern.is_any() => format!("{what}: any"),
        _ => format!("{what}: {}", pattern.shown()),
    }
}

fn numbered(what: &str, compare: Compare, number: &Number) -> String {
    let number = match number {
        Number::Whole(whole) => whole.to_string(),
        Number::Real(real) => real.to_string(),
    };
    let sign = match compare {
        Compare::Is => "",
        Compare::Over => "> ",
        Compare::Least => "≥ ",
        Compare::Under => "< ",
        Compare::Most => "≤ ",
    };
    format!("{what}: {sign}{number}")
}

impl When {
    fn told(&self) -> String {
        match self {
            When::Age(compare, _, text) => format!("{} {text} ago", compare.of_ages()),
            When::Date(compare, .., text) => {
                let word = match compare {
                    Compare::Is if text.contains('T') => "at",
                    Compare::Is => "on",
                    Compare::Over => "after",
                    Compare::Least => "from",
                    Compare::Under => "before",
                    Compare::Most => "until",
                };
                format!("{word} {text} UTC")
            }
        }
    }

    fn told_since(&self) -> String {
        match self {
            When::Age(compare, _, text) => {
                format!("state unchanged for {} {text}", compare.of_ages())
            }
            When::Date(..) => format!("state changed {}", self.told()),
        }
    }
}

impl Compare {
    fn of_ages(self) -> &'static str {
        match self {
            Compare::Is => "exactly",
            Compare::Over => "more than",
            Compare::Least => "at least",
            Compare::Under => "less than",
            Compare::Most => "at most",
        }
    }
}
