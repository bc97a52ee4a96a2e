//! Checks and conversions of what users type into forms. The errors name the field.

use crate::engine::{NAME_BYTES_MAX, Result, invalid_class_reason};
use crate::ui::model::queue_ref::{Protocol, QueueRef};

/// Maximum duration in seconds, 100 years; more is a mistake.
const SECONDS_MAX: f64 = 3_155_760_000.0;

/// The result of a verb that was called with a single item.
pub fn only<T>(results: Result<Vec<Result<T>>>) -> Result<T, String> {
    let mut results = results.map_err(|error| error.to_string())?;
    match results.pop() {
        Some(result) => result.map_err(|error| error.to_string()),
        None => Err("nothing was changed".to_owned()),
    }
}

/// Checks a name by the rules of the API.
pub fn check_name(field: &str, name: &str) -> Result<(), String> {
    check_name_up_to(field, name, NAME_BYTES_MAX)
}

/// The same for a name of at most `bytes_max` bytes.
pub fn check_name_up_to(field: &str, name: &str, bytes_max: usize) -> Result<(), String> {
    if name.is_empty() || name.len() > bytes_max || name.chars().any(char::is_control) {
        return Err(format!(
            "{field} must have 1 to {bytes_max} bytes and no control characters"
        ));
    }
    Ok(())
}

/// Checks the class of a job.
pub fn check_class(class: Option<&str>) -> Result<(), String> {
    match class.and_then(invalid_class_reason) {
        Some(wrong) => Err(format!("the class {wrong}")),
        None => Ok(()),
    }
}

/// Checks that the queue has this protocol.
pub fn check_protocol(protocol: Protocol, queue: &QueueRef) -> Result<(), String> {
    if queue.protocol == protocol {
        return Ok(());
    }
    Err(format!(
        "queue {}: {} queues do not support this action",
        queue.label(),
        queue.protocol.as_str()
    ))
}

/// A finite number.
pub fn number(field: &str, text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok();
    number
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| format!("{field} must be a number"))
}

/// A whole number from 0 to 2³² − 1.
pub fn count(field: &str, text: &str) -> Result<i64, String> {
    let count = text.trim().parse::<u32>();
    count
        .map(i64::from)
        .map_err(|_| format!("{field} must be a whole number from 0 to {}", u32::MAX))
}

/// A duration in seconds: a number and the seconds of its unit.
pub fn seconds(field: &str, text: &str, unit: &str) -> Result<f64, String> {
    let seconds = number(field, text)? * number("the unit", unit)?;
    if (0.0..=SECONDS_MAX).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("{field} must be between 0 s and 100 years"))
    }
}

/// The content of an optional field; `None` if it is blank.
pub fn optional(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// The text, cut to this many characters.
pub fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_and_not_negative() {
        assert_eq!(count("retries", " 3 "), Ok(3));
        for text in ["", "-1", "1.5", "many"] {
            assert!(count("retries", text).is_err(), "{text}");
        }
    }
}
