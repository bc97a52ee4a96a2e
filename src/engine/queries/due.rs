//! When scheduled jobs become due.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::store::Statement;

/// Hours in the result.
pub const HOURS: usize = 24;

/// The most scheduled jobs that are read.
const JOBS_READ_MAX: i64 = 100_000;

/// The number of jobs that become due in each of the next [`HOURS`] hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueByHour {
    pub by_hour: [i64; HOURS],
    /// If there were too many jobs, the time up to which they were counted.
    pub until: Option<Time>,
}

impl Engine {
    /// Counts the jobs that become due after `now`.
    pub async fn count_due_by_hour(&self, now: Option<Time>) -> Result<DueByHour> {
        self.refresh_cache().await?;
        let now = self.now(now);
        let end = now.plus_seconds(HOURS as f64 * 3_600.0);
        let statement = Statement::new(BY_HOUR, [now.0.into(), end.0.into(), JOBS_READ_MAX.into()]);
        let mut due = DueByHour::default();
        let (mut total, mut last) = (0, None);
        for row in self.readers().rows(statement).await? {
            let (hour, n) = (usize::try_from(row.int(0)?).unwrap_or(HOURS), row.int(1)?);
            if let Some(slot) = due.by_hour.get_mut(hour) {
                *slot = n;
            }
            total += n;
            last = last.max(Some(Time(row.int(2)?)));
        }
        due.until = last.filter(|_| total >= JOBS_READ_MAX);
        Ok(due)
    }
}

const BY_HOUR: &str = "
SELECT (ready_at - $1) / 3600000000 AS hour, count(*), max(ready_at) FROM (
    SELECT ready_at FROM jobs WHERE state = {scheduled} AND ready_at > $1 AND ready_at < $2
    ORDER BY ready_at, seq LIMIT $3 + 0) AS due
GROUP BY (ready_at - $1) / 3600000000";
