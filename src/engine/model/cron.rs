//! Cron expressions with a time zone, for recurring jobs.
//!
//! Around a change of the clocks, a job with a fixed time of day runs exactly once on that day: if the clocks skip its
//! time, at the first moment afterwards; if they repeat it, the first time. A job with a wildcard, a step, a range or a
//! list in the minute or the hour follows local time: it does not run at a time that the clocks skip, and runs
//! twice at a time that they repeat.

use chrono::DateTime;
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::engine::clock::Time;

/// The longest cron expression in bytes.
pub const CRON_BYTES_MAX: usize = 255;

/// The interval that is stored with a cron expression, and is not used.
pub const CRON_INTERVAL_S: f64 = 86_400.0;

/// The time of something that will not happen.
pub const NEVER: Time = Time(i64::MAX);

/// A cron expression with five fields, and the name of its time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronSchedule {
    pub expression: String,
    /// As in the IANA database, such as `Europe/Berlin`.
    pub zone: String,
}

/// One search for the runs of an expression runs at a time; others wait. A search without result takes 50 ms, and a
/// request can contain many expressions.
static SEARCH: Semaphore = Semaphore::const_new(1);

/// Requests that search, or wait to search. Others are refused, so that a wait takes at most a few seconds.
static SEARCHES: Semaphore = Semaphore::const_new(50);

impl CronSchedule {
    /// The same as [`CronSchedule::new`], on a blocking thread.
    ///
    /// # Errors
    /// As in [`CronSchedule::new`].
    pub async fn check(
        expression: String,
        zone: String,
        now: Time,
    ) -> Result<CronSchedule, String> {
        let Ok(_waits) = SEARCHES.try_acquire() else {
            return Err(
                "too many cron expressions are being checked; try again in a moment".to_owned(),
            );
        };
        let permit = SEARCH.acquire().await.map_err(|error| error.to_string())?;
        let search = move || {
            // Held until the end even if the client disconnects.
            let _permit = permit;
            CronSchedule::new(&expression, &zone, now)
        };
        let searched = spawn_blocking(search).await;
        searched.map_err(|error| error.to_string())?
    }

    /// Checks the expression and the time zone; an empty one is UTC. `now` is the time after which it must have a run.
    ///
    /// # Errors
    /// Why it is not valid, for people.
    pub fn new(expression: &str, zone: &str, now: Time) -> Result<CronSchedule, String> {
        let too_long = format!("the cron expression must have at most {CRON_BYTES_MAX} bytes");
        // Before it is split into words: spaces that are removed count only up to here.
        if expression.len() > 16 * CRON_BYTES_MAX {
            return Err(too_long);
        }
        let words: Vec<&str> = expression.split_whitespace().collect();
        let (expression, zone) = (words.join(" "), zone.trim());
        let zone = if zone.is_empty() { "UTC" } else { zone };
        if expression.len() > CRON_BYTES_MAX {
            return Err(too_long);
        }
        check_zone(zone)?;
        if let Err(why) = parser().parse(&expression) {
            let why = why.to_string();
            let why = why
                .trim_start_matches("Component error: ")
                .trim_start_matches("Invalid pattern: ")
                .trim_start_matches("Pattern contains illegal characters: CronPattern ")
                .trim_end_matches(" when seconds are disallowed.")
                .trim_end_matches('.');
            return Err(format!(
                "invalid cron expression “{expression}”: {why}; the fields are minute, hour, day, month, weekday"
            ));
        }
        let schedule = CronSchedule {
            expression,
            zone: zone.to_owned(),
        };
        if schedule.next(now) == NEVER {
            return Err(format!("“{}” has no runs", schedule.expression));
        }
        Ok(schedule)
    }

    /// The first run after `time`; [`NEVER`] if there is none.
    pub fn next(&self, time: Time) -> Time {
        self.parsed().map_or(NEVER, |parsed| parsed.next(time))
    }

    /// The parsed expression, for several runs; `None` if a newer version has stored one that is not known here.
    pub fn parsed(&self) -> Option<ParsedCron> {
        Some(ParsedCron {
            cron: parser().parse(&self.expression).ok()?,
            zone: self.zone.parse().ok()?,
        })
    }
}

/// Checks the name of a time zone; empty is UTC.
///
/// # Errors
/// Why it is not valid, for people.
pub fn check_zone(zone: &str) -> Result<(), String> {
    let zone = zone.trim();
    if zone.is_empty() || zone.parse::<Tz>().is_ok() {
        return Ok(());
    }
    if zone.len() > CRON_BYTES_MAX {
        return Err(format!(
            "the time zone must have at most {CRON_BYTES_MAX} bytes"
        ));
    }
    Err(format!(
        "unknown time zone “{zone}”; use a name such as Europe/Berlin or UTC"
    ))
}

fn parser() -> CronParser {
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed);
    parser.build()
}

/// A parsed cron expression.
pub struct ParsedCron {
    cron: Cron,
    zone: Tz,
}

impl ParsedCron {
    /// The first run after `time`; [`NEVER`] if there is none.
    pub fn next(&self, time: Time) -> Time {
        let next = self.local(time).and_then(|local| {
            let next = self.cron.find_next_occurrence(&local, false).ok()?;
            Some(Time(next.timestamp_micros()))
        });
        next.filter(|next| *next > time).unwrap_or(NEVER)
    }

    /// The last run at or before `time`.
    pub fn last(&self, time: Time) -> Option<Time> {
        let last = self.cron.find_previous_occurrence(&self.local(time)?, true);
        let last = Time(last.ok()?.timestamp_micros());
        Some(last).filter(|last| *last <= time)
    }

    fn local(&self, time: Time) -> Option<DateTime<Tz>> {
        Some(DateTime::from_timestamp_micros(time.0)?.with_timezone(&self.zone))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_search_runs_at_a_time() {
        let check = || CronSchedule::check("0 9 * * *".to_owned(), String::new(), Time(0));
        let running = SEARCH.acquire().await.unwrap();
        let mut waiting = std::pin::pin!(check());
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(SEARCH.available_permits(), 0);
        drop(running);
        assert_eq!(waiting.await.unwrap().zone, "UTC");
    }

    /// Microseconds of a UTC time.
    fn at(text: &str) -> Time {
        let time = DateTime::parse_from_rfc3339(text).unwrap();
        Time(time.timestamp_micros())
    }

    fn runs(expression: &str, zone: &str, after: &str, n: usize) -> Vec<String> {
        let schedule = CronSchedule::new(expression, zone, at(after)).unwrap();
        let parsed = schedule.parsed().unwrap();
        let mut runs = Vec::new();
        let mut time = at(after);
        for _ in 0..n {
            time = parsed.next(time);
            runs.push(time.iso().unwrap());
        }
        runs
    }

    #[test]
    fn runs_are_at_the_times_of_the_zone() {
        assert_eq!(
            runs(
                "0 9 * * MON-FRI",
                "Europe/Berlin",
                "2026-11-26T08:00:00Z",
                3
            ),
            [
                "2026-11-27T08:00:00Z",
                "2026-11-30T08:00:00Z",
                "2026-12-01T08:00:00Z"
            ]
        );
        assert_eq!(
            runs("*/20 * * * *", "", "2026-11-26T08:19:59.5Z", 2),
            ["2026-11-26T08:20:00Z", "2026-11-26T08:40:00Z"]
        );
        assert_eq!(
            runs("@daily", "America/New_York", "2026-01-01T00:00:00Z", 1),
            ["2026-01-01T05:00:00Z"]
        );
        assert_eq!(
            runs("30 18 L * *", "UTC", "2027-02-01T00:00:00Z", 1),
            ["2027-02-28T18:30:00Z"]
        );
    }

    #[test]
    fn the_last_run_is_at_or_before_a_time() {
        let schedule = CronSchedule::new("0 9 * * *", "Europe/Berlin", at("2026-11-26T00:00:00Z"));
        let parsed = schedule.unwrap().parsed().unwrap();
        let run = at("2026-11-26T08:00:00Z");
        for time in [
            "2026-11-26T08:00:00Z",
            "2026-11-26T08:00:00.5Z",
            "2026-11-27T07:59:59Z",
        ] {
            assert_eq!(parsed.last(at(time)), Some(run), "{time}");
        }
        assert_eq!(
            parsed.last(Time(run.0 - 1)),
            Some(at("2026-11-25T08:00:00Z"))
        );
    }

    #[test]
    fn a_time_that_the_clocks_skip_runs_once_right_afterwards() {
        // In Berlin, 2026-03-29 02:00 is followed by 03:00 (01:00 UTC).
        assert_eq!(
            runs("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
            ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
        );
        assert_eq!(
            runs("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", 3),
            [
                "2026-03-29T00:30:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-29T01:30:00Z"
            ]
        );
    }

    #[test]
    fn a_time_that_the_clocks_repeat_runs_once_if_it_is_fixed() {
        // In Berlin, 2026-10-25 03:00 is followed by 02:00 (01:00 UTC).
        assert_eq!(
            runs("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
        assert_eq!(
            runs("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 4),
            [
                "2026-10-25T00:30:00Z",
                "2026-10-25T01:00:00Z",
                "2026-10-25T01:30:00Z",
                "2026-10-25T02:00:00Z"
            ]
        );
    }

    #[test]
    fn expressions_that_are_not_valid_are_errors() {
        let now = at("2026-11-26T00:00:00Z");
        for (expression, zone, why) in [
            ("", "", "invalid cron expression"),
            ("* * * *", "", "invalid cron expression"),
            ("0 * * * * *", "", "invalid cron expression"),
            ("61 * * * *", "", "invalid cron expression"),
            ("0 0 31 2 *", "", "has no runs"),
            ("0 0 * * *", "Mars/Base", "unknown time zone"),
            ("0 0 * * *", &"Z".repeat(256), "at most 255 bytes"),
            (&"1,".repeat(200), "", "at most 255 bytes"),
        ] {
            let error = CronSchedule::new(expression, zone, now).unwrap_err();
            assert!(error.contains(why), "{expression}: {error}");
        }
        let schedule = CronSchedule::new(" 0  0 29 2\t* ", "", now).unwrap();
        assert_eq!(&*schedule.expression, "0 0 29 2 *");
        assert_eq!(schedule.next(now), at("2028-02-29T00:00:00Z"));
        assert_eq!(schedule.next(NEVER), NEVER);
    }
}
