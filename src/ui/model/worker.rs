//! Workers.

use serde::{Deserialize, Serialize};

/// A worker in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRow {
    pub name: String,
    pub last_seen: i64,
    pub running: i64,
    pub stalled: i64,
}

/// When a worker was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerActivity {
    /// Within the last minute.
    Alive,
    /// Within the last five minutes.
    Late,
    /// Not within the last five minutes.
    Silent,
}

impl WorkerRow {
    pub fn activity(&self, now: i64) -> WorkerActivity {
        match now.saturating_sub(self.last_seen) / 60_000_000 {
            ..1 => WorkerActivity::Alive,
            1..5 => WorkerActivity::Late,
            _ => WorkerActivity::Silent,
        }
    }
}

/// The start of each bar of a histogram of run times, in milliseconds. The last bar has no end.
pub const RUN_BARS_MS: [usize; 18] = [
    0, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
    600_000, 1_800_000, 3_600_000,
];

/// The number of run times, in seconds, in each bar of a histogram; empty if there are none.
pub fn run_bars(runs_s: &[f32]) -> Vec<i64> {
    if runs_s.is_empty() {
        return Vec::new();
    }
    let mut bars = vec![0; RUN_BARS_MS.len()];
    for run in runs_s {
        // Rounded, because the binary number for 10 ms can be less than 10 ms.
        let ms = (f64::from(*run) * 1_000.0 * 1_000.0).round() / 1_000.0;
        let bar = RUN_BARS_MS.partition_point(|start| *start as f64 <= ms);
        if let Some(n) = bars.get_mut(bar.saturating_sub(1)) {
            *n += 1;
        }
    }
    bars
}

/// How a worker's runs of jobs ended in the last hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResults {
    pub completed: i64,
    pub failed: i64,
    /// Returned for another attempt.
    pub retried: i64,
    /// Leases that expired or were timed out.
    pub lost: i64,
    /// Quantiles of the run times of the last completed jobs, up to 100 of each queue, in seconds.
    pub run_p50: Option<f64>,
    pub run_p95: Option<f64>,
    /// The longest of them.
    pub run_longest: Option<f64>,
}

/// A worker of a queue, or a queue of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityRow<T> {
    pub of: T,
    /// When the worker was last seen, or last asked for jobs of the queue, if that is known.
    pub last_seen: Option<i64>,
    pub running: i64,
    pub stalled: i64,
    pub results: RunResults,
}

/// The workers of a queue, or the queues of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivityList<T> {
    /// Last active first; at most 50.
    pub listed: Vec<ActivityRow<T>>,
    /// The number of others.
    pub more: i64,
    /// The time since which results are counted.
    pub since: i64,
    /// Whether other servers have counted results, too.
    pub is_partial: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_time_is_counted_in_its_bar() {
        assert!(run_bars(&[]).is_empty());
        for (run_s, bar) in [
            (0.0, 0),
            (0.009, 0),
            (0.01, 1),
            (0.019, 1),
            (0.02, 2),
            (0.7, 6),
            (1.0, 7),
            (59.9, 11),
            (3_599.0, 16),
            (3_600.0, 17),
            (1e9, 17),
        ] {
            let bars = run_bars(&[run_s]);
            assert_eq!(bars.iter().position(|n| *n == 1), Some(bar), "{run_s} s");
            assert_eq!(bars.iter().sum::<i64>(), 1);
        }
    }
}
