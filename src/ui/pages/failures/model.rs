//! Failures: groups with when they happened and what they say.

use serde::{Deserialize, Serialize};

use crate::ui::model::failure::GroupRow;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::QueueRef;

/// What failed, in a range of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailuresView {
    /// `1h`, `24h`, `7d` or `all`.
    pub range: String,
    /// Most jobs first.
    pub groups: Vec<FailingGroup>,
    /// Groups beyond these, which are not looked at closely.
    pub more: usize,
    /// How many jobs are failed in all groups that there are.
    pub failed: i64,
    /// When a job failed last, about; `None` if never, as far as is kept.
    pub last: Option<i64>,
}

/// A group of failures, looked at closely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailingGroup {
    pub row: GroupRow,
    /// How many of its jobs failed in the range; one more than are counted if there are more.
    pub count: i64,
    /// How many failed in each of the last 24 hours.
    pub day: Vec<i64>,
    /// Where they are, most jobs first.
    pub queues: Vec<(QueueRef, i64)>,
    /// What most of the newest say, how many of them do, and of how many.
    pub most: Option<Said>,
    pub looked_at: i64,
}

/// What messages say that differ only in numbers and names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// Eight hexadecimal digits.
    pub hash: String,
    pub text: String,
    pub count: i64,
}

/// One group of failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailingView {
    pub group: GroupRow,
    pub range: String,
    /// When its jobs failed: the first span's beginning, how long each is, how many; whether there were more.
    pub from: i64,
    pub width: i64,
    pub spans: Vec<i64>,
    pub is_cut: bool,
    /// How many of the newest the rest is about.
    pub looked_at: i64,
    /// What they say, most frequent first; the fingerprint that is chosen.
    pub said: Vec<Said>,
    /// Messages of other kinds than these.
    pub others: usize,
    pub chosen: Option<Said>,
    pub queues: Vec<(QueueRef, i64)>,
    pub workers: Vec<(String, i64)>,
    /// The newest that is meant, whole.
    pub sample: Option<JobRow>,
    /// How many are meant, and a page of them.
    pub count: i64,
    pub jobs: Vec<JobRow>,
}
