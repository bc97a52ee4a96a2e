//! Flags of the commands that manage a running server over HTTP: queues, jobs, failures, workers, recurring jobs,
//! operations, and `switchyard top`.

mod job;
mod settings;

use std::time::Duration;

use clap::{Args, Subcommand};

use super::Connection;
use crate::engine::{Protocol, QueueKey};
pub use job::{Job, JobAction, JobCommand, JobPut, Jobs, Targets};
pub use settings::{OptionCommand, RemoteToken};

/// Maximum number of rows that a list prints (`--limit`).
pub const ROWS_MAX: usize = 10_000;

/// The connection, and the format of the output.
#[derive(Debug, Args)]
pub struct Remote {
    #[command(flatten)]
    pub connection: Connection,
    /// Print JSON, one object per line.
    #[arg(long)]
    pub json: bool,
}

/// Prints again after every change.
#[derive(Clone, Copy, Debug, Args)]
pub struct Watch {
    /// Print again whenever the server reports a change, at most once a second, until interrupted.
    #[arg(long, short)]
    pub watch: bool,
}

/// How many rows a list has.
#[derive(Clone, Copy, Debug, Args)]
pub struct Limit {
    /// Maximum number of rows to print, up to 10,000.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = limit)]
    pub limit: usize,
}

fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok();
    limit
        .filter(|limit| (1..=ROWS_MAX).contains(limit))
        .ok_or_else(|| format!("expected a number from 1 to {ROWS_MAX}"))
}

/// Parses `mail`, `qless:mail`, `lmstfy:NAMESPACE/mail`, `relay:mail` or `jobq:mail`.
pub fn queue_name(text: &str) -> Result<QueueKey, String> {
    let known = |(protocol, name)| {
        let found = Protocol::ALL.into_iter().find(|it| it.as_str() == protocol);
        found.map(|protocol| (protocol, name))
    };
    let (protocol, name) = text
        .split_once(':')
        .and_then(known)
        .unwrap_or((Protocol::Qless, text));
    let (namespace, name) = match protocol {
        Protocol::Lmstfy => name
            .split_once('/')
            .ok_or("expected lmstfy:NAMESPACE/QUEUE")?,
        Protocol::Qless | Protocol::Relay | Protocol::Jobq => ("", name),
    };
    if name.is_empty() && protocol != Protocol::Relay {
        return Err("the name of a queue must not be empty".to_owned());
    }
    Ok(QueueKey {
        protocol,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

fn api(text: &str) -> Result<Protocol, &'static str> {
    let found = Protocol::ALL.into_iter().find(|it| it.as_str() == text);
    found.ok_or("expected qless, lmstfy, relay or jobq")
}

#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// List the queues with their counts.
    List {
        #[command(flatten)]
        remote: Remote,
        /// Only queues whose name contains this text.
        text: Option<String>,
        /// Only queues of this protocol: qless, lmstfy, relay or jobq.
        #[arg(long, value_parser = api)]
        api: Option<Protocol>,
        /// Only paused queues.
        #[arg(long)]
        paused: bool,
        /// Print only the names, one per line, in the form that the other commands take.
        #[arg(long, short, conflicts_with = "json")]
        quiet: bool,
        #[command(flatten)]
        limit: Limit,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show the counts of a queue, and its jobs in one state.
    Show {
        #[command(flatten)]
        remote: Remote,
        /// Queue: NAME (qless), lmstfy:NAMESPACE/NAME, relay:NAME or jobq:NAME.
        #[arg(value_parser = queue_name)]
        queue: QueueKey,
        /// State of the jobs to list: waiting, scheduled, depends, running, stalled, failed, complete or dead. Ignored
        /// for Jobq queues, whose jobs are listed in all states.
        #[arg(long, default_value = "waiting")]
        state: String,
        #[command(flatten)]
        limit: Limit,
        #[command(flatten)]
        watch: Watch,
    },
    /// Pause queues, or change their pause: workers get no jobs from them until they resume. Jobq queues cannot be
    /// paused.
    Pause {
        #[command(flatten)]
        queues: QueuesOrAll,
        #[command(flatten)]
        pause: PauseFlags,
    },
    /// Resume paused queues.
    #[command(visible_alias = "unpause")]
    Resume(QueuesOrAll),
    /// Create Jobq queues. Queues of other protocols are created with their first job.
    #[command(mut_arg("queues", |arg| arg.help("Queues: jobq:NAME")))]
    Create(Queues),
    /// Remove queues from the lists until a job is put into them. Refused for Jobq queues (delete them instead), paused
    /// queues, and queues with unfinished or recurring jobs.
    Forget(Queues),
    /// Delete Jobq queues with all their jobs, or the ready jobs of lmstfy queues.
    #[command(mut_arg("queues", |arg| arg.help("Queues: jobq:NAME or lmstfy:NAMESPACE/NAME")))]
    Delete {
        #[command(flatten)]
        queues: Queues,
        #[command(flatten)]
        yes: SkipConfirmation,
    },
}

/// The queues that a command changes.
#[derive(Debug, Args)]
pub struct Queues {
    #[command(flatten)]
    pub remote: Remote,
    /// Queues: NAME (qless), lmstfy:NAMESPACE/NAME or relay:NAME.
    #[arg(value_parser = queue_name, required = true, value_name = "QUEUE")]
    pub queues: Vec<QueueKey>,
}

/// The queues that a command changes, or all of them.
#[derive(Debug, Args)]
pub struct QueuesOrAll {
    #[command(flatten)]
    pub remote: Remote,
    /// Queues: NAME (qless), lmstfy:NAMESPACE/NAME or relay:NAME.
    #[arg(value_parser = queue_name, required_unless_present = "all", value_name = "QUEUE")]
    pub queues: Vec<QueueKey>,
    /// All queues except Jobq queues and queues hidden by `queue forget`.
    #[arg(long, conflicts_with = "queues")]
    pub all: bool,
}

/// Why and until when queues are paused.
#[derive(Debug, Default, Args)]
pub struct PauseFlags {
    /// Reason, shown with the queue. Up to 500 characters.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub reason: String,
    /// Resume after this duration, such as 30s, 5m, 2h or 1d.
    #[arg(long = "for", value_name = "DURATION", value_parser = super::work::duration, conflicts_with = "until")]
    pub duration: Option<Duration>,
    /// Resume at this time in UTC, such as 2026-11-26T17:00.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "",
        hide_default_value = true
    )]
    pub until: String,
}

/// The confirmation of a command that cannot be undone, or that changes many jobs.
#[derive(Clone, Copy, Debug, Args)]
pub struct SkipConfirmation {
    /// Do not ask for confirmation.
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Subcommand)]
pub enum FailureCommand {
    /// List the failure groups.
    List {
        #[command(flatten)]
        remote: Remote,
        /// Only failure groups whose name or newest message contains this text.
        #[arg(default_value = "", hide_default_value = true)]
        text: String,
        /// Only failure groups with failures in the last hour, day or week.
        #[arg(long, default_value = "all", value_parser = ["1h", "24h", "7d", "all"])]
        range: String,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show a failure group: its messages, queues, workers and jobs.
    Show {
        #[command(flatten)]
        remote: Remote,
        /// Failure group.
        group: String,
        /// Only failures in the last hour, day or week.
        #[arg(long, default_value = "all", value_parser = ["1h", "24h", "7d", "all"])]
        range: String,
        #[command(flatten)]
        watch: Watch,
    },
    /// Retry all failed jobs of a failure group, as a bulk operation.
    Retry {
        #[command(flatten)]
        remote: Remote,
        /// Failure group.
        group: String,
        #[command(flatten)]
        bulk: BulkFlags,
    },
}

/// How an operation on many jobs is started.
#[derive(Clone, Copy, Debug, Args)]
pub struct BulkFlags {
    /// Print how many jobs the command would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until the operation has ended. The exit code is 1 if it failed or was stopped.
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub yes: SkipConfirmation,
}

#[derive(Debug, Subcommand)]
pub enum WorkerCommand {
    /// List the workers.
    List {
        #[command(flatten)]
        remote: Remote,
        /// Only workers whose name contains this text.
        #[arg(default_value = "", hide_default_value = true)]
        text: String,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show a worker and its jobs.
    Show {
        #[command(flatten)]
        remote: Remote,
        /// Name of the worker.
        worker: String,
        #[command(flatten)]
        watch: Watch,
    },
    /// Remove workers from the lists until they try to claim a job or send a heartbeat.
    Forget {
        #[command(flatten)]
        remote: Remote,
        /// Names of the workers.
        #[arg(required = true, value_name = "WORKER")]
        workers: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum RecurringCommand {
    /// List the recurring jobs.
    List {
        #[command(flatten)]
        remote: Remote,
        /// Only recurring jobs of this qless queue.
        queue: Option<String>,
        #[command(flatten)]
        limit: Limit,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show a recurring job and its newest jobs.
    Show {
        #[command(flatten)]
        remote: Remote,
        /// ID of the recurring job.
        id: String,
        #[command(flatten)]
        watch: Watch,
    },
    /// Create a recurring job.
    Put(Box<RecurringPut>),
    /// Pause recurring jobs: they create no jobs until they are resumed.
    Pause(RecurringJobs),
    /// Resume paused recurring jobs. The runs that they have missed are skipped.
    #[command(visible_alias = "unpause")]
    Resume(RecurringJobs),
    /// Create one job of each of these recurring jobs now. Their schedules stay as they are.
    Run(RecurringJobs),
    /// End recurring jobs. The jobs that they have created are kept.
    #[command(visible_alias = "cancel")]
    End(RecurringJobs),
}

/// The recurring jobs that a command changes.
#[derive(Debug, Args)]
pub struct RecurringJobs {
    #[command(flatten)]
    pub remote: Remote,
    /// IDs of the recurring jobs.
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
}

/// A new recurring job.
#[derive(Debug, Args)]
pub struct RecurringPut {
    #[command(flatten)]
    pub remote: Remote,
    /// qless queue of the jobs.
    pub queue: String,
    /// Payload of the jobs, as JSON.
    #[arg(default_value = "{}")]
    pub payload: String,
    /// Time between two jobs: a number of seconds, or with a unit (30s, 5m, 1h, 1d).
    #[arg(long, value_name = "INTERVAL", value_parser = seconds, required_unless_present = "cron", conflicts_with = "cron")]
    pub every: Option<f64>,
    /// Cron expression with five fields, instead of an interval, such as "0 9 * * MON-FRI".
    #[arg(long, value_name = "EXPRESSION")]
    pub cron: Option<String>,
    /// Time zone of the cron expression, such as Europe/Berlin [default: UTC].
    #[arg(long, value_name = "ZONE", requires = "cron")]
    pub zone: Option<String>,
    /// ID of the recurring job [default: generated].
    #[arg(long, default_value = "", hide_default_value = true)]
    pub id: String,
    /// Class of the jobs.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub class: String,
    /// Time from now until the first job is due: a number of seconds, or with a unit (30s, 5m, 1h, 1d).
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = seconds)]
    pub offset: f64,
    /// Priority of the jobs; the lowest number runs first.
    #[arg(long, default_value_t = 0.0, allow_hyphen_values = true)]
    pub priority: f64,
    /// Number of retries of each job after its first attempt.
    #[arg(long, default_value_t = 0)]
    pub retries: u32,
    /// Catch-up limit: after a period without claims, create only this many of the newest missed jobs; 0 for all.
    #[arg(long, default_value_t = 0)]
    pub backlog: u32,
}

/// Parses a duration in seconds: `90`, `1.5`, `500ms`, `30s`, `5m`, `1h`, `2d`, `1w`.
pub fn seconds(text: &str) -> Result<f64, &'static str> {
    const WRONG: &str = "expected a number of seconds, or a number with ms, s, m, h, d or w";
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let factor = match unit.trim_start() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return Err(WRONG),
    };
    let number: f64 = number.parse().map_err(|_| WRONG)?;
    Some(number * factor)
        .filter(|seconds| seconds.is_finite())
        .ok_or(WRONG)
}

#[derive(Debug, Subcommand)]
pub enum OperationCommand {
    /// List the bulk operations, newest first.
    List {
        #[command(flatten)]
        remote: Remote,
        #[command(flatten)]
        limit: Limit,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show an operation and the jobs that it skipped.
    Show {
        #[command(flatten)]
        operation: Operation,
        #[command(flatten)]
        watch: Watch,
    },
    /// Wait until an operation has ended. The exit code is 1 if it failed or was stopped.
    Wait(Operation),
    /// Stop an operation. The changes that it has already made remain.
    Stop(Operation),
    /// Undo an operation: restore the jobs that it has canceled, or the former state of a job that was completed or
    /// edited by hand. Possible for 30 s after its end.
    Undo(Operation),
}

/// An operation.
#[derive(Debug, Args)]
pub struct Operation {
    #[command(flatten)]
    pub remote: Remote,
    /// Number of the operation.
    pub id: i64,
}

/// The flags of `switchyard top`.
#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    pub connection: Connection,
}

/// The flags of `switchyard health`.
#[derive(Debug, Args)]
pub struct HealthCheck {
    /// Check only liveness (`/health/live`): fails if the server must be restarted. Does not check the database.
    #[arg(long)]
    pub live: bool,
    #[command(flatten)]
    pub connection: Connection,
}

/// The flags of `switchyard complete-queues`.
#[derive(Debug, Args)]
pub struct CompleteQueues {
    #[command(flatten)]
    pub connection: Connection,
    /// Beginning of the name.
    #[arg(default_value = "", allow_hyphen_values = true)]
    pub prefix: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_name_says_its_api() {
        let parsed = |text: &str| queue_name(text).map(|it| (it.protocol, it.namespace, it.name));
        let ok = |protocol, namespace: &str, name: &str| {
            Ok((protocol, namespace.to_owned(), name.to_owned()))
        };
        assert_eq!(parsed("mail"), ok(Protocol::Qless, "", "mail"));
        assert_eq!(parsed("a:b/c"), ok(Protocol::Qless, "", "a:b/c"));
        assert_eq!(parsed("qless:relay:x"), ok(Protocol::Qless, "", "relay:x"));
        assert_eq!(
            parsed("lmstfy:shop/mail"),
            ok(Protocol::Lmstfy, "shop", "mail")
        );
        assert_eq!(parsed("relay:"), ok(Protocol::Relay, "", ""));
        assert_eq!(parsed("jobq:a/b"), ok(Protocol::Jobq, "", "a/b"));
        for text in ["", "qless:", "lmstfy:mail", "lmstfy:shop/", "jobq:"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(seconds("90"), Ok(90.0));
        assert_eq!(seconds("1.5m"), Ok(90.0));
        assert_eq!(seconds("2d"), Ok(172_800.0));
        for text in ["", "h", "-1", "inf", "1y", "NaN", "1e308w"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
