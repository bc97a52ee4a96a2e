//! Loads a recurring job.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, JobKey, Result};
use crate::ui::context::read_or_missing;
use crate::ui::error::PageError;
use crate::ui::pages::recurring::load::row;
use crate::ui::pages::recurring_job::model::RecurringJobView;
use crate::ui::present::queue_refs::queue_names;
use crate::ui::present::rows;

/// The recurring job with this ID.
#[server]
pub async fn recurring(id: String) -> Result<RecurringJobView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_recurring(&context.engine, &id).await,
        || format!("Recurring job “{id}” not found."),
    )
    .await
}

/// Maximum number of children on the page of a recurring job.
const CHILDREN_SHOWN: i64 = 10;

/// Number of due times on the page of a recurring job.
const RUNS_SHOWN: usize = 5;

/// A recurring job, and its newest children.
pub async fn load_recurring(engine: &Engine, id: &str) -> Result<Option<RecurringJobView>> {
    let Some(recurring) = engine.recurring(id).await? else {
        return Ok(None);
    };
    let oldest = (recurring.children_count - CHILDREN_SHOWN).max(0);
    let ids = (oldest + 1..=recurring.children_count).rev();
    let keys: Vec<JobKey> = ids
        .map(|number| JobKey::qless(format!("{id}-{number}")))
        .collect();
    let children: Vec<_> = engine
        .short_jobs_by_key(&keys)
        .await?
        .into_iter()
        .flatten()
        .filter(|job| job.spawned_from.as_deref() == Some(id))
        .collect();
    Ok(Some(RecurringJobView {
        row: row(engine, &recurring),
        next_runs: recurring
            .next_runs(RUNS_SHOWN)
            .iter()
            .map(|run| run.0)
            .collect(),
        children: rows(engine, &children),
        body: recurring.body,
        queues: queue_names(engine),
    }))
}
