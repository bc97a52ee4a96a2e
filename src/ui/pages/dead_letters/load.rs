//! Loads the queues with dead jobs.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{EffectiveState, Engine, Page, QueueCounts, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::PAGE_JOBS;
use crate::ui::pages::dead_letters::model::{DeadRow, DeadView};
use crate::ui::present::job_row;
use crate::ui::present::queue_refs::queue_ref;

/// A page of the queues with dead jobs, most dead jobs first: those of a namespace (or of all, if it is empty) whose
/// name contains `queue`, starting at `offset`.
#[server]
pub async fn dead(namespace: String, queue: String, offset: usize) -> Result<DeadView, PageError> {
    read(Role::Viewer, async |context| {
        load_dead(&context.engine, &namespace, &queue, offset).await
    })
    .await
}

/// Maximum number of namespaces in the filter.
const NAMESPACES_OFFERED: usize = 200;

/// See [`dead`].
pub async fn load_dead(
    engine: &Engine,
    namespace: &str,
    queue: &str,
    offset: usize,
) -> Result<DeadView> {
    let mut letters = engine.queues(None).await?;
    letters.retain(|letter| letter.counts.dead > 0);
    let mut namespaces: Vec<String> = letters
        .iter()
        .map(|letter| letter.queue.key.namespace.clone())
        .filter(|namespace| !namespace.is_empty())
        .collect();
    namespaces.sort();
    namespaces.dedup();
    namespaces.truncate(NAMESPACES_OFFERED);
    let wanted = queue.to_lowercase();
    letters.retain(|letter| {
        let key = &letter.queue.key;
        (namespace.is_empty() || key.namespace == namespace)
            && key.name.to_lowercase().contains(&wanted)
    });
    Ok(DeadView {
        jobs: letters.iter().map(|letter| letter.counts.dead).sum(),
        letters: letters.len(),
        rows: rows(engine, letters, offset, PAGE_JOBS).await?,
        namespaces,
    })
}

/// A page of queues, most dead jobs first, each with its oldest dead job.
pub async fn rows(
    engine: &Engine,
    mut letters: Vec<QueueCounts>,
    offset: usize,
    limit: usize,
) -> Result<Vec<DeadRow>> {
    letters.sort_by_cached_key(|letter| {
        let queue_ref = queue_ref(&letter.queue.key);
        (-letter.counts.dead, queue_ref.label())
    });
    let shown = letters.into_iter().skip(offset).take(limit);
    futures::future::try_join_all(shown.map(|letter| row(engine, letter))).await
}

async fn row(engine: &Engine, letter: QueueCounts) -> Result<DeadRow> {
    let first = Page {
        offset: 0,
        limit: 1,
    };
    let key = &letter.queue.key;
    let head = engine
        .list_jobs(EffectiveState::Dead, Some(key), first, None)
        .await?;
    let now = engine.now(None);
    Ok(DeadRow {
        queue_ref: queue_ref(key),
        size: letter.counts.dead,
        head: head.first().map(|job| job_row(engine, job, now)),
    })
}
