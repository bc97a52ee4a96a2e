//! A queue in a list.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::state::{Counts, EffectiveState};

/// A queue and what is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    pub queue_ref: QueueRef,
    pub counts: Counts,
    /// When the job that is next in line became available.
    pub oldest_waiting: Option<i64>,
    /// Nobody gets a job of it.
    pub paused: bool,
    /// Not listed without need until something is put into it.
    pub forgotten: bool,
    /// How many recurring jobs it has.
    pub recurring: i64,
}

impl QueueRow {
    /// Jobs that something is still to become of.
    pub fn unfinished(&self) -> i64 {
        let counts = &self.counts;
        counts.waiting
            + counts.scheduled
            + counts.depends
            + counts.running
            + counts.stalled
            + counts.failed
            + counts.dead
    }

    /// The states in which its jobs can be; and one in which there are some though they should not.
    pub fn stands(&self) -> impl Iterator<Item = EffectiveState> {
        let shown = |stand: &EffectiveState| {
            self.queue_ref.protocol.has(*stand) || self.counts.of(*stand) > 0
        };
        EffectiveState::ALL.into_iter().filter(shown)
    }

    /// Whether the queue can be forgotten, so that it leaves the lists. Those of Jobq are deleted instead.
    pub fn is_idle(&self) -> bool {
        let is_quiet = self.unfinished() == 0 && self.recurring == 0 && !self.paused;
        is_quiet && self.queue_ref.protocol != Protocol::Jobq
    }
}
