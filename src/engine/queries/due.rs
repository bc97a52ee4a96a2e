//! When what is scheduled becomes due.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::store::Statement;

/// Hours that are counted one by one.
pub const HOURS: usize = 24;

/// So many scheduled jobs are looked at for this at the most.
const LOOKED_AT_MAX: i64 = 100_000;

/// How many jobs become due in each of the next [`HOURS`] hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    pub by_hour: [i64; HOURS],
    /// Until when all were counted, if there were too many.
    pub until: Option<Time>,
}

impl Engine {
    /// Counts what becomes due from `now` on.
    pub async fn count_due_by_hour(&self, now: Option<Time>) -> Result<Due> {
        self.refresh_cache().await?;
        let now = self.now(now);
        let end = now.plus_seconds(HOURS as f64 * 3_600.0);
        let statement = Statement::new(BY_HOUR, [now.0.into(), end.0.into(), LOOKED_AT_MAX.into()]);
        let mut due = Due::default();
        let (mut total, mut last) = (0, None);
        for row in self.readers().rows(statement).await? {
            let (hour, n) = (usize::try_from(row.int(0)?).unwrap_or(HOURS), row.int(1)?);
            if let Some(slot) = due.by_hour.get_mut(hour) {
                *slot = n;
            }
            total += n;
            last = last.max(Some(Time(row.int(2)?)));
        }
        due.until = last.filter(|_| total >= LOOKED_AT_MAX);
        Ok(due)
    }
}

const BY_HOUR: &str = "
SELECT (ready_at - $1) / 3600000000 AS hour, count(*), max(ready_at) FROM (
    SELECT ready_at FROM jobs WHERE state = 2 AND ready_at > $1 AND ready_at < $2
    ORDER BY ready_at, seq LIMIT $3 + 0) AS due
GROUP BY (ready_at - $1) / 3600000000";
