//! Flags of `switchyard job`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{BulkFlags, Limit, Remote, SkipConfirmation, Watch, queue_name, seconds};
use crate::engine::QueueKey;

#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// List the jobs that match a search, newest first.
    #[command(visible_alias = "search")]
    List {
        #[command(flatten)]
        remote: Remote,
        /// Terms of a search, as on the dashboard: state:failed queue:mail tag:vip data.to:ada*. Without terms, the
        /// command lists all jobs. Write -- before terms that begin with a hyphen: -- -queue:mail.
        #[arg(value_name = "TERM")]
        search: Vec<String>,
        #[command(flatten)]
        limit: Limit,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show a job: its state, payload, failure and history.
    Show {
        #[command(flatten)]
        remote: Remote,
        #[command(flatten)]
        job: Job,
        #[command(flatten)]
        watch: Watch,
    },
    /// Put jobs into a queue of any protocol, and print their IDs.
    Put(Box<JobPut>),
    /// Retry failed qless jobs; with --search, also respawn dead lmstfy jobs and requeue dead Relay jobs.
    Retry(Targets),
    /// Cancel jobs: delete them with their history. `switchyard operation undo` can restore them within 30 s.
    Cancel(Targets),
    /// Move qless jobs to another queue. They restart with all their retries. Workers lose the jobs that they run, and
    /// complete jobs run again.
    Move {
        /// qless queue to move the jobs to. It is created if it does not exist.
        #[arg(long, value_name = "QUEUE")]
        to: String,
        #[command(flatten)]
        targets: Targets,
    },
    /// Change the priority of jobs; the lowest number runs first.
    #[command(
        override_usage = "switchyard job priority [OPTIONS] <PRIORITY> <ID|--search <SEARCH>>"
    )]
    Priority {
        /// New priority.
        #[arg(allow_hyphen_values = true)]
        priority: f64,
        #[command(flatten)]
        targets: Targets,
    },
    /// Add a tag to jobs.
    #[command(override_usage = "switchyard job tag [OPTIONS] <TAG> <ID|--search <SEARCH>>")]
    Tag {
        /// Tag to add.
        tag: String,
        #[command(flatten)]
        targets: Targets,
    },
    /// Remove a tag from jobs.
    #[command(override_usage = "switchyard job untag [OPTIONS] <TAG> <ID|--search <SEARCH>>")]
    Untag {
        /// Tag to remove.
        tag: String,
        #[command(flatten)]
        targets: Targets,
    },
    /// Track jobs: list them on the dashboard, and publish their events on the channels for tracked jobs.
    Track(Targets),
    /// Stop tracking jobs.
    Untrack(Targets),
    /// Take running qless jobs from their workers, without using a retry. The jobs go before all waiting jobs of their
    /// queues.
    Timeout(Jobs),
    /// Change when scheduled jobs are due; without a duration, make them available now.
    Schedule {
        #[command(flatten)]
        jobs: Jobs,
        /// Queue of the jobs: NAME (qless), lmstfy:NAMESPACE/NAME or relay:NAME.
        #[arg(long, value_parser = queue_name)]
        queue: QueueKey,
        /// Time from now until the jobs are due: a number of seconds, or with a unit (30s, 5m, 1h, 1d).
        #[arg(long = "in", value_name = "DURATION", default_value = "0", value_parser = super::seconds)]
        after: f64,
    },
    /// Add a note to the history of a qless job.
    Note {
        #[command(flatten)]
        remote: Remote,
        /// ID of the job.
        id: String,
        /// Text of the note, up to 4 KiB.
        #[arg(value_name = "TEXT")]
        message: String,
    },
    /// Delete jobs of lmstfy, Relay or Jobq in any state. This cannot be undone.
    Delete {
        /// Queue of the jobs: lmstfy:NAMESPACE/NAME, relay:NAME or jobq:NAME.
        #[arg(long, value_parser = queue_name)]
        queue: QueueKey,
        #[command(flatten)]
        jobs: Jobs,
        #[command(flatten)]
        yes: SkipConfirmation,
    },
}

/// What a command does to each of its jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum JobAction {
    Retry,
    Cancel,
    Move(String),
    Priority(f64),
    Tag(String),
    Untag(String),
    Track,
    Untrack,
}

/// One job.
#[derive(Debug, Args)]
pub struct Job {
    /// ID of the job.
    pub id: String,
    /// Queue of the job, if it is not a qless job: lmstfy:NAMESPACE/NAME, relay:NAME or jobq:NAME.
    #[arg(long, value_parser = queue_name)]
    pub queue: Option<QueueKey>,
}

/// Jobs by their IDs.
#[derive(Debug, Args)]
pub struct Jobs {
    #[command(flatten)]
    pub remote: Remote,
    /// IDs of the jobs. A hyphen reads them from standard input, one per line.
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
}

/// The qless jobs that a command changes: by ID, or all that match a search.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("target").required(true).args(["ids", "search"]))]
pub struct Targets {
    #[command(flatten)]
    pub remote: Remote,
    /// IDs of the jobs. A hyphen reads them from standard input, one per line.
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Change all jobs that match this search, as a bulk operation, instead of single jobs. For example 'state:failed
    /// group:Timeout'.
    #[arg(long, value_name = "SEARCH")]
    pub search: Option<String>,
    #[command(flatten)]
    pub bulk: BulkFlags,
}

/// New jobs.
#[derive(Debug, Args)]
pub struct JobPut {
    #[command(flatten)]
    pub remote: Remote,
    /// Queue: NAME (qless), lmstfy:NAMESPACE/NAME, relay:NAME or jobq:NAME.
    #[arg(value_parser = queue_name)]
    pub queue: QueueKey,
    /// Payload: JSON, or for lmstfy any text. A hyphen reads it from standard input [default: {}].
    #[arg(allow_hyphen_values = true, conflicts_with_all = ["lines", "items"])]
    pub payload: Option<String>,
    /// Put one job for each line of this file; the line is its payload. A hyphen reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["items", "id"])]
    pub lines: Option<PathBuf>,
    /// Put one job for each line of this file; the line is a JSON object with the fields of the API, for qless: id,
    /// meta, klass, priority, retries, delay, tags and depends. A hyphen reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "id")]
    pub items: Option<PathBuf>,
    /// ID of the job (qless, Relay) [default: generated].
    #[arg(long)]
    pub id: Option<String>,
    /// Class of the job (qless).
    #[arg(long)]
    pub class: Option<String>,
    /// Priority (qless); the lowest number runs first.
    #[arg(long, allow_hyphen_values = true)]
    pub priority: Option<f64>,
    /// Number of retries after the first attempt (lmstfy: tries minus one) [default: qless 5, lmstfy 0, Relay no
    /// limit].
    #[arg(long)]
    pub retries: Option<u32>,
    /// Time until the job is available (qless, lmstfy): a number of seconds, or with a unit (5m).
    #[arg(long, value_parser = seconds)]
    pub delay: Option<f64>,
    /// Tag (qless). Repeatable.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// ID of a job that must be complete first (qless). Repeatable.
    #[arg(long = "depends", value_name = "ID")]
    pub depends: Vec<String>,
    /// Time to live (lmstfy): a number of seconds, or with a unit (1h); 0 for no limit [default: 1d].
    #[arg(long, value_parser = seconds)]
    pub ttl: Option<f64>,
    /// Time after which a worker loses the job if it sends no heartbeat (Relay): a number of seconds, or with a unit
    /// (5m) [default: 60s].
    #[arg(long, value_parser = seconds)]
    pub timeout: Option<f64>,
    /// State of the job, as JSON (Relay, Jobq).
    #[arg(long)]
    pub state: Option<String>,
}
