//! The view models of failure groups.

use serde::{Deserialize, Serialize};

use crate::ui::model::failure::GroupRow;
use crate::ui::model::job::JobRow;
use crate::ui::model::paging::Neighbors;
use crate::ui::model::queue_ref::QueueRef;

/// The failure groups of a time range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailuresView {
    /// The name of the range.
    pub range: String,
    /// Most jobs first.
    pub groups: Vec<FailureGroupRow>,
    /// The number of further groups.
    pub more: usize,
    /// The number of groups that were not compared with the text of the filter.
    #[serde(default)]
    pub unchecked: usize,
    /// The number of failed jobs in all groups.
    pub failed: i64,
    /// The approximate time of the last failure, if one is stored.
    pub last: Option<i64>,
    /// The time from which failures are new for the browser.
    #[serde(default)]
    pub seen: Option<i64>,
    /// The number of failed jobs that are new for the browser, in the groups above.
    #[serde(default)]
    pub new: i64,
}

/// A failure group with details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureGroupRow {
    pub row: GroupRow,
    /// The number of its jobs that failed in the range; the limit of counting plus 1 if there are more.
    pub count: i64,
    /// The number of its jobs whose failure is new for the browser.
    #[serde(default)]
    pub new: i64,
    /// The number of failures in each of the last 24 hours.
    pub day: Vec<i64>,
    /// Its queues, most jobs first.
    pub queues: Vec<(QueueRef, i64)>,
    /// The most frequent kind of message among the newest jobs, and the number of jobs analyzed.
    pub top_kind: Option<MessageKind>,
    pub analyzed: i64,
}

/// A kind of message: messages that differ only in numbers, IDs and quoted text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageKind {
    /// Eight hexadecimal digits.
    pub hash: String,
    pub text: String,
    /// The beginning of the newest such message, on one line.
    pub example: String,
    pub count: i64,
}

/// One failure group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureGroupView {
    pub group: GroupRow,
    pub range: String,
    /// The start of the first span of the chart.
    pub from: i64,
    /// The length of a span, in microseconds.
    pub width: i64,
    /// The number of failures in each span.
    pub spans: Vec<i64>,
    /// Whether only the newest failures were counted.
    pub is_cut: bool,
    /// The number of newest jobs that were analyzed for the kinds, queues, workers and sample below.
    pub analyzed: i64,
    /// The kinds of messages, most frequent first.
    pub message_kinds: Vec<MessageKind>,
    /// The number of further kinds.
    pub more_kinds: usize,
    pub selected_kind: Option<MessageKind>,
    pub queues: Vec<(QueueRef, i64)>,
    pub workers: Vec<(String, i64)>,
    /// The newest matching job.
    pub sample: Option<JobRow>,
    /// The number of matching jobs, and a page of them.
    pub count: i64,
    pub jobs: Vec<JobRow>,
    pub neighbors: Neighbors,
}
