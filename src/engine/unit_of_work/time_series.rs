//! Time series: counters by minute and hour of what happens in a queue. How long a job waited or ran is counted in one
//! of twelve classes, and the sum of the classes is the number of claims or completions, so each is one row.

use crate::engine::clock::Time;

/// Microseconds of a minute; the minutes of an hour.
pub const MINUTE_US: i64 = 60_000_000;

pub const HOUR: i64 = 60;

/// Where all but the last of the classes of durations end, in seconds.
pub const BOUNDS_S: [f64; CLASSES - 1] = [
    0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0, 600.0, 3_600.0,
];

pub const CLASSES: usize = 12;

/// What is counted, in the column `slot`. From [`WAITS`] and [`RUNS`] on stand the classes.
pub const PUT: i64 = 0;

pub const FAILED: i64 = 1;

pub const WAITS: i64 = 10;

pub const RUNS: i64 = 30;

/// The number of the minute of a moment, counted from 1970.
pub fn minute(at: Time) -> i64 {
    at.0.div_euclid(MINUTE_US)
}

pub fn class(seconds: f64) -> usize {
    BOUNDS_S.iter().filter(|bound| seconds >= **bound).count()
}

/// A number that grows in a minute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SeriesEvent {
    /// A job came into the queue: put, moved, or put to work again by hand.
    Put,
    /// A job failed for good: it is failed or dead.
    Failed,
    /// A job was given to a worker after so many seconds.
    Claimed(f64),
    /// A worker was done with a job after so many seconds.
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
