//! The view model of the overview.

use serde::{Deserialize, Serialize};

use crate::ui::components::basics::number_of;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::series::RecentActivity;
use crate::ui::model::state::Counts;
use crate::ui::model::worker::WorkerRow;
use crate::ui::pages::dead_letters::model::DeadRow;

/// How many failure groups have failed jobs, and how many of these groups and jobs are not muted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureTotals {
    pub groups: i64,
    pub unmuted_groups: i64,
    pub unmuted_jobs: i64,
}

impl OverviewView {
    /// The totals of all failure groups.
    pub fn failure_totals(&self) -> FailureTotals {
        self.failures.unwrap_or_else(|| {
            let unmuted = self.groups.iter().filter(|group| group.muted.is_none());
            FailureTotals {
                groups: number_of(self.groups.len()),
                unmuted_groups: number_of(unmuted.clone().count()),
                unmuted_jobs: unmuted.map(|group| group.count).sum(),
            }
        })
    }
}

/// The overview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverviewView {
    /// The listed queues.
    pub queues: Vec<QueueRow>,
    /// The counts of each protocol that has queues.
    pub totals: Vec<(Protocol, Counts)>,
    /// The failure groups with the most failed jobs, up to 1,000.
    pub groups: Vec<GroupRow>,
    /// The totals of all failure groups; `None` if `groups` has all.
    #[serde(default)]
    pub failures: Option<FailureTotals>,
    pub workers: Vec<WorkerRow>,
    /// The queues with the most dead jobs.
    pub dead: Vec<DeadRow>,
    /// The number of queues with dead jobs.
    pub dead_letters: usize,
    pub recent: RecentActivity,
}
