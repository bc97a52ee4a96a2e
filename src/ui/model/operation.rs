//! Bulk operations.

use serde::{Deserialize, Serialize};

pub use crate::engine::OperationState;
use crate::ui::model::job::JobRow;
use crate::ui::model::paging::Neighbors;
use crate::ui::model::queue_ref::QueueRef;

/// What a bulk operation does to each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobActionKind {
    Retry,
    Move,
    Priority,
    Tag,
    Untag,
    /// Replaces the tag that the search names.
    #[serde(rename = "rename_tag")]
    RenameTag,
    Track,
    Untrack,
    /// Ends the leases of running jobs.
    TimeOut,
    /// Cancels qless jobs, and deletes jobs of other protocols.
    Cancel,
    /// Retries a single job with changes.
    #[serde(rename = "retrybyhand")]
    EditAndRetry,
    /// Completes a single job.
    Complete,
}

impl JobActionKind {
    /// Those for many jobs, in the order of their buttons.
    pub const FOR_MANY: [JobActionKind; 10] = [
        JobActionKind::Retry,
        JobActionKind::Move,
        JobActionKind::Priority,
        JobActionKind::Tag,
        JobActionKind::Untag,
        JobActionKind::RenameTag,
        JobActionKind::Track,
        JobActionKind::Untrack,
        JobActionKind::TimeOut,
        JobActionKind::Cancel,
    ];

    /// The name in addresses and forms.
    pub fn as_str(self) -> &'static str {
        match self {
            JobActionKind::Retry => "retry",
            JobActionKind::Move => "move",
            JobActionKind::Priority => "priority",
            JobActionKind::Tag => "tag",
            JobActionKind::Untag => "untag",
            JobActionKind::RenameTag => "rename_tag",
            JobActionKind::Track => "track",
            JobActionKind::Untrack => "untrack",
            JobActionKind::TimeOut => "timeout",
            JobActionKind::Cancel => "cancel",
            JobActionKind::EditAndRetry => "retry_by_hand",
            JobActionKind::Complete => "complete",
        }
    }

    /// Whether it is an action on many jobs, which can be repeated.
    pub fn is_for_many(self) -> bool {
        JobActionKind::FOR_MANY.contains(&self)
    }

    /// The kind with this name; `None` for the kinds that apply to a single job.
    pub fn parse(text: &str) -> Option<JobActionKind> {
        JobActionKind::FOR_MANY
            .into_iter()
            .find(|action| action.as_str() == text)
    }
}

/// A bulk operation as requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationRequest {
    /// The name of a [`JobActionKind`].
    pub action: String,
    /// Whether it applies to all jobs that match the search. Otherwise it applies to the jobs in `jobs`.
    pub all: bool,
    pub q: String,
    pub jobs: Vec<String>,
    /// The argument of the action: a queue, a priority or a tag.
    pub arg: String,
}

/// What the confirmation page showed, and what the user typed, as the values of the form's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Confirmation {
    /// The number of jobs shown.
    pub counted: String,
    /// `yes` if the page said that the action can be undone.
    pub undo: String,
    /// The number of jobs that the user typed.
    pub typed: String,
}

/// The confirmation of a bulk operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfirmView {
    /// The number of jobs; a minimum if not all could be counted.
    pub jobs: i64,
    pub is_minimum: bool,
    /// The number of jobs to which the action applies in their current state.
    pub applicable: i64,
    /// The newest jobs.
    pub samples: Vec<JobRow>,
    pub can_be_undone: bool,
    /// Whether the user must type the number of jobs.
    pub must_type: bool,
    /// Suggested names of queues.
    pub queues: Vec<String>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationRow {
    pub id: i64,
    pub who: String,
    pub action: JobActionKind,
    /// The request, so that it can be repeated.
    pub request: OperationRequest,
    pub state: OperationState,
    /// The number of jobs at the start; a minimum if not all could be counted.
    pub total: i64,
    pub is_minimum: bool,
    pub done: i64,
    pub skipped: i64,
    /// The numbers of removed jobs that undo has restored, and that it could not restore.
    pub restored: i64,
    pub lost: i64,
    pub created: i64,
    pub started: Option<i64>,
    pub ended: Option<i64>,
    /// The time until which the operation can be undone; `None` if it cannot be undone.
    pub undo_until: Option<i64>,
    /// Whether it can be undone for a while after its end, because the removed jobs are kept.
    pub can_be_undone: bool,
    /// Why it failed.
    pub error: Option<String>,
}

/// A job that an operation skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipRow {
    /// The number of the job.
    pub job: i64,
    /// The queue and the ID of the job, if they are known.
    pub queue_ref: Option<(QueueRef, String)>,
    pub reason: String,
}

/// An operation, and a page of the jobs that it skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationView {
    pub row: OperationRow,
    pub skips: Vec<SkipRow>,
    /// The number of skipped jobs for which a reason is stored.
    pub known: i64,
    pub neighbors: Neighbors,
}

/// A page of the operations, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationsView {
    pub total: i64,
    pub rows: Vec<OperationRow>,
    pub neighbors: Neighbors,
}
