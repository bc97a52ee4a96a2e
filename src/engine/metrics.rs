//! What the engine counts for metrics, since this server started.
//!
//! The counters of a queue come from the deltas that each transaction adds to the stored statistics; they are added
//! after its commit. Stored statistics expire, so they cannot serve as counters.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::QueueId;
use crate::engine::model::queue::Queue;
use crate::engine::unit_of_work::counters::{Kind, Outcome, SUMMARY_SLOT};
use crate::engine::unit_of_work::time_series::{self, FAILED, PUT, RUNS, WAITS};
use crate::engine::worker_results::{EndedRun, ResultsByWorker};
use crate::metrics::{Buckets, Counter, Gauge, Histogram};
use crate::store::{DatabaseInfo, ReaderUse};

/// Queues with counters of their own, unless configured.
pub const COUNTED_QUEUES: usize = 200;

/// Upper bounds of the durations of commits, and of the times for which groups hold the writer, in microseconds.
const COMMIT_US: [u64; 12] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000,
];

/// Upper bounds of the number of requests in a transaction; 512 is its maximum.
const REQUESTS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// The kinds of rows that are counted.
const WAIT: u8 = Kind::Wait as u8;
const RUN: u8 = Kind::Run as u8;
const OUTCOME: u8 = Kind::Outcome as u8;
const MINUTE: u8 = Kind::Minute as u8;

/// Counters and gauges of the engine.
#[derive(Debug)]
pub struct Metrics {
    commit_us: Histogram<12>,
    hold_us: Histogram<12>,
    commit_requests: Histogram<10>,
    failed_transactions: Counter,
    /// Long polls that wait for a job.
    pub polls: Gauge,
    queues_max: usize,
    queues: Mutex<QueueCounters>,
    /// For the dashboard.
    pub results_of_workers: ResultsByWorker,
}

#[derive(Debug, Default)]
struct QueueCounters {
    by_queue: HashMap<QueueId, QueueTotals>,
    other: QueueTotals,
}

/// Upper bounds, in seconds, of all buckets of durations but the last.
const BOUNDS_S: [f64; 11] = [
    0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0, 600.0, 3_600.0,
];

const BUCKETS: usize = BOUNDS_S.len() + 1;

/// The bucket of the metrics for each of the narrower buckets of the statistics.
static METRIC_BUCKET: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let metric_bucket = |bucket| {
        let value = time_series::bucket_value(bucket);
        BOUNDS_S.partition_point(|bound| value > *bound)
    };
    (0..time_series::BUCKETS).map(metric_bucket).collect()
});

/// Counted events of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueTotals {
    /// Jobs that entered the queue.
    pub put: u64,
    /// Failures; without dead-lettered jobs.
    pub failed: u64,
    /// Jobs that a worker returned to the queue for another attempt.
    pub retried: u64,
    /// Leases that ended because their time had passed.
    pub expired: u64,
    /// Dead-lettered jobs, once all events of a transaction have been added.
    dead_lettered: i64,
    /// Claims by waiting time, in the buckets of [`BOUNDS_S`].
    waits: [u64; BUCKETS],
    waited_s: f64,
    /// Completions by run time.
    runs: [u64; BUCKETS],
    ran_s: f64,
}

impl QueueTotals {
    pub fn claimed(&self) -> u64 {
        self.waits.iter().sum()
    }

    pub fn dead_lettered(&self) -> u64 {
        u64::try_from(self.dead_lettered).unwrap_or_default()
    }

    pub fn completed(&self) -> u64 {
        self.runs.iter().sum()
    }

    /// Waiting times of claimed jobs, in seconds.
    pub fn waits(&self) -> Buckets {
        buckets(&self.waits, self.waited_s)
    }

    /// Run times of completed jobs, in seconds.
    pub fn runs(&self) -> Buckets {
        buckets(&self.runs, self.ran_s)
    }

    fn add(&mut self, delta: &Delta) {
        let n = u64::try_from(delta.n).unwrap_or_default();
        match (delta.kind, delta.slot) {
            (MINUTE, PUT) => self.put += n,
            // Counts failures too, which the same transaction counts as outcomes.
            (MINUTE, FAILED) => self.dead_lettered += delta.n,
            (MINUTE, slot @ RUNS..) => add_duration(&mut self.runs, slot - RUNS, n),
            (MINUTE, slot @ WAITS..) => add_duration(&mut self.waits, slot - WAITS, n),
            (OUTCOME, slot) => match Outcome::from_slot(slot) {
                Some(Outcome::Failures) => {
                    self.failed += n;
                    self.dead_lettered -= delta.n;
                }
                Some(Outcome::ExpiredLeases) => self.expired += n,
                Some(Outcome::StillFailed) | None => {}
            },
            (WAIT, SUMMARY_SLOT) => self.waited_s += delta.sum(),
            (RUN, SUMMARY_SLOT) => self.ran_s += delta.sum(),
            _ => {}
        }
    }
}

/// Counts `n` durations in this bucket of the statistics.
fn add_duration(buckets: &mut [u64; BUCKETS], bucket: i64, n: u64) {
    let bucket = usize::try_from(bucket).ok();
    let bucket = bucket.and_then(|bucket| METRIC_BUCKET.get(bucket));
    if let Some(count) = bucket.and_then(|bucket| buckets.get_mut(*bucket)) {
        *count += n;
    }
}

fn buckets(counts: &[u64; BUCKETS], sum: f64) -> Buckets {
    Buckets {
        bounds: BOUNDS_S.to_vec(),
        counts: counts.to_vec(),
        sum,
    }
}

/// A change of a stored counter, as a transaction writes it: kind, queue, day, slot, number, mean, squared deviations.
pub type CounterRow = (u8, QueueId, i64, i64, i64, Option<f64>, Option<f64>);

/// The part of a [`CounterRow`] that is counted.
struct Delta {
    kind: u8,
    slot: i64,
    n: i64,
    mean: f64,
}

impl Delta {
    /// The sum of the durations, in seconds; negative ones, which only a client's clock can cause, count as 0.
    fn sum(&self) -> f64 {
        (self.mean * self.n as f64).max(0.0)
    }
}

/// The events of a transaction.
#[derive(Debug, Default)]
pub struct CountedEvents {
    pub counters: Vec<CounterRow>,
    /// Statistics that are stored later.
    pub deferred: Vec<CounterRow>,
    /// The queues of the jobs that workers returned.
    pub retried: Vec<QueueId>,
    /// How runs of workers ended.
    pub runs: Vec<EndedRun>,
}

impl Metrics {
    /// At most `queues` have counters of their own; all others share one set.
    pub fn new(queues: usize) -> Metrics {
        Metrics {
            commit_us: Histogram::new(&COMMIT_US),
            hold_us: Histogram::new(&COMMIT_US),
            commit_requests: Histogram::new(&REQUESTS),
            failed_transactions: Counter::default(),
            polls: Gauge::default(),
            queues_max: queues,
            queues: Mutex::default(),
            results_of_workers: ResultsByWorker::default(),
        }
    }

    /// Counts a transaction with this many requests whose commit took this long.
    pub fn committed(&self, took: Duration, requests: usize) {
        self.commit_us.observe(microseconds(took));
        self.commit_requests.observe(requests as u64);
    }

    /// Counts a commit group that held the writer this long.
    pub fn writer_occupied(&self, took: Duration) {
        self.hold_us.observe(microseconds(took));
    }

    /// Counts a transaction that failed.
    pub fn transaction_failed(&self) {
        self.failed_transactions.increment();
    }

    /// Counts the events of a committed transaction. The queues are in the cache already.
    pub fn count(&self, events: &CountedEvents) {
        self.results_of_workers.add(&events.runs);
        if events.counters.is_empty() && events.deferred.is_empty() && events.retried.is_empty() {
            return;
        }
        let mut counted = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for (kind, queue, _, slot, n, mean, _) in events.counters.iter().chain(&events.deferred) {
            let delta = Delta {
                kind: *kind,
                slot: *slot,
                n: *n,
                mean: mean.unwrap_or_default(),
            };
            counted.of(*queue, self.queues_max).add(&delta);
        }
        for queue in &events.retried {
            counted.of(*queue, self.queues_max).retried += 1;
        }
    }
}

fn microseconds(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

impl QueueCounters {
    /// The totals of the queue. All queues beyond the limit share one set of totals.
    fn of(&mut self, queue: QueueId, max: usize) -> &mut QueueTotals {
        if self.by_queue.len() >= max && !self.by_queue.contains_key(&queue) {
            return &mut self.other;
        }
        self.by_queue.entry(queue).or_default()
    }
}

/// The events of all queues since the server started.
#[derive(Debug)]
pub struct EventTotals {
    /// Queues with counters of their own, by the time they were first seen.
    pub queues: Vec<(Arc<Queue>, QueueTotals)>,
    /// The events of all other queues, deleted ones included, while they had no counters of their own.
    pub other: QueueTotals,
}

/// The state of the writer.
#[derive(Debug)]
pub struct WriterMetrics {
    /// Durations of commits, in seconds.
    pub commit_s: Buckets,
    /// How long commit groups held the writer, in seconds.
    pub hold_s: Buckets,
    /// Requests per committed transaction.
    pub commit_requests: Buckets,
    pub failed_transactions: u64,
    /// Requests that wait for the writer or run in it.
    pub queued: usize,
}

impl Engine {
    /// The events of queues. The counters of deleted and forgotten queues are dropped, and queues that had none get
    /// counters of their own, as far as the limit permits.
    pub fn event_totals(&self) -> EventTotals {
        let metrics = &self.0.metrics;
        let (cache, known) = (self.known_queues(), self.known_queues().all());
        let mut counted = metrics
            .queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A queue is added to the cache before its events are counted, so this drops no new ones.
        let is_shown = |queue: &Arc<Queue>| !queue.forgotten;
        let is_known = |id: QueueId| cache.by_id(id).as_ref().is_some_and(is_shown);
        counted.by_queue.retain(|id, _| is_known(*id));
        let mut queues = Vec::new();
        for queue in known.into_iter().filter(is_shown) {
            let is_counted = counted.by_queue.contains_key(&queue.id);
            if is_counted || counted.by_queue.len() < metrics.queues_max {
                let totals = counted.by_queue.entry(queue.id).or_default().clone();
                queues.push((queue, totals));
            }
        }
        EventTotals {
            queues,
            other: counted.other.clone(),
        }
    }

    /// What workers have done with their jobs.
    pub(in crate::engine) fn results_of_workers(&self) -> &ResultsByWorker {
        &self.0.metrics.results_of_workers
    }

    /// When this server started.
    pub(in crate::engine) fn opened_at(&self) -> Time {
        self.0.opened.at
    }

    pub fn writer_metrics(&self) -> WriterMetrics {
        let metrics = &self.0.metrics;
        WriterMetrics {
            commit_s: metrics.commit_us.read(1e6),
            hold_s: metrics.hold_us.read(1e6),
            commit_requests: metrics.commit_requests.read(1.0),
            failed_transactions: metrics.failed_transactions.get(),
            queued: self.0.writer.queued(),
        }
    }

    /// The number of long polls that wait for a job.
    pub fn waiting_polls(&self) -> usize {
        self.0.metrics.polls.get()
    }

    /// The use of the connections that read.
    pub fn reader_use(&self) -> ReaderUse {
        self.readers().usage()
    }

    /// Whether this server runs maintenance.
    pub fn is_leader(&self) -> bool {
        self.operation_runner().is_leader().load(Ordering::Relaxed)
    }

    /// Version and size of the database, and the number of servers that use it.
    pub async fn database_info(&self) -> Result<DatabaseInfo> {
        Ok(self.readers().database_info(self.now(None).0).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: Kind, queue: QueueId, slot: i64, n: i64, mean: Option<f64>) -> CounterRow {
        (kind as u8, queue, 0, slot, n, mean, None)
    }

    fn events(counters: Vec<CounterRow>) -> CountedEvents {
        CountedEvents {
            counters,
            ..CountedEvents::default()
        }
    }

    #[test]
    fn the_events_of_a_transaction_are_counted() {
        let metrics = Metrics::new(10);
        metrics.count(&CountedEvents {
            counters: vec![
                // In the order in which a transaction writes them.
                row(Kind::State, 1, 1, 7, None),
                row(Kind::Wait, 1, SUMMARY_SLOT, 5, Some(0.5)),
                row(Kind::Wait, 1, 0, 5, None),
                row(Kind::Run, 1, SUMMARY_SLOT, 6, Some(2.0)),
                // Two failures and one dead-lettered job.
                row(Kind::Outcome, 1, Outcome::Failures as i64, 2, None),
                row(Kind::Outcome, 1, Outcome::StillFailed as i64, -1, None),
                row(Kind::Outcome, 1, Outcome::ExpiredLeases as i64, 4, None),
                row(Kind::Minute, 1, PUT, 3, None),
                row(Kind::Minute, 1, FAILED, 3, None),
                row(
                    Kind::Minute,
                    1,
                    WAITS + time_series::bucket(0.05) as i64,
                    5,
                    None,
                ),
                row(
                    Kind::Minute,
                    1,
                    RUNS + time_series::bucket(9_000.0) as i64,
                    6,
                    None,
                ),
            ],
            deferred: Vec::new(),
            retried: vec![1, 1],
            runs: Vec::new(),
        });
        let counted = metrics.queues.lock().unwrap();
        let totals = &counted.by_queue[&1];
        let counts = [totals.put, totals.failed, totals.dead_lettered()];
        assert_eq!(counts, [3, 2, 1]);
        assert_eq!([totals.expired, totals.retried], [4, 2]);
        assert_eq!([totals.claimed(), totals.completed()], [5, 6]);
        assert_eq!((totals.waits().counts[2], totals.waits().sum), (5, 2.5));
        assert_eq!((totals.runs().counts[11], totals.runs().sum), (6, 12.0));
        assert_eq!(counted.other, QueueTotals::default());
    }

    #[test]
    fn queues_beyond_the_limit_share_their_counters() {
        let metrics = Metrics::new(2);
        for queue in [1, 2, 3, 4, 1] {
            metrics.count(&events(vec![row(Kind::Minute, queue, PUT, 1, None)]));
        }
        let counted = metrics.queues.lock().unwrap();
        let put = |queue| counted.by_queue.get(&queue).map(|it| it.put);
        assert_eq!([1, 2, 3, 4].map(put), [Some(2), Some(1), None, None]);
        assert_eq!(counted.other.put, 2);
    }
}
