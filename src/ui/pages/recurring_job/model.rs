//! The view model of a recurring job.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::recurring::RecurringRow;

/// A recurring job with all its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringJobView {
    pub row: RecurringRow,
    /// The due times of its next children.
    #[serde(default)]
    pub next_runs: Vec<i64>,
    /// The payload of its children.
    pub body: String,
    /// The newest children that still exist, newest first.
    pub children: Vec<JobRow>,
    /// Suggested names of queues.
    pub queues: Vec<String>,
}
