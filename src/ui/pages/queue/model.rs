//! The view model of a queue.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::paging::Neighbors;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_trend::QueueTrend;
use crate::ui::model::state::EffectiveState;
use crate::ui::model::worker::ActivityList;

/// A queue and a page of its jobs in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueView {
    pub queue: QueueRow,
    pub state: EffectiveState,
    pub jobs: Vec<JobRow>,
    pub neighbors: Neighbors,
    /// How fast it grows or shrinks, if it has waiting jobs and is not paused.
    pub trend: Option<QueueTrend>,
    /// Its workers, if they have names.
    pub workers: ActivityList<String>,
}
