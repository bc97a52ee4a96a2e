//! The view model of the queues with dead jobs.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::QueueRef;

/// A queue with dead jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadRow {
    pub queue_ref: QueueRef,
    /// The number of its dead jobs.
    pub size: i64,
    /// The oldest dead job; `None` if it was removed in the meantime.
    pub oldest: Option<JobRow>,
}

/// A page of the queues with dead jobs, most dead jobs first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadView {
    pub rows: Vec<DeadRow>,
    /// The number of matching queues on all pages.
    pub queues: usize,
    /// The number of dead jobs in the matching queues.
    pub jobs: i64,
    /// The first 200 namespaces that have dead jobs, by name.
    pub namespaces: Vec<String>,
}
