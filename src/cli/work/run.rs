//! Processes one job: runs its program, keeps its lease, and reports its outcome.

use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::api::{Report, ReportResult};
use super::claims::Worker;
use super::job::Job;
use super::lease;
use super::lines::LineProgram;
use super::outcome::{Failure, JobEnd, ProgramEnd, ProgramOutcome, outcome_of};
use super::pace::Backoff;
use super::program::{Program, fits_environment};

/// How long a report is repeated while the server is away.
const REPORT_MAX: Duration = Duration::from_secs(600);

/// The same once programs are stopped: after `--grace`, or at a second signal.
const LAST_REPORT_MAX: Duration = Duration::from_secs(5);

/// How the run of a job's program ended, before it is reported.
enum RunEnd {
    Outcome(ProgramOutcome),
    HandBack,
    Lost(String),
}

/// Why a program is stopped.
enum Cause {
    TimeLimit(Duration),
    Shutdown,
    Lost(String),
}

/// A program that works on a job.
enum Run {
    Once(Program),
    Line(LineProgram),
}

impl Run {
    async fn stop(&mut self, kill_after: Duration) {
        match self {
            Run::Once(program) => program.stop(kill_after).await,
            Run::Line(line) => line.program.stop(kill_after).await,
        }
    }

    fn stderr(&self) -> String {
        match self {
            Run::Once(program) => program.stderr.text(),
            Run::Line(line) => line.program.stderr.text(),
        }
    }
}

impl Worker {
    /// Processes a job. `superseded` is canceled when this worker claims the job again.
    pub async fn process(&self, job: &Job, superseded: &CancellationToken) -> JobEnd {
        let ended = match self.supervise(job, superseded).await {
            Ok(ended) => ended,
            Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong => {
                RunEnd::Outcome(ProgramOutcome::Fail(Failure {
                    group: "payload".to_owned(),
                    message: "the job does not fit into the environment of the program".to_owned(),
                }))
            }
            Err(error) => {
                self.abort(format!("cannot run the program: {error}"));
                RunEnd::HandBack
            }
        };
        let report = match ended {
            RunEnd::Outcome(ProgramOutcome::Complete) => Report::Complete,
            RunEnd::Outcome(ProgramOutcome::Retry(failure)) => Report::Retry(failure),
            RunEnd::Outcome(ProgramOutcome::Fail(failure)) => Report::Fail(failure),
            RunEnd::HandBack => Report::HandBack,
            RunEnd::Lost(why) => return lost_job(job, &why),
        };
        match self.report(job, &report, superseded).await {
            ReportResult::Lost(why) => lost_job(job, &why),
            ReportResult::Done | ReportResult::LeftToExpire => ending(job, &report),
        }
    }

    /// Runs the program until it ends, or has to be stopped.
    async fn supervise(&self, job: &Job, superseded: &CancellationToken) -> io::Result<RunEnd> {
        let options = &self.options;
        if options.env && !fits_environment(&job.payload) {
            return Ok(RunEnd::Outcome(ProgramOutcome::Fail(Failure {
                group: "payload".to_owned(),
                message: "the payload does not fit into an environment variable".to_owned(),
            })));
        }
        let mut run = match options.each_line {
            true => Run::Line(self.pool.take(options, &self.variables)?),
            false => Run::Once(Program::start(options, &self.variables, job)?),
        };
        let mut lease = pin!(lease::extend_until_lost(&self.api, job));
        let started = Instant::now();
        let limit = async {
            match options.run_max() {
                Some(limit) => {
                    sleep(limit).await;
                    limit
                }
                None => std::future::pending().await,
            }
        };
        let cause = tokio::select! {
            biased;
            () = superseded.cancelled() => Cause::Lost("this worker has claimed it again".to_owned()),
            why = &mut lease => Cause::Lost(why),
            ended = self.ended(&mut run, job) => {
                let (outcome, can_continue) = ended?;
                if let (Run::Line(line), true) = (run, can_continue) {
                    self.pool.put_back(line);
                }
                return Ok(RunEnd::Outcome(outcome));
            }
            limit = limit => Cause::TimeLimit(limit),
            () = self.shutdown.stopping() => Cause::Shutdown,
        };
        let mut cause = cause;
        // Taken before the stop: what the program writes while it is being stopped does not explain the cause.
        let stderr = run.stderr();
        tracing::info!(queue = job.queue, id = job.id, after = ?started.elapsed(), "stopping a program");
        {
            let mut stop = pin!(run.stop(options.kill_after));
            loop {
                tokio::select! {
                    () = &mut stop => break,
                    why = &mut lease, if !matches!(cause, Cause::Lost(_)) => cause = Cause::Lost(why),
                }
            }
        }
        Ok(match cause {
            Cause::Lost(why) => RunEnd::Lost(why),
            Cause::Shutdown => RunEnd::HandBack,
            Cause::TimeLimit(limit) => {
                let end = ProgramEnd::TimeLimit(limit);
                RunEnd::Outcome(outcome_of(end, &stderr, &options.outcomes))
            }
        })
    }

    /// Waits for the outcome of the program. The second value tells whether the program can get another job.
    async fn ended(&self, run: &mut Run, job: &Job) -> io::Result<(ProgramOutcome, bool)> {
        let outcomes = &self.options.outcomes;
        match run {
            Run::Line(line) => line.run(job, outcomes).await,
            Run::Once(program) => {
                let status = program.wait().await?;
                program.read_rest().await;
                let outcome =
                    outcome_of(ProgramEnd::Exit(status), &program.stderr.text(), outcomes);
                Ok((outcome, false))
            }
        }
    }

    /// Reports the outcome, and repeats that while the server is away.
    async fn report(
        &self,
        job: &Job,
        report: &Report,
        superseded: &CancellationToken,
    ) -> ReportResult {
        let deadline = match job.lease {
            Some(lease) if !self.api.rejects_late_reports() => lease.until,
            _ => Instant::now() + REPORT_MAX,
        };
        let stopped = async {
            self.shutdown.stopping().await;
            sleep(LAST_REPORT_MAX).await;
        };
        let is_late = "the server did not confirm its outcome in time";
        tokio::select! {
            biased;
            () = superseded.cancelled() => match report {
                // The next attempt has begun before the response arrived.
                Report::Retry(_) => ReportResult::Done,
                _ => ReportResult::Lost("this worker has claimed it again".to_owned()),
            },
            () = sleep_until(deadline.into()) => ReportResult::Lost(is_late.to_owned()),
            settled = self.report_until_settled(job, report) => settled,
            () = stopped => ReportResult::Lost(is_late.to_owned()),
        }
    }

    async fn report_until_settled(&self, job: &Job, report: &Report) -> ReportResult {
        let (mut backoff, mut is_repeated) = (Backoff::new(), false);
        loop {
            match self.api.report_outcome(job, report, is_repeated).await {
                Ok(settled) => return settled,
                Err(error) if error.is_temporary() => {
                    tracing::warn!(queue = job.queue, id = job.id, %error, "cannot report the outcome of a job");
                    is_repeated |= error.is_uncertain();
                    backoff.pause(&error).await;
                }
                Err(error) => return ReportResult::Lost(error.to_string()),
            }
        }
    }
}

fn ending(job: &Job, report: &Report) -> JobEnd {
    let (queue, id) = (&job.queue, &job.id);
    match report {
        Report::Complete => {
            tracing::debug!(queue, id, "completed a job");
            JobEnd::Completed
        }
        Report::Retry(failure) => {
            tracing::info!(queue, id, group = failure.group, "retried a job");
            JobEnd::Retried
        }
        Report::Fail(failure) => {
            tracing::info!(queue, id, group = failure.group, "failed a job");
            JobEnd::Failed
        }
        Report::HandBack => {
            tracing::info!(queue, id, "handed a job back");
            JobEnd::HandedBack
        }
    }
}

fn lost_job(job: &Job, why: &str) -> JobEnd {
    tracing::warn!(queue = job.queue, id = job.id, why, "lost a job");
    JobEnd::Lost
}
