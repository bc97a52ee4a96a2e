//! Operations: what somebody wants to be done to many jobs, and what became of it.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::QueueRef;

/// What is done to each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BulkAction {
    Retry,
    Move,
    Priority,
    Tag,
    Untag,
    Track,
    Untrack,
    /// Also what deletes jobs of those APIs that call it so.
    Cancel,
}

impl BulkAction {
    /// In the order of their buttons.
    pub const ALL: [BulkAction; 8] = [
        BulkAction::Retry,
        BulkAction::Move,
        BulkAction::Priority,
        BulkAction::Tag,
        BulkAction::Untag,
        BulkAction::Track,
        BulkAction::Untrack,
        BulkAction::Cancel,
    ];

    /// As it stands in addresses and forms.
    pub fn as_str(self) -> &'static str {
        match self {
            BulkAction::Retry => "retry",
            BulkAction::Move => "move",
            BulkAction::Priority => "priority",
            BulkAction::Tag => "tag",
            BulkAction::Untag => "untag",
            BulkAction::Track => "track",
            BulkAction::Untrack => "untrack",
            BulkAction::Cancel => "cancel",
        }
    }

    pub fn parse(text: &str) -> Option<BulkAction> {
        BulkAction::ALL
            .into_iter()
            .find(|deed| deed.as_str() == text)
    }
}

/// What somebody asks for, as it was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkRequest {
    /// The word of a [`BulkAction`].
    pub action: String,
    /// Whether all are meant that fit the search, else those with these numbers.
    pub all: bool,
    pub q: String,
    pub jobs: Vec<String>,
    /// The queue to move to, the priority, the tag.
    pub arg: String,
}

/// What the question has shown, and what was typed on it; all of it text, as a form has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Confirmation {
    /// How many jobs.
    pub counted: String,
    /// `yes` if it was said that it can be undone.
    pub undo: String,
    /// The number, typed.
    pub typed: String,
}

/// What is shown before something is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfirmView {
    /// How many jobs are meant; if not all could be counted there may be more.
    pub jobs: i64,
    pub is_least: bool,
    /// To how many of them it can be done, as they stand now.
    pub able: i64,
    /// The newest of them.
    pub samples: Vec<JobRow>,
    pub can_be_undone: bool,
    /// The number must be typed.
    pub must_type: bool,
    /// Names of queues to choose from.
    pub queues: Vec<String>,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It waits for its turn.
    Waiting,
    Running,
    Done,
    Stopped,
    Failed,
    Undoing,
    Undone,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationRow {
    pub id: i64,
    pub who: String,
    pub action: BulkAction,
    /// What can be asked for to do the same again.
    pub request: BulkRequest,
    pub phase: Phase,
    /// Jobs, as they were counted; there may have been more.
    pub total: i64,
    pub is_least: bool,
    pub done: i64,
    pub skipped: i64,
    pub restored: i64,
    pub lost: i64,
    pub created: i64,
    pub started: Option<i64>,
    pub ended: Option<i64>,
    /// Until when it can be undone, if it can now.
    pub undo_until: Option<i64>,
    /// What it removes can be undone for a while after its end.
    pub keeps: bool,
    /// Why it failed.
    pub why: Option<String>,
}

/// A job to which an operation did nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipRow {
    /// Its number.
    pub job: i64,
    pub queue_ref: Option<(QueueRef, String)>,
    pub why: String,
}

/// An operation, and a page of what it skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationView {
    pub row: OperationRow,
    pub skips: Vec<SkipRow>,
    /// How many of them are known.
    pub known: i64,
}

/// A page of the operations, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationsView {
    pub total: i64,
    pub rows: Vec<OperationRow>,
}
