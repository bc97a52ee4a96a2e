//! The view model of a Relay job.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{JobRow, JobTimes};

/// A Relay job with all its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayJobView {
    pub row: JobRow,
    pub times: JobTimes,
    /// JSON as sent.
    pub payload: String,
    /// The state that its workers store: JSON as sent.
    pub state: Option<String>,
    /// The heartbeat timeout, in seconds.
    pub timeout_s: i64,
    /// The run ID while it is running, as in the API.
    pub run_id: Option<String>,
    /// The time of the last enqueue, claim or heartbeat.
    pub updated: Option<i64>,
}
