//! Reads the time series of queues: numbers of puts, claims, completions and failures, and durations of waits and runs,
//! by minute and further back by hour. See `unit_of_work/time_series.rs` for how they are stored.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{QueueId, QueueKey};
use crate::engine::queries::kept_reads::Keeping;
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::unit_of_work::time_series::{
    BUCKETS, FAILED, FORMER_BOUNDS_S, FORMER_RUNS, FORMER_WAITS, HOUR, MINUTE_US, PUT, RUNS,
    SAMPLES, WAITING, WAITS, bucket_value, buckets_of_former,
};
use crate::store::{Statement, StatementResult, StoreError};

/// The time limit of reading the series of all queues over more than an hour, on SQLite. The numbers of a thousand
/// queues in a month are millions of rows.
pub const ALL_QUEUES_TIME_MAX: Duration = Duration::from_secs(3);

const KEEPING: Keeping = Keeping {
    above: Duration::from_millis(50),
    least: Duration::ZERO,
    most: Duration::from_secs(30),
    wait_max: ALL_QUEUES_TIME_MAX,
};

/// Number of queues × minutes that one statement reads: SQLite sorts their rows in memory.
const MINUTES_AT_ONCE: i64 = 8 * 30 * 24 * HOUR;

/// Totals over a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesTotals {
    pub put: i64,
    /// Jobs that entered the state failed or were dead-lettered.
    pub failed: i64,
    /// The waiting jobs at each sample, added up, and the number of samples.
    waiting: i64,
    samples: i64,
    /// Claims by waiting time.
    pub waits: DurationCounts,
    /// Completions by run time.
    pub runs: DurationCounts,
}

/// The number of durations in each bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationCounts([i64; BUCKETS]);

impl Default for DurationCounts {
    fn default() -> Self {
        DurationCounts([0; BUCKETS])
    }
}

impl DurationCounts {
    fn total(&self) -> i64 {
        self.0.iter().sum()
    }

    fn plus(&mut self, other: &DurationCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a += b);
    }

    /// Adds `n` durations to a bucket; does nothing if there is no such bucket.
    fn add(&mut self, bucket: i64, n: i64) {
        let bucket = usize::try_from(bucket).ok();
        if let Some(count) = bucket.and_then(|bucket| self.0.get_mut(bucket)) {
            *count += n;
        }
    }

    /// Adds `n` durations that an earlier version counted in its bucket `former`: spread over the buckets in its place,
    /// a single one in the middle.
    fn add_former(&mut self, former: i64, n: i64) {
        let Some(former) = usize::try_from(former)
            .ok()
            .filter(|it| *it <= FORMER_BOUNDS_S.len())
        else {
            return;
        };
        let buckets = buckets_of_former(former);
        let parts = (buckets.end() - buckets.start() + 1) as i64;
        let up_to = |part: i64| (n * part + parts / 2) / parts;
        for (bucket, part) in buckets.zip(0..) {
            self.add(bucket as i64, up_to(part + 1) - up_to(part));
        }
    }
}

impl SeriesTotals {
    pub fn claimed(&self) -> i64 {
        self.waits.total()
    }

    pub fn completed(&self) -> i64 {
        self.runs.total()
    }

    /// The average number of waiting jobs; `None` without samples.
    pub fn waiting(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.waiting as f64 / self.samples as f64)
    }

    pub fn plus(mut self, other: &SeriesTotals) -> SeriesTotals {
        self.put += other.put;
        self.failed += other.failed;
        self.waiting += other.waiting;
        self.samples += other.samples;
        self.waits.plus(&other.waits);
        self.runs.plus(&other.runs);
        self
    }

    fn add(&mut self, slot: i64, n: i64) {
        match slot {
            PUT => self.put += n,
            FAILED => self.failed += n,
            WAITING => self.waiting += n,
            SAMPLES => self.samples += n,
            RUNS.. => self.runs.add(slot - RUNS, n),
            WAITS.. => self.waits.add(slot - WAITS, n),
            FORMER_RUNS.. => self.runs.add_former(slot - FORMER_RUNS, n),
            _ => self.waits.add_former(slot - FORMER_WAITS, n),
        }
    }
}

/// The quantile `share` of durations, in seconds: within 10 % for durations from 0.1 ms to 100 days, with two
/// significant digits. `None` without durations.
pub fn quantile(durations: &DurationCounts, share: f64) -> Option<f64> {
    let total = durations.total();
    if total <= 0 {
        return None;
    }
    let wanted = (share * total as f64).max(1.0);
    let mut counted = 0;
    let bucket = durations.0.iter().position(|n| {
        counted += n;
        counted as f64 >= wanted
    });
    Some(bucket_value(bucket.unwrap_or(BUCKETS - 1)))
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
        self.store_deferred().await;
        let mut spans = vec![SeriesTotals::default(); count];
        let queue = match queue.map(|key| self.known_queues().get(key)) {
            Some(None) => return Ok(spans),
            Some(Some(queue)) => Some(queue.id),
            None => None,
        };
        let period = |kind: Kind, from: i64, width: i64| {
            let to = from.saturating_add(width.saturating_mul(count as i64));
            [kind as i64, from, to, width]
        };
        let mut periods = vec![period(Kind::Minute, from, width)];
        if width % HOUR == 0 && from.rem_euclid(HOUR) == 0 {
            let from = from.div_euclid(HOUR);
            periods.push(period(Kind::Hour, from, width / HOUR));
        }
        if let Some(queue) = queue {
            let of_queue = |period: &[i64; 4]| Statement::new(OF_QUEUE, period.map(Into::into));
            let batch = periods.iter().map(|it| of_queue(it).with(queue)).collect();
            add(&mut spans, &self.readers().read(batch).await?)?;
            return Ok(spans);
        }
        let minutes = width.saturating_mul(count as i64);
        let end = Instant::now() + ALL_QUEUES_TIME_MAX;
        let ids = self.known_queues().unordered();
        for (first, last) in parts(ids.iter().map(|queue| queue.id), minutes) {
            let of_part = |period: &[i64; 4]| Statement::new(OF_ALL, period.map(Into::into));
            let batch = periods.iter().map(|it| of_part(it).with(first).with(last));
            let batch = batch.collect();
            // The overview and alerts read a little more than an hour, and must not wait for long reads.
            let read = match minutes > 2 * HOUR {
                true => self.readers().read_within(left_until(end)?, batch).await?,
                false => self.readers().read(batch).await?,
            };
            add(&mut spans, &read)?;
        }
        Ok(spans)
    }

    /// Completions of each of these queues in each of `count` minutes, starting at the minute `from`. Omits queues
    /// without any. Reads a row for each queue and minute.
    pub async fn throughputs(
        &self,
        queues: &[QueueId],
        from: i64,
        count: usize,
    ) -> Result<HashMap<QueueId, Vec<i64>>> {
        self.store_deferred().await;
        let to = from.saturating_add(count as i64);
        let queues: Vec<_> = queues.iter().map(|id| (*id,)).collect();
        let args = [from, to, RUNS, FORMER_RUNS, WAITS];
        let statement = Statement::of_rows(THROUGHPUTS, &queues);
        let statement = args.into_iter().fold(statement, Statement::with);
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

    /// The time of the last failure, to the minute; for older ones, or if very many queues have failures, to the hour or
    /// the day. `None` if no longer stored.
    ///
    /// # Errors
    /// An outage, if the same read for others takes too long.
    pub async fn last_failure(&self) -> Result<Option<Time>> {
        let read = |engine: Engine| -> BoxFuture<'static, _> {
            Box::pin(async move { engine.read_last_failure().await })
        };
        self.keep(|reads| &reads.last_failure, &KEEPING, (), read)
            .await
    }

    async fn read_last_failure(&self) -> Result<Option<Time>> {
        self.store_deferred().await;
        let day = self.readers().rows(Statement::new(LAST_DAY, [])).await?;
        let Some(day) = day.first().map_or(Ok(None), |row| row.int_or_null(0))? else {
            return Ok(None);
        };
        let first = day.saturating_mul(24 * HOUR);
        let last = |kind: Kind, unit: i64| {
            let (from, to) = (first / unit, first / unit + 24 * HOUR / unit);
            let args = [kind as i64, from, to, FAILED, day].map(Into::into);
            Statement::new(LAST, args)
        };
        let batch = vec![last(Kind::Minute, 1), last(Kind::Hour, HOUR)];
        let answers = match self.readers().read_within(ALL_QUEUES_TIME_MAX, batch).await {
            Err(error) if error.is_too_slow() => Vec::new(),
            read => read?,
        };
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

/// Adds the rows (span, slot, number) to the spans.
fn add(spans: &mut [SeriesTotals], read: &[StatementResult]) -> Result<(), StoreError> {
    for row in read.iter().flat_map(|result| &result.rows) {
        let span = usize::try_from(row.int(0)?).ok();
        if let Some(span) = span.and_then(|span| spans.get_mut(span)) {
            span.add(row.int(1)?, row.int(2)?);
        }
    }
    Ok(())
}

/// Ranges of queue IDs that together contain all IDs, and each at most as many of `ids` as a statement may read over
/// this number of minutes.
fn parts(ids: impl Iterator<Item = QueueId>, minutes: i64) -> Vec<(QueueId, QueueId)> {
    let mut ids: Vec<QueueId> = ids.collect();
    ids.sort_unstable();
    let at_once = usize::try_from(MINUTES_AT_ONCE / minutes.max(1)).unwrap_or_default();
    let ends = ids.chunks(at_once.max(1)).filter_map(|part| part.last());
    let mut first = QueueId::MIN;
    let mut parts: Vec<_> = ends
        .map(|last| (std::mem::replace(&mut first, last + 1), *last))
        .collect();
    match parts.last_mut() {
        Some((_, last)) => *last = QueueId::MAX,
        None => parts.push((QueueId::MIN, QueueId::MAX)),
    }
    parts
}

/// The time until `end`.
///
/// # Errors
/// [`StoreError::Slow`] if it is over.
fn left_until(end: Instant) -> Result<Duration, StoreError> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(StoreError::Slow);
    }
    Ok(left)
}

// The join with `queues` lets the primary key (kind, queue, day, ...) find the rows. Queue 0 has the totals of deleted
// queues.
const OF_ALL: &str = "
SELECT (t.day - $2) / $4, t.slot, CAST(sum(t.n) AS BIGINT)
FROM (SELECT id FROM queues WHERE id BETWEEN $5 AND $6 UNION ALL SELECT 0 WHERE 0 BETWEEN $5 AND $6) AS q
CROSS JOIN tallies AS t
WHERE t.kind = $1 AND t.queue = q.id AND t.day >= $2 AND t.day < $3 GROUP BY 1, 2";

// The samples are counted once for all queues.
const OF_QUEUE: &str = "
SELECT (t.day - $2) / $4, t.slot, CAST(sum(t.n) AS BIGINT) FROM tallies AS t
WHERE t.kind = $1 AND t.queue = $5 AND t.day >= $2 AND t.day < $3 GROUP BY 1, 2
UNION ALL
SELECT (t.day - $2) / $4, t.slot, CAST(sum(t.n) AS BIGINT) FROM tallies AS t
WHERE t.kind = $1 AND t.queue = 0 AND t.day >= $2 AND t.day < $3 AND t.slot = {series_samples} GROUP BY 1, 2";

const THROUGHPUTS: &str = "
SELECT t.queue, t.day - $2, CAST(sum(t.n) AS BIGINT) FROM rows($1) AS k CROSS JOIN tallies AS t
WHERE t.kind = {kind_minute} AND t.queue = k.int(0) AND t.day >= $2 AND t.day < $3
    AND (t.slot >= $4 OR (t.slot >= $5 AND t.slot < $6)) GROUP BY 1, 2";

const LAST_DAY: &str =
    "SELECT max(day) FROM tallies WHERE kind = {kind_outcome} AND slot = {failures} AND n > 0";

// Queue 0 has the time series of deleted queues.
const LAST: &str = "
SELECT max(t.day)
FROM (SELECT 0 AS id UNION SELECT queue FROM tallies
    WHERE kind = {kind_outcome} AND day = $5 AND slot = {failures} AND n > 0) AS q CROSS JOIN tallies AS t
WHERE t.kind = $1 AND t.queue = q.id AND t.day >= $2 AND t.day < $3 AND t.slot = $4";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::unit_of_work::time_series::{SeriesEvent, bucket, minute};

    /// The counts of these durations.
    fn counts(durations: impl IntoIterator<Item = f64>) -> DurationCounts {
        let mut counts = DurationCounts::default();
        for seconds in durations {
            counts.add(bucket(seconds) as i64, 1);
        }
        counts
    }

    #[test]
    fn quantiles_are_within_10_percent() {
        assert_eq!(quantile(&DurationCounts::default(), 0.5), None);
        // 90 to 150 s, evenly.
        let waits = counts((0..=600).map(|n| 90.0 + f64::from(n) / 10.0));
        for (share, exact) in [(0.0, 90.0), (0.5, 120.0), (0.95, 147.0), (1.0, 150.0)] {
            let found = quantile(&waits, share).unwrap();
            assert!((found - exact).abs() <= exact * 0.1, "{share}: {found}");
        }
        assert_eq!(quantile(&counts([2.0; 10]), 0.95), Some(2.0));
        assert_eq!(quantile(&counts([1e-9]), 0.5), Some(0.000_1));
    }

    #[test]
    fn durations_that_an_earlier_version_counted_keep_their_number_and_range() {
        // Bucket 8: 30 to 120 s.
        for n in [1, 2, 3, 100, 1_001] {
            let mut sums = SeriesTotals::default();
            sums.add(FORMER_WAITS + 8, n);
            sums.add(FORMER_RUNS + 11, n);
            assert_eq!((sums.claimed(), sums.completed()), (n, n));
            let (least, most) = (quantile(&sums.waits, 0.0), quantile(&sums.waits, 1.0));
            assert!(least.unwrap() >= 30.0 && most.unwrap() <= 120.0, "{n}");
            assert_eq!(
                quantile(&sums.runs, 0.5),
                Some(3_500.0),
                "an hour or longer"
            );
        }
        let mut one = DurationCounts::default();
        one.add_former(8, 1);
        assert_eq!(quantile(&one, 0.5), Some(60.0));
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
        assert_eq!(quantile(&sums.waits, 0.5), Some(0.2));
        assert_eq!(quantile(&sums.runs, 0.5), Some(2.0));
        assert_eq!(sums.clone().plus(&sums).claimed(), 8);
    }

    #[test]
    fn parts_contain_all_queues_and_each_queue_once() {
        let month = 30 * 24 * HOUR;
        assert_eq!(parts([].into_iter(), month), [(QueueId::MIN, QueueId::MAX)]);
        let ids = || (1..=20).rev();
        assert_eq!(
            parts(ids(), month),
            [(QueueId::MIN, 8), (9, 16), (17, QueueId::MAX)]
        );
        assert_eq!(parts(ids(), HOUR), [(QueueId::MIN, QueueId::MAX)]);
        assert_eq!(parts(ids(), i64::MAX).len(), 20);
    }

    #[test]
    fn minutes_begin_before_1970_too() {
        assert_eq!(minute(Time(-1)), -1);
        assert_eq!(minute(Time(59_999_999)), 0);
    }
}
