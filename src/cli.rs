//! The command line: one file per subcommand. A subcommand that fails logs one line and exits with code 1. Most
//! commands that connect to a server (`remote.rs`, `top.rs`, `health.rs`) print one plain line instead, and exit with a
//! code from `exit.rs`.

mod backup;
mod banner;
mod bench;
mod completions;
mod config;
mod copy;
mod dev;
mod doctor;
mod exit;
mod health;
mod import;
mod log;
mod output;
mod remote;
mod serve;
mod token;
mod top;
mod work;

use std::error::Error;
use std::io::Write;
use std::num::NonZero;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::config::{ConfigCommand, LoadError, Loaded, Subcommand, Token, load};
use crate::http::raise_open_files;
use exit::Failure;
use output::{printable, printable_lines};

/// The result of a subcommand.
type Outcome = Result<(), Box<dyn Error>>;

/// Parses the command line and runs the subcommand.
pub fn main() -> ExitCode {
    let loaded = match load(std::env::args_os().collect()) {
        Ok(loaded) => loaded,
        Err(LoadError::Usage(error)) => error.exit(),
        Err(LoadError::File { path, problems }) => {
            log::start(None);
            for problem in problems {
                let problem = format!("{}: {problem}", path.display());
                tracing::error!("{problem}");
            }
            return ExitCode::FAILURE;
        }
    };
    log::start(Some(&loaded.command.subcommand));
    // Leaves one core to the writer's thread: with more runnable threads than cores, each handover of a request or a
    // result waits for the scheduler.
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.saturating_sub(1).max(1))
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(run(loaded)),
        Err(error) => {
            tracing::error!("cannot start the threads of the server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(loaded: Loaded) -> ExitCode {
    raise_open_files();
    match dispatch(loaded).await {
        Ok(code) => code,
        Err(error) => match error.downcast_ref::<Failure>() {
            Some(failure) => {
                if !failure.message.is_empty() {
                    print_notice(&format!("error: {}", printable(&failure.message)));
                }
                failure.exit_code()
            }
            None => {
                // It can contain text of a database or of an imported Redis server.
                tracing::error!("{}", printable_lines(&error.to_string()));
                ExitCode::FAILURE
            }
        },
    }
}

async fn dispatch(loaded: Loaded) -> Result<ExitCode, Box<dyn Error>> {
    let outcome = match &loaded.command.subcommand {
        Subcommand::Serve(_) => serve::run(loaded).await,
        Subcommand::Dev(options) => dev::run(options).await,
        Subcommand::Work(options) => return work::run(options).await,
        Subcommand::Queue(command) => remote::queue(command).await,
        Subcommand::Job(command) => remote::job(command).await,
        Subcommand::Failure(command) => remote::failure(command).await,
        Subcommand::Worker(command) => remote::worker(command).await,
        Subcommand::Recurring(command) => remote::recurring(command).await,
        Subcommand::Operation(command) => remote::operation(command).await,
        Subcommand::Top(options) => top::run(options).await,
        Subcommand::Health(options) => health::run(options).await,
        Subcommand::CompleteQueues(options) => remote::complete_queues(options).await,
        Subcommand::Token(Token::Remote(command)) => remote::token(command).await,
        Subcommand::Token(command) => token::run(command).await,
        Subcommand::Copy(databases) => copy::run(&databases.from, &databases.to).await,
        Subcommand::Import(options) => import::run(options).await,
        Subcommand::Backup(options) => backup::run(options).await,
        Subcommand::Restore(options) => backup::restore(options).await,
        Subcommand::Doctor(options) => doctor::run(&loaded, options).await,
        Subcommand::Bench(options) => bench::run(options).await,
        Subcommand::Config(ConfigCommand::Options(command)) => remote::config(command).await,
        Subcommand::Config(command) => config::run(&loaded, command),
        Subcommand::Completions(options) => completions::run(options.shell),
        Subcommand::Man => completions::man(),
    };
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Writes to standard output. Ignores a closed pipe.
fn print(text: &str) {
    drop(try_print(text));
}

/// Writes to standard output.
fn try_print(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Writes a line to standard error. Ignores a closed pipe.
fn print_notice(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// The current time of this machine, in microseconds since 1970.
fn now() -> i64 {
    micros(SystemTime::now())
}

/// A time in microseconds since 1970; 0 if it is earlier.
fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
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
