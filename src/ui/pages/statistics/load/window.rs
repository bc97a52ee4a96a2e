//! The period that the statistics show.

use crate::engine::{Engine, HOUR, HOURS_KEPT, MINUTES_KEPT, QueueKey, Result, Time, minute};
use crate::time::iso;
use crate::ui::dates::{DATETIME_LOCAL, parse_time};
use crate::ui::model::series::{Compare, Series, StatisticsQuery};
use crate::ui::pages::statistics::load::series;
use crate::ui::pages::statistics::model::Zoom;

pub const MINUTE_US: i64 = 60_000_000;

const DAY: i64 = 24 * HOUR;

/// The shortest period to which the page links, in minutes.
const SHORTEST: i64 = 5;

/// A range: name in addresses, label, length in minutes, and length of a span in minutes.
type NamedRange = (&'static str, &'static str, i64, i64);

const LAST_HOUR: NamedRange = ("1h", "1 hour", HOUR, 1);

/// The ranges that the page offers.
pub const RANGES: [NamedRange; 5] = [
    LAST_HOUR,
    ("6h", "6 hours", 6 * HOUR, 5),
    ("24h", "24 hours", DAY, HOUR),
    ("7d", "7 days", 7 * DAY, 2 * HOUR),
    ("30d", "30 days", 30 * DAY, 8 * HOUR),
];

/// The possible lengths of a span, in minutes. A custom range uses the shortest one that results in at most `SPANS_MAX`
/// spans.
const WIDTHS: [i64; 8] = [1, 5, 15, HOUR, 2 * HOUR, 8 * HOUR, DAY, 7 * DAY];

const SPANS_MAX: i64 = 120;

/// Consecutive spans of equal length. Times and lengths are in minutes, times since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: i64,
    pub width: i64,
    pub count: i64,
}

impl Window {
    /// The range of a query: a named one, by default the last hour, or a custom one.
    ///
    /// # Errors
    /// Why the range is invalid, as a sentence for the page.
    pub fn of(query: &StatisticsQuery, now: Time) -> std::result::Result<Window, String> {
        if query.from.is_empty() && query.to.is_empty() {
            let names = RANGES.map(|(name, ..)| name);
            if query.range.is_empty() || names.contains(&query.range.as_str()) {
                return Ok(Window::named(&query.range, now));
            }
            let [others @ .., last] = names;
            return Err(format!(
                "Unknown range “{}”. Use {} or {last}.",
                query.range,
                others.join(", ")
            ));
        }
        let from = parse_minute("From", &query.from)?;
        let to = match query.to.is_empty() {
            true => minute(now) + 1,
            false => parse_minute("To", &query.to)?,
        };
        if from >= to {
            return Err("From must be before To.".to_owned());
        }
        if from > minute(now) {
            return Err("From must not be in the future.".to_owned());
        }
        let window = Window::between(from, to.min(minute(now) + 1), now);
        match window.is_known(now) {
            true => Ok(window),
            false => Err(format!(
                "From is too far in the past. Statistics are kept for {} days.",
                HOURS_KEPT / 24
            )),
        }
    }

    /// A named range that ends now.
    pub fn named(name: &str, now: Time) -> Window {
        let range = RANGES.iter().find(|(range, ..)| *range == name);
        let (.., minutes, width) = range.copied().unwrap_or(LAST_HOUR);
        let count = minutes / width;
        let last = minute(now).div_euclid(width) * width;
        Window {
            from: last - (count - 1) * width,
            width,
            count,
        }
    }

    /// A custom range, from one minute to another, extended to whole spans. A span is at least an hour long if the
    /// minutes of the range are no longer stored.
    fn between(from: i64, to: i64, now: Time) -> Window {
        let has_minutes = minute(now) - from <= MINUTES_KEPT - HOUR;
        let fits =
            |width: &i64| (has_minutes || *width >= HOUR) && (to - from) / width <= SPANS_MAX;
        let longest = 7 * DAY;
        let width = WIDTHS.into_iter().find(fits).unwrap_or(longest);
        let from = from.div_euclid(width) * width;
        let count = (to - from + width - 1) / width;
        Window { from, width, count }
    }

    /// The minute after the last span; in the future if that span is in progress.
    pub fn end(&self) -> i64 {
        self.from
            .saturating_add(self.width.saturating_mul(self.count))
    }

    /// The period with which this one is compared.
    pub fn compared(self, compare: Compare) -> Option<Window> {
        match compare {
            Compare::Nothing => None,
            Compare::Previous => Some(Window {
                from: self.from - self.width * self.count,
                ..self
            }),
            Compare::LastWeek => Some(self.a_week_ago()),
        }
    }

    /// The same time a week earlier. Minutes are not kept that long, so it has spans of at least an hour, and begins
    /// and ends with a whole one.
    fn a_week_ago(self) -> Window {
        let width = self.width.max(HOUR);
        let from = (self.from - 7 * DAY).div_euclid(HOUR) * HOUR;
        let end = self.end() - 7 * DAY;
        Window {
            from,
            width,
            count: (end - from + width - 1) / width,
        }
    }

    /// The periods to which the page links: earlier, later, shorter and longer ones that are stored.
    pub fn zoom(&self, now: Time) -> Zoom {
        let latest = minute(now) + 1;
        // A day less than what is stored, because a range begins with a whole span.
        let oldest = minute(now) - HOURS_KEPT * HOUR + DAY;
        let end = self.end().min(latest);
        let length = end - self.from;
        let range = |from: i64, to: i64| {
            let (from, to) = (from.max(oldest), to.min(latest));
            let is_valid = from < to;
            let other = is_valid.then(|| Window::between(from, to, now))?;
            let is_other = (other.from, other.end().min(latest)) != (self.from, end);
            let to = if to == latest {
                String::new()
            } else {
                named(to)
            };
            (is_other && other.is_known(now)).then(|| (named(from), to))
        };
        let half = length / 2;
        let is_latest = end == latest;
        Zoom {
            earlier: range(self.from - length, self.from),
            later: match is_latest {
                true => None,
                false => range(self.from.min(latest - 2 * length) + length, end + length),
            },
            shorter: match half >= SHORTEST {
                true if is_latest => range(end - half, end),
                true => range(self.from + half / 2, end - half / 2),
                false => None,
            },
            longer: match is_latest {
                true => range(end - 2 * length, end),
                false => range(self.from - half, end + half),
            },
        }
    }

    /// Whether statistics of this resolution are stored for the whole range.
    pub fn is_known(&self, now: Time) -> bool {
        let age = minute(now).saturating_sub(self.from);
        match self.width < HOUR {
            true => age <= MINUTES_KEPT,
            false => age <= HOURS_KEPT * HOUR,
        }
    }

    pub async fn read(&self, engine: &Engine, queue: Option<&QueueKey>) -> Result<Series> {
        let count = usize::try_from(self.count).unwrap_or_default();
        let sums = engine.series(queue, self.from, self.width, count).await?;
        Ok(series(&sums, self.from, self.width))
    }
}

/// Parses a point in time to the minute.
fn parse_minute(field: &str, text: &str) -> std::result::Result<i64, String> {
    let text = text.trim().trim_end_matches('Z');
    let [minutes, seconds] = DATETIME_LOCAL;
    let found = parse_time(text, &[minutes, seconds, "%Y-%m-%d %H:%M"]);
    let found = found.map(|time| time.0.div_euclid(MINUTE_US));
    found.ok_or_else(|| match text.is_empty() {
        true => format!("{field} is missing. Enter a UTC time such as 2026-11-20T13:00."),
        false => format!(
            "{field} “{text}” is not a valid time. Enter a UTC time such as 2026-11-20T13:00."
        ),
    })
}

/// A minute as it is written in addresses.
fn named(minute: i64) -> String {
    let text = iso(minute.saturating_mul(MINUTE_US));
    text.get(..16).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-01 02:26:40 UTC.
    const NOW: Time = Time(1_793_500_000_000_000);

    fn window(range: &str, from: &str, to: &str) -> std::result::Result<Window, String> {
        let query = StatisticsQuery {
            range: range.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            ..StatisticsQuery::default()
        };
        Window::of(&query, NOW)
    }

    #[test]
    fn a_range_ends_with_the_span_in_progress() {
        let now = minute(NOW);
        for (name, _, minutes, width) in RANGES {
            let window = window(name, "", "").unwrap();
            assert_eq!(window.width * window.count, minutes, "{name}");
            assert_eq!(window.from % width, 0, "{name}");
            assert!(window.end() > now && window.end() - width <= now, "{name}");
            assert!(window.is_known(NOW), "{name}");
            for compare in [Compare::Previous, Compare::LastWeek] {
                assert!(window.compared(compare).unwrap().is_known(NOW), "{name}");
            }
        }
        assert_eq!(window("", "", ""), window("1h", "", ""));
    }

    #[test]
    fn a_custom_range_uses_stored_spans() {
        let found = window("", "2026-11-01T01:00", "2026-11-01T02:00").unwrap();
        assert_eq!((found.width, found.count), (1, 60));
        let found = window("", "2026-10-31 03:30", "").unwrap();
        assert_eq!((found.width, found.count), (15, 92));
        // For the day before yesterday only hours are stored, so the range starts at a full hour.
        let found = window("", "2026-10-30T10:30Z", "2026-10-30T11:10").unwrap();
        assert_eq!((found.width, found.count), (HOUR, 2));
        assert_eq!(found.from % HOUR, 0);
        let found = window("", "2026-09-15", "2026-11-01").unwrap();
        assert_eq!(found.width, DAY);
    }

    #[test]
    fn an_invalid_range_is_an_error() {
        for (range, from, to, why) in [
            (
                "2h",
                "",
                "",
                "Unknown range “2h”. Use 1h, 6h, 24h, 7d or 30d.",
            ),
            ("", "yesterday", "", "From “yesterday” is not a valid time"),
            ("", "", "2026-11-01", "From is missing"),
            (
                "",
                "2026-11-01",
                "2026-02-30",
                "To “2026-02-30” is not a valid time",
            ),
            ("", "2026-11-01", "2026-11-01", "From must be before To"),
            ("", "2027-11-01", "", "From must be before To"),
            ("", "2027-11-01", "2027-11-02", "in the future"),
            ("", "2026-01-01", "", "kept for 62 days"),
        ] {
            let range_error = window(range, from, to).unwrap_err();
            assert!(range_error.contains(why), "{from} {to}: {range_error}");
        }
    }

    #[test]
    fn a_week_earlier_begins_and_ends_with_a_whole_hour() {
        let found = window("", "2026-11-01T01:10", "2026-11-01T02:20").unwrap();
        let week = found.compared(Compare::LastWeek).unwrap();
        assert_eq!((found.width, week.width, week.count), (1, HOUR, 2));
        assert_eq!(named(week.from), "2026-10-25T01:00");
        let month = window("30d", "", "").unwrap();
        let week = month.compared(Compare::LastWeek).unwrap();
        assert_eq!((week.width, week.count), (month.width, month.count));
        assert_eq!(month.from - week.from, 7 * DAY);
    }

    #[test]
    fn zooming_stays_within_what_is_stored() {
        let range = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
        // The last hour: nothing is later, and shorter and longer periods end now.
        let hour = window("1h", "", "").unwrap().zoom(NOW);
        assert_eq!(hour.earlier, range("2026-11-01T00:27", "2026-11-01T01:27"));
        assert_eq!(hour.later, None);
        assert_eq!(hour.shorter, range("2026-11-01T01:57", ""));
        assert_eq!(hour.longer, range("2026-11-01T00:27", ""));
        let past = window("", "2026-11-01T01:00", "2026-11-01T01:20").unwrap();
        let past = past.zoom(NOW);
        assert_eq!(past.later, range("2026-11-01T01:20", "2026-11-01T01:40"));
        assert_eq!(past.shorter, range("2026-11-01T01:05", "2026-11-01T01:15"));
        assert_eq!(past.longer, range("2026-11-01T00:50", "2026-11-01T01:30"));
        let short = window("", "2026-11-01T01:00", "2026-11-01T01:08").unwrap();
        assert_eq!(short.zoom(NOW).shorter, None);
        // Every link leads to a valid range, however often it is followed.
        for step in 0..4 {
            let mut at = window("7d", "", "").unwrap();
            for n in 0..200 {
                let Zoom {
                    earlier,
                    later,
                    shorter,
                    longer,
                } = at.zoom(NOW);
                let Some((from, to)) = [earlier, later, shorter, longer]
                    .into_iter()
                    .nth(step)
                    .flatten()
                else {
                    break;
                };
                at = window("", &from, &to).unwrap();
                assert!(n < 100, "step {step} ends");
            }
        }
    }
}
