//! Times and durations as text, the same on the server and in the browser. Both are in microseconds; a time counts from
//! 1970-01-01 UTC.

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A time as `2026-11-20 13:22:05 UTC`.
pub fn utc(time: i64) -> String {
    let (date, clock, _) = date_time_parts(time);
    format!("{date} {clock} UTC")
}

/// A time as `2026-11-20 13:22:05.123 UTC`.
pub fn utc_millis(time: i64) -> String {
    let (date, clock, millis) = date_time_parts(time);
    format!("{date} {clock}.{millis:03} UTC")
}

/// A time in ISO 8601: `2026-11-20T13:22:05.123Z`.
pub fn iso(time: i64) -> String {
    let (date, clock, millis) = date_time_parts(time);
    format!("{date}T{clock}.{millis:03}Z")
}

/// A time in the zone that is `ahead` minutes ahead of UTC, as `2026-11-20 15:22:05 +02:00`, optionally with
/// milliseconds.
pub fn local(time: i64, ahead: i64, with_millis: bool) -> String {
    let (date, clock, millis) = date_time_parts(time.saturating_add(ahead * MINUTE));
    let sign = if ahead < 0 { '−' } else { '+' };
    let (hours, minutes) = (ahead.abs() / 60, ahead.abs() % 60);
    let millis = if with_millis {
        format!(".{millis:03}")
    } else {
        String::new()
    };
    format!("{date} {clock}{millis} {sign}{hours:02}:{minutes:02}")
}

/// Clock differences up to this are not reported.
const CLOCK_TOLERANCE: i64 = 30 * SECOND;

/// A warning about the device's clock if the server's is `ahead` of it; empty if the difference is at most 30 s.
pub fn clock_warning(ahead: i64) -> String {
    let way = if ahead > 0 { "behind" } else { "ahead of" };
    match ahead.saturating_abs() {
        ..=CLOCK_TOLERANCE => String::new(),
        distance => format!(
            "This device’s clock is {} {way} the server",
            rounded_down(distance)
        ),
    }
}

/// The time of day, `13:22:05`, in UTC.
pub fn clock(time: i64) -> String {
    date_time_parts(time).1
}

/// The date of a day counted from 1970-01-01, as `2026-11-20`.
pub fn date(day: i64) -> String {
    date_time_parts(day.saturating_mul(DAY)).0
}

/// The weekday of a day counted from 1970-01-01.
pub fn weekday(day: i64) -> &'static str {
    // 1970-01-01 was a Thursday.
    match day.rem_euclid(7) {
        0 => "Thursday",
        1 => "Friday",
        2 => "Saturday",
        3 => "Sunday",
        4 => "Monday",
        5 => "Tuesday",
        _ => "Wednesday",
    }
}

/// A duration in seconds, formatted by [`span`].
#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
pub fn seconds(seconds: f64) -> String {
    span((seconds * SECOND as f64) as i64)
}

fn date_time_parts(time: i64) -> (String, String, i64) {
    let (days, in_day) = (time.div_euclid(DAY), time.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    (
        format!("{year:04}-{month:02}-{day:02}"),
        format!(
            "{:02}:{:02}:{:02}",
            in_day / HOUR,
            in_day / MINUTE % 60,
            in_day / SECOND % 60
        ),
        in_day / 1000 % 1000,
    )
}

/// Year, month and day of the `days`th day after 1970-01-01, in the Gregorian calendar
/// (Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The distance of `time` from `now`: `12 s ago`, `in 3 m`.
pub fn relative(time: i64, now: i64) -> String {
    let distance = now.saturating_sub(time);
    if distance.abs() < SECOND {
        "now".to_owned()
    } else if distance > 0 {
        format!("{} ago", rounded_down(distance))
    } else {
        format!("in {}", rounded_down(distance.saturating_neg()))
    }
}

/// A duration rounded down to whole seconds, minutes, hours or days.
fn rounded_down(span: i64) -> String {
    match span {
        ..MINUTE => format!("{} s", span / SECOND),
        MINUTE..HOUR => format!("{} m", span / MINUTE),
        HOUR..DAY => format!("{} h", span / HOUR),
        _ => format!("{} d", span / DAY),
    }
}

/// A duration in its two largest units: `250 ms`, `1.5 s`, `3 m 12 s`, `2 d 4 h`. Negative durations, which come from
/// clocks that disagree, become zero.
pub fn span(span: i64) -> String {
    let two = |large: i64, large_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large} {large_unit}")
        } else {
            format!("{large} {large_unit} {small} {small_unit}")
        }
    };
    match span {
        ..1_000 => "0 ms".to_owned(),
        1_000..SECOND => format!("{} ms", span / 1_000),
        SECOND..10_000_000 => format!("{}.{} s", span / SECOND, span / 100_000 % 10),
        10_000_000..MINUTE => format!("{} s", span / SECOND),
        MINUTE..HOUR => two(span / MINUTE, "m", span / SECOND % 60, "s"),
        HOUR..DAY => two(span / HOUR, "h", span / MINUTE % 60, "m"),
        _ => two(span / DAY, "d", span / HOUR % 24, "h"),
    }
}

/// How often something happens: `every second`, `every 5 minutes`, `every 1 h 30 m`.
pub fn every(interval: i64) -> String {
    let units = [
        (DAY, "day"),
        (HOUR, "hour"),
        (MINUTE, "minute"),
        (SECOND, "second"),
    ];
    let whole = units
        .into_iter()
        .find(|(unit, _)| interval >= *unit && interval % unit == 0);
    match whole {
        Some((unit, word)) if interval == unit => format!("every {word}"),
        // From 60 up, two units (1 h 30 m) are easier to read.
        Some((unit, word)) if interval / unit < 60 || unit == DAY => {
            format!("every {} {word}s", number(interval / unit))
        }
        _ if interval < 1_000 => "more than once a millisecond".to_owned(),
        _ => format!("every {}", span(interval)),
    }
}

/// An interval as a number and the seconds of its unit: the largest of day, hour and minute of which it is a whole
/// multiple, otherwise the second, with a fraction if needed.
pub fn as_number_and_unit(interval: i64) -> (String, i64) {
    let units = [DAY, HOUR, MINUTE];
    match units.into_iter().find(|unit| interval % unit == 0) {
        Some(unit) => ((interval / unit).to_string(), unit / SECOND),
        None => ((interval as f64 / SECOND as f64).to_string(), 1),
    }
}

/// A number with thousands separators: `12,406`.
pub fn number(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if n < 0 {
        text.push('−');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_in_utc() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(-1), "1969-12-31 23:59:59 UTC");
        assert_eq!(iso(1_352_375_209_500_000), "2012-11-08T11:46:49.500Z");
        assert_eq!(utc(951_782_400_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(clock(1_352_375_209_500_000), "11:46:49");
        assert!(utc(i64::MAX).ends_with(" UTC"));
        assert!(utc(i64::MIN).ends_with(" UTC"));
    }

    #[test]
    fn local_times_show_their_utc_offset() {
        let time = 1_352_375_209_500_000;
        assert_eq!(local(time, 0, false), "2012-11-08 11:46:49 +00:00");
        assert_eq!(local(time, 120, true), "2012-11-08 13:46:49.500 +02:00");
        assert_eq!(local(time, -570, false), "2012-11-08 02:16:49 −09:30");
    }

    #[test]
    fn small_clock_differences_are_tolerated() {
        assert_eq!(clock_warning(30 * SECOND), "");
        assert_eq!(clock_warning(-30 * SECOND), "");
        assert_eq!(
            clock_warning(125 * SECOND),
            "This device’s clock is 2 m behind the server"
        );
        assert_eq!(
            clock_warning(-31 * SECOND),
            "This device’s clock is 31 s ahead of the server"
        );
    }

    #[test]
    fn days_have_names() {
        assert_eq!((date(0).as_str(), weekday(0)), ("1970-01-01", "Thursday"));
        assert_eq!(
            (date(-1).as_str(), weekday(-1)),
            ("1969-12-31", "Wednesday")
        );
        assert_eq!(
            (date(20_777).as_str(), weekday(20_777)),
            ("2026-11-20", "Friday")
        );
    }

    #[test]
    fn relative_times_have_one_unit() {
        assert_eq!(relative(0, 999_999), "now");
        assert_eq!(relative(0, 12_900_000), "12 s ago");
        assert_eq!(relative(0, 59 * MINUTE), "59 m ago");
        assert_eq!(relative(3 * HOUR, 0), "in 3 h");
        assert_eq!(relative(0, 40 * DAY), "40 d ago");
        assert!(relative(i64::MIN, i64::MAX).ends_with("ago"));
    }

    #[test]
    fn spans_have_two_units() {
        assert_eq!(span(-5), "0 ms");
        assert_eq!(span(250_000), "250 ms");
        assert_eq!(span(1_560_000), "1.5 s");
        assert_eq!(span(59 * SECOND), "59 s");
        assert_eq!(span(192 * SECOND), "3 m 12 s");
        assert_eq!(span(2 * HOUR), "2 h");
        assert_eq!(span(2 * DAY + 4 * HOUR), "2 d 4 h");
    }

    #[test]
    fn intervals_are_described_in_words() {
        assert_eq!(every(SECOND), "every second");
        assert_eq!(every(45 * SECOND), "every 45 seconds");
        assert_eq!(every(90 * SECOND), "every 1 m 30 s");
        assert_eq!(every(5 * MINUTE), "every 5 minutes");
        assert_eq!(every(HOUR), "every hour");
        assert_eq!(every(7 * DAY), "every 7 days");
        assert_eq!(every(100 * DAY), "every 100 days");
        assert_eq!(every(1_500_000), "every 1.5 s");
        assert_eq!(every(1), "more than once a millisecond");
    }

    #[test]
    fn intervals_are_typed_in_their_unit() {
        assert_eq!(as_number_and_unit(90 * SECOND), ("90".to_owned(), 1));
        assert_eq!(as_number_and_unit(1_500_000), ("1.5".to_owned(), 1));
        assert_eq!(as_number_and_unit(120 * MINUTE), ("2".to_owned(), 3_600));
        assert_eq!(as_number_and_unit(DAY), ("1".to_owned(), 86_400));
    }

    #[test]
    fn numbers_have_thousands_separators() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(12_406), "12,406");
        assert_eq!(number(-1_000_000), "−1,000,000");
    }
}
