//! Whether a queue grows or shrinks.

use serde::{Deserialize, Serialize};

use crate::time;

/// The longest estimate that is shown, in minutes: 30 days.
const EMPTY_AFTER_MAX: f64 = 43_200.0;

/// Rates that differ by less than this share are about equal.
const EQUAL_SHARE: f64 = 0.02;

/// The jobs per minute that enter and leave a queue, as the average of the last five minutes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueTrend {
    /// Waiting, running and stalled jobs.
    pub unfinished: i64,
    pub put: f64,
    /// Completed, failed or dead-lettered.
    pub ended: f64,
}

impl QueueTrend {
    /// How long until the queue is empty, or how fast it grows, in a sentence.
    pub fn sentence(&self) -> String {
        let (put, ended) = (self.put, self.ended);
        let shrinks = ended - put;
        if ended <= 0.0 && put <= 0.0 {
            return "No jobs added, completed or failed in the last 5 min.".to_owned();
        }
        let rates = format!(
            "{} added, {} completed or failed per minute",
            rate(put),
            rate(ended)
        );
        if shrinks.abs() <= put.max(ended) * EQUAL_SHARE {
            return format!("Stable: {rates}.");
        }
        if shrinks < 0.0 {
            return format!("Growing by {}: {rates}.", jobs_per_minute(-shrinks));
        }
        let minutes = self.unfinished as f64 / shrinks;
        if minutes > EMPTY_AFTER_MAX {
            return format!("At this rate, empty in more than 30 days: {rates}.");
        }
        format!("At this rate, empty in about {}: {rates}.", about(minutes))
    }
}

/// Jobs per minute: whole numbers from 10 on.
fn rate(rate: f64) -> String {
    if rate <= 0.0 {
        "0".to_owned()
    } else if rate < 0.1 {
        "less than 0.1".to_owned()
    } else if rate < 9.95 {
        format!("{rate:.1}").trim_end_matches(".0").to_owned()
    } else {
        time::number(rounded(rate))
    }
}

fn jobs_per_minute(of: f64) -> String {
    let text = rate(of);
    let noun = if text == "1" { "job" } else { "jobs" };
    format!("{text} {noun} per minute")
}

/// A duration in minutes, with one or two digits.
fn about(minutes: f64) -> String {
    match minutes {
        ..1.0 => "1 min".to_owned(),
        1.0..90.0 => format!("{} min", rounded(minutes)),
        90.0..2_880.0 => format!("{} h", rounded(minutes / 60.0)),
        _ => format!("{} days", rounded(minutes / 1_440.0)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(unfinished: i64, put: f64, ended: f64) -> String {
        QueueTrend {
            unfinished,
            put,
            ended,
        }
        .sentence()
    }

    #[test]
    fn a_queue_that_shrinks_has_an_estimate() {
        let rates = "300 added, 540 completed or failed per minute.";
        for (unfinished, time) in [
            (1, "1 min"),
            (2_880, "12 min"),
            (240 * 100, "2 h"),
            (240 * 60 * 40, "40 h"),
            (240 * 1_440 * 3, "3 days"),
        ] {
            let expected = format!("At this rate, empty in about {time}: {rates}");
            assert_eq!(sentence(unfinished, 300.0, 540.0), expected);
        }
        assert_eq!(
            sentence(100_000, 0.0, 1.04),
            "At this rate, empty in more than 30 days: 0 added, 1 completed or failed per minute."
        );
    }

    #[test]
    fn a_queue_that_does_not_shrink_has_no_estimate() {
        assert_eq!(
            sentence(5, 1_420.0, 1_300.0),
            "Growing by 120 jobs per minute: 1,420 added, 1,300 completed or failed per minute."
        );
        assert_eq!(
            sentence(5, 1.0, 0.0),
            "Growing by 1 job per minute: 1 added, 0 completed or failed per minute."
        );
        assert_eq!(
            sentence(5, 100.0, 101.0),
            "Stable: 100 added, 101 completed or failed per minute."
        );
        assert_eq!(
            sentence(5, 0.0, 0.0),
            "No jobs added, completed or failed in the last 5 min."
        );
    }
}
