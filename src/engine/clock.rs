//! Time: integer microseconds since 1970, UTC. The only room that reads a clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

const MICROS: f64 = 1_000_000.0;
const MICROS_A_SECOND: i64 = 1_000_000;
const DAY_S: i64 = 86_400;

/// The largest distance from 1970 that a request may name, in seconds: far beyond any date in use,
/// and small enough that sums of two such times cannot overflow.
const SECONDS_MAX: f64 = 4.0e12;

/// A moment in microseconds since 1970, UTC. Zero and negative moments are moments.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// From unix seconds with fractions; `None` if it is not finite or absurdly far away.
    pub fn from_seconds(seconds: f64) -> Option<Time> {
        (seconds.is_finite() && seconds.abs() <= SECONDS_MAX).then(|| Time(micros(seconds)))
    }

    /// Unix seconds with fractions.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / MICROS
    }

    /// Unix seconds, rounded down.
    pub fn whole_seconds(self) -> i64 {
        self.0.div_euclid(MICROS_A_SECOND)
    }

    /// The number of the UTC day.
    pub fn day(self) -> i64 {
        self.whole_seconds().div_euclid(DAY_S)
    }

    /// This moment and `seconds` (may be negative) after it.
    pub fn plus_seconds(self, seconds: f64) -> Time {
        Time(self.0.saturating_add(micros(seconds)))
    }

    /// How long after `other` this is, in seconds; negative if it is before it.
    pub fn seconds_from(self, other: Time) -> f64 {
        self.0.saturating_sub(other.0) as f64 / MICROS
    }

    /// How long after `earlier` this is, in seconds; 0 where clocks disagree.
    pub fn seconds_since(self, earlier: Time) -> f64 {
        (self.0.saturating_sub(earlier.0)).max(0) as f64 / MICROS
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounded; and it saturates")]
fn micros(seconds: f64) -> i64 {
    (seconds * MICROS).round() as i64
}

/// The server's clock; where servers share a database, the database's. It never goes backwards while the
/// server runs, so that setting the machine's clock back neither revives nor ends a lease.
#[derive(Debug, Default)]
pub struct Clock {
    latest: AtomicI64,
    /// By how much the database's clock is ahead of the machine's, in microseconds.
    ahead: AtomicI64,
}

impl Clock {
    /// The present moment.
    pub fn now(&self) -> Time {
        let now = machine().saturating_add(self.ahead.load(Ordering::Relaxed));
        Time(self.latest.fetch_max(now, Ordering::AcqRel).max(now))
    }

    /// What happens next happens at this moment or later.
    pub fn pass(&self, now: Time) {
        self.latest.fetch_max(now.0, Ordering::AcqRel);
    }

    /// The database's clock has just said this. What it has said once has been, even if an older word comes in
    /// later.
    pub fn follow(&self, now: i64) {
        self.latest.fetch_max(now, Ordering::AcqRel);
        self.ahead
            .store(now.saturating_sub(machine()), Ordering::Relaxed);
    }
}

/// The machine's clock.
fn machine() -> i64 {
    let wall = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_micros();
    i64::try_from(wall).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_at_midnight_before_and_after_1970() {
        assert_eq!(Time(0).day(), 0);
        assert_eq!(Time(86_400 * 1_000_000 - 1).day(), 0);
        assert_eq!(Time(86_400 * 1_000_000).day(), 1);
        assert_eq!(Time(-1).day(), -1);
    }

    #[test]
    fn seconds_that_are_no_time_are_refused() {
        assert_eq!(Time::from_seconds(f64::NAN), None);
        assert_eq!(Time::from_seconds(f64::INFINITY), None);
        assert_eq!(Time::from_seconds(1e300), None);
        assert_eq!(Time::from_seconds(-1.5), Some(Time(-1_500_000)));
    }

    #[test]
    fn the_clock_does_not_fall_behind_what_the_database_has_said() {
        let clock = Clock::default();
        let later = machine() + 60 * MICROS_A_SECOND;
        clock.follow(later);
        // Read before, and heard only now.
        clock.follow(later - 30 * MICROS_A_SECOND);
        assert!(clock.now() >= Time(later));
    }

    #[test]
    fn the_clock_never_goes_backwards() {
        let clock = Clock::default();
        clock.latest.store(i64::MAX, Ordering::Release);
        assert_eq!(clock.now(), Time(i64::MAX));
    }
}
