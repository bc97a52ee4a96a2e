//! Loads a queue and a page of its jobs.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Result};
use crate::ui::context::read_or_missing;
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::model::paging::PagePlace;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::pages::queue::model::QueueView;
use crate::ui::present::paging::{neighbors, place};
use crate::ui::present::queue_refs::key;
use crate::ui::present::workers::activity;
use crate::ui::present::{queue_row, rows};

/// The queue, and a page of its jobs in the state with the name `list`. `None` if there is no such queue, if it is a
/// Jobq queue, or if it has no tab for this state.
pub async fn load_queue(
    engine: &Engine,
    queue_ref: &QueueRef,
    list: &str,
    page: &PagePlace,
) -> Result<Option<QueueView>> {
    let key = key(queue_ref);
    let found = engine.queue(&key, None).await?;
    // Jobq queues have their own page.
    let Some(queue) = found.filter(|_| queue_ref.protocol != Protocol::Jobq) else {
        return Ok(None);
    };
    let queue = queue_row(&queue);
    let Some(state) = queue.states().find(|state| state.as_str() == list) else {
        return Ok(None);
    };
    let jobs = engine.job_page(state, Some(&key), place(page), PAGE_ROWS, None);
    let jobs = jobs.await?;
    let (workers, trend) = activity(engine, &key, &queue).await?;
    Ok(Some(QueueView {
        trend,
        workers,
        queue,
        state,
        neighbors: neighbors(&jobs),
        jobs: rows(engine, &jobs.rows),
    }))
}

/// A queue, and a page of its jobs in one state.
#[server]
pub async fn queue(
    queue_ref: QueueRef,
    state: String,
    #[server(default)] page: PagePlace,
) -> Result<QueueView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_queue(&context.engine, &queue_ref, &state, &page).await,
        || {
            let name = queue_ref.label();
            match state.as_str() {
                "waiting" => format!("Queue “{name}” not found."),
                state => format!("Queue “{name}” not found, or it has no tab “{state}”."),
            }
        },
    )
    .await
}
