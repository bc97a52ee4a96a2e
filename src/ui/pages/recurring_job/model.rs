//! The view model of a recurring job.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::recurring::RecurringRow;

/// A recurring job with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringView {
    pub row: RecurringRow,
    /// The payload of its children as it was written.
    pub body: String,
    /// The newest of its children that are there, newest first.
    pub children: Vec<JobRow>,
    /// Names of queues to choose from.
    pub queues: Vec<String>,
}
