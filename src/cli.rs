//! The command line: one file per subcommand. Each reports an error as one log line and exit code 1.

mod banner;
mod copy;
mod dev;
mod log;
mod serve;
mod token;

use std::error::Error;
use std::io::Write;
use std::num::NonZero;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::config::{Command, Subcommand};
use crate::http::raise_open_files;

/// The result of a subcommand.
type Outcome = Result<(), Box<dyn Error>>;

/// Parses the command line and runs the subcommand.
pub fn main() -> ExitCode {
    let subcommand = Command::parse().subcommand;
    log::start(&subcommand);
    // Leaves one core to the writer's thread: with more runnable threads than cores, each handover of a request or a
    // result waits for the scheduler.
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.saturating_sub(1).max(1))
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(run(subcommand)),
        Err(error) => {
            tracing::error!("cannot start the worker threads: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(subcommand: Subcommand) -> ExitCode {
    raise_open_files();
    let outcome = match subcommand {
        Subcommand::Serve(options) => serve::run(&options).await,
        Subcommand::Dev(options) => dev::run(&options).await,
        Subcommand::Token(command) => token::run(command).await,
        Subcommand::Copy(databases) => copy::run(&databases.from, &databases.to).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output. Ignores a closed pipe.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    );
}

/// Writes a line to standard error. Ignores a closed pipe.
fn print_notice(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// Limits progress reports to one per second.
struct Progress {
    last: Option<Instant>,
}

impl Progress {
    const INTERVAL: Duration = Duration::from_secs(1);

    /// The first report is due at once.
    fn new() -> Progress {
        Progress { last: None }
    }

    /// The first report is due after one interval.
    fn after_interval() -> Progress {
        Progress {
            last: Some(Instant::now()),
        }
    }

    /// Whether to report now; always at the end.
    fn is_due(&mut self, is_done: bool) -> bool {
        let is_due = is_done
            || self
                .last
                .is_none_or(|last| last.elapsed() >= Self::INTERVAL);
        if is_due {
            self.last = Some(Instant::now());
        }
        is_due
    }
}
