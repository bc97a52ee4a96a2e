//! A queue in a list.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::time;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::state::{Counts, EffectiveState};

/// Long polls last up to a minute. After twice that without a claim, no worker asks for the jobs of a queue.
const UNCLAIMED_US: i64 = 120_000_000;

/// Why, by whom and until when a queue is paused. All may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseDetails {
    pub since: Option<i64>,
    /// When the queue resumes; `None` if the pause has no end.
    pub until: Option<i64>,
    pub reason: Arc<str>,
    /// The user who paused the queue.
    pub by: Arc<str>,
}

impl PauseDetails {
    /// Whether nothing but the beginning is known.
    pub fn is_plain(&self) -> bool {
        self.until.is_none() && self.reason.is_empty() && self.by.is_empty()
    }

    /// Who paused the queue, when it resumes, and why, as plain text for the command line. `details` in
    /// `components/pause.rs` is the same for pages.
    pub fn words(&self, now: i64) -> String {
        let until = self.until.map(|until| time::relative(until, now));
        let parts = [
            (!self.by.is_empty()).then(|| format!("by {}", self.by)),
            until.map(|until| format!("resumes {until}")),
            (!self.reason.is_empty()).then(|| self.reason.to_string()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(", ")
    }
}

/// The fields of a form that pauses queues. All are text, so that the page can explain mistakes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PauseForm {
    pub reason: String,
    /// The duration, in units of `unit`.
    pub duration: String,
    /// The unit of the duration in seconds; 1 if it is empty.
    pub unit: String,
    /// The end, in UTC; only without a duration.
    pub until: String,
}

/// A queue and its counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    pub queue_ref: QueueRef,
    pub counts: Counts,
    /// The time since which the job that has waited longest has been available.
    pub oldest_waiting: Option<i64>,
    /// Whether the queue is paused: workers get no jobs from it.
    pub paused: bool,
    /// The details of the pause.
    #[serde(default)]
    pub pause: PauseDetails,
    /// Hidden from the lists until a job is put into it.
    pub forgotten: bool,
    /// The number of its recurring jobs.
    pub recurring: i64,
    /// When a worker last asked for jobs, or when the server started; `None` if other servers may know better.
    pub last_claim: Option<i64>,
    /// The workers with names that last asked for jobs, latest first, and when.
    pub claimants: Vec<(String, i64)>,
}

impl QueueRow {
    /// A qless queue without recurring jobs and workers, for tests.
    #[cfg(test)]
    pub fn sample(name: &str, counts: Counts, oldest_waiting: Option<i64>) -> QueueRow {
        QueueRow {
            queue_ref: QueueRef::qless(name),
            counts,
            oldest_waiting,
            paused: false,
            pause: PauseDetails::default(),
            forgotten: false,
            recurring: 0,
            last_claim: None,
            claimants: Vec::new(),
        }
    }

    /// The number of jobs that are not complete.
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

    /// The states of its protocol, and any other states that have jobs.
    pub fn states(&self) -> impl Iterator<Item = EffectiveState> {
        let shown = |state: &EffectiveState| {
            self.queue_ref.protocol.has(*state) || self.counts.of(*state) > 0
        };
        EffectiveState::ALL.into_iter().filter(shown)
    }

    /// The time since which no worker has asked for the waiting jobs; `None` unless that is longer than a long poll.
    pub fn unclaimed_since(&self, now: i64) -> Option<i64> {
        let waits = self.counts.waiting > 0 && !self.paused;
        let since = self
            .last_claim
            .filter(|_| waits && self.queue_ref.protocol != Protocol::Jobq);
        since.filter(|since| now.saturating_sub(*since) > UNCLAIMED_US)
    }

    /// Whether the queue can be removed from the lists. Jobq queues are deleted instead.
    pub fn is_idle(&self) -> bool {
        let is_quiet = self.unfinished() == 0 && self.recurring == 0 && !self.paused;
        is_quiet && self.queue_ref.protocol != Protocol::Jobq
    }
}
