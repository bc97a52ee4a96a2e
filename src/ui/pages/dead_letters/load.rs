//! Loads the queues with dead jobs.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{EffectiveState, Engine, PageStart, QueueCounts, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::pages::dead_letters::model::{DeadRow, DeadView};
use crate::ui::present::queue_refs::queue_ref;
use crate::ui::present::{all_queues, job_row};

/// A page of the queues with dead jobs, most dead jobs first: those of a namespace (or of all, if it is empty) whose
/// name contains `queue`, starting at `offset`.
#[server(name = LoadDeadLetters, endpoint = "dead")]
pub async fn dead_letters(
    namespace: String,
    queue: String,
    offset: usize,
) -> Result<DeadView, PageError> {
    read(Role::Viewer, async |context| {
        load_dead(&context.engine, &namespace, &queue, offset).await
    })
    .await
}

/// Maximum number of namespaces in the filter.
const NAMESPACES_OFFERED: usize = 200;

/// See [`dead_letters`].
pub async fn load_dead(
    engine: &Engine,
    namespace: &str,
    queue: &str,
    offset: usize,
) -> Result<DeadView> {
    let all = all_queues(engine).await?;
    let mut queues: Vec<_> = all.iter().filter(|found| found.counts.dead > 0).collect();
    let mut namespaces: Vec<String> = queues
        .iter()
        .map(|found| found.queue.key.namespace.clone())
        .filter(|namespace| !namespace.is_empty())
        .collect();
    namespaces.sort();
    namespaces.dedup();
    namespaces.truncate(NAMESPACES_OFFERED);
    let wanted = queue.to_lowercase();
    queues.retain(|found| {
        let key = &found.queue.key;
        (namespace.is_empty() || key.namespace == namespace)
            && key.name.to_lowercase().contains(&wanted)
    });
    Ok(DeadView {
        jobs: queues.iter().map(|found| found.counts.dead).sum(),
        queues: queues.len(),
        rows: rows(engine, queues, offset, PAGE_ROWS).await?,
        namespaces,
    })
}

/// A page of queues, most dead jobs first, each with its oldest dead job.
pub async fn rows(
    engine: &Engine,
    mut queues: Vec<&QueueCounts>,
    offset: usize,
    limit: usize,
) -> Result<Vec<DeadRow>> {
    queues.sort_by_cached_key(|found| {
        let queue_ref = queue_ref(&found.queue.key);
        (-found.counts.dead, queue_ref.label())
    });
    let shown = queues.into_iter().skip(offset).take(limit);
    futures::future::try_join_all(shown.map(|found| row(engine, found))).await
}

async fn row(engine: &Engine, found: &QueueCounts) -> Result<DeadRow> {
    let key = &found.queue.key;
    let oldest = engine
        .job_page(EffectiveState::Dead, Some(key), PageStart::First, 1, None)
        .await?;
    let now = engine.now(None);
    Ok(DeadRow {
        queue_ref: queue_ref(key),
        size: found.counts.dead,
        oldest: oldest.rows.first().map(|job| job_row(engine, job, now)),
    })
}
