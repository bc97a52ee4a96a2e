//! Time series: counters of events per queue, by minute and hour. The durations of waits and runs are counted in
//! buckets that are narrow enough for percentiles. The sum over the buckets is the number of claims or completions, so
//! each event updates one row.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use crate::engine::clock::Time;

/// Microseconds per minute.
pub const MINUTE_US: i64 = 60_000_000;

/// Minutes per hour.
pub const HOUR: i64 = 60;

/// The values that stand for the buckets of each decade of durations, in tenths of its power of ten. Each differs by
/// less than 10 % from every duration in its bucket, which ends halfway to the next value.
const VALUES: [f64; 20] = [
    10.0, 11.0, 12.0, 13.0, 15.0, 18.0, 20.0, 22.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0,
    65.0, 70.0, 80.0, 90.0,
];

/// The decades, from 0.1 ms to 100 days: their number, and the power of ten of the first, in seconds.
const DECADES: usize = 11;
const FIRST_DECADE: i32 = -4;

/// The number of buckets. The first also counts all shorter durations, the last all longer ones.
pub const BUCKETS: usize = VALUES.len() * DECADES;

/// Lower bounds, in seconds, of all buckets but the first.
static BOUNDS_S: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let bound = |bucket| (bucket_value(bucket) + bucket_value(bucket + 1)) / 2.0;
    (0..BUCKETS - 1).map(bound).collect()
});

/// The value that represents a bucket, in seconds, rounded to two significant digits.
pub fn bucket_value(bucket: usize) -> f64 {
    let tenths = VALUES.get(bucket % VALUES.len()).copied();
    let tenths = tenths.unwrap_or_default();
    let decade = i32::try_from(bucket / VALUES.len()).unwrap_or_default();
    let exponent = FIRST_DECADE + decade - 1;
    // One exact operation, so that the value prints with two digits.
    if exponent < 0 {
        tenths / 10_f64.powi(-exponent)
    } else {
        tenths * 10_f64.powi(exponent)
    }
}

/// Values of the column `slot`. The buckets start at [`WAITS`] and [`RUNS`].
pub const PUT: i64 = 0;

pub const FAILED: i64 = 1;

/// The waiting jobs at the samples of the period, added up (`maintenance/sample_waiting.rs`).
pub const WAITING: i64 = 2;

/// The number of these samples, which is counted only for
/// [`DELETED_QUEUES`](super::super::maintenance::fold_series::DELETED_QUEUES).
pub const SAMPLES: i64 = 3;

pub const WAITS: i64 = 100;

pub const RUNS: i64 = 400;

/// Earlier versions counted durations in twelve buckets, in these slots: the upper bounds, in seconds, of all but the
/// last.
pub const FORMER_BOUNDS_S: [f64; 11] = [
    0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0, 600.0, 3_600.0,
];

pub const FORMER_WAITS: i64 = 10;

pub const FORMER_RUNS: i64 = 30;

/// The minute, counted from 1970.
pub fn minute(at: Time) -> i64 {
    at.0.div_euclid(MINUTE_US)
}

/// The bucket of a duration. Negative durations are in the first.
pub fn bucket(seconds: f64) -> usize {
    BOUNDS_S.partition_point(|bound| seconds >= *bound)
}

/// The buckets that together replace bucket `former` of an earlier version.
pub fn buckets_of_former(former: usize) -> RangeInclusive<usize> {
    let from = former.checked_sub(1).and_then(|at| FORMER_BOUNDS_S.get(at));
    let from = from.map_or(0, |bound| bucket(*bound));
    let to = FORMER_BOUNDS_S
        .get(former)
        .map_or(from, |bound| bucket(*bound) - 1);
    from..=to.max(from)
}

/// An event that the time series count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SeriesEvent {
    /// A job entered the queue: put, moved, or retried by an operator.
    Put,
    /// A job entered the state failed or was dead-lettered.
    Failed,
    /// A job was claimed after waiting this many seconds.
    Claimed(f64),
    /// A job was completed after running this many seconds.
    Completed(f64),
}

impl SeriesEvent {
    pub(in crate::engine) fn slot(self) -> i64 {
        match self {
            SeriesEvent::Put => PUT,
            SeriesEvent::Failed => FAILED,
            SeriesEvent::Claimed(seconds) => WAITS + bucket(seconds) as i64,
            SeriesEvent::Completed(seconds) => RUNS + bucket(seconds) as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_bucket_is_within_10_percent_of_its_durations() {
        let mut seconds = 0.000_095;
        while seconds < 9_400_000.0 {
            let value = bucket_value(bucket(seconds));
            let error = (value - seconds).abs() / seconds;
            assert!(error <= 0.1, "{seconds} s as {value} s");
            seconds *= 1.003;
        }
        for exact in [0.001, 0.25, 2.0, 15.0, 60.0, 600.0, 3_500.0, 90_000.0] {
            assert_eq!(bucket_value(bucket(exact)), exact);
        }
    }

    #[test]
    fn every_duration_has_a_bucket_and_its_own_slot() {
        assert_eq!([-1.0, 0.0, 0.000_1].map(bucket), [0, 0, 0]);
        assert_eq!(bucket(1e12), BUCKETS - 1);
        assert!((0..BUCKETS).all(|at| bucket(bucket_value(at)) == at));
        const {
            assert!(FORMER_WAITS + 12 <= FORMER_RUNS && FORMER_RUNS + 12 <= WAITS);
            assert!(WAITS + (BUCKETS as i64) <= RUNS);
        }
    }

    #[test]
    fn former_buckets_cover_all_buckets_up_to_an_hour_once() {
        let all: Vec<usize> = (0..11).flat_map(buckets_of_former).collect();
        let expected: Vec<usize> = (0..bucket(3_600.0)).collect();
        assert_eq!(all, expected);
        assert_eq!(buckets_of_former(11), bucket(3_600.0)..=bucket(3_600.0));
    }
}
