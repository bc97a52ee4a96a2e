//! Recurring jobs, which only qless has.

use serde::{Deserialize, Serialize};

/// A recurring job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringRow {
    pub id: String,
    pub queue: String,
    /// Nobody gets a job of the queue, so no child is made either.
    pub paused: bool,
    pub klass: Option<String>,
    /// Microseconds from one child to the next.
    pub interval: i64,
    /// When the next child is due; may have passed.
    pub next: i64,
    pub made: i64,
    pub backlog: i64,
    pub priority: f64,
    pub retries: i64,
    pub tags: Vec<String>,
}

/// What somebody has typed of a recurring job. All is text, so that a slip of the hand is answered in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecurringForm {
    pub id: String,
    pub queue: String,
    pub klass: String,
    /// The payload of its children.
    pub data: String,
    pub interval: String,
    /// What the interval counts: a number of seconds.
    pub unit: String,
    /// Seconds until the first child.
    pub offset: String,
    pub priority: String,
    pub retries: String,
    pub backlog: String,
}
