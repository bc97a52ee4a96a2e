//! The view model of the dead letters.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::QueueRef;

/// The dead letter of a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadRow {
    pub queue_ref: QueueRef,
    pub size: i64,
    /// The oldest dead job; `None` if it was removed meanwhile.
    pub head: Option<JobRow>,
}

/// A page of the dead letters that are not empty, fullest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadView {
    pub rows: Vec<DeadRow>,
    /// The number of matching dead letters on all pages.
    pub letters: usize,
    /// The number of their jobs.
    pub jobs: i64,
    /// Namespaces with a dead letter that is not empty.
    pub namespaces: Vec<String>,
}
