//! The view model of the scheduled jobs.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::paging::Neighbors;

/// The scheduled jobs of all queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduledView {
    pub total: i64,
    /// The number of jobs that become due in each of the next hours.
    pub by_hour: Vec<i64>,
    /// If there were too many jobs, the time up to which all of them were counted; in microseconds since 1970.
    pub until: Option<i64>,
    /// A page of the jobs, next due first.
    pub jobs: Vec<JobRow>,
    pub neighbors: Neighbors,
}
