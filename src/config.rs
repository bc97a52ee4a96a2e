//! Settings from flags, environment variables and the configuration file.

mod access;
mod alerts;
mod commands;
mod connection;
mod environment;
mod exposure;
mod file;
mod load;
mod manage;
mod monitoring;
mod network;
mod reference;
mod secrets;
mod work;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser};
use tracing_subscriber::EnvFilter;

use crate::auth::{Auth, Hosts};
use crate::engine::{Durability, EngineSettings, Expiry, MAX_QUEUES};
use crate::http::{JOBQ_BODY_MAX, LMSTFY_BODY_MAX, MetricsAccess, RELAY_BODY_MAX, Settings};
use crate::secret::read_file;
pub use access::Access;
pub use alerts::Alerts;
pub use commands::{Backup, Bench, Completions, ConfigCommand, Doctor, Import, Restore};
pub use connection::Connection;
pub use environment::secret_variables;
pub use load::{LoadError, Loaded, Setting, Source, Value, definition, load};
pub use manage::{
    BulkFlags, CompleteQueues, FailureCommand, HealthCheck, Job, JobAction, JobCommand, JobPut,
    Jobs, Limit, OperationCommand, OptionCommand, PauseFlags, QueueCommand, Queues, QueuesOrAll,
    RecurringCommand, RecurringJobs, RecurringPut, Remote, RemoteToken, Targets, Top,
    WorkerCommand, queue_name,
};
pub use monitoring::{LogFormat, Monitoring};
pub use network::Network;
pub use reference::{example, quoted, reference};
pub use work::{ApiFlags, Outcomes, QueueOrder, Work, WorkApi};

/// A durable job queue server with a live dashboard, for qless, lmstfy, Relay and Jobq clients.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Command {
    #[command(subcommand)]
    pub subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    /// Run the server.
    Serve(Serve),
    /// Run a server on a temporary database with generated jobs, workers and failures, to try the dashboard.
    Dev(Dev),
    /// Run a program for each job of a server's queues.
    ///
    /// The program reads the payload from standard input. Its exit code is the outcome: 0 completes the job, 75 retries
    /// it, any other code fails it. Example: switchyard work --queue mail -- ./send.sh
    Work(Box<Work>),
    /// Manage the queues of a running server.
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Manage the jobs of a running server: list, show, put, retry, cancel, move and more.
    #[command(subcommand)]
    Job(JobCommand),
    /// Show and retry the failed jobs of a running server by failure group.
    #[command(subcommand)]
    Failure(FailureCommand),
    /// Show the workers of a running server, and remove them from the lists.
    #[command(subcommand)]
    Worker(WorkerCommand),
    /// Manage the recurring jobs of a running server.
    #[command(subcommand)]
    Recurring(RecurringCommand),
    /// Follow, stop and undo bulk operations: one action on many jobs.
    #[command(subcommand)]
    Operation(OperationCommand),
    /// Show a running server in the terminal: queues, rates, failures and workers, updated live.
    Top(Top),
    /// Check that a server is ready: exit code 0 if it is. For the health checks of containers without curl.
    Health(HealthCheck),
    /// Create, list and revoke lmstfy tokens in the database, even while a server is running.
    #[command(subcommand)]
    Token(Token),
    /// Copy everything to an empty database. Stop all servers that use either database first.
    Copy(Databases),
    /// Import the jobs of qless or lmstfy from Redis, or of Relay from PostgreSQL. Stop the source's workers first.
    Import(Import),
    /// Write a verified copy of an SQLite database to a file, even while a server is running.
    Backup(Backup),
    /// Replace an SQLite database with a backup. Stop its server first.
    Restore(Restore),
    /// Check the configuration, the files, the limits and the database of this installation.
    ///
    /// Takes the flags of `switchyard serve`. Changes no jobs. The exit code is 1 if a check fails; warnings do not
    /// count.
    Doctor(Box<Doctor>),
    /// Measure the throughput and latency of a server with jobs in a temporary queue.
    ///
    /// Each connection puts, claims and deletes jobs. At the end, the remaining jobs are deleted; with qless, the queue
    /// too.
    Bench(Box<Bench>),
    /// Check and print the configuration of `switchyard serve`; show and change the options of a running server.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the names of queues that begin with a text, for completion scripts.
    #[command(hide = true)]
    CompleteQueues(CompleteQueues),
    /// Print a completion script for a shell.
    Completions(Completions),
    /// Print the manual page.
    Man,
}

/// The flags of `switchyard dev`.
#[derive(Debug, Args)]
pub struct Dev {
    /// Address and port to listen on; port 0 picks a free port.
    #[arg(long, env = "SWITCHYARD_LISTEN", default_value = "127.0.0.1:3000")]
    #[arg(value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// Number of jobs to generate before the continuous traffic starts, of all protocols and in most states. The server
    /// accepts requests meanwhile; one million jobs take one to two minutes.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub jobs: usize,
    #[command(flatten)]
    pub access: Access,
    #[command(flatten)]
    pub network: Network,
    #[command(flatten)]
    pub monitoring: Monitoring,
}

/// The source and the target of a copy.
#[derive(Debug, Args)]
pub struct Databases {
    /// URL of the database to copy from: sqlite://FILE or postgres://USER@HOST/DATABASE.
    #[arg(
        long,
        env = "SWITCHYARD_FROM",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub from: String,
    /// URL of the database to copy to. An SQLite file is created; a PostgreSQL database must exist and be empty.
    #[arg(
        long,
        env = "SWITCHYARD_TO",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub to: String,
}

#[derive(Debug, clap::Subcommand)]
pub enum Token {
    /// Create a token for a namespace and print it. Only its hash is stored, so it is not shown again.
    Create {
        #[command(flatten)]
        database: Database,
        /// Namespace that the token gives access to: 1 to 255 letters, digits, hyphens and underscores.
        namespace: String,
        /// Description shown in the lists of tokens, such as who uses the token. Up to 1,024 bytes.
        #[arg(long, default_value = "", hide_default_value = true)]
        description: String,
        /// Use this token instead of generating one: 20 to 255 visible ASCII characters without a colon. A hyphen
        /// reads it from standard input.
        #[arg(
            long,
            env = "SWITCHYARD_NEW_TOKEN",
            hide_env_values = true,
            allow_hyphen_values = true,
            group = "given-token-source"
        )]
        token: Option<String>,
        /// File with the value of --token.
        #[arg(long, env = "SWITCHYARD_NEW_TOKEN_FILE", value_parser = read_file, value_name = "PATH")]
        #[arg(group = "given-token-source")]
        token_file: Option<String>,
        /// When the token expires: after a duration in s, m, h, d or w (30d), or at an RFC 3339 date-time
        /// (2030-01-31T00:00:00Z), at most 3,650 days from now [default: never].
        #[arg(long, value_name = "WHEN")]
        expires: Option<Expiry>,
    },
    /// List the tokens of one namespace or of all, one per line.
    ///
    /// The fields are separated by tabs: namespace, token ID (the beginning of the token's hash), creation time,
    /// description, expiry, and hour of the last use.
    List {
        #[command(flatten)]
        database: Database,
        /// Namespace whose tokens to list [default: all].
        namespace: Option<String>,
    },
    /// Revoke a token. When the command succeeds, every server already refuses the token.
    Revoke {
        #[command(flatten)]
        database: Database,
        /// Namespace of the token.
        namespace: String,
        /// The token, or its token ID from the list (sha256:…). A hyphen reads it from standard input.
        #[arg(allow_hyphen_values = true)]
        token: String,
    },
    /// Manage tokens through a running server, with admin credentials.
    #[command(subcommand)]
    Remote(RemoteToken),
}

/// The database of a command.
#[derive(Debug, Args)]
pub struct Database {
    /// Configuration file from which the command takes the key `database`.
    #[arg(long, env = "SWITCHYARD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Database URL: sqlite://FILE or postgres://USER@HOST/DATABASE.
    #[arg(
        long,
        env = "SWITCHYARD_DATABASE",
        hide_env_values = true,
        default_value = DATABASE,
        value_name = "URL"
    )]
    pub database: String,
}

/// The default database.
const DATABASE: &str = "sqlite://switchyard.db";

#[derive(Debug, Args)]
pub struct Serve {
    /// Configuration file in TOML, whose keys are the names of these flags. Environment variables and flags take
    /// precedence. SIGHUP reloads secrets (except those of alerts), the TLS certificate and the log level; other
    /// changes need a restart.
    #[arg(long, env = "SWITCHYARD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Log level (error, warn, info, debug or trace), or a filter such as info,switchyard::engine=debug. SIGHUP reloads
    /// it from the configuration file.
    #[arg(long, env = "RUST_LOG", default_value = "info", value_parser = log_level)]
    #[arg(value_name = "FILTER")]
    pub log_level: String,
    /// Address and port to listen on; port 0 picks a free port.
    #[arg(long, env = "SWITCHYARD_LISTEN", default_value = "127.0.0.1:3000")]
    #[arg(value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// Database URL: sqlite://FILE, sqlite::memory: for a temporary file that is deleted at exit, or
    /// postgres://USER@HOST/DATABASE, which several servers can share.
    #[arg(
        long,
        env = "SWITCHYARD_DATABASE",
        hide_env_values = true,
        default_value = DATABASE,
        value_name = "URL"
    )]
    pub database: String,
    /// Failures after which acknowledged writes are kept.
    #[arg(long, env = "SWITCHYARD_DURABILITY", value_enum, default_value_t)]
    #[arg(value_name = "LEVEL")]
    pub durability: Durability,
    /// Postgres: do not use SKIP LOCKED, for compatible databases that lack it. Claims of several servers then conflict
    /// more often, and are repeated.
    #[arg(long, env = "SWITCHYARD_NO_SKIP_LOCKED", value_parser = FalseyValueParser::new())]
    pub no_skip_locked: bool,
    /// Postgres: do not use LISTEN and NOTIFY, for PgBouncer and databases that lack them. Servers then notice each
    /// other's changes by polling once a second, so waiting clients can get jobs up to a second later.
    #[arg(long, env = "SWITCHYARD_NO_NOTIFY", value_parser = FalseyValueParser::new())]
    pub no_notify: bool,
    /// Only for tests of clients: execute each qless request at the time in its field `now`. Maintenance then skips
    /// qless jobs, ended pauses, inactive workers, and the deletion of old statistics, sessions and audit entries.
    #[arg(long, env = "SWITCHYARD_TRUST_CLIENT_CLOCK", value_parser = FalseyValueParser::new())]
    pub trust_client_clock: bool,
    /// Enable POST /flush, and FLUSHALL and FLUSHDB over the Redis protocol, which delete all jobs, queues, options and
    /// statistics.
    #[arg(long, env = "SWITCHYARD_ALLOW_FLUSH", value_parser = FalseyValueParser::new())]
    pub allow_flush: bool,
    /// Delete empty lmstfy and Relay queues after this many seconds without activity, with their daily statistics.
    /// Their share of the statistics of all queues is kept.
    #[arg(long, env = "SWITCHYARD_EMPTY_QUEUE_AGE", default_value_t = 600)]
    #[arg(value_name = "SECONDS")]
    pub empty_queue_age: u32,
    /// Maximum number of queues, of all protocols together. A request that would create more is refused.
    #[arg(long, env = "SWITCHYARD_MAX_QUEUES", value_name = "N", default_value_t = MAX_QUEUES)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub max_queues: u32,
    /// Maximum size of the body of an lmstfy job, in bytes. Larger ones are refused with 413.
    #[arg(long, env = "SWITCHYARD_LMSTFY_BODY_MAX", default_value_t = LMSTFY_BODY_MAX)]
    #[arg(value_name = "BYTES")]
    pub lmstfy_body_max: usize,
    /// Maximum size of the body of a Relay request, in bytes. Larger ones are refused with 413.
    #[arg(long, env = "SWITCHYARD_RELAY_BODY_MAX", default_value_t = RELAY_BODY_MAX)]
    #[arg(value_name = "BYTES")]
    pub relay_body_max: usize,
    /// Maximum size of the body of a Jobq request, in bytes. Larger ones are refused with 413.
    #[arg(long, env = "SWITCHYARD_JOBQ_BODY_MAX", default_value_t = JOBQ_BODY_MAX)]
    #[arg(value_name = "BYTES")]
    pub jobq_body_max: usize,
    /// Name shown on every dashboard page, such as production or staging. Up to 40 characters.
    #[arg(long, env = "SWITCHYARD_ENVIRONMENT", value_parser = environment, value_name = "NAME")]
    pub environment: Option<String>,
    #[command(flatten)]
    pub access: Access,
    #[command(flatten)]
    pub network: Network,
    #[command(flatten)]
    pub monitoring: Monitoring,
    #[command(flatten)]
    pub alerts: Alerts,
}

/// Maximum length of an environment name, in characters.
const ENVIRONMENT_CHARS_MAX: usize = 40;

fn environment(text: &str) -> Result<String, String> {
    let name = text.trim();
    let length = name.chars().count();
    if !(1..=ENVIRONMENT_CHARS_MAX).contains(&length) || name.chars().any(char::is_control) {
        return Err(format!(
            "expected 1 to {ENVIRONMENT_CHARS_MAX} visible characters"
        ));
    }
    Ok(name.to_owned())
}

fn log_level(text: &str) -> Result<String, String> {
    // A server that silently logs less than expected is noticed only when the log is needed.
    EnvFilter::try_new(text).map_err(|error| {
        format!(
            "{error}; expected a level such as `info`, or a filter such as `info,switchyard=debug`, in --log-level, in \
             the configuration file or in RUST_LOG"
        )
    })?;
    Ok(text.to_owned())
}

impl Serve {
    /// Warnings about what others can reach.
    ///
    /// # Errors
    /// See [`Access::check_all`].
    pub fn exposure(&self, auth: &Auth) -> Result<Vec<String>, String> {
        let (main, redis) = (self.listen, self.network.redis_listen);
        let checked = self.access.check_all(main, redis, &self.monitoring, auth);
        Ok(checked?.1)
    }

    /// The server's settings.
    ///
    /// # Errors
    /// See [`Access::auth`], [`Network::tls`], [`Network::hsts`] and [`Alerts::settings`].
    pub fn settings(&self) -> Result<Settings, String> {
        Ok(Settings {
            engine: EngineSettings {
                database: self.database.clone(),
                durability: self.durability,
                no_skip_locked: self.no_skip_locked,
                no_notify: self.no_notify,
                trust_client_clock: self.trust_client_clock,
                empty_queue_age: Some(Duration::from_secs(u64::from(self.empty_queue_age))),
                without_tasks: false,
                offline: false,
                counted_queues: Some(self.monitoring.metrics_queues),
                max_queues: Some(self.max_queues),
                polls_max: Some(self.network.polls()),
                released_bytes_max: None,
                clock: None,
                writer_on_runtime: false,
            },
            allow_flush: self.allow_flush,
            auth: self.access.auth()?,
            hosts: Hosts::default(),
            environment: self.environment.clone(),
            no_auth: self.access.no_auth,
            lmstfy_body_max: self.lmstfy_body_max,
            relay_body_max: self.relay_body_max,
            jobq_body_max: self.jobq_body_max,
            limits: self.network.limits(),
            proxies: self.network.proxies(),
            base_path: self.network.base_path(),
            tls: self.network.tls()?,
            hsts: self.network.hsts()?,
            metrics: MetricsAccess::default(),
            log_requests: self.monitoring.log_requests,
            alerts: self.alerts.settings(self.environment.as_deref())?,
            failure_link: self.alerts.failure_link.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the flags parse and the credentials that they configure are valid.
    fn accepts(flags: impl IntoIterator<Item = String>) -> bool {
        let words = ["switchyard", "serve"].map(str::to_owned);
        let command = Command::try_parse_from(words.into_iter().chain(flags));
        match command.map(|command| command.subcommand) {
            Ok(Subcommand::Serve(serve)) => serve.access.auth().is_ok(),
            _ => false,
        }
    }

    fn flag(name: &str, value: &str) -> [String; 2] {
        [name, value].map(str::to_owned)
    }

    #[test]
    fn values_of_flags_have_their_limits() {
        let chars = |n: usize| "h".repeat(n);
        for (flag, is_accepted) in [
            (flag("--hsts", "63071999"), true),
            (flag("--hsts", "63072000"), true),
            (flag("--hsts", "63072001"), false),
            (flag("--allowed-host", &chars(252)), true),
            (flag("--allowed-host", &chars(253)), true),
            (flag("--allowed-host", &chars(254)), false),
            (flag("--environment", &chars(39)), true),
            (flag("--environment", &chars(40)), true),
            (flag("--environment", &chars(41)), false),
            (flag("--max-queues", "0"), false),
            (flag("--max-queues", "1"), true),
            (flag("--max-connections", "0"), false),
            (flag("--max-connections", "1"), true),
            (flag("--max-connections-per-address", "0"), false),
            (flag("--max-connections-per-address", "1"), true),
        ] {
            let text = flag.join(" ");
            assert_eq!(accepts(flag), is_accepted, "{text}");
        }
    }

    #[test]
    fn flags_that_repeat_have_their_limits() {
        let host = |n: usize| flag("--allowed-host", &format!("host-{n}"));
        let key = |n: usize| flag("--ui-key", &format!("viewer:name-{n}:the-secret-of-{n}"));
        for (count, is_accepted) in [(99, true), (100, true), (101, false)] {
            assert_eq!(accepts((0..count).flat_map(host)), is_accepted, "{count}");
        }
        for (count, is_accepted) in [(999, true), (1_000, true), (1_001, false)] {
            assert_eq!(accepts((0..count).flat_map(key)), is_accepted, "{count}");
        }
    }
}
