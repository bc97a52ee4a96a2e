//! The view model of a queue.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::state::EffectiveState;

/// A queue and a page of its jobs in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueView {
    pub queue: QueueRow,
    pub state: EffectiveState,
    pub jobs: Vec<JobRow>,
}
