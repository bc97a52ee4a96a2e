//! Recurring jobs (qless).

use serde::{Deserialize, Serialize};

use crate::ui::model::queue::PauseDetails;

/// A recurring job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringRow {
    pub id: String,
    pub queue: String,
    /// The queue is paused, so no children are created.
    pub paused: bool,
    /// The details of the queue's pause.
    #[serde(default)]
    pub pause: PauseDetails,
    pub klass: Option<String>,
    /// The interval in microseconds.
    pub interval: i64,
    /// The due time of the next child; can be in the past.
    pub next_due: i64,
    pub children: i64,
    pub backlog: i64,
    pub priority: f64,
    pub retries: i64,
    pub tags: Vec<String>,
}

/// The fields of the form for a recurring job. All are text, so that the page can explain mistakes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecurringForm {
    pub id: String,
    pub queue: String,
    pub klass: String,
    /// The payload of its children.
    pub data: String,
    pub interval: String,
    /// The unit of the interval, in seconds.
    pub unit: String,
    /// Seconds until the first child.
    pub offset: String,
    pub priority: String,
    pub retries: String,
    pub backlog: String,
}
