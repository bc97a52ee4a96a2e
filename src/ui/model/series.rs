//! History in numbers. Times are microseconds since 1970, times that something took are seconds.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue_ref::QueueRef;

/// What happened in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// When it began.
    pub from: i64,
    pub put: i64,
    pub claimed: i64,
    pub completed: i64,
    /// Failed or dead.
    pub failed: i64,
    /// Within what time half of the jobs that were claimed had been, and 95 % of them; `None` if none was.
    pub wait_p50: Option<f64>,
    pub wait_p95: Option<f64>,
    /// Within what time 95 % of the jobs that were completed had been, from their claim on.
    pub run_p95: Option<f64>,
}

impl Span {
    /// The share of what ended that failed; `None` if nothing ended.
    pub fn failure_rate(&self) -> Option<f64> {
        let ended = self.completed + self.failed;
        (ended > 0).then(|| self.failed as f64 / ended as f64)
    }
}

/// What happened in one span of time after the other, all equally long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// How long each is, in microseconds.
    pub width: i64,
    pub spans: Vec<Span>,
    /// All together.
    pub total: Span,
}

/// What the overview tells of the last hour, in all queues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recent {
    /// By the minute; the last one goes on.
    pub hour: Series,
    /// The last five minutes, and the hour before them.
    pub now: Span,
    pub before: Span,
    /// Within what time 95 of 100 commits of the last minute ended, in seconds; `None` if there were but few.
    pub commits_p95: Option<f64>,
    /// New jobs are refused, because the disk has no space.
    pub is_disk_full: bool,
}

/// How many jobs were completed in a queue, by the minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spark {
    pub queue_ref: QueueRef,
    pub completed: Vec<i64>,
}

/// What of the statistics somebody wants to see, as it stands in the address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The address of the queue without `/ui/`; empty for all together.
    pub queue: String,
    /// `1h`, `6h`, `24h`, `7d`, `30d`, or empty.
    pub range: String,
    /// A range of one's own, in UTC: `2026-11-20T13:00`, or a date.
    pub from: String,
    pub to: String,
    pub compare: bool,
}
