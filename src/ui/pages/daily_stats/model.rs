//! The view model of the statistics of a day.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_trend::QueueTrend;

/// The events of a queue on one UTC day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DailyStatsView {
    pub queue: QueueRow,
    /// How fast it grows or shrinks, if it has waiting jobs and is not paused.
    pub trend: Option<QueueTrend>,
    /// The number of the day; 1970-01-01 is 0.
    pub day: i64,
    pub today: i64,
    /// Durations from put (qless) or from availability (lmstfy, Relay) to claim.
    pub wait: DurationStats,
    /// Durations from claim to completion.
    pub run: DurationStats,
    pub failures: i64,
    /// The number of jobs that failed that day and are still failed.
    pub failed: i64,
    /// The number of expired leases.
    pub retries: i64,
}

/// Durations in seconds; the variance is in square seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DurationStats {
    pub total: i64,
    pub mean: f64,
    pub variance: f64,
    /// The counts of the 148 buckets: 60 of a second, then 59 of a minute, 23 of an hour, and 6 of a day.
    pub buckets: Vec<i64>,
}
