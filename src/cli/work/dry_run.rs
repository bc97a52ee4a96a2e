//! `switchyard work --dry-run`: the jobs that a claim would return next.

use super::api::Api;
use crate::cli::output::printable;
use crate::cli::print;
use crate::client::Error;
use crate::config::Work;

/// Prints one line for each job: queue, ID and size of the payload, separated by tabs.
pub async fn run(api: &Api, options: &Work) -> Result<(), Error> {
    let count = usize::from(options.concurrency);
    let jobs = api.next(&options.queues, count).await?;
    for job in jobs {
        let (queue, id) = (printable(&job.queue), printable(&job.id));
        print(&format!("{queue}\t{id}\t{} bytes\n", job.bytes));
    }
    Ok(())
}
