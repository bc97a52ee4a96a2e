//! The view model of a worker.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::worker::{ActivityList, RunResults, WorkerRow};

/// A worker and its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    pub worker: WorkerRow,
    /// Jobs with a valid lease first, then those with an expired one.
    pub jobs: Vec<JobRow>,
    /// Its queues, and its results in each.
    pub queues: ActivityList<QueueRef>,
    /// Its results in all of them.
    pub results: RunResults,
    /// The number of its last completed jobs by run time, in the bars of
    /// [`RUN_BARS_MS`](crate::ui::model::worker::RUN_BARS_MS); empty if there are none.
    #[serde(default)]
    pub run_bars: Vec<i64>,
}
