//! The limits that a soak run must not exceed.

use std::fmt;

use super::Sample;

/// MB per hour.
const MEMORY_SLOPE_MAX: f64 = 1.0;
/// Uncertainty of the slope of a short run: the memory of caches and allocators, in MB.
const MEMORY_NOISE_MB: f64 = 3.0;
const FILES_MAX: f64 = 10.0;
const LOG_MB_MAX: f64 = 64.0;
const DRIFT_MAX: f64 = 1.2;
/// Differences below this are noise, in milliseconds.
const DRIFT_NOISE_MS: f64 = 2.0;

/// The result of a run, without its first quarter.
#[derive(Debug)]
pub struct Judgment {
    hours: f64,
    memory_slope: f64,
    memory_mb: f64,
    files: (f64, f64),
    database_mb: (f64, f64),
    log_mb: f64,
    /// The median of the samples' p99, in the second and in the last quarter, in milliseconds.
    p99_ms: (f64, f64),
}

impl fmt::Display for Judgment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "memory {:.0} MB, {:+.1} MB/h; open files {} to {}; database {:.1} to {:.1} MB, log at most {:.1} MB; p99 \
             {:.1} ms, then {:.1} ms",
            self.memory_mb,
            self.memory_slope,
            self.files.0,
            self.files.1,
            self.database_mb.0,
            self.database_mb.1,
            self.log_mb,
            self.p99_ms.0,
            self.p99_ms.1
        )
    }
}

impl Judgment {
    /// The limits that were exceeded.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let allowed = MEMORY_SLOPE_MAX + MEMORY_NOISE_MB / self.hours;
        if self.memory_slope > allowed {
            faults.push(format!("memory grows by {:.1} MB/h", self.memory_slope));
        }
        if self.files.1 - self.files.0 > FILES_MAX {
            faults.push(format!("open files: {:?}", self.files));
        }
        if self.log_mb > LOG_MB_MAX {
            faults.push(format!("the log has {} MB", self.log_mb));
        }
        let (before, after) = self.p99_ms;
        if after > before * DRIFT_MAX && after > before + DRIFT_NOISE_MS {
            faults.push(format!("p99 rose from {before} to {after} ms"));
        }
        faults
    }
}

/// The slope of the line through these points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let product: f64 = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let square: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if square > 0.0 { product / square } else { 0.0 }
}

fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    let mut all: Vec<f64> = samples.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn range(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> (f64, f64) {
    let all = samples.iter().map(of);
    all.fold((f64::MAX, 0.0), |(least, most), value| {
        (value.min(least), value.max(most))
    })
}

pub fn judge(samples: &[Sample]) -> Judgment {
    let quarter = samples.len() / 4;
    let warm = &samples[quarter..];
    let hours = |sample: &Sample| sample.second / 3_600.0;
    let memory: Vec<_> = warm.iter().map(|it| (hours(it), it.memory_mb)).collect();
    let last = samples.len() - quarter.max(1);
    Judgment {
        hours: warm.last().map_or(0.0, hours) - warm.first().map_or(0.0, hours),
        memory_slope: slope(&memory),
        memory_mb: median(warm, |it| it.memory_mb),
        files: range(warm, |it| it.files),
        database_mb: range(warm, |it| it.database_mb),
        log_mb: range(warm, |it| it.log_mb).1,
        p99_ms: (
            median(&samples[quarter..(2 * quarter).max(quarter + 1)], |it| {
                it.p99_ms
            }),
            median(&samples[last..], |it| it.p99_ms),
        ),
    }
}

#[test]
fn a_slope_is_found_and_growth_is_a_fault() {
    let sample = |n: u32, memory_mb: f64| Sample {
        second: f64::from(n) * 10.0,
        memory_mb,
        ..Sample::default()
    };
    let flat: Vec<Sample> = (0..360).map(|n| sample(n, 50.0)).collect();
    assert_eq!(judge(&flat).faults(), Vec::<String>::new());
    let growing: Vec<Sample> = (0..360)
        .map(|n| sample(n, 50.0 + f64::from(n) / 10.0))
        .collect();
    assert_eq!(judge(&growing).faults(), ["memory grows by 36.0 MB/h"]);
}
