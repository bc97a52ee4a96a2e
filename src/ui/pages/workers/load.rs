//! Loads the list of workers.

use std::cmp::Reverse;

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::worker::WorkerRow;
use crate::ui::present::worker_row;

/// All workers: those with stalled jobs first, then active ones, then by name. Sorting by the last activity would move
/// rows constantly.
pub async fn load_workers(engine: &Engine) -> Result<Vec<WorkerRow>> {
    let found = engine.workers(None).await?;
    let mut workers: Vec<WorkerRow> = found.iter().map(worker_row).collect();
    let now = engine.now(None).0;
    workers.sort_by(|a, b| {
        let order = |worker: &WorkerRow| (Reverse(worker.stalled), worker.activity(now));
        order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
    });
    Ok(workers)
}

/// All workers, those with stalled jobs first.
#[server]
pub async fn workers() -> Result<Vec<WorkerRow>, PageError> {
    read(Role::Viewer, async |context| {
        load_workers(&context.engine).await
    })
    .await
}
