//! The view model of the recurring jobs.

use serde::{Deserialize, Serialize};

use crate::ui::model::paging::Neighbors;
use crate::ui::model::recurring::RecurringRow;

/// A page of recurring jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringJobsView {
    pub total: i64,
    pub rows: Vec<RecurringRow>,
    pub neighbors: Neighbors,
    /// Suggested names of queues.
    pub queues: Vec<String>,
}
