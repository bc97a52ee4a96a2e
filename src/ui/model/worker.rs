//! Workers.

use serde::{Deserialize, Serialize};

/// A worker in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRow {
    pub name: String,
    pub last_seen: i64,
    pub running: i64,
    pub stalled: i64,
}

/// Whether a worker is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerActivity {
    /// Within the last minute.
    Alive,
    /// Within the last five minutes.
    Late,
    /// Not within the last five minutes.
    Silent,
}

impl WorkerRow {
    pub fn activity(&self, now: i64) -> WorkerActivity {
        match now.saturating_sub(self.last_seen) / 60_000_000 {
            ..1 => WorkerActivity::Alive,
            1..5 => WorkerActivity::Late,
            _ => WorkerActivity::Silent,
        }
    }
}

/// How a worker's runs of jobs ended in the last hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResults {
    pub completed: i64,
    pub failed: i64,
    /// Returned for another attempt.
    pub retried: i64,
    /// Leases that expired or were timed out.
    pub lost: i64,
    /// Quantiles of the run times of up to 100 completed jobs, in seconds.
    pub run_p50: Option<f64>,
    pub run_p95: Option<f64>,
    /// The longest of them.
    pub run_longest: Option<f64>,
}

/// A worker of a queue, or a queue of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerInQueue<T> {
    pub of: T,
    /// When the worker was last seen, or last asked for jobs of the queue, if that is known.
    pub last_seen: Option<i64>,
    pub running: i64,
    pub stalled: i64,
    pub results: RunResults,
}

/// The workers of a queue, or the queues of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkersInQueues<T> {
    /// Last active first; at most 50.
    pub listed: Vec<WorkerInQueue<T>>,
    /// The number of others.
    pub more: i64,
    /// The time since which results are counted.
    pub since: i64,
    /// Whether other servers have counted results, too.
    pub is_partial: bool,
}
