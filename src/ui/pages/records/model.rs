//! The view models of a Jobq queue, its records and queries.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::Entry;
use crate::ui::model::paging::Neighbors;
use crate::ui::model::queue_ref::QueueRef;

/// The records to list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordFilter {
    All,
    /// Records whose states have this label.
    #[serde(rename = "Labelled")]
    Labeled(String),
    /// Records whose states have no label.
    Others,
    /// Results of this query.
    Found(String),
    /// No records: the page keeps the previous results of the query.
    Nothing,
}

/// A queue, and some of its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordsView {
    pub queue_ref: QueueRef,
    /// The total number of records of the queue.
    pub total: i64,
    /// The most frequent states, up to 200, most frequent first.
    pub states: Vec<StateRow>,
    pub list: RecordList,
}

/// The number of records whose states have the same label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRow {
    /// The label in addresses; `None` for all states without a label.
    pub label: Option<String>,
    pub word: String,
    pub count: i64,
}

/// Records, least recently changed first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RecordList {
    /// A page of records, the total number, and the neighboring pages.
    Page(Vec<RecordRow>, i64, Neighbors),
    /// The results of the query, up to the limit.
    Found(Vec<RecordRow>),
    /// The query is invalid or failed.
    Refused(RefusedQuery),
    Nothing,
}

/// A record in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordRow {
    /// The insertion number of the job, by which bulk operations name it.
    #[serde(default)]
    pub seq: i64,
    pub id: i64,
    /// The beginning of the state on one line; `None` if the record never had one.
    pub state: Option<String>,
    /// The beginning of the payload on one line.
    pub preview: String,
    /// The number of events; `None` if the log is longer than a list loads, or cannot be parsed.
    pub events: Option<usize>,
    pub modified: i64,
}

/// The error of a query, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedQuery {
    pub why: String,
    pub mark: Option<QueryPosition>,
}

/// A place in a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryPosition {
    /// The place as text.
    pub place: String,
    /// The text at that place.
    pub text: String,
    /// The index of the character in the text; can be its length.
    pub at: Option<usize>,
}

/// A record with all its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordView {
    pub queue_ref: QueueRef,
    pub id: i64,
    /// JSON without whitespace; `null` if the record has never had a state.
    pub state: String,
    /// The label of the state.
    pub word: String,
    pub payload: String,
    pub created: i64,
    pub modified: i64,
    /// The number of log entries.
    pub events: usize,
    /// The first entry of the log, and the newest entries.
    pub log: Vec<Entry>,
}

/// A rejected form of a Jobq page. The response shows the form again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordFormError {
    Create(NewRecord, RecordFieldErrors),
    Advance {
        old: String,
        new: String,
        why: String,
    },
    Conflict(Conflict),
    Append {
        event: String,
        why: String,
    },
}

/// The fields of a new record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NewRecord {
    pub payload: String,
    #[serde(default)]
    pub state: String,
}

/// The errors by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFieldErrors {
    pub payload: Option<String>,
    pub state: Option<String>,
}

/// A state that was not set, because the record no longer had the state that the page showed. All fields are JSON
/// texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub shown: String,
    pub now: String,
    pub wanted: String,
}

/// A change of a record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Change {
    /// Sets the state, if it is still `old`.
    State { old: String, new: String },
    /// Appends an event to the log.
    Event { event: String },
}
