//! Options of the commands for operators.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Database, Serve};

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the options of `switchyard serve` from the configuration file, the environment and flags. Takes the same
    /// flags, and opens neither the database nor a port.
    Check(Box<Serve>),
    /// Print the options in force as a configuration file. Secrets are not shown.
    Show(Box<Show>),
    /// Print an example of a configuration file, with every key.
    Example,
    /// Print the reference of all options in Markdown.
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

/// The options of `switchyard backup`.
#[derive(Debug, Args)]
pub struct Backup {
    /// File to create. It must not exist.
    pub file: PathBuf,
    #[command(flatten)]
    pub database: Database,
}

/// The options of `switchyard restore`.
#[derive(Debug, Args)]
pub struct Restore {
    /// Backup to restore.
    pub file: PathBuf,
    /// Replace an existing database. Everything in it is lost.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub database: Database,
}

/// The options of `switchyard doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Also write a support bundle to this file, as JSON: the report, versions, options without secrets, and counts.
    /// It contains no payloads, names of queues or secrets.
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    #[command(flatten)]
    pub serve: Serve,
}

/// The options of `switchyard completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell that the script is for.
    pub shell: clap_complete::Shell,
}
