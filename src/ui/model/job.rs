//! A job in a list, and its history.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::state::EffectiveState;

pub use crate::engine::EventKind;

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    pub seq: i64,
    pub id: String,
    pub queue_ref: QueueRef,
    pub klass: Option<String>,
    pub stand: EffectiveState,
    pub priority: f64,
    /// `i64::MAX` for any number.
    pub retries: i64,
    /// −1 when it failed for want of retries.
    pub remaining: i64,
    pub tags: Vec<String>,
    pub worker: Option<String>,
    /// The one moment that matters where the job stands: due, end of the lease, failed, completed, available.
    pub when: i64,
    /// The beginning of the payload on one line.
    pub glimpse: String,
    pub failure: Option<FailureNote>,
    /// How many jobs it waits for.
    pub waits_for: usize,
    /// When its time to live ends, wherever it is.
    pub ends: Option<i64>,
    /// The number of a dead job, where its id may be another job's by now, or several dead ones'.
    pub letter: Option<i64>,
}

impl JobRow {
    /// Taken from its worker by hand: called stalled, it waits, first in line.
    pub fn is_taken_away(&self) -> bool {
        self.stand == EffectiveState::Stalled && self.worker.is_none()
    }

    /// The list in which the job stands.
    pub fn list(&self) -> EffectiveState {
        if self.is_taken_away() {
            EffectiveState::Waiting
        } else {
            self.stand
        }
    }

    /// By which its page, and whoever ticks it in a dead letter, names it.
    pub fn handle(&self) -> String {
        match self.letter {
            Some(letter) => letter.to_string(),
            None => self.id.clone(),
        }
    }

    /// How many times it may be consumed still, and how many times it might be in all. A try counts as used
    /// from the moment in which the job is handed out.
    pub fn tries(&self) -> (i64, i64) {
        let left = match self.stand {
            EffectiveState::Running | EffectiveState::Stalled => self.remaining,
            EffectiveState::Dead => 0,
            EffectiveState::Waiting
            | EffectiveState::Scheduled
            | EffectiveState::Depends
            | EffectiveState::Failed
            | EffectiveState::Complete
            | EffectiveState::Record => self.remaining + 1,
        };
        (left.max(0), self.retries + 1)
    }
}

/// A job's last failure.
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
    /// Queue, worker or failure group, by what happened.
    pub subject: Option<String>,
    pub detail: Option<String>,
}

/// What is known of the times of a job, of any protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    pub created: i64,
    /// When it came into its present state.
    pub since: i64,
    /// When it became, or becomes, available.
    pub ready: i64,
    /// The end of its worker's lease.
    pub expires: Option<i64>,
    pub history: Vec<Entry>,
}
