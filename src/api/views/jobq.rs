//! What only Jobq has: records, each with a state of its own and a log, and queries that find them.

use serde::{Deserialize, Serialize};

use super::{Entry, Place};

/// Which records of a queue somebody wants to see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    All,
    /// Those whose state has this label.
    Labelled(String),
    /// Those whose state has none.
    Others,
    /// Those that this query finds.
    Found(String),
    /// None: what a query has found stands on the page already.
    Nothing,
}

/// A queue, and some of its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordsView {
    pub place: Place,
    /// All records of the queue.
    pub total: i64,
    /// Most frequent first.
    pub states: Vec<StateRow>,
    pub list: RecordList,
}

/// How many records are in states that begin alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRow {
    /// As it stands in addresses; none for all states without one.
    pub label: Option<String>,
    pub word: String,
    pub count: i64,
}

/// Records, longest untouched first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RecordList {
    /// A page of them, and how many there are.
    Page(Vec<RecordRow>, i64),
    /// What the query found, which is not all if it is as many as there may be.
    Found(Vec<RecordRow>),
    /// The query could not be run.
    Refused(RefusedQuery),
    Nothing,
}

/// A record in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordRow {
    pub id: i64,
    /// The beginning of the state on one line; none if it never was given one.
    pub state: Option<String>,
    /// The beginning of the payload on one line.
    pub glimpse: String,
    /// Unless the log is long.
    pub events: Option<usize>,
    pub modified: i64,
}

/// Why a query is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedQuery {
    pub why: String,
    pub mark: Option<Mark>,
}

/// A place in a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The place in words.
    pub place: String,
    /// What stands there.
    pub text: String,
    /// The character of the text, from 0; may be one behind its end.
    pub at: Option<usize>,
}

/// A record with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordView {
    pub place: Place,
    pub id: i64,
    /// JSON as it is kept, without white space; `null` if it never was given one.
    pub state: String,
    /// What the state begins with, in a word.
    pub word: String,
    pub payload: String,
    pub created: i64,
    pub modified: i64,
    /// How long the log is.
    pub events: usize,
    /// Of the log the first entry and the newest.
    pub log: Vec<Entry>,
}

/// A form of Jobq's pages that was not done. It goes into the page that answers it, so that what was typed is kept,
/// however long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    Create(NewRecord, WrongRecord),
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

/// What somebody has typed of a new record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NewRecord {
    pub payload: String,
    #[serde(default)]
    pub state: String,
}

/// What is wrong with it, by its field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrongRecord {
    pub payload: Option<String>,
    pub state: Option<String>,
}

/// A state that was not set, for it was another one than the page had shown; all JSON texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub shown: String,
    pub now: String,
    pub wanted: String,
}

/// What somebody wants of a record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Change {
    /// Set its state, if it is still `old`.
    State { old: String, new: String },
    /// Append an event to its log.
    Event { event: String },
}
