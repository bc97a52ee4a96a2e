//! Loads the statistics of a queue on a UTC day.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Durations, Engine, Result, Time};
use crate::ui::context::read_or_missing;
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::pages::daily_stats::model::{DailyStatsView, DurationStats};
use crate::ui::present::queue_refs::key;
use crate::ui::present::queue_row;
use crate::ui::present::workers::activity;

/// The statistics of a queue on a UTC day, `YYYY-MM-DD`; of today if `day` is empty.
#[server(name = LoadDailyStats, endpoint = "stats")]
pub async fn daily_stats(queue_ref: QueueRef, day: String) -> Result<DailyStatsView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_daily_stats(&context.engine, &queue_ref, &day).await,
        || {
            let name = queue_ref.label();
            match day.is_empty() {
                true => format!("Queue “{name}” not found."),
                false => {
                    format!("Queue “{name}” not found, or “{day}” is not a date (YYYY-MM-DD).")
                }
            }
        },
    )
    .await
}

/// The statistics of a queue on `day`, `YYYY-MM-DD` or empty for today; `None` if the queue does not exist, the day is
/// invalid, or the queue is a Jobq queue, which has no such statistics.
pub async fn load_daily_stats(
    engine: &Engine,
    queue_ref: &QueueRef,
    day: &str,
) -> Result<Option<DailyStatsView>> {
    let key = key(queue_ref);
    let now = engine.now(None);
    let moment = if day.is_empty() {
        Some(now)
    } else {
        Time::from_date(day)
    };
    let found = engine.queue(&key, None).await?;
    let found = found.filter(|_| queue_ref.protocol != Protocol::Jobq);
    let (Some(moment), Some(queue)) = (moment, found) else {
        return Ok(None);
    };
    let stats = engine.stats(&key, moment).await?;
    let queue = queue_row(&queue);
    let (_, trend) = activity(engine, &key, &queue).await?;
    Ok(Some(DailyStatsView {
        trend,
        queue,
        day: moment.day(),
        today: now.day(),
        wait: duration_stats(stats.wait),
        run: duration_stats(stats.run),
        failures: stats.failures,
        failed: stats.failed,
        retries: stats.retries,
    }))
}

fn duration_stats(durations: Durations) -> DurationStats {
    DurationStats {
        total: durations.summary.n,
        mean: durations.summary.mean,
        variance: durations.summary.variance(),
        buckets: durations.histogram,
    }
}
