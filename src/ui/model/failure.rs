//! A failure group in a list.

use serde::{Deserialize, Serialize};

/// Failed jobs that share a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupRow {
    pub group: String,
    pub count: i64,
    /// The times of the oldest and the newest failure.
    pub first: Option<i64>,
    pub last: Option<i64>,
    /// The message of the newest failure.
    pub message: Option<String>,
    /// Why and for how long it is muted.
    #[serde(default)]
    pub muted: Option<MutedFailures>,
}

/// Why a failure group is muted. It is neither a problem of the overview nor an alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MutedFailures {
    pub reason: String,
    pub who: String,
    pub until: i64,
}
