//! Dates and times that users type or addresses contain, in UTC.

use chrono::NaiveDateTime;

use crate::engine::Time;

/// The formats of the value of a `datetime-local` field.
pub const DATETIME_LOCAL: [&str; 2] = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];

/// A time in one of these formats, or the start of a day.
pub fn parse_time(text: &str, formats: &[&str]) -> Option<Time> {
    let mut times = formats
        .iter()
        .map(|format| NaiveDateTime::parse_from_str(text, format));
    let time = times.find_map(Result::ok);
    let time = time.map(|time| Time(time.and_utc().timestamp_micros()));
    time.or_else(|| Time::from_date(text))
}
