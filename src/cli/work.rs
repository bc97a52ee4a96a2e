//! `switchyard work`: runs a program for each job, and reports its outcome to the server.

mod api;
mod claims;
mod dry_run;
mod job;
mod jobq;
mod lease;
mod lines;
mod lmstfy;
mod outcome;
mod output;
mod pace;
mod program;
mod qless;
mod relay;
mod run;
mod shutdown;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use api::Api;
use claims::Worker;
use outcome::JobEnd;
use shutdown::Shutdown;

use crate::config::Work;

/// With `--once` or `--drain`: a job was not completed.
const NOT_COMPLETED: u8 = 3;

/// Runs until a signal; with `--once` until one job has run, and with `--drain` until no job is available.
pub async fn run(options: &Work) -> Result<ExitCode, Box<dyn Error>> {
    options.check()?;
    let client = options.connection.client()?;
    let api = Api::new(options, client);
    if options.dry_run {
        dry_run::run(&api, options).await?;
        return Ok(ExitCode::SUCCESS);
    }
    program::find(options)?;
    let shutdown = Shutdown::on_signals(options.grace)?;
    let worker = Arc::new(Worker::new(options.clone(), api, shutdown));
    let counts = worker.run().await?;
    tracing::info!(
        completed = counts.of(JobEnd::Completed),
        retried = counts.of(JobEnd::Retried),
        failed = counts.of(JobEnd::Failed),
        handed_back = counts.of(JobEnd::HandedBack),
        lost = counts.of(JobEnd::Lost),
        "the worker has stopped"
    );
    let is_batch = options.once || options.drain;
    Ok(match is_batch && counts.has_problem() {
        true => ExitCode::from(NOT_COMPLETED),
        false => ExitCode::SUCCESS,
    })
}
