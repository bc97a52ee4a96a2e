//! The flags of `switchyard work`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};
use regex::Regex;
use serde_json::value::RawValue;

use super::manage::seconds;
use super::{Connection, secret_variables};

/// The APIs that a worker can claim from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkApi {
    /// Leases with heartbeats, failure groups, retries with a delay
    Qless,
    /// A fixed time to run; jobs that are not completed are delivered again
    Lmstfy,
    /// Leases with heartbeats; retries are new runs
    Relay,
    /// No leases; the state of the job names its worker
    Jobq,
}

/// Order in which the queues are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum QueueOrder {
    /// Claim from a queue only while all queues before it are empty
    #[default]
    Ordered,
    /// Begin each claim with the next queue, so that all queues are served equally
    RoundRobin,
}

/// Maximum number of queues.
const QUEUES_MAX: usize = 100;

/// The shortest time between two claims that do not wait.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The shortest time after which a job is taken over: the server counts whole seconds.
const TAKE_OVER_MIN: Duration = Duration::from_secs(1);

/// The flags of `switchyard work`.
#[derive(Clone, Debug, Args)]
pub struct Work {
    /// API to claim from.
    #[arg(long, env = "SWITCHYARD_API", value_enum, default_value = "qless")]
    pub api: WorkApi,
    /// Queues to claim from, separated by commas. Repeatable, up to 100.
    #[arg(
        long = "queue",
        short,
        env = "SWITCHYARD_QUEUES",
        value_delimiter = ',',
        required = true
    )]
    #[arg(value_name = "NAME")]
    pub queues: Vec<String>,
    /// lmstfy: namespace of the queues.
    #[arg(
        long,
        env = "SWITCHYARD_NAMESPACE",
        default_value = "default",
        value_name = "NAME"
    )]
    pub namespace: String,
    /// Maximum number of programs that run at the same time, up to 1,000.
    #[arg(
        long,
        short,
        env = "SWITCHYARD_CONCURRENCY",
        default_value_t = 1,
        value_name = "N"
    )]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub concurrency: u16,
    /// Which queue to claim from first if several have jobs.
    #[arg(long, value_enum, default_value_t)]
    pub order: QueueOrder,
    /// Name of the worker, which the dashboard shows [default: the host's name and the process ID].
    #[arg(long, env = "SWITCHYARD_WORKER", value_name = "NAME")]
    pub name: Option<String>,
    /// Write the whole job to standard input, as JSON, instead of its payload.
    #[arg(long, group = "input")]
    pub json: bool,
    /// Pass the payload in the environment variable SWITCHYARD_PAYLOAD instead of standard input. A job whose payload
    /// has more than 131,008 bytes, or a NUL, fails.
    #[arg(long, group = "input")]
    pub env: bool,
    /// Keep up to --concurrency programs running, instead of starting one for each job. Each job is a line of JSON on
    /// standard input. The program answers with one line for each job: complete, retry or fail; after retry or fail, a
    /// message can follow.
    #[arg(long, group = "input")]
    pub each_line: bool,
    /// Maximum run time of a program, such as 90s, 5m or 1h. A program that takes longer is stopped, and counts as exit
    /// code 124 [default: no limit; for lmstfy --ttr minus --kill-after minus 1 s].
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub time_limit: Option<Duration>,
    /// How long running programs may take to finish after the worker has received SIGTERM or SIGINT. Then they are
    /// stopped, and their jobs become available to other workers.
    #[arg(long, value_parser = duration, default_value = "20s", value_name = "TIME")]
    pub grace: Duration,
    /// Time between SIGTERM and SIGKILL when the worker stops a program.
    #[arg(long, value_parser = duration, default_value = "5s", value_name = "TIME")]
    pub kill_after: Duration,
    /// Wait for one job, run the program for it, and exit.
    #[arg(long)]
    pub once: bool,
    /// Exit when no job is available. Scheduled jobs do not count.
    #[arg(long)]
    pub drain: bool,
    /// Print the queue, ID and size of the next jobs, and exit. Claims no jobs and runs no program. Not possible with
    /// Relay.
    #[arg(long)]
    pub dry_run: bool,
    /// Discard the output of programs instead of copying it to the output of the worker.
    #[arg(long)]
    pub quiet: bool,
    /// Environment variable with a secret that the program inherits, such as SWITCHYARD_TOKEN. Repeatable, or separated
    /// by commas. By default, the program inherits no variables of Switchyard with secrets.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub pass_env: Vec<String>,
    /// Relay and Jobq: how long to wait before the next claim if no job was available, because these APIs have no long
    /// polls.
    #[arg(long, value_parser = duration, default_value = "1s", value_name = "TIME")]
    pub poll_interval: Duration,
    #[command(flatten)]
    pub outcomes: Outcomes,
    #[command(flatten)]
    pub protocol: ApiFlags,
    #[command(flatten)]
    pub connection: Connection,
    /// The program that runs for each job, and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// What the exit code of a program means.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Outcomes")]
pub struct Outcomes {
    /// Exit code that retries the job. Repeatable, or separated by commas.
    #[arg(long = "retry-code", value_delimiter = ',', default_values_t = [75], value_name = "CODE")]
    pub retry_codes: Vec<u8>,
    /// Exit code that fails the job. Repeatable, or separated by commas. If it is set, every other code except 0
    /// retries the job [default: every code except 0 and --retry-code].
    #[arg(long = "fail-code", value_delimiter = ',', value_name = "CODE")]
    pub fail_codes: Vec<u8>,
    /// qless and Relay: time after which a retried job is available again.
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "TIME")]
    pub retry_delay: Duration,
    /// Regular expression that finds the failure group in the message of the failure: the group is the last match, or
    /// the part of it that the first pair of parentheses matches. Without a match, and by default, the group is
    /// exit-CODE, signal-NUMBER or time-limit.
    #[arg(long, value_name = "REGEX")]
    pub group_pattern: Option<Regex>,
}

/// Flags for one API.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Flags for one API")]
pub struct ApiFlags {
    /// lmstfy: time to run, in whole seconds. A job that is not completed within this time after its claim is delivered
    /// again. The time cannot be extended.
    #[arg(long, value_parser = duration, default_value = "2m", value_name = "TIME")]
    pub ttr: Duration,
    /// Jobq: query that selects the jobs to claim, as JSON.
    #[arg(long, value_parser = query, default_value = r#"[["IS", "j.state", null]]"#, value_name = "JSON")]
    pub query: Box<RawValue>,
    /// Jobq: label of the state of a claimed job.
    #[arg(long, value_parser = label, default_value = "ASSIGNED", value_name = "LABEL")]
    pub assigned_state: String,
    /// Jobq: label of the state of a completed job.
    #[arg(long, value_parser = label, default_value = "FINISHED", value_name = "LABEL")]
    pub finished_state: String,
    /// Jobq: label of the state of a failed job.
    #[arg(long, value_parser = label, default_value = "FAILED", value_name = "LABEL")]
    pub failed_state: String,
    /// Jobq: label of the state of a job that is retried or handed back. --query must select this state [default: no
    /// state].
    #[arg(long, value_parser = label, value_name = "LABEL")]
    pub retry_state: Option<String>,
    /// Jobq: also claim jobs that another worker has claimed, but not changed for this long, for example because it
    /// crashed. To show that it is still running, the worker then adds an event to the log of its job three times in
    /// this period, and at least once a minute [default: never].
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub take_over: Option<Duration>,
}

/// The part of the time to run of an lmstfy job that is reserved for reporting its completion.
const COMPLETION_RESERVE: Duration = Duration::from_secs(1);

impl Work {
    /// Checks options that depend on each other.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn check(&self) -> Result<(), String> {
        if self.queues.len() > QUEUES_MAX {
            return Err(format!(
                "--queue: {} names; the limit is {QUEUES_MAX}",
                self.queues.len()
            ));
        }
        if self.queues.iter().any(String::is_empty) {
            return Err("--queue: a name is empty".to_owned());
        }
        let is_secret = |name: &&String| secret_variables().contains(*name);
        if let Some(name) = self.pass_env.iter().find(|name| !is_secret(name)) {
            return Err(format!(
                "--pass-env: {name} is not among the variables that are removed from the environment of programs"
            ));
        }
        if self.outcomes.retry_codes.contains(&0) || self.outcomes.fail_codes.contains(&0) {
            return Err("exit code 0 always completes the job".to_owned());
        }
        if self.poll_interval < POLL_INTERVAL_MIN {
            return Err("--poll-interval must be at least 10 ms".to_owned());
        }
        let take_over = self.protocol.take_over;
        if take_over.is_some_and(|after| after < TAKE_OVER_MIN) {
            return Err("--take-over must be at least 1 s".to_owned());
        }
        if self.api != WorkApi::Lmstfy {
            return Ok(());
        }
        if self.protocol.ttr.subsec_nanos() != 0 {
            return Err("--ttr: expected whole seconds".to_owned());
        }
        let most = self.lmstfy_run_max();
        if most.is_zero() || self.time_limit.is_some_and(|limit| limit > most) {
            return Err(
                "lmstfy cannot extend the time to run of a job: --ttr must be longer than --time-limit, --kill-after \
                 and 1 s together"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The maximum run time of a program.
    pub fn run_max(&self) -> Option<Duration> {
        match self.api {
            WorkApi::Lmstfy => Some(self.time_limit.unwrap_or_else(|| self.lmstfy_run_max())),
            WorkApi::Qless | WorkApi::Relay | WorkApi::Jobq => self.time_limit,
        }
    }

    /// How long a program can run within the time to run of an lmstfy job, which cannot be extended.
    fn lmstfy_run_max(&self) -> Duration {
        let reserve = self.kill_after + COMPLETION_RESERVE;
        self.protocol.ttr.saturating_sub(reserve)
    }
}

/// Maximum duration of an option: a year.
const SECONDS_MAX: f64 = 31_536_000.0;

/// A duration as in [`seconds`], of up to a year.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    let seconds = seconds(text).ok().filter(|seconds| *seconds <= SECONDS_MAX);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or("expected a duration of up to a year, such as 500ms, 30s, 5m, 2h or 1d")
}

/// The label of a state of Jobq, which needs no quotes in a query.
fn label(text: &str) -> Result<String, &'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !(1..=255).contains(&text.len()) || !text.chars().all(is_plain) {
        return Err("expected letters, digits, hyphens, underscores and dots");
    }
    Ok(text.to_owned())
}

fn query(text: &str) -> Result<Box<RawValue>, String> {
    let query: Box<RawValue> =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    if !query.get().starts_with('[') {
        return Err("expected an array of triples".to_owned());
    }
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::super::{Command, Subcommand};
    use super::*;
    use clap::Parser;

    fn work(arguments: &[&str]) -> Result<Box<Work>, String> {
        let words = [&["switchyard", "work"], arguments, &["--", "true"]].concat();
        let command = Command::try_parse_from(words).map_err(|error| error.to_string())?;
        match command.subcommand {
            Subcommand::Work(work) => work.check().map(|()| work),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn durations_have_a_unit() {
        for (text, seconds) in [
            ("0", Some(0.0)),
            ("30", Some(30.0)),
            ("1.5s", Some(1.5)),
            ("500ms", Some(0.5)),
            ("2m", Some(120.0)),
            ("1h", Some(3_600.0)),
            ("365d", Some(31_536_000.0)),
            ("366d", None),
            ("-1", None),
            ("1e3", None),
            ("", None),
            ("s", None),
            ("1 s", Some(1.0)),
            ("1s s", None),
        ] {
            let parsed = duration(text).ok().map(|it| it.as_secs_f64());
            assert_eq!(parsed, seconds, "{text}");
        }
    }

    #[test]
    fn queues_are_repeatable_and_separated_by_commas() {
        let work = work(&["--queue", "a,b", "-q", "c"]).unwrap();
        assert_eq!(work.queues, ["a", "b", "c"]);
        assert_eq!(work.program, ["true"]);
        assert!(self::work(&[]).is_err());
        assert!(self::work(&["--queue", "a,,b"]).is_err());
        for (count, is_accepted) in [(100, true), (101, false)] {
            let names = vec!["q"; count].join(",");
            assert_eq!(self::work(&["--queue", &names]).is_ok(), is_accepted);
        }
    }

    #[test]
    fn the_time_limit_of_lmstfy_fits_into_the_time_to_run() {
        let run_max = |arguments: &[&str]| {
            let base = ["--queue", "a", "--api", "lmstfy", "--ttr", "20s"];
            work(&[&base, arguments].concat()).map(|work| work.run_max())
        };
        let seconds = |s| Ok(Some(Duration::from_secs(s)));
        assert_eq!(run_max(&[]), seconds(14));
        assert_eq!(run_max(&["--time-limit", "14s"]), seconds(14));
        assert_eq!(run_max(&["--time-limit", "3s"]), seconds(3));
        assert!(run_max(&["--time-limit", "15s"]).is_err());
        assert!(run_max(&["--kill-after", "19s"]).is_err());
        assert!(run_max(&["--ttr", "19.5s"]).is_err());
    }

    #[test]
    fn only_one_form_of_input_can_be_chosen() {
        assert!(work(&["-q", "a", "--json", "--env"]).is_err());
        assert!(work(&["-q", "a", "--each-line"]).is_ok());
        assert!(work(&["-q", "a", "--retry-code", "0"]).is_err());
        assert!(work(&["-q", "a", "--group-pattern", "("]).is_err());
    }

    #[test]
    fn only_variables_with_secrets_are_passed_explicitly() {
        let names = "SWITCHYARD_TOKEN,SWITCHYARD_TOKEN_FILE";
        let work = work(&["-q", "a", "--pass-env", names]).unwrap();
        assert_eq!(work.pass_env.len(), 2);
        for name in ["SWITCHYARD_SERVER", "PATH", ""] {
            assert!(self::work(&["-q", "a", "--pass-env", name]).is_err());
        }
    }

    #[test]
    fn intervals_have_a_minimum() {
        for (option, value, is_accepted) in [
            ("--poll-interval", "9ms", false),
            ("--poll-interval", "10ms", true),
            ("--take-over", "999ms", false),
            ("--take-over", "1s", true),
        ] {
            let accepted = work(&["-q", "a", option, value]).is_ok();
            assert_eq!(accepted, is_accepted, "{option} {value}");
        }
    }
}
