//! Loads the recurring jobs.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, QueueKey, Recurring, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::model::paging::PagePlace;
use crate::ui::model::recurring::RecurringRow;
use crate::ui::pages::recurring::model::RecurringJobsView;
use crate::ui::present::paging::{neighbors, place};
use crate::ui::present::queue_refs::queue_names;
use crate::ui::present::{all_queues, pause_details};

/// A page of the recurring jobs of a queue, or of all.
#[server(name = LoadRecurringJobs, endpoint = "recurrings")]
pub async fn recurring_jobs(
    queue: Option<String>,
    #[server(default)] page: PagePlace,
) -> Result<RecurringJobsView, PageError> {
    read(Role::Viewer, async |context| {
        load_recurring_jobs(&context.engine, queue.as_deref(), &page).await
    })
    .await
}

/// A page of the recurring jobs of a queue, or of all queues, sorted by the due time of the next child.
pub async fn load_recurring_jobs(
    engine: &Engine,
    queue: Option<&str>,
    page: &PagePlace,
) -> Result<RecurringJobsView> {
    let key = queue.map(QueueKey::qless);
    let found = engine.recurring_page(key.as_ref(), place(page), PAGE_ROWS);
    let found = found.await?;
    let total = match &key {
        Some(key) => engine
            .queue(key, None)
            .await?
            .map_or(0, |queue| queue.recurring),
        None => {
            let queues = all_queues(engine).await?;
            queues.iter().map(|queue| queue.recurring).sum()
        }
    };
    Ok(RecurringJobsView {
        total,
        neighbors: neighbors(&found),
        rows: found
            .rows
            .iter()
            .map(|recurring| row(engine, recurring))
            .collect(),
        queues: queue_names(engine),
    })
}

pub fn row(engine: &Engine, recurring: &Recurring) -> RecurringRow {
    let queue = engine.known_queues().by_id(recurring.queue);
    let now = engine.now(None);
    let pause = queue.as_ref().and_then(|queue| queue.pause_at(now));
    RecurringRow {
        id: recurring.id.clone(),
        queue: engine.known_queues().name(recurring.queue),
        queue_paused: pause.is_some(),
        pause: pause.map(pause_details).unwrap_or_default(),
        klass: recurring.klass.clone(),
        is_paused: recurring.is_paused(),
        interval: recurring.interval,
        cron: recurring
            .cron
            .as_ref()
            .map_or_else(String::new, |cron| cron.expression.clone()),
        zone: recurring
            .cron
            .as_ref()
            .map_or_else(String::new, |cron| cron.zone.clone()),
        next_due: recurring.next_at.0,
        children: recurring.children_count,
        backlog: recurring.backlog,
        priority: recurring.priority,
        retries: recurring.retries,
        tags: recurring.tags.clone(),
    }
}
