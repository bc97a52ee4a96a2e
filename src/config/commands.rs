//! Flags of `config`, `backup`, `restore`, `bench`, `import`, `doctor` and `completions`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, value_parser};

use super::{Connection, Database, OptionCommand, Serve};
use crate::bench::Api;
use crate::import::Existing;

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration of `switchyard serve`, and report all errors.
    ///
    /// Takes the flags of `switchyard serve`, and also checks the environment and the configuration file. Opens neither
    /// the database nor a port.
    Check(Box<Serve>),
    /// Print the configuration of `switchyard serve` as a configuration file.
    ///
    /// The output has the values that the server would use, from flags, the environment, the configuration file and
    /// defaults. Secrets are not shown. Takes the flags of `switchyard serve`.
    Show(Box<Show>),
    #[command(flatten)]
    Options(Box<OptionCommand>),
    /// Print an example of a configuration file, with every key.
    Example,
    /// Print the reference of all flags in Markdown.
    #[command(hide = true)]
    Reference,
}

#[derive(Debug, Args)]
pub struct Show {
    /// Add where each value comes from: the line of the file, the environment variable, a flag or the default.
    #[arg(long)]
    pub sources: bool,
    #[command(flatten)]
    pub serve: Serve,
}

/// The flags of `switchyard backup`.
#[derive(Debug, Args)]
#[command(mut_arg("database", |arg| arg.help("Database URL: sqlite://FILE")))]
pub struct Backup {
    /// File to create. It must not exist.
    pub file: PathBuf,
    #[command(flatten)]
    pub database: Database,
}

/// The flags of `switchyard restore`.
#[derive(Debug, Args)]
#[command(mut_arg("database", |arg| arg.help("Database URL: sqlite://FILE")))]
pub struct Restore {
    /// Backup to restore.
    pub file: PathBuf,
    /// Replace an existing database. Everything in it is lost.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub database: Database,
}

/// The flags of `switchyard bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// API to measure.
    #[arg(long, value_enum, default_value = "qless")]
    pub api: Api,
    /// Number of concurrent connections, 1 to 256.
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u16).range(1..=256))]
    #[arg(value_name = "N")]
    pub connections: u16,
    /// Seconds after which the measurement ends, 1 to 3,600.
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u16).range(1..=3_600))]
    #[arg(value_name = "N")]
    pub seconds: u16,
    /// Number of jobs after which the measurement ends, even before `--seconds`, 1 to 10,000,000.
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=10_000_000))]
    #[arg(value_name = "N")]
    pub jobs: u64,
    /// Jobs per request, 1 to 100; more than 1 only for qless.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u16).range(1..=100))]
    #[arg(value_name = "N")]
    pub batch: u16,
    /// Size of each job's payload in bytes, 0 to 60,000.
    #[arg(long, default_value_t = 256, value_parser = value_parser!(u32).range(0..=60_000))]
    #[arg(value_name = "N")]
    pub payload_bytes: u32,
    /// lmstfy: namespace to use. Its token is required.
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub namespace: String,
    /// qless: complete the jobs instead of canceling them. They then stay in the list of complete jobs, and count
    /// toward the option jobs-history-count.
    #[arg(long)]
    pub keep: bool,
    /// Allow a server on another machine. A measurement loads the server fully.
    #[arg(long)]
    pub allow_remote: bool,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub connection: Connection,
}

/// The flags of `switchyard import`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["from_redis", "from_postgres"]))]
pub struct Import {
    /// Redis server with the keys of qless or lmstfy.
    #[arg(
        help = "Redis server with the keys of qless or lmstfy: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]. The \
                command changes nothing there",
        long,
        env = "SWITCHYARD_FROM_REDIS",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub from_redis: Option<String>,
    /// PostgreSQL database with the jobs of Relay: postgres://USER@HOST/DATABASE. The command changes nothing there.
    #[arg(
        long,
        env = "SWITCHYARD_FROM_POSTGRES",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub from_postgres: Option<String>,
    /// What to do if the target database already has some of the jobs.
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub existing: Existing,
    /// lmstfy: pool whose tokens are imported.
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub lmstfy_pool: String,
    /// Print how many jobs would be imported. Does not open the target database, so it does not find existing jobs.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub database: Database,
}

/// The flags of `switchyard doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Also write a support bundle to this file, as JSON: the report, versions, settings without secrets, and counts.
    /// It contains no payloads, names of queues or secrets.
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    #[command(flatten)]
    pub serve: Serve,
}

/// The flags of `switchyard completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell that the script is for.
    pub shell: clap_complete::Shell,
}
