//! The view model of the overview.

use serde::{Deserialize, Serialize};

use crate::ui::model::failure::GroupRow;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::series::RecentActivity;
use crate::ui::model::state::Counts;
use crate::ui::model::worker::WorkerRow;
use crate::ui::pages::dead_letters::model::DeadRow;

/// The overview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverviewView {
    /// The listed queues.
    pub queues: Vec<QueueRow>,
    /// The counts of each protocol that has queues.
    pub totals: Vec<(Protocol, Counts)>,
    pub groups: Vec<GroupRow>,
    pub workers: Vec<WorkerRow>,
    /// The queues with the most dead jobs.
    pub dead: Vec<DeadRow>,
    /// The number of queues with dead jobs.
    pub dead_letters: usize,
    pub recent: RecentActivity,
}
