//! Loads the scheduled jobs of all queues.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{EffectiveState, Engine, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::model::paging::PagePlace;
use crate::ui::pages::scheduled::model::ScheduledView;
use crate::ui::present::paging::{neighbors, place};
use crate::ui::present::{listed_queues, rows};

/// The scheduled jobs of all queues, sorted by due time.
#[server]
pub async fn scheduled(#[server(default)] page: PagePlace) -> Result<ScheduledView, PageError> {
    read(Role::Viewer, async |context| {
        load_scheduled(&context.engine, &page).await
    })
    .await
}

/// The scheduled jobs of all queues, sorted by due time.
pub async fn load_scheduled(engine: &Engine, page: &PagePlace) -> Result<ScheduledView> {
    let (queues, due, jobs) = futures::try_join!(
        listed_queues(engine),
        engine.count_due_by_hour(None),
        engine.job_page(
            EffectiveState::Scheduled,
            None,
            place(page),
            PAGE_ROWS,
            None
        )
    )?;
    Ok(ScheduledView {
        total: queues.iter().map(|queue| queue.counts.scheduled).sum(),
        by_hour: due.by_hour.to_vec(),
        until: due.until.map(|time| time.0),
        neighbors: neighbors(&jobs),
        jobs: rows(engine, &jobs.rows),
    })
}
