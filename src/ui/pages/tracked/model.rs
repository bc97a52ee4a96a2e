//! The view model of the tracked jobs.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{Entry, JobRow};

/// The tracked jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedView {
    /// By the time of tracking, each with the newest entry of its history.
    pub jobs: Vec<(JobRow, Option<Entry>)>,
    /// Ids of those that are not there.
    pub gone: Vec<String>,
    /// How many are tracked; not all need be among the jobs.
    pub total: usize,
    /// What happened to them lately, newest first.
    pub events: Vec<TrackedEvent>,
    /// Among how many events of the server they were looked for.
    pub searched: i64,
}

/// Something that happened to a tracked job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedEvent {
    /// The number of the event.
    pub seq: i64,
    pub when: i64,
    /// The event's channel, which says what happened.
    pub what: String,
    pub id: String,
}
