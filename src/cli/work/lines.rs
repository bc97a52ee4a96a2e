//! `--each-line`: programs that keep running, and get one job per line.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::job::Job;
use super::outcome::{Failure, ProgramEnd, ProgramOutcome, outcome_of};
use super::program::Program;
use crate::config::{Outcomes, Work};

/// Maximum length of an answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// A program that gets many jobs.
#[derive(Debug)]
pub struct LineProgram {
    pub program: Program,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// The programs that wait for a job. At most as many as jobs run at the same time.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Vec<LineProgram>>);

/// The line for a job.
#[derive(Serialize)]
struct Line<'a> {
    queue: &'a str,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u64>,
    job: &'a RawValue,
}

impl Pool {
    /// A program that waits, or a new one. Programs that have ended, or have written more than their answers, are
    /// stopped.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn take(&self, options: &Work, variables: &[(&str, String)]) -> io::Result<LineProgram> {
        let next = || self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(mut waiting) = next() {
            if waiting.is_usable() {
                waiting.program.stderr.clear();
                return Ok(waiting);
            }
            let (mut program, kill_after) = (waiting.program, options.kill_after);
            tokio::spawn(async move { program.stop(kill_after).await });
        }
        let mut program = Program::start_for_lines(options, variables)?;
        let pipes = program.stdin.take().zip(program.stdout.take());
        let (stdin, stdout) = pipes.ok_or_else(|| io::Error::other("the program has no pipes"))?;
        Ok(LineProgram {
            program,
            stdin,
            stdout: BufReader::new(stdout),
        })
    }

    /// Keeps a program for the next job.
    pub fn put_back(&self, program: LineProgram) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(program);
    }

    /// Ends all programs: closes their input, and stops them if they then do not end in time.
    pub async fn close(&self, kill_after: Duration) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut programs: Vec<Program> = all.into_iter().map(|it| it.program).collect();
        for program in &mut programs {
            let ended = tokio::time::timeout(kill_after, program.wait()).await;
            match ended {
                Ok(_) => program.read_rest().await,
                Err(_) => program.stop(kill_after).await,
            }
        }
    }
}

impl LineProgram {
    /// Whether it can get a job: it has written nothing since its last answer, and has not ended. Otherwise, what it has
    /// written would be the answer to a job that it has not seen.
    fn is_usable(&mut self) -> bool {
        self.stdout.fill_buf().now_or_never().is_none()
    }

    /// Writes the job, and waits for the answer. The second value tells whether the program can get another job.
    ///
    /// # Errors
    /// If the program ended and the system does not report how.
    pub async fn run(
        &mut self,
        job: &Job,
        outcomes: &Outcomes,
    ) -> io::Result<(ProgramOutcome, bool)> {
        let mut line = serde_json::to_vec(&Line {
            queue: &job.queue,
            id: &job.id,
            attempt: job.attempt,
            job: serde_json::from_str(&job.whole).map_err(io::Error::other)?,
        })?;
        // JSON texts can contain line breaks only between their parts.
        line.retain(|byte| !matches!(byte, b'\n' | b'\r'));
        line.push(b'\n');
        // If it has ended, there is no answer either.
        drop(self.stdin.write_all(&line).await);
        let mut answer = Vec::new();
        let mut limited = (&mut self.stdout).take(ANSWER_BYTES_MAX);
        drop(limited.read_until(b'\n', &mut answer).await);
        if answer.ends_with(b"\n") {
            let answer = String::from_utf8_lossy(&answer);
            return Ok(match read_answer(answer.trim(), outcomes) {
                Some(outcome) => (outcome, true),
                None => (
                    no_answer("the program answered something other than complete, retry or fail"),
                    false,
                ),
            });
        }
        if answer.len() as u64 >= ANSWER_BYTES_MAX {
            return Ok((
                no_answer("the answer of the program is longer than 64 KiB"),
                false,
            ));
        }
        // Its output is closed.
        let status = self.program.wait().await?;
        self.program.read_rest().await;
        let ended = outcome_of(
            ProgramEnd::Exit(status),
            &self.program.stderr.text(),
            outcomes,
        );
        Ok(match ended {
            ProgramOutcome::Complete => (no_answer("the program ended without an answer"), false),
            failed => (failed, false),
        })
    }
}

fn no_answer(why: &str) -> ProgramOutcome {
    ProgramOutcome::Fail(Failure {
        group: "no-answer".to_owned(),
        message: why.to_owned(),
    })
}

/// The meaning of a line: `complete`, `retry` or `fail`, and a message. `None` if it has none.
fn read_answer(line: &str, outcomes: &Outcomes) -> Option<ProgramOutcome> {
    let (word, message) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let message = message.trim();
    let failure = || {
        let pattern = outcomes.group_pattern.as_ref();
        let group = pattern.and_then(|pattern| super::outcome::matched(pattern, message));
        Failure {
            group: group.unwrap_or_else(|| "program".to_owned()),
            message: match message.is_empty() {
                true => format!("the program answered {word}"),
                false => message.to_owned(),
            },
        }
    };
    match word {
        "complete" => Some(ProgramOutcome::Complete),
        "retry" => Some(ProgramOutcome::Retry(failure())),
        "fail" => Some(ProgramOutcome::Fail(failure())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_answer_is_a_verb_and_a_message() {
        let outcomes = Outcomes {
            retry_codes: vec![75],
            fail_codes: Vec::new(),
            retry_delay: Duration::ZERO,
            group_pattern: None,
        };
        let failure = |message: &str| Failure {
            group: "program".to_owned(),
            message: message.to_owned(),
        };
        for (line, expected) in [
            ("complete", Some(ProgramOutcome::Complete)),
            ("complete, all of it", None),
            (
                "retry",
                Some(ProgramOutcome::Retry(failure("the program answered retry"))),
            ),
            (
                "retry  busy now ",
                Some(ProgramOutcome::Retry(failure("busy now"))),
            ),
            (
                "fail\tno such user",
                Some(ProgramOutcome::Fail(failure("no such user"))),
            ),
            ("ok", None),
            ("", None),
        ] {
            assert_eq!(read_answer(line, &outcomes), expected, "{line}");
        }
    }
}
