//! Tags, and tracked jobs.

use serde::{Deserialize, Serialize};

use super::{Entry, JobRow};

/// A tag and how many jobs have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagRow {
    pub tag: String,
    pub jobs: i64,
}

/// A tag and a page of its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagView {
    pub tag: TagRow,
    pub jobs: Vec<JobRow>,
}

/// A page of the tags, most used first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagsView {
    pub tags: Vec<TagRow>,
    /// Whether there are more after these.
    pub more: bool,
}

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
