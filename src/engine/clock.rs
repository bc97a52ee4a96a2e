//! Time: integer microseconds since 1970, UTC. In the server, only this module reads the time of day.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat};
use serde::{Deserialize, Serialize};

const MICROS: f64 = 1_000_000.0;
const MICROS_A_SECOND: i64 = 1_000_000;
const DAY_S: i64 = 86_400;

/// The largest distance from 1970 that a request may give, in seconds: far beyond any date in use, and small enough
/// that the sum of two such times cannot overflow.
const SECONDS_MAX: f64 = 4.0e12;

/// Microseconds since 1970, UTC. Zero and negative values are valid.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// From Unix seconds; `None` if not finite or farther than 4e12 s from 1970.
    pub fn from_seconds(seconds: f64) -> Option<Time> {
        (seconds.is_finite() && seconds.abs() <= SECONDS_MAX).then(|| Time(micros(seconds)))
    }

    /// The start of a UTC day, `YYYY-MM-DD`.
    pub fn from_date(text: &str) -> Option<Time> {
        let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        let start = day.and_time(NaiveTime::MIN).and_utc();
        Some(Time(start.timestamp_micros()))
    }

    /// In the format of RFC 3339, to the second; `None` if the year does not fit.
    pub fn iso(self) -> Option<String> {
        let time = DateTime::from_timestamp_micros(self.0)?;
        Some(time.to_rfc3339_opts(SecondsFormat::Secs, true))
    }

    /// Unix seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / MICROS
    }

    /// Unix seconds, rounded down.
    pub fn whole_seconds(self) -> i64 {
        self.0.div_euclid(MICROS_A_SECOND)
    }

    /// The UTC day, counted from 1970.
    pub fn day(self) -> i64 {
        self.whole_seconds().div_euclid(DAY_S)
    }

    /// This time plus `seconds`, which may be negative.
    pub fn plus_seconds(self, seconds: f64) -> Time {
        Time(self.0.saturating_add(micros(seconds)))
    }

    /// Seconds from `other` to this time; negative if this is earlier.
    pub fn seconds_from(self, other: Time) -> f64 {
        self.0.saturating_sub(other.0) as f64 / MICROS
    }

    /// Seconds from `earlier` to this time; 0 if the clocks disagree about the order.
    pub fn seconds_since(self, earlier: Time) -> f64 {
        (self.0.saturating_sub(earlier.0)).max(0) as f64 / MICROS
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounded; and it saturates")]
fn micros(seconds: f64) -> i64 {
    (seconds * MICROS).round() as i64
}

/// A clock that its owner sets, in place of the machine's, for tests and simulations.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that shows this time.
    pub fn at(time: Time) -> ManualClock {
        ManualClock(Arc::new(AtomicI64::new(time.0)))
    }

    /// Sets the time. It never goes backwards.
    pub fn set(&self, time: Time) {
        self.0.fetch_max(time.0, Ordering::Relaxed);
    }

    /// The current time.
    pub fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }
}

/// The server's clock. It never goes backwards while the server runs, so setting the machine's clock back neither
/// revives nor ends a lease: the clock then continues from its latest value, 10 % slower than real time, until the
/// machine's clock has caught up.
///
/// On a shared database, it is the database's clock: the last reading, plus the real time since. So setting the clock
/// of one server's machine changes nothing.
#[derive(Debug)]
pub struct Clock {
    anchor: Mutex<Anchor>,
    started: Instant,
    /// Microseconds by which the database's clock is ahead of the real time since the start; [`NOT_SHARED`] before the
    /// first reading.
    offset: AtomicI64,
    /// Replaces all other clocks.
    manual: Option<ManualClock>,
}

/// The offset of a clock that follows the machine's.
const NOT_SHARED: i64 = i64::MIN;

/// While it waits for the machine's clock, this clock loses one part in 10.
const SLOWDOWN: i64 = 10;

/// The last value that came from the machine's or the database's clock, and when that was, in microseconds of real time
/// since the clock was started.
#[derive(Debug, Default)]
struct Anchor {
    anchor: i64,
    at: i64,
}

impl Anchor {
    /// The current time, `passed` µs after the clock was started, when the machine's or the database's clock reads
    /// `wall`.
    fn now(&mut self, wall: i64, passed: i64) -> i64 {
        let since = passed.saturating_sub(self.at);
        let slowly = self.anchor.saturating_add(since - since / SLOWDOWN);
        if wall >= slowly {
            *self = Anchor {
                anchor: wall,
                at: passed,
            };
        }
        slowly.max(wall)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock {
            anchor: Mutex::default(),
            started: Instant::now(),
            offset: AtomicI64::new(NOT_SHARED),
            manual: None,
        }
    }
}

impl Clock {
    /// A clock that shows the time of `manual`, if given.
    pub fn with(manual: Option<ManualClock>) -> Clock {
        Clock {
            manual,
            ..Clock::default()
        }
    }

    /// The current time.
    pub fn now(&self) -> Time {
        if let Some(manual) = &self.manual {
            return manual.now();
        }
        let offset = self.offset.load(Ordering::Relaxed);
        self.at_least(if offset == NOT_SHARED {
            machine_time()
        } else {
            offset.saturating_add(self.passed())
        })
    }

    /// Ensures that later readings are not before `now`.
    pub fn advance_to(&self, now: Time) {
        if let Some(manual) = &self.manual {
            manual.set(now);
            return;
        }
        self.at_least(now.0);
    }

    /// From now on, follows the database's clock, which has just read `now`. This clock never falls behind a reading,
    /// even if an older one arrives later.
    pub fn synchronize(&self, now: i64) {
        if self.manual.is_some() {
            return;
        }
        self.at_least(now);
        let offset = now.saturating_sub(self.passed());
        self.offset.store(offset, Ordering::Relaxed);
    }

    fn at_least(&self, wall: i64) -> Time {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that the next caller reads a later time.
        Time(anchor.now(wall, self.passed()))
    }

    /// The real time since the start, in microseconds.
    fn passed(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

/// The machine's clock.
fn machine_time() -> i64 {
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
    fn seconds_out_of_range_are_rejected() {
        assert_eq!(Time::from_seconds(f64::NAN), None);
        assert_eq!(Time::from_seconds(f64::INFINITY), None);
        assert_eq!(Time::from_seconds(1e300), None);
        assert_eq!(Time::from_seconds(-1.5), Some(Time(-1_500_000)));
    }

    #[test]
    fn the_clock_does_not_fall_behind_a_reading_of_the_databases_clock() {
        let clock = Clock::default();
        let later = machine_time() + 60 * MICROS_A_SECOND;
        clock.synchronize(later);
        // An older reading that arrives late.
        clock.synchronize(later - 30 * MICROS_A_SECOND);
        assert!(clock.now() >= Time(later));
    }

    const HOUR: i64 = 3_600 * MICROS_A_SECOND;
    const NOON: i64 = 1_000 * HOUR;

    #[test]
    fn a_clock_set_back_continues_slowly() {
        let mut anchor = Anchor::default();
        let second = MICROS_A_SECOND;
        assert_eq!(anchor.now(NOON, 0), NOON);
        assert_eq!(anchor.now(NOON + HOUR, second), NOON + HOUR);
        let back = NOON + 2 * second;
        assert_eq!(anchor.now(back, 2 * second), NOON + HOUR + 900_000);
        assert_eq!(anchor.now(back, 2 * second), NOON + HOUR + 900_000);
    }

    #[test]
    fn a_clock_that_is_ahead_agrees_with_the_machine_again() {
        // The clock is an hour ahead; the machine's catches up in 10 h, however often the clock is read.
        for step in [7, HOUR / 60] {
            let mut anchor = Anchor::default();
            anchor.now(NOON + HOUR, 0);
            let mut before = NOON + HOUR;
            for passed in (1..1_000).map(|n| n * step) {
                let now = anchor.now(NOON + passed, passed);
                assert!(now >= before);
                let slowly = NOON + HOUR + passed - passed / SLOWDOWN;
                assert_eq!(now, slowly.max(NOON + passed));
                before = now;
            }
            assert_eq!(anchor.now(NOON + 20 * HOUR, 20 * HOUR), NOON + 20 * HOUR);
        }
    }

    #[test]
    fn the_clock_does_not_overflow() {
        let clock = Clock::default();
        clock.advance_to(Time(i64::MAX));
        assert_eq!(clock.now(), Time(i64::MAX));
    }
}
