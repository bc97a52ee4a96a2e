//! A job in a list, and its history.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::state::EffectiveState;

pub use crate::engine::EventKind;

/// A number of retries; `None` if it is unlimited.
pub fn limited(retries: i64) -> Option<i64> {
    (retries < i64::from(u32::MAX)).then_some(retries)
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    /// The insertion number.
    pub seq: i64,
    pub id: String,
    pub queue_ref: QueueRef,
    pub klass: Option<String>,
    pub state: EffectiveState,
    pub priority: f64,
    /// `i64::MAX` for unlimited retries.
    pub retries: i64,
    /// −1 if the job failed because no retries were left.
    pub remaining: i64,
    pub tags: Vec<String>,
    pub worker: Option<String>,
    /// The time that matters in the job's state: due, end of the lease, failed, completed, available.
    pub state_time: i64,
    /// The beginning of the payload on one line.
    pub preview: String,
    pub failure: Option<FailureNote>,
    /// The number of its dependencies.
    pub dependency_count: usize,
    /// The end of its time to live.
    pub expires_at: Option<i64>,
    /// The number of a dead Relay job. Its ID is not unique, because new jobs can use it.
    pub dead_number: Option<i64>,
}

impl JobRow {
    /// Whether `/timeout` took the job from its worker: it is stalled, and the next job to be claimed.
    pub fn is_timed_out(&self) -> bool {
        self.state == EffectiveState::Stalled && self.worker.is_none()
    }

    /// The state in whose list the job is.
    pub fn listed_state(&self) -> EffectiveState {
        if self.is_timed_out() {
            EffectiveState::Waiting
        } else {
            self.state
        }
    }

    /// The identifier of the job in addresses and in the forms for dead jobs.
    pub fn address_id(&self) -> String {
        match self.dead_number {
            Some(dead_number) => dead_number.to_string(),
            None => self.id.clone(),
        }
    }

    /// The number of retries left and the total, as text.
    pub fn retries_left(&self) -> String {
        match limited(self.retries) {
            Some(total) => format!("{} of {total}", self.remaining.max(0)),
            None => "unlimited".to_owned(),
        }
    }

    /// The remaining and the total number of attempts. A claim uses one attempt.
    pub fn attempts(&self) -> (i64, i64) {
        let left = match self.state {
            EffectiveState::Running | EffectiveState::Stalled => self.remaining,
            EffectiveState::Dead => 0,
            EffectiveState::Waiting
            | EffectiveState::Scheduled
            | EffectiveState::Depends
            | EffectiveState::Failed
            | EffectiveState::Complete
            | EffectiveState::Record => self.remaining.saturating_add(1),
        };
        (left.max(0), self.retries.saturating_add(1))
    }
}

/// The last failure of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureNote {
    pub group: String,
    pub message: String,
    pub worker: String,
    pub when: i64,
}

/// One entry of a job's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub what: EventKind,
    pub when: i64,
    /// The queue, worker or failure group, depending on the kind.
    pub subject: Option<String>,
    pub detail: Option<String>,
    /// The beginning of the message of a failure.
    pub message: Option<String>,
}

/// The times of a job of any protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobTimes {
    pub created: i64,
    /// The time at which the job entered its state.
    pub state_since: i64,
    /// The time at which the job becomes available.
    pub available_at: i64,
    /// The end of its worker's lease.
    pub expires: Option<i64>,
    pub history: Vec<Entry>,
}
