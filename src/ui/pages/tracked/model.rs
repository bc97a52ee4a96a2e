//! The view model of the tracked jobs.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{Entry, JobRow};

/// The tracked jobs and their recent events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedView {
    /// The jobs by the time of tracking, each with the newest entry of its history.
    pub jobs: Vec<(JobRow, Option<Entry>)>,
    /// IDs of tracked jobs that do not exist.
    pub missing: Vec<String>,
    /// The number of tracked jobs; the list can be shorter.
    pub total: usize,
    /// Recent events, newest first.
    pub events: Vec<TrackedEvent>,
    /// The number of events that were searched.
    pub searched: i64,
}

/// An event of a tracked job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedEvent {
    /// The number of the event.
    pub seq: i64,
    pub when: i64,
    /// The channel, which names the kind of event.
    pub what: String,
    pub id: String,
}
