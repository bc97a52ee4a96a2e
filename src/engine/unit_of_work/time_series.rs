//! Time series: counters of events per queue, by minute and hour. The durations of waits and runs are counted in twelve
//! classes. The sum over the classes is the number of claims or completions, so each event updates one row.

use crate::engine::clock::Time;

/// Microseconds per minute, and minutes per hour.
pub const MINUTE_US: i64 = 60_000_000;

pub const HOUR: i64 = 60;

/// Upper bounds, in seconds, of all classes but the last.
pub const BOUNDS_S: [f64; CLASSES - 1] = [
    0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0, 600.0, 3_600.0,
];

pub const CLASSES: usize = 12;

/// Values of the column `slot`. The classes start at [`WAITS`] and [`RUNS`].
pub const PUT: i64 = 0;

pub const FAILED: i64 = 1;

pub const WAITS: i64 = 10;

pub const RUNS: i64 = 30;

/// The minute, counted from 1970.
pub fn minute(at: Time) -> i64 {
    at.0.div_euclid(MINUTE_US)
}

pub fn class(seconds: f64) -> usize {
    BOUNDS_S.iter().filter(|bound| seconds >= **bound).count()
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
            SeriesEvent::Claimed(seconds) => WAITS + class(seconds) as i64,
            SeriesEvent::Completed(seconds) => RUNS + class(seconds) as i64,
        }
    }
}
