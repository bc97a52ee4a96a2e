//! What the end of a program means for its job.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use regex::Regex;

use crate::config::Outcomes;

/// Maximum length of a failure's group, in bytes: that of a name of qless.
const GROUP_BYTES_MAX: usize = 255;

/// The exit code of a program that exceeded its time limit, as with timeout(1).
const TIME_LIMIT_CODE: u8 = 124;

/// What a shell adds to the number of a signal that ended a program.
const SIGNAL_CODE: i32 = 128;

/// What the end of a program means for its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramOutcome {
    Complete,
    Retry(Failure),
    Fail(Failure),
}

/// Why a job was not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub group: String,
    pub message: String,
}

/// How the work on a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    Completed,
    Retried,
    Failed,
    HandedBack,
    /// The lease was lost, or the server did not accept the outcome.
    Lost,
}

/// How many jobs ended in which way.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; 5]);

impl Counts {
    pub fn add(&self, ending: JobEnd) {
        if let Some(count) = self.0.get(ending as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn of(&self, ending: JobEnd) -> u64 {
        let count = self.0.get(ending as usize);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Whether a job was not completed.
    pub fn has_problem(&self) -> bool {
        let others = [
            JobEnd::Retried,
            JobEnd::Failed,
            JobEnd::HandedBack,
            JobEnd::Lost,
        ];
        others.into_iter().any(|ending| self.of(ending) > 0)
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub enum ProgramEnd {
    Exit(ExitStatus),
    /// It was stopped after this time.
    TimeLimit(Duration),
}

impl ProgramEnd {
    /// The exit code, as a shell shows it.
    fn code(self) -> u8 {
        let ProgramEnd::Exit(status) = self else {
            return TIME_LIMIT_CODE;
        };
        let code = status
            .code()
            .or_else(|| status.signal().map(|signal| SIGNAL_CODE + signal));
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX)
    }

    fn group(self) -> String {
        match self {
            ProgramEnd::TimeLimit(_) => "time-limit".to_owned(),
            ProgramEnd::Exit(status) => match status.signal() {
                Some(signal) => format!("signal-{signal}"),
                None => format!("exit-{}", self.code()),
            },
        }
    }

    fn message(self) -> String {
        match self {
            ProgramEnd::TimeLimit(limit) => {
                format!(
                    "the program exceeded its time limit of {} s",
                    limit.as_secs_f64()
                )
            }
            ProgramEnd::Exit(status) => match status.signal() {
                Some(signal) => format!("the program was ended by signal {signal}"),
                None => format!("the program exited with code {}", self.code()),
            },
        }
    }
}

/// What a program's end means. `stderr` is the end of its standard error.
pub fn outcome_of(end: ProgramEnd, stderr: &str, outcomes: &Outcomes) -> ProgramOutcome {
    let code = end.code();
    if code == 0 {
        return ProgramOutcome::Complete;
    }
    let text = stderr.trim();
    let message = match (text.is_empty(), end) {
        (true, _) => end.message(),
        (false, ProgramEnd::TimeLimit(_)) => format!("{}: {text}", end.message()),
        (false, ProgramEnd::Exit(_)) => text.to_owned(),
    };
    let pattern = outcomes.group_pattern.as_ref();
    let group = pattern.and_then(|pattern| matched(pattern, text));
    let group = group.unwrap_or_else(|| end.group());
    let failure = Failure { group, message };
    match is_retried(code, outcomes) {
        true => ProgramOutcome::Retry(failure),
        false => ProgramOutcome::Fail(failure),
    }
}

fn is_retried(code: u8, outcomes: &Outcomes) -> bool {
    let fails = &outcomes.fail_codes;
    outcomes.retry_codes.contains(&code) || !fails.is_empty() && !fails.contains(&code)
}

/// The first part in parentheses of the last match, or the whole match. `None` if it is empty.
pub fn matched(pattern: &Regex, text: &str) -> Option<String> {
    let found = pattern.captures_iter(text).last()?;
    let part = found.get(1).or_else(|| found.get(0))?;
    let visible = part.as_str().chars().filter(|c| !c.is_control());
    let mut group: String = visible.collect();
    let mut end = group.len().min(GROUP_BYTES_MAX);
    while !group.is_char_boundary(end) {
        end -= 1;
    }
    group.truncate(end);
    Some(group.trim().to_owned()).filter(|group| !group.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(retry: &[u8], fail: &[u8], pattern: Option<&str>) -> Outcomes {
        Outcomes {
            retry_codes: retry.to_vec(),
            fail_codes: fail.to_vec(),
            retry_delay: Duration::ZERO,
            group_pattern: pattern.map(|pattern| Regex::new(pattern).unwrap()),
        }
    }

    fn exit(code: i32) -> ProgramEnd {
        ProgramEnd::Exit(ExitStatus::from_raw(code << 8))
    }

    fn signal(number: i32) -> ProgramEnd {
        ProgramEnd::Exit(ExitStatus::from_raw(number))
    }

    /// The first letter of the verdict, and its group.
    fn shown(end: ProgramEnd, outcomes: &Outcomes) -> (char, String) {
        match outcome_of(end, "", outcomes) {
            ProgramOutcome::Complete => ('c', String::new()),
            ProgramOutcome::Retry(failure) => ('r', failure.group),
            ProgramOutcome::Fail(failure) => ('f', failure.group),
        }
    }

    #[test]
    fn exit_codes_complete_retry_or_fail() {
        let limit = ProgramEnd::TimeLimit(Duration::from_secs(5));
        let by_default = outcomes(&[75], &[], None);
        for (end, verdict, group) in [
            (exit(0), 'c', ""),
            (exit(75), 'r', "exit-75"),
            (exit(1), 'f', "exit-1"),
            (exit(255), 'f', "exit-255"),
            (signal(9), 'f', "signal-9"),
            (limit, 'f', "time-limit"),
        ] {
            assert_eq!(shown(end, &by_default), (verdict, group.to_owned()));
        }
        let others_retry = outcomes(&[75], &[2, 65], None);
        for (end, verdict) in [
            (exit(2), 'f'),
            (exit(65), 'f'),
            (exit(1), 'r'),
            (exit(75), 'r'),
            (signal(9), 'r'),
            (limit, 'r'),
        ] {
            assert_eq!(shown(end, &others_retry).0, verdict, "{end:?}");
        }
        let chosen = outcomes(&[124, 137], &[], None);
        assert_eq!(shown(limit, &chosen).0, 'r', "124 is the time limit");
        assert_eq!(shown(signal(9), &chosen).0, 'r', "137 is SIGKILL");
        assert_eq!(shown(exit(75), &chosen).0, 'f');
    }

    #[test]
    fn the_message_is_the_end_of_standard_error() {
        let outcomes = outcomes(&[75], &[], None);
        let message = |end, stderr| match outcome_of(end, stderr, &outcomes) {
            ProgramOutcome::Fail(failure) => failure.message,
            other => panic!("{other:?}"),
        };
        assert_eq!(message(exit(1), " no such file\n"), "no such file");
        assert_eq!(message(exit(1), "\n"), "the program exited with code 1");
        assert_eq!(
            message(signal(11), ""),
            "the program was ended by signal 11"
        );
        let limit = ProgramEnd::TimeLimit(Duration::from_millis(1_500));
        let expected = "the program exceeded its time limit of 1.5 s";
        assert_eq!(message(limit, ""), expected);
        assert_eq!(message(limit, "busy"), format!("{expected}: busy"));
    }

    #[test]
    fn the_group_is_the_last_match_of_the_pattern() {
        let text = "ValueError: 1\nKeyError: 'a'\n";
        for (pattern, expected) in [
            (r"(\w+Error):", "KeyError"),
            (r"\w+Error", "KeyError"),
            (r"Warning", "exit-1"),
            (r"()", "exit-1"),
        ] {
            let outcomes = outcomes(&[75], &[], Some(pattern));
            let ProgramOutcome::Fail(failure) = outcome_of(exit(1), text, &outcomes) else {
                panic!("{pattern}");
            };
            assert_eq!(failure.group, expected, "{pattern}");
        }
        let long = "é".repeat(200);
        let group = matched(&Regex::new("(?s).*").unwrap(), &long).unwrap();
        assert_eq!(group, "é".repeat(127), "up to 255 bytes");
    }
}
