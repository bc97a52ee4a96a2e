//! Metrics: counters, gauges and histograms made of atomics, and the text formats in which Prometheus reads them.
//!
//! Most metrics are read from the engine when a client asks for them. Only what would otherwise be lost, such as the
//! duration of a request, is counted here.

pub mod table;
pub mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A number that only grows while the process runs.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The number of things that exist now, each of which has a [`GaugeGuard`]. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    /// Counts one more, until the guard is dropped.
    pub fn guard(&self) -> GaugeGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(Gauge(Arc::clone(&self.0)))
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of the things that a [`Gauge`] counts.
#[derive(Debug)]
pub struct GaugeGuard(Gauge);

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts values in buckets with `N` upper bounds, and sums them. Values are whole numbers, such as microseconds.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: &'static [u64; N],
    /// Values up to each bound and above the one before it.
    counts: [AtomicU64; N],
    /// Values above the last bound.
    beyond: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    /// An empty histogram. The bounds are in ascending order.
    pub fn new(bounds: &'static [u64; N]) -> Histogram<N> {
        Histogram {
            bounds,
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            beyond: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    pub fn observe(&self, value: u64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound);
        let count = bucket.and_then(|bucket| self.counts.get(bucket));
        count
            .unwrap_or(&self.beyond)
            .fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// The current values, each divided by `unit`: 1,000,000 shows microseconds as seconds.
    pub fn read(&self, unit: f64) -> Buckets {
        let counts = self.counts.iter().chain([&self.beyond]);
        Buckets {
            bounds: self.bounds.iter().map(|it| *it as f64 / unit).collect(),
            counts: counts.map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: self.sum.load(Ordering::Relaxed) as f64 / unit,
        }
    }
}

/// The values of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// The upper bounds of all buckets but the last.
    pub bounds: Vec<f64>,
    /// The number of values in each bucket, not cumulative.
    pub counts: Vec<u64>,
    pub sum: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::new(&[10, 1_000]);
        for value in [0, 10, 11, 1_000, 1_001] {
            histogram.observe(value);
        }
        let read = histogram.read(1_000.0);
        assert_eq!(read.bounds, [0.01, 1.0]);
        assert_eq!(read.counts, [2, 2, 1]);
        assert!((read.sum - 2.022).abs() < 1e-9);
    }

    #[test]
    fn a_gauge_counts_guards() {
        let gauge = Gauge::default();
        let guards = [gauge.guard(), gauge.clone().guard()];
        assert_eq!(gauge.get(), 2);
        drop(guards);
        assert_eq!(gauge.get(), 0);
    }
}
