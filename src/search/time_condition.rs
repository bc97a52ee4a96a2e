//! Conditions on times: by age, or by date (UTC).

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

use super::Compare;

const SECOND: i64 = 1_000_000;

/// A condition on a time, in microseconds. The text is the parsed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeCondition {
    /// By age: `>2h` is more than two hours ago.
    Age(Compare, i64, String),
    /// By a day, minute or second, given by its start and its end: `>2026-11-01` is after that day, `<2026-11-01`
    /// before it, and `2026-11-01` during it.
    Date(Compare, i64, i64, String),
}

impl TimeCondition {
    pub fn holds(&self, time: i64, now: i64) -> bool {
        match self {
            TimeCondition::Age(compare, age, _) => compare.holds(now.saturating_sub(time).cmp(age)),
            TimeCondition::Date(compare, from, until, _) => match compare {
                Compare::Is => (*from..*until).contains(&time),
                Compare::Greater => time >= *until,
                Compare::GreaterEqual => time >= *from,
                Compare::Less => time < *from,
                Compare::LessEqual => time < *until,
            },
        }
    }

    /// Parses the text after the comparison operator; `None` if it is neither an age nor a date.
    pub fn read(compare: Compare, text: &str) -> Option<TimeCondition> {
        if let Some(age) = parse_duration(text) {
            return Some(TimeCondition::Age(compare, age, text.to_owned()));
        }
        let (from, length) = date(text)?;
        Some(TimeCondition::Date(
            compare,
            from,
            from.checked_add(length)?,
            text.to_owned(),
        ))
    }
}

/// Parses a number with a unit (s, m, h, d or w). Returns microseconds.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3_600 * SECOND,
        "d" => 86_400 * SECOND,
        "w" => 7 * 86_400 * SECOND,
        _ => return None,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|_| is_number)?;
    number.checked_mul(unit)
}

/// Parses a day, minute or second. Returns its start and its length, in microseconds.
fn date(text: &str) -> Option<(i64, i64)> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (day, time) = match text.split_once('T') {
        Some((day, time)) => (day, Some(time)),
        None => (text, None),
    };
    // Checks the number of digits, because chrono also accepts fewer digits and signs.
    let shaped = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text
                .bytes()
                .zip(shape.bytes())
                .all(|(byte, shape)| match shape {
                    b'0' => byte.is_ascii_digit(),
                    other => byte == other,
                })
    };
    let day = Some(day).filter(|day| shaped(day, "0000-00-00"))?;
    let day = NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()?;
    let (time, length) = match time {
        None => (NaiveTime::MIN, 86_400 * SECOND),
        Some(time) if shaped(time, "00:00") => (parsed(time, "%H:%M")?, 60 * SECOND),
        Some(time) if shaped(time, "00:00:00") => (parsed(time, "%H:%M:%S")?, SECOND),
        Some(_) => return None,
    };
    let time = NaiveDateTime::new(day, time).and_utc();
    Some((time.timestamp_micros(), length))
}

fn parsed(time: &str, format: &str) -> Option<NaiveTime> {
    NaiveTime::parse_from_str(time, format).ok()
}
