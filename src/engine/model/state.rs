//! The states of a job.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The stored state of a job. [`EffectiveState`] also depends on the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Waiting = 1,
    Scheduled = 2,
    Depends = 3,
    Running = 4,
    Failed = 5,
    Complete = 6,
    /// Taken from its worker (`/timeout`): it is claimed before all waiting jobs. Its text is `stalled`, the word of
    /// qless-core.
    #[serde(rename = "stalled")]
    TimedOut = 7,
    /// Dead-lettered (lmstfy, Relay), because no attempts are left.
    Dead = 8,
    /// A Jobq record. It cannot be claimed; its own state is [`Job::work_state`](crate::engine::Job::work_state).
    Record = 9,
}

impl State {
    pub const ALL: [State; 9] = [
        State::Waiting,
        State::Scheduled,
        State::Depends,
        State::Running,
        State::Failed,
        State::Complete,
        State::TimedOut,
        State::Dead,
        State::Record,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Scheduled => "scheduled",
            State::Depends => "depends",
            State::Running => "running",
            State::Failed => "failed",
            State::Complete => "complete",
            State::TimedOut => "stalled",
            State::Dead => "dead",
            State::Record => "record",
        }
    }

    pub fn from_code(code: i64) -> Option<State> {
        State::ALL.into_iter().find(|state| state.code() == code)
    }

    pub fn code(self) -> i64 {
        self as i64
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of a job at a given time, and the list of jobs in that state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectiveState {
    /// In claim order. The list starts with timed-out jobs, although their effective state is stalled.
    Waiting,
    /// By the time they become due.
    Scheduled,
    /// By the time they started to wait.
    Depends,
    /// With an unexpired lease; by expiry.
    Running,
    /// With an expired lease, not claimed again; by expiry.
    Stalled,
    /// Newest failure first.
    Failed,
    /// Newest completion first.
    Complete,
    /// Oldest first, the order in which they are respawned.
    Dead,
    /// Jobq records, least recently modified first, the order in which they are polled.
    Record,
}

impl EffectiveState {
    pub const ALL: [EffectiveState; 9] = [
        EffectiveState::Waiting,
        EffectiveState::Scheduled,
        EffectiveState::Depends,
        EffectiveState::Running,
        EffectiveState::Stalled,
        EffectiveState::Failed,
        EffectiveState::Complete,
        EffectiveState::Dead,
        EffectiveState::Record,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            EffectiveState::Waiting => "waiting",
            EffectiveState::Scheduled => "scheduled",
            EffectiveState::Depends => "depends",
            EffectiveState::Running => "running",
            EffectiveState::Stalled => "stalled",
            EffectiveState::Failed => "failed",
            EffectiveState::Complete => "complete",
            EffectiveState::Dead => "dead",
            EffectiveState::Record => "record",
        }
    }

    pub fn parse(text: &str) -> Option<EffectiveState> {
        EffectiveState::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

impl fmt::Display for EffectiveState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
