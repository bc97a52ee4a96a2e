//! The view model of the dead letters.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::QueueRef;

/// A queue's dead letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadRow {
    pub queue_ref: QueueRef,
    pub size: i64,
    /// The job that has been there longest; `None` if it has gone in the same moment.
    pub head: Option<JobRow>,
}

/// A page of the dead letters that are not empty, fullest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadView {
    pub rows: Vec<DeadRow>,
    /// How many there are of those that were asked for.
    pub letters: usize,
    /// The jobs in all of them.
    pub jobs: i64,
    /// Namespaces with a dead letter that is not empty.
    pub namespaces: Vec<String>,
}
