//! What a queue did on a day.

use chrono::{NaiveDate, NaiveTime};

use super::super::views::{Api, Place, Spread, StatsView};
use super::places::key;
use super::queue_row;
use crate::engine::{Durations, Engine, Result, Time};

/// What the queue did on `day`, `YYYY-MM-DD` or empty for today; `None` if there is no such queue or day, or it is
/// one of Jobq, in which nobody waits and nothing runs.
pub async fn stats(engine: &Engine, place: &Place, day: &str) -> Result<Option<StatsView>> {
    let key = key(place);
    let now = engine.now(None);
    let moment = if day.is_empty() {
        Some(now)
    } else {
        midnight(day)
    };
    let found = engine.queue(&key, None).await?;
    let found = found.filter(|_| place.api != Api::Jobq);
    let (Some(moment), Some(queue)) = (moment, found) else {
        return Ok(None);
    };
    let stats = engine.stats(&key, moment).await?;
    Ok(Some(StatsView {
        queue: queue_row(&queue),
        day: moment.day(),
        today: now.day(),
        wait: spread(stats.wait),
        run: spread(stats.run),
        failures: stats.failures,
        failed: stats.failed,
        retries: stats.retries,
    }))
}

fn midnight(day: &str) -> Option<Time> {
    let day = NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()?;
    Some(Time(
        day.and_time(NaiveTime::MIN).and_utc().timestamp_micros(),
    ))
}

fn spread(durations: Durations) -> Spread {
    Spread {
        total: durations.moments.n,
        mean: durations.moments.mean,
        variance: durations.moments.variance(),
        slots: durations.histogram,
    }
}
