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
