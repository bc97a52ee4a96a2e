//! Durations and their percentiles.

use std::time::Instant;

use serde::Serialize;

/// Percentiles of a duration, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

impl Latency {
    /// The percentiles of these durations in microseconds.
    pub fn of(micros: Vec<u32>) -> Latency {
        let mut sorted: Vec<f64> = micros.into_iter().map(f64::from).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |part| percentile(&sorted, part) / 1e3;
        Latency {
            p50_ms: at(0.50),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: at(1.0),
        }
    }
}

/// The durations of a connection's requests, in microseconds.
#[derive(Debug, Default)]
pub struct Samples {
    pub put: Vec<u32>,
    pub claim: Vec<u32>,
    pub finish: Vec<u32>,
    pub cycle: Vec<u32>,
}

impl Samples {
    /// Adds a cycle.
    pub fn add(&mut self, began: Instant, put: Instant, claimed: Instant, finished: Instant) {
        let micros = |from: Instant, to: Instant| {
            let micros = to.saturating_duration_since(from).as_micros();
            u32::try_from(micros).unwrap_or(u32::MAX)
        };
        self.put.push(micros(began, put));
        self.claim.push(micros(put, claimed));
        self.finish.push(micros(claimed, finished));
        self.cycle.push(micros(began, finished));
    }

    pub fn append(&mut self, mut other: Samples) {
        self.put.append(&mut other.put);
        self.claim.append(&mut other.claim);
        self.finish.append(&mut other.finish);
        self.cycle.append(&mut other.cycle);
    }
}

/// The percentile of sorted values, with `part` from 0 to 1; 0 if there are no values.
pub fn percentile(sorted: &[f64], part: f64) -> f64 {
    // The conversion to f64 is exact: there are far fewer than 2^53 values.
    let mut rank = 0;
    while rank + 1 < sorted.len() && ((rank + 1) as f64) < part * sorted.len() as f64 {
        rank += 1;
    }
    sorted.get(rank).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        for (part, expected) in [
            (0.0, 1.0),
            (0.5, 50.0),
            (0.95, 95.0),
            (0.99, 99.0),
            (1.0, 100.0),
        ] {
            assert!(
                (percentile(&sorted, part) - expected).abs() < 1e-9,
                "{part}"
            );
        }
        assert_eq!(Latency::of(Vec::new()), Latency::default());
        assert!((Latency::of(vec![3_000, 1_000, 2_000]).p50_ms - 2.0).abs() < 1e-9);
    }
}
