//! The scheduled jobs of all queues.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;

/// The scheduled jobs of all queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduledView {
    pub total: i64,
    /// The number of jobs that become due in each of the next hours.
    pub by_hour: Vec<i64>,
    /// The time up to which all were counted, if there were too many; in microseconds since 1970.
    pub until: Option<i64>,
    /// A page of the next jobs.
    pub jobs: Vec<JobRow>,
}
