//! The view model of a worker.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::worker::WorkerRow;

/// A worker and the jobs it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    pub worker: WorkerRow,
    /// Those in time, then those whose lease is lost.
    pub jobs: Vec<JobRow>,
}
