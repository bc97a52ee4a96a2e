//! What is to be done later, whatever its queue.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;

/// The scheduled jobs of all queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduledView {
    pub total: i64,
    /// How many become due in each of the next hours.
    pub by_hour: Vec<i64>,
    /// Until when all were counted, if there were too many; in microseconds since 1970.
    pub until: Option<i64>,
    /// The next ones, a page of them.
    pub jobs: Vec<JobRow>,
}
