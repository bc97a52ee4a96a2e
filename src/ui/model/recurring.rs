//! Recurring jobs (qless).

use serde::{Deserialize, Serialize};

use crate::time;
use crate::ui::model::queue::PauseDetails;

/// A recurring job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringRow {
    pub id: String,
    pub queue: String,
    /// Whether its queue is paused, so that no children are created.
    #[serde(rename = "paused")]
    pub queue_paused: bool,
    /// The details of the queue's pause.
    #[serde(default)]
    pub pause: PauseDetails,
    pub klass: Option<String>,
    /// Whether the recurring job is paused: it creates no children until it is resumed.
    #[serde(default, rename = "held")]
    pub is_paused: bool,
    /// The interval in microseconds. Not used with a cron expression.
    pub interval: i64,
    /// The cron expression; empty if it has an interval.
    #[serde(default)]
    pub cron: String,
    /// The time zone of the cron expression.
    #[serde(default)]
    pub zone: String,
    /// The due time of the next child; can be in the past. `i64::MAX` if there is none.
    pub next_due: i64,
    /// The number of jobs that it has created.
    pub children: i64,
    /// The maximum number of missed runs for which it creates jobs.
    pub backlog: i64,
    pub priority: f64,
    pub retries: i64,
    pub tags: Vec<String>,
}

impl RecurringRow {
    /// The interval, or the cron expression and its time zone.
    pub fn schedule(&self) -> String {
        if self.cron.is_empty() {
            time::every(self.interval)
        } else {
            format!("{} · {}", self.cron, self.zone)
        }
    }
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
    /// A cron expression, instead of the interval.
    pub cron: String,
    /// The time zone of the cron expression; UTC if it is empty.
    pub zone: String,
    /// Seconds until the first child.
    pub offset: String,
    pub priority: String,
    pub retries: String,
    pub backlog: String,
    /// The tags of its children, separated by commas.
    pub tags: String,
    /// `all` if a change includes the class, the payload and the tags, which are otherwise kept.
    pub edit: String,
}
