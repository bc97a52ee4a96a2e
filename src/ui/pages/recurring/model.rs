//! The view model of the recurring jobs.

use serde::{Deserialize, Serialize};

use crate::ui::model::recurring::RecurringRow;

/// A page of the recurring jobs of one queue, or of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringsView {
    pub total: i64,
    pub rows: Vec<RecurringRow>,
    /// Names of queues to choose from.
    pub queues: Vec<String>,
}
