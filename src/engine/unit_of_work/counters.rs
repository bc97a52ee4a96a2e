//! Counters and statistics: collected as deltas during a transaction, and added to the stored ones by a few statements
//! in its commit. The job table is never counted as a whole.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::engine::clock::Time;
use crate::engine::metrics::{CountedEvents, CounterRow};
use crate::engine::model::job::{Job, QueueId, State};
use crate::engine::unit_of_work::time_series;
use crate::engine::unit_of_work::time_series::SeriesEvent;
use crate::engine::worker_results::{EndedRun, RunResult};
use crate::store::Statement;

/// Buckets of a daily histogram: 60 seconds, 59 minutes (from 1), 23 hours (from 1), 6 days (from 1; the last one holds
/// everything longer). From the code of qless-core, "Stats".
pub const DAILY_BUCKETS: usize = 148;

/// What is counted. The values are stored in the table `tallies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Jobs by state.
    State = 0,
    /// Seconds from [`Job::since`] (qless) or from availability (lmstfy, Relay) to claim.
    Wait = 1,
    /// Seconds from claim to completion.
    Run = 2,
    /// Failures and expired leases.
    Outcome = 3,
    /// Events per minute, with the number of the minute in the column `day` (`time_series.rs`).
    Minute = 4,
    /// Events per hour, likewise.
    Hour = 5,
}

impl Kind {
    /// The kind with this number; `None` for the kinds of the time series.
    pub fn from_code(code: i64) -> Option<Kind> {
        [Kind::State, Kind::Wait, Kind::Run, Kind::Outcome]
            .into_iter()
            .find(|kind| *kind as i64 == code)
    }
}

/// The slots of [`Kind::Outcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Failures.
    Failures = 0,
    /// Failures of jobs that are still failed.
    StillFailed = 1,
    /// Expired leases, whether the job was claimed again or ended.
    ExpiredLeases = 2,
}

impl Outcome {
    pub fn from_slot(slot: i64) -> Option<Outcome> {
        [
            Outcome::Failures,
            Outcome::StillFailed,
            Outcome::ExpiredLeases,
        ]
        .into_iter()
        .find(|outcome| *outcome as i64 == slot)
    }
}

/// The slot with the summary of a duration, in addition to those of its histogram.
pub const SUMMARY_SLOT: i64 = -1;

/// Count, mean and sum of squared deviations of a set of numbers (Welford's algorithm).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    pub n: i64,
    pub mean: f64,
    pub m2: f64,
}

impl Summary {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        let distance = value - self.mean;
        self.mean += distance / self.n as f64;
        self.m2 += distance * (value - self.mean);
    }
}

impl Summary {
    /// Adds another set (Chan's formula).
    pub fn merge(&mut self, other: Summary) {
        let n = self.n + other.n;
        if n == 0 {
            return;
        }
        let distance = other.mean - self.mean;
        self.mean += distance * other.n as f64 / n as f64;
        self.m2 += other.m2 + distance * distance * self.n as f64 * other.n as f64 / n as f64;
        self.n = n;
    }

    /// The sample variance (n − 1); 0 for fewer than two numbers.
    pub fn variance(&self) -> f64 {
        if self.n < 2 {
            0.0
        } else {
            self.m2 / (self.n - 1) as f64
        }
    }
}

/// The bucket of a daily histogram that counts a duration in seconds.
pub fn daily_bucket(seconds: usize) -> usize {
    match seconds {
        0..60 => seconds,
        60..3_600 => 59 + seconds / 60,
        3_600..86_400 => 118 + seconds / 3_600,
        _ => (141 + seconds / 86_400).min(DAILY_BUCKETS - 1),
    }
}

/// The end of a bucket of a daily histogram, in seconds; `None` for the last one.
pub fn daily_bucket_end(bucket: usize) -> Option<usize> {
    match bucket {
        0..60 => Some(bucket + 1),
        60..119 => Some((bucket - 58) * 60),
        119..142 => Some((bucket - 117) * 3_600),
        142..147 => Some((bucket - 140) * 86_400),
        _ => None,
    }
}

/// Negative durations count as 0.
#[expect(clippy::cast_possible_truncation, reason = "whole seconds; saturates")]
fn whole_seconds(seconds: f64) -> usize {
    if seconds > 0.0 { seconds as usize } else { 0 }
}

/// The deltas of one transaction.
#[derive(Debug, Default)]
pub struct Counters {
    counters: HashMap<Counter, i64, RandomState>,
    summaries: HashMap<Counter, Summary, RandomState>,
    failures: HashMap<(String, QueueId), i64>,
    tags: HashMap<String, i64>,
    /// The queues of the jobs that workers returned for another attempt, for metrics only.
    retried: Vec<QueueId>,
    /// How runs of workers with names ended; not stored.
    runs: Vec<EndedRun>,
}

/// The key of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Counter {
    kind: Kind,
    queue: QueueId,
    day: i64,
    /// What is counted within the kind: a state, an outcome, a series or a bucket.
    slot: i64,
}

impl Counters {
    fn add(&mut self, kind: Kind, queue: QueueId, day: i64, slot: i64, n: i64) {
        *self
            .counters
            .entry(Counter {
                kind,
                queue,
                day,
                slot,
            })
            .or_default() += n;
    }

    /// Adds `n`, which may be negative, to the jobs of `queue` in `state`.
    pub fn count(&mut self, queue: QueueId, state: State, n: i64) {
        self.add(Kind::State, queue, 0, state.code(), n);
    }

    /// The pending change of the number of jobs in `state`, over all queues.
    pub fn pending_change(&self, state: State) -> i64 {
        let of_state = |key: &Counter| key.kind == Kind::State && key.slot == state.code();
        self.counters
            .iter()
            .filter(|(key, _)| of_state(key))
            .map(|(_, n)| n)
            .sum()
    }

    /// Updates the counters for a job that was `before` and is now `after` the transaction.
    pub fn count_change(&mut self, before: Option<&Job>, after: Option<&Job>) {
        let tags = [before, after].map(|job| job.map(|job| &job.tags));
        let has_other_tags = tags[0] != tags[1];
        for (job, n) in [(before, -1), (after, 1)] {
            let Some(job) = job else { continue };
            self.count(job.queue, job.state, n);
            if let (State::Failed, Some(failure)) = (job.state, &job.failure) {
                self.count_failed(failure.group.clone(), job.queue, n);
            }
            if has_other_tags {
                job.tags.iter().for_each(|tag| self.count_tag(tag, n));
            }
        }
    }

    /// Adds `n`, which may be negative, to the failed jobs of `queue` in the failure group.
    pub fn count_failed(&mut self, group: String, queue: QueueId, n: i64) {
        *self.failures.entry((group, queue)).or_default() += n;
    }

    /// Adds `n`, which may be negative, to the jobs with the tag.
    pub fn count_tag(&mut self, tag: &str, n: i64) {
        *self.tags.entry(tag.to_owned()).or_default() += n;
    }

    /// Counts an event in the time series.
    fn count_event(&mut self, queue: QueueId, event: SeriesEvent, now: Time) {
        self.add(
            Kind::Minute,
            queue,
            time_series::minute(now),
            event.slot(),
            1,
        );
    }

    /// Counts a job that entered `queue`.
    pub fn put(&mut self, queue: QueueId, now: Time) {
        self.count_event(queue, SeriesEvent::Put, now);
    }

    /// Counts a dead-lettered job.
    pub fn dead_lettered(&mut self, queue: QueueId, now: Time) {
        self.count_event(queue, SeriesEvent::Failed, now);
    }

    /// Counts a wait or a run of `seconds` that ended at `now`.
    pub fn duration(&mut self, queue: QueueId, kind: Kind, seconds: f64, now: Time) {
        let day = now.day();
        self.add(
            kind,
            queue,
            day,
            daily_bucket(whole_seconds(seconds)) as i64,
            1,
        );
        match kind {
            Kind::Wait => self.count_event(queue, SeriesEvent::Claimed(seconds), now),
            Kind::Run => self.count_event(queue, SeriesEvent::Completed(seconds), now),
            Kind::State | Kind::Outcome | Kind::Minute | Kind::Hour => {}
        }
        self.summaries
            .entry(Counter {
                kind,
                queue,
                day,
                slot: SUMMARY_SLOT,
            })
            .or_default()
            .add(seconds);
    }

    /// Counts a failure.
    pub fn failure(&mut self, queue: QueueId, now: Time) {
        self.add(Kind::Outcome, queue, now.day(), Outcome::Failures as i64, 1);
        self.add(
            Kind::Outcome,
            queue,
            now.day(),
            Outcome::StillFailed as i64,
            1,
        );
        self.count_event(queue, SeriesEvent::Failed, now);
    }

    /// Counts that a job that failed at `failed_at` is no longer failed.
    pub fn failure_undone(&mut self, queue: QueueId, failed_at: Time) {
        let slot = Outcome::StillFailed as i64;
        self.add(Kind::Outcome, queue, failed_at.day(), slot, -1);
    }

    /// Counts that a job that failed at `failed_at` is failed again, because its retry was undone.
    pub fn failure_restored(&mut self, queue: QueueId, failed_at: Time) {
        let slot = Outcome::StillFailed as i64;
        self.add(Kind::Outcome, queue, failed_at.day(), slot, 1);
    }

    /// Counts an expired lease.
    pub fn lease_expired(&mut self, queue: QueueId, now: Time) {
        self.add(
            Kind::Outcome,
            queue,
            now.day(),
            Outcome::ExpiredLeases as i64,
            1,
        );
    }

    /// Counts a job that a worker returned to its queue for another attempt.
    pub fn retried(&mut self, queue: QueueId) {
        self.retried.push(queue);
    }

    /// Notes how a worker's run of a job ended.
    pub fn run_ended(&mut self, queue: QueueId, worker: &str, result: RunResult, at: Time) {
        if !worker.is_empty() {
            self.runs.push(EndedRun {
                queue,
                worker: worker.into(),
                result,
                at,
            });
        }
    }

    /// The statements that add the deltas to the rows of `server`, and the deltas that metrics count. With
    /// `defers_statistics`, the statements add no statistics.
    pub fn into_statements(
        self,
        server: i64,
        defers_statistics: bool,
    ) -> (Vec<Statement>, CountedEvents) {
        let row = |key: Counter, n, summary: Option<Summary>| {
            let (mean, m2) = summary.map(|summary| (summary.mean, summary.m2)).unzip();
            (key.kind as u8, key.queue, key.day, key.slot, n, mean, m2)
        };
        let counters = self
            .counters
            .into_iter()
            .filter(|(_, n)| *n != 0)
            .map(|(key, n)| row(key, n, None));
        let summaries = self
            .summaries
            .into_iter()
            .map(|(key, summary)| row(key, summary.n, Some(summary)));
        // Sorted, so that all servers lock rows in the same order.
        let all = counters.chain(summaries);
        let (deferred, mut rows): (Vec<CounterRow>, Vec<CounterRow>) =
            all.partition(|(kind, ..)| defers_statistics && is_statistic(*kind));
        rows.sort_unstable_by_key(|(kind, queue, day, slot, ..)| (*kind, *queue, *day, *slot));
        let mut failures: Vec<_> = (self.failures.into_iter())
            .filter(|(_, n)| *n != 0)
            .map(|((group, queue), n)| (group, queue, n))
            .collect();
        failures.sort_unstable();
        let mut tags: Vec<_> = self.tags.into_iter().filter(|(_, n)| *n != 0).collect();
        tags.sort_unstable();
        let mut statements = Vec::new();
        if !rows.is_empty() {
            statements.push(add_deltas(&rows, server));
        }
        if !failures.is_empty() {
            statements.push(Statement::of_rows(ADD_FAILURE_DELTAS, &failures).with(server));
        }
        if !tags.is_empty() {
            statements.push(Statement::of_rows(ADD_TAG_DELTAS, &tags).with(server));
        }
        let (retried, runs) = (self.retried, self.runs);
        (
            statements,
            CountedEvents {
                counters: rows,
                deferred,
                retried,
                runs,
            },
        )
    }
}

/// Whether counters of this kind are statistics: they need not agree with rows of jobs.
fn is_statistic(kind: u8) -> bool {
    let kinds = [Kind::Wait, Kind::Run, Kind::Minute, Kind::Hour];
    kinds.into_iter().any(|it| it as u8 == kind)
}

/// The statement that adds the deltas to the rows of `server`. They are sorted.
pub fn add_deltas(rows: &[CounterRow], server: i64) -> Statement {
    Statement::of_rows(ADD_DELTAS, rows)
        .with(server)
        .combinable()
}

// Chan's formula merges two summaries; plain counters have neither mean nor m2. `WHERE true` keeps SQLite from parsing
// ON CONFLICT as a join condition.
const ADD_DELTAS: &str = "
INSERT INTO tallies (kind, queue, day, slot, server, n, mean, m2)
SELECT int(0), int(1), int(2), int(3), $2, int(4), real(5), real(6)
FROM rows($1) WHERE true
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET
    n    = tallies.n + excluded.n,
    mean = CASE WHEN excluded.mean IS NOT NULL THEN
               tallies.mean + (excluded.mean - tallies.mean) * excluded.n / (tallies.n + excluded.n) END,
    m2   = CASE WHEN excluded.m2 IS NOT NULL THEN
               tallies.m2 + excluded.m2 + (excluded.mean - tallies.mean) * (excluded.mean - tallies.mean)
               * tallies.n * excluded.n / (tallies.n + excluded.n) END";

const ADD_FAILURE_DELTAS: &str = "
INSERT INTO failure_counts (failure_group, queue, server, n)
SELECT text(0), int(1), $2, int(2) FROM rows($1) WHERE true
ON CONFLICT (failure_group, queue, server) DO UPDATE SET n = failure_counts.n + excluded.n";

const ADD_TAG_DELTAS: &str = "
INSERT INTO tag_counts (tag, server, n)
SELECT text(0), $2, int(1) FROM rows($1) WHERE true
ON CONFLICT (tag, server) DO UPDATE SET n = tag_counts.n + excluded.n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_seconds_minutes_hours_and_days() {
        for (seconds, bucket) in [
            (-5.0, 0),
            (0.9, 0),
            (59.9, 59),
            (60.0, 60),
            (3_599.0, 118),
            (3_600.0, 119),
            (86_399.0, 141),
            (86_400.0, 142),
            (6.0 * 86_400.0, 147),
            (1e12, DAILY_BUCKETS - 1),
        ] {
            assert_eq!(daily_bucket(whole_seconds(seconds)), bucket, "{seconds} s");
        }
    }

    #[test]
    fn a_bucket_ends_at_the_start_of_the_next() {
        for bucket in 0..147 {
            assert_eq!(daily_bucket_end(bucket).map(daily_bucket), Some(bucket + 1));
        }
        assert_eq!(daily_bucket_end(147), None);
    }

    #[test]
    fn a_summary_has_the_mean_and_variance_of_the_textbook() {
        let mut summary = Summary::default();
        (0..20).for_each(|value| summary.add(f64::from(value)));
        assert_eq!(summary.n, 20);
        assert!((summary.mean - 9.5).abs() < 1e-9);
        assert!((summary.variance().sqrt() - 5.916_079_783).abs() < 1e-6);
    }

    #[test]
    fn merged_summaries_equal_the_summary_of_all_values() {
        let set = |range: std::ops::Range<i32>| {
            let mut summary = Summary::default();
            range.for_each(|value| summary.add(f64::from(value * value)));
            summary
        };
        let mut merged = Summary::default();
        for part in [set(0..3), set(3..4), Summary::default(), set(4..50)] {
            merged.merge(part);
        }
        let whole = set(0..50);
        assert_eq!(merged.n, whole.n);
        assert!((merged.mean - whole.mean).abs() < 1e-9);
        assert!((merged.variance() - whole.variance()).abs() < 1e-6);
    }
}
