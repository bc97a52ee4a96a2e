//! How the runs of each worker ended in the last hour, by queue. Kept in memory, by each server for its own requests,
//! so that reporting a job writes nothing more.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::model::job::QueueId;

/// The length of a span of counts, in microseconds, and the spans that are kept: the current one and those of an hour.
const SPAN_US: i64 = 300_000_000;
const SPANS: usize = 13;

/// The run times that are kept for each worker and queue.
const RUNS_MAX: usize = 100;

/// The pairs of worker and queue that are remembered. Beyond that, first those without results in the last hour are
/// forgotten, then all.
const PAIRS_MAX: usize = 5_000;

/// How a worker's run of a job ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunResult {
    /// After this many seconds.
    Completed(f64),
    Failed,
    /// The worker returned the job for another attempt.
    Retried,
    /// The lease expired, or the job was timed out.
    Lost,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedRun {
    pub queue: QueueId,
    pub worker: Box<str>,
    pub result: RunResult,
    pub at: Time,
}

/// Numbers of runs by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    pub completed: i64,
    pub failed: i64,
    pub retried: i64,
    pub lost: i64,
}

impl RunCounts {
    fn count(&mut self, result: RunResult) {
        match result {
            RunResult::Completed(_) => self.completed += 1,
            RunResult::Failed => self.failed += 1,
            RunResult::Retried => self.retried += 1,
            RunResult::Lost => self.lost += 1,
        }
    }

    fn plus(self, other: RunCounts) -> RunCounts {
        RunCounts {
            completed: self.completed + other.completed,
            failed: self.failed + other.failed,
            retried: self.retried + other.retried,
            lost: self.lost + other.lost,
        }
    }
}

/// The results of a worker in a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerResults {
    pub counts: RunCounts,
    /// The run times of its last completed jobs, in seconds, shortest first; at most 100.
    pub runs: Vec<f32>,
}

impl WorkerResults {
    fn sort(&mut self) {
        self.runs.sort_by(f32::total_cmp);
    }
}

/// The results of a worker in a queue, by span.
#[derive(Debug, Default)]
struct Kept {
    /// The number of the span, counted from 1970, and its counts; oldest first.
    spans: VecDeque<(i64, RunCounts)>,
    runs: VecDeque<f32>,
}

impl Kept {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a run time needs few digits"
    )]
    fn add(&mut self, result: RunResult, at: Time) {
        let span = span(at);
        // A client's clock can run backwards. The counts then belong to the latest span.
        if self.spans.back().is_none_or(|(last, _)| *last < span) {
            self.spans.push_back((span, RunCounts::default()));
            if self.spans.len() > SPANS {
                self.spans.pop_front();
            }
        }
        if let Some((_, counts)) = self.spans.back_mut() {
            counts.count(result);
        }
        if let RunResult::Completed(seconds) = result {
            if self.runs.len() >= RUNS_MAX {
                self.runs.pop_front();
            }
            self.runs.push_back(seconds.max(0.0) as f32);
        }
    }

    fn is_older_than(&self, first: i64) -> bool {
        self.spans.back().is_none_or(|(last, _)| *last < first)
    }

    /// The results since the span `first`, with the run times in order of time; `None` if there are none.
    fn since(&self, first: i64) -> Option<WorkerResults> {
        if self.is_older_than(first) {
            return None;
        }
        let spans = self.spans.iter().filter(|(span, _)| *span >= first);
        let counts = spans.fold(RunCounts::default(), |sum, (_, counts)| sum.plus(*counts));
        let runs = self.runs.iter().copied().collect();
        Some(WorkerResults { counts, runs })
    }
}

fn span(at: Time) -> i64 {
    at.0.div_euclid(SPAN_US)
}

/// The first span that is counted at `now`.
fn first_span(now: Time) -> i64 {
    span(now) - SPANS as i64 + 1
}

/// The results of all workers.
#[derive(Debug, Default)]
pub struct ResultsByWorker(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queues: HashMap<QueueId, HashMap<Box<str>, Kept>>,
    pairs: usize,
    /// When results were forgotten.
    forgotten_at: Option<Time>,
}

impl Inner {
    fn add(&mut self, run: &EndedRun) {
        let of_queue = self.queues.entry(run.queue).or_default();
        if let Some(kept) = of_queue.get_mut(&run.worker) {
            kept.add(run.result, run.at);
            return;
        }
        if self.pairs >= PAIRS_MAX {
            self.make_room(run.at);
        }
        let of_queue = self.queues.entry(run.queue).or_default();
        let kept = of_queue.entry(run.worker.clone()).or_default();
        kept.add(run.result, run.at);
        self.pairs += 1;
    }

    fn make_room(&mut self, now: Time) {
        let first = first_span(now);
        for of_queue in self.queues.values_mut() {
            of_queue.retain(|_, kept| !kept.is_older_than(first));
        }
        self.queues.retain(|_, of_queue| !of_queue.is_empty());
        self.pairs = self.queues.values().map(HashMap::len).sum();
        if self.pairs >= PAIRS_MAX {
            self.queues.clear();
            self.pairs = 0;
            self.forgotten_at = Some(now);
        }
    }
}

impl ResultsByWorker {
    /// Counts the runs of a committed transaction.
    pub fn add(&self, runs: &[EndedRun]) {
        if runs.is_empty() {
            return;
        }
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for run in runs {
            inner.add(run);
        }
    }
}

impl Engine {
    /// The workers with results in the queue.
    pub(in crate::engine) fn results_in(
        &self,
        queue: QueueId,
        now: Time,
    ) -> HashMap<String, WorkerResults> {
        let first = first_span(now);
        let inner = self.results_of_workers().0.lock();
        let inner = inner.unwrap_or_else(PoisonError::into_inner);
        let of_queue = inner.queues.get(&queue).into_iter().flatten();
        let found =
            of_queue.filter_map(|(name, kept)| Some((name.to_string(), kept.since(first)?)));
        let mut found: HashMap<_, _> = found.collect();
        // Commits wait for the lock.
        drop(inner);
        found.values_mut().for_each(WorkerResults::sort);
        found
    }

    /// The queues in which the worker has results.
    pub(in crate::engine) fn results_by(
        &self,
        worker: &str,
        now: Time,
    ) -> HashMap<QueueId, WorkerResults> {
        let first = first_span(now);
        let inner = self.results_of_workers().0.lock();
        let inner = inner.unwrap_or_else(PoisonError::into_inner);
        let found = inner
            .queues
            .iter()
            .filter_map(|(queue, workers)| Some((*queue, workers.get(worker)?.since(first)?)));
        let mut found: HashMap<_, _> = found.collect();
        drop(inner);
        found.values_mut().for_each(WorkerResults::sort);
        found
    }

    /// The time since which results are counted: an hour ago, or when this server started or forgot results.
    pub(in crate::engine) fn results_since(&self, now: Time) -> Time {
        let inner = self.results_of_workers().0.lock();
        let forgotten = inner
            .unwrap_or_else(PoisonError::into_inner)
            .forgotten_at
            .unwrap_or(self.opened_at());
        Time(first_span(now).saturating_mul(SPAN_US))
            .max(forgotten)
            .min(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(worker: &str, result: RunResult, minute: i64) -> EndedRun {
        EndedRun {
            queue: 1,
            worker: worker.into(),
            result,
            at: Time(minute * 60_000_000),
        }
    }

    fn results(inner: &Inner, worker: &str, minute: i64) -> Option<WorkerResults> {
        let first = first_span(Time(minute * 60_000_000));
        let mut results = inner.queues.get(&1)?.get(worker)?.since(first)?;
        results.sort();
        Some(results)
    }

    #[test]
    fn results_are_counted_for_an_hour() {
        let mut inner = Inner::default();
        inner.add(&run("w", RunResult::Completed(2.0), 0));
        inner.add(&run("w", RunResult::Completed(1.0), 4));
        inner.add(&run("w", RunResult::Failed, 30));
        inner.add(&run("w", RunResult::Lost, 30));
        inner.add(&run("w", RunResult::Retried, 31));
        let all = results(&inner, "w", 64).unwrap();
        let expected = RunCounts {
            completed: 2,
            failed: 1,
            retried: 1,
            lost: 1,
        };
        assert_eq!((all.counts, all.runs), (expected, vec![1.0, 2.0]));
        let later = results(&inner, "w", 65).unwrap();
        let expected = RunCounts {
            completed: 0,
            ..expected
        };
        assert_eq!(later.counts, expected);
        assert_eq!(results(&inner, "w", 95), None);
    }

    #[test]
    fn the_last_100_run_times_are_kept() {
        let mut inner = Inner::default();
        for n in 0..150 {
            inner.add(&run("w", RunResult::Completed(f64::from(n)), 0));
        }
        let kept = results(&inner, "w", 0).unwrap();
        assert_eq!((kept.counts.completed, kept.runs.len()), (150, 100));
        assert_eq!(kept.runs.first(), Some(&50.0));
    }

    #[test]
    fn workers_beyond_the_limit_make_room_for_new_ones() {
        let mut inner = Inner::default();
        for n in 0..PAIRS_MAX {
            inner.add(&run(&format!("w{n}"), RunResult::Failed, 0));
        }
        inner.add(&run("w0", RunResult::Failed, 90));
        assert_eq!(inner.pairs, PAIRS_MAX);
        inner.add(&run("new", RunResult::Failed, 91));
        assert_eq!((inner.pairs, inner.forgotten_at), (2, None));
        for n in 0..PAIRS_MAX {
            inner.add(&run(&format!("x{n}"), RunResult::Failed, 92));
        }
        assert_eq!(inner.pairs, 2);
        assert_eq!(inner.forgotten_at, Some(Time(92 * 60_000_000)));
    }
}
