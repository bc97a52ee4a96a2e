//! What only Relay has: jobs with a state that their runners keep, and runs.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{JobRow, Life};

/// A Relay job with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayJobView {
    pub row: JobRow,
    pub life: Life,
    /// JSON as it was written.
    pub payload: String,
    /// What its runners keep with it: JSON as it was written.
    pub state: Option<String>,
    /// Seconds from one heartbeat to the next.
    pub timeout_s: i64,
    /// While it runs, the id of the run, as the API gives it.
    pub run_id: Option<String>,
    /// When it was enqueued, handed out or heartbeat last.
    pub updated: Option<i64>,
}
