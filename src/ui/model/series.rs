//! Time series. Times are microseconds since 1970, durations are seconds.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue_ref::QueueRef;

/// The counts of a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The start.
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
    /// The share of failures; `None` if nothing ended.
    pub fn failure_rate(&self) -> Option<f64> {
        let ended = self.completed + self.failed;
        (ended > 0).then(|| self.failed as f64 / ended as f64)
    }
}

/// Consecutive spans of equal length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The length of a span, in microseconds.
    pub width: i64,
    pub spans: Vec<Span>,
    /// All together.
    pub total: Span,
}

/// The last hour in all queues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecentActivity {
    /// By the minute; the last one is in progress.
    pub hour: Series,
    /// The last five minutes, and the hour before them.
    pub now: Span,
    pub before: Span,
    /// The p95 of the commit times of the last minute, in seconds; `None` if there were too few.
    pub commits_p95: Option<f64>,
    /// New jobs are refused, because the disk has no space.
    pub is_disk_full: bool,
}

/// Completed jobs of a queue per minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spark {
    pub queue_ref: QueueRef,
    pub completed: Vec<i64>,
}

/// The parameters of the statistics in the address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatisticsQuery {
    /// The address of the queue without `/ui/`; empty for all together.
    pub queue: String,
    /// `1h`, `6h`, `24h`, `7d`, `30d`, or empty.
    pub range: String,
    /// A custom range, in UTC: `2026-11-20T13:00`, or a date.
    pub from: String,
    pub to: String,
    pub compare: bool,
}
