//! Time series. Times are microseconds since 1970, durations are seconds.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue_ref::QueueRef;

/// The counts of one span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The start.
    pub from: i64,
    pub put: i64,
    pub claimed: i64,
    pub completed: i64,
    /// Jobs that failed or were dead-lettered.
    pub failed: i64,
    /// Quantiles of the waiting time of the jobs claimed in the span; `None` if no job was claimed.
    pub wait_p50: Option<f64>,
    pub wait_p95: Option<f64>,
    /// 95 % of the jobs completed in the span ran at most this long; `None` if no job was completed.
    pub run_p95: Option<f64>,
    /// The average number of waiting jobs; `None` if it was not recorded.
    #[serde(default)]
    pub waiting: Option<f64>,
}

impl Span {
    /// Failures as a share of completions and failures; `None` if there were neither.
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
    /// The counts of all spans together.
    pub total: Span,
}

/// The last hour in all queues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecentActivity {
    /// By minute; the last minute is in progress.
    pub hour: Series,
    /// The last five minutes, and the hour before them.
    pub now: Span,
    pub before: Span,
    /// The p95 commit time of the last minute, in seconds; `None` if there were too few commits.
    pub commits_p95: Option<f64>,
    /// Whether new jobs are rejected because the disk is full.
    pub is_disk_full: bool,
}

/// Completed jobs of a queue per minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sparkline {
    pub queue_ref: QueueRef,
    pub completed: Vec<i64>,
}

/// The parameters of the statistics in the address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatisticsQuery {
    /// The path of the queue without `/ui/`; empty for all queues together.
    pub queue: String,
    /// `1h`, `6h`, `24h`, `7d`, `30d`, or empty.
    pub range: String,
    /// A custom range, in UTC: `2026-11-20T13:00`, or a date.
    pub from: String,
    pub to: String,
    pub compare: Compare,
}

/// What a range is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compare {
    #[default]
    Nothing,
    /// The period of the same length before it.
    Previous,
    /// The same time a week earlier.
    LastWeek,
}

impl Compare {
    /// The value of the parameter `compare`.
    pub fn as_str(self) -> &'static str {
        match self {
            Compare::Nothing => "",
            Compare::Previous => "1",
            Compare::LastWeek => "week",
        }
    }

    pub fn parse(text: &str) -> Compare {
        match text {
            "1" => Compare::Previous,
            "week" => Compare::LastWeek,
            _ => Compare::Nothing,
        }
    }
}
