//! Reads the time series of queues: numbers of puts, claims, completions and failures, and durations of waits and runs,
//! by minute and further back by hour. See `unit_of_work/time_series.rs` for how they are stored.

use std::collections::HashMap;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{QueueId, QueueKey};
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::unit_of_work::time_series::{
    BOUNDS_S, CLASSES, FAILED, HOUR, MINUTE_US, PUT, RUNS, WAITS,
};
use crate::store::Statement;

/// Totals over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeriesTotals {
    pub put: i64,
    /// Jobs that entered the state failed or were dead-lettered.
    pub failed: i64,
    /// Claims by waiting time; see [`BOUNDS_S`].
    pub waits: [i64; CLASSES],
    /// Completions by run time.
    pub runs: [i64; CLASSES],
}

impl SeriesTotals {
    pub fn claimed(&self) -> i64 {
        self.waits.iter().sum()
    }

    pub fn completed(&self) -> i64 {
        self.runs.iter().sum()
    }

    pub fn plus(mut self, other: &SeriesTotals) -> SeriesTotals {
        self.put += other.put;
        self.failed += other.failed;
        let add = |ours: &mut [i64; CLASSES], theirs: &[i64; CLASSES]| {
            ours.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        };
        add(&mut self.waits, &other.waits);
        add(&mut self.runs, &other.runs);
        self
    }

    fn add(&mut self, slot: i64, n: i64) {
        let class = |classes: &mut [i64; CLASSES], from: i64| {
            let class = usize::try_from(slot - from).ok();
            if let Some(count) = class.and_then(|class| classes.get_mut(class)) {
                *count += n;
            }
        };
        match slot {
            PUT => self.put += n,
            FAILED => self.failed += n,
            RUNS.. => class(&mut self.runs, RUNS),
            _ => class(&mut self.waits, WAITS),
        }
    }
}

/// The quantile `share` of durations, in seconds, interpolated linearly within its class. Durations beyond the last
/// bound count as that bound. `None` without durations.
pub fn quantile(classes: &[i64; CLASSES], share: f64) -> Option<f64> {
    let total: i64 = classes.iter().sum();
    if total <= 0 {
        return None;
    }
    let wanted = share * total as f64;
    let (mut below, mut from) = (0.0, 0.0);
    for (n, to) in classes.iter().zip(BOUNDS_S) {
        let n = *n as f64;
        if n > 0.0 && below + n >= wanted {
            return Some(from + (to - from) * (wanted - below) / n);
        }
        below += n;
        from = to;
    }
    Some(from)
}

impl Engine {
    /// The totals of a queue, or of all queues, in each of `count` spans of `width` minutes, starting at the minute
    /// `from`. Hourly data is included only if the spans are whole hours.
    pub async fn series(
        &self,
        queue: Option<&QueueKey>,
        from: i64,
        width: i64,
        count: usize,
    ) -> Result<Vec<SeriesTotals>> {
        self.refresh_cache().await?;
        let mut spans = vec![SeriesTotals::default(); count];
        let queue = match queue.map(|key| self.known_queues().get(key)) {
            Some(None) => return Ok(spans),
            Some(Some(queue)) => Some(queue.id),
            None => None,
        };
        let statement = |kind: Kind, from: i64, width: i64| {
            let to = from.saturating_add(width.saturating_mul(count as i64));
            let args = [kind as i64, from, to, width].map(Into::into);
            match queue {
                Some(queue) => Statement::new(OF_QUEUE, args).with(queue),
                None => Statement::new(OF_ALL, args),
            }
        };
        let mut batch = vec![statement(Kind::Minute, from, width)];
        if width % HOUR == 0 && from.rem_euclid(HOUR) == 0 {
            batch.push(statement(Kind::Hour, from.div_euclid(HOUR), width / HOUR));
        }
        for answer in self.readers().read(batch).await? {
            for row in &answer.rows {
                let span = usize::try_from(row.int(0)?).ok();
                if let Some(span) = span.and_then(|span| spans.get_mut(span)) {
                    span.add(row.int(1)?, row.int(2)?);
                }
            }
        }
        Ok(spans)
    }

    /// Completions per queue in each of `count` minutes, starting at the minute `from`. Omits queues without any.
    pub async fn throughputs(&self, from: i64, count: usize) -> Result<HashMap<QueueId, Vec<i64>>> {
        let to = from.saturating_add(count as i64);
        let statement = Statement::new(THROUGHPUTS, [from.into(), to.into(), RUNS.into()]);
        let mut found: HashMap<QueueId, Vec<i64>> = HashMap::new();
        for row in self.readers().rows(statement).await? {
            let of_queue = found.entry(row.int(0)?).or_insert_with(|| vec![0; count]);
            let minute = usize::try_from(row.int(1)?).ok();
            if let Some(n) = minute.and_then(|minute| of_queue.get_mut(minute)) {
                *n += row.int(2)?;
            }
        }
        Ok(found)
    }

    /// The time of the last failure, to the minute; for older ones to the hour or the day. `None` if no longer stored.
    pub async fn last_failure(&self) -> Result<Option<Time>> {
        let day = self.readers().rows(Statement::new(LAST_DAY, [])).await?;
        let Some(day) = day.first().map_or(Ok(None), |row| row.int_or_null(0))? else {
            return Ok(None);
        };
        let first = day.saturating_mul(24 * HOUR);
        let last = |kind: Kind, unit: i64| {
            let (from, to) = (first / unit, first / unit + 24 * HOUR / unit);
            let args = [kind as i64, from, to, FAILED].map(Into::into);
            Statement::new(LAST, args)
        };
        let batch = vec![last(Kind::Minute, 1), last(Kind::Hour, HOUR)];
        let answers = self.readers().read(batch).await?;
        let mut latest = first;
        for (answer, unit) in answers.iter().zip([1, HOUR]) {
            let found = answer.rows.first();
            if let Some(at) = found.map_or(Ok(None), |row| row.int_or_null(0))? {
                latest = latest.max(at * unit);
            }
        }
        Ok(Some(Time(latest.saturating_mul(MINUTE_US))))
    }
}

// The join with `queues` lets the primary key (kind, queue, day, ...) find the rows.
const OF_ALL: &str = "
SELECT (t.day - $2) / $4, t.slot, CAST(sum(t.n) AS BIGINT)
FROM (SELECT id FROM queues UNION ALL SELECT 0) AS q CROSS JOIN tallies AS t
WHERE t.kind = $1 AND t.queue = q.id AND t.day >= $2 AND t.day < $3 GROUP BY 1, 2";

const OF_QUEUE: &str = "
SELECT (t.day - $2) / $4, t.slot, CAST(sum(t.n) AS BIGINT) FROM tallies AS t
WHERE t.kind = $1 AND t.queue = $5 AND t.day >= $2 AND t.day < $3 GROUP BY 1, 2";

const THROUGHPUTS: &str = "
SELECT t.queue, t.day - $1, CAST(sum(t.n) AS BIGINT) FROM queues AS q CROSS JOIN tallies AS t
WHERE t.kind = {kind_minute} AND t.queue = q.id AND t.day >= $1 AND t.day < $2 AND t.slot >= $3 GROUP BY 1, 2";

const LAST_DAY: &str =
    "SELECT max(day) FROM tallies WHERE kind = {kind_outcome} AND slot = 0 AND n > 0";

const LAST: &str = "
SELECT max(t.day) FROM (SELECT id FROM queues UNION ALL SELECT 0) AS q CROSS JOIN tallies AS t
WHERE t.kind = $1 AND t.queue = q.id AND t.day >= $2 AND t.day < $3 AND t.slot = $4";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::unit_of_work::time_series::{SeriesEvent, class, minute};

    #[test]
    fn a_duration_is_in_the_first_bucket_that_ends_after_it() {
        assert_eq!([-1.0, 0.0, 0.009].map(class), [0, 0, 0]);
        assert_eq!([0.01, 0.99, 1.0, 3_599.0].map(class), [1, 4, 5, 10]);
        assert_eq!([3_600.0, 1e12].map(class), [11, 11]);
        assert!(WAITS + (CLASSES as i64) <= RUNS);
    }

    #[test]
    fn quantiles_are_interpolated_within_a_bucket() {
        let mut classes = [0; CLASSES];
        assert_eq!(quantile(&classes, 0.5), None);
        classes[5] = 10; // one to three seconds
        assert_eq!(quantile(&classes, 0.5), Some(2.0));
        assert_eq!(quantile(&classes, 1.0), Some(3.0));
        classes[11] = 90;
        assert_eq!(quantile(&classes, 0.5), Some(3_600.0), "or longer");
        assert_eq!(quantile(&classes, 0.05), Some(2.0));
    }

    #[test]
    fn counted_events_are_summed_by_kind() {
        let mut sums = SeriesTotals::default();
        let events = [
            SeriesEvent::Put,
            SeriesEvent::Failed,
            SeriesEvent::Claimed(0.2),
            SeriesEvent::Claimed(9_999.0),
            SeriesEvent::Completed(2.0),
        ];
        for event in events {
            sums.add(event.slot(), 2);
        }
        assert_eq!((sums.put, sums.failed), (2, 2));
        assert_eq!((sums.claimed(), sums.completed()), (4, 2));
        assert_eq!((sums.waits[3], sums.waits[11], sums.runs[5]), (2, 2, 2));
        assert_eq!(sums.plus(&sums).claimed(), 8);
    }

    #[test]
    fn minutes_begin_before_1970_too() {
        assert_eq!(minute(Time(-1)), -1);
        assert_eq!(minute(Time(59_999_999)), 0);
    }
}
