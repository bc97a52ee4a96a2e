//! Loads the scheduled jobs of all queues.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{EffectiveState, Engine, Page, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::PAGE_JOBS;
use crate::ui::pages::scheduled::model::ScheduledView;
use crate::ui::present::{listed_queues, rows};

/// The scheduled jobs of all queues, sorted by due time, from `offset` on.
#[server]
pub async fn scheduled(offset: usize) -> Result<ScheduledView, PageError> {
    read(Role::Viewer, async |context| {
        load_scheduled(&context.engine, offset).await
    })
    .await
}

/// The scheduled jobs of all queues, sorted by due time, from `offset` on.
pub async fn load_scheduled(engine: &Engine, offset: usize) -> Result<ScheduledView> {
    let page = Page {
        offset,
        limit: PAGE_JOBS,
    };
    let (queues, due, jobs) = futures::try_join!(
        listed_queues(engine),
        engine.count_due_by_hour(None),
        engine.list_jobs(EffectiveState::Scheduled, None, page, None)
    )?;
    Ok(ScheduledView {
        total: queues.iter().map(|queue| queue.counts.scheduled).sum(),
        by_hour: due.by_hour.to_vec(),
        until: due.until.map(|time| time.0),
        jobs: rows(engine, &jobs),
    })
}
