//! Loads a worker.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Result};
use crate::ui::context::read_or_missing;
use crate::ui::error::PageError;
use crate::ui::pages::worker::model::WorkerView;
use crate::ui::present::workers::queues_of_worker;
use crate::ui::present::{rows, worker_row};

/// The worker and its jobs. A worker with a lease exists even if it has been inactive for a long time.
pub async fn load_worker(engine: &Engine, name: &str) -> Result<Option<WorkerView>> {
    // Leases of workers without a name are stored under the empty name.
    if name.is_empty() {
        return Ok(None);
    }
    let Some((worker, jobs)) = engine.worker(name).await? else {
        return Ok(None);
    };
    let (queues, results, run_bars) = queues_of_worker(engine, name).await?;
    Ok(Some(WorkerView {
        queues,
        results,
        run_bars,
        worker: worker_row(&worker),
        jobs: rows(engine, &jobs),
    }))
}

/// A worker and its jobs.
#[server]
pub async fn worker(name: String) -> Result<WorkerView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_worker(&context.engine, &name).await,
        || {
            format!(
                "Worker “{name}” not found. It has never tried to claim a job, was forgotten, or was inactive for too \
                 long (option max-worker-age)."
            )
        },
    )
    .await
}
