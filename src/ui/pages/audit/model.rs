//! What the audit shows.

use serde::{Deserialize, Serialize};

/// Which entries are wanted, as it stands in the address; what is empty leaves out none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditQuery {
    pub who: String,
    pub action: String,
    /// Is part of the target.
    pub target: String,
    /// From this moment and until before that one: `YYYY-MM-DDTHH:MM`, UTC.
    pub from: String,
    pub until: String,
    /// The entry after which the page begins.
    pub after: String,
}

impl AuditQuery {
    pub fn of(param: impl Fn(&str) -> String) -> AuditQuery {
        AuditQuery {
            who: param("who"),
            action: param("action"),
            target: param("target"),
            from: param("from"),
            until: param("until"),
            after: param("after"),
        }
    }

    /// What leaves something out, by its name in the address.
    pub fn filters(&self) -> [(&'static str, &str); 5] {
        [
            ("who", &self.who),
            ("action", &self.action),
            ("target", &self.target),
            ("from", &self.from),
            ("until", &self.until),
        ]
    }
}

/// A page of entries, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditView {
    pub rows: Vec<AuditRow>,
    /// After which entry the next page begins, if there is one.
    pub next: Option<String>,
    /// Who is in the audit, and which actions are.
    pub people: Vec<String>,
    pub actions: Vec<String>,
    /// What is wrong with the question.
    pub mistaken: Option<String>,
    /// How many entries are kept, about, and for how many days.
    pub kept: (i64, i64),
}

/// What somebody did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    pub id: String,
    pub at: i64,
    pub who: String,
    pub role: String,
    pub action: String,
    /// In words, and where it is shown; may be empty.
    pub target: String,
    pub link: String,
    /// The first of what was changed.
    pub things: Vec<Thing>,
    /// How many things were changed.
    pub items: i64,
    /// Whether it was done, or refused.
    pub done: bool,
    pub said: String,
    pub request_id: String,
    pub source: String,
}

/// A thing that was changed, and what of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    pub name: String,
    pub fate: Fate,
    /// Of one that stays, what differs; else all that is known.
    pub facts: Vec<Fact>,
}

/// What has become of a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    New,
    Stays,
    Gone,
}

/// A fact about a thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    pub name: String,
    /// Empty for what was not there.
    pub before: String,
    /// Empty for what is gone.
    pub after: String,
}
