//! Loads the tracked jobs.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, LISTED_TAGS_MAX, PublishedEvent, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::pages::tracked::model::{TrackedEvent, TrackedView};
use crate::ui::present::{entry, job_row};

/// The tracked jobs and their recent events.
#[server]
pub async fn tracked() -> Result<TrackedView, PageError> {
    read(Role::Viewer, async |context| {
        load_tracked(&context.engine).await
    })
    .await
}

/// The number of newest events that are searched for events of tracked jobs. Events have no index by job.
const EVENTS_SEARCHED: i64 = 2_000;

/// Maximum number of events and jobs on the page.
const EVENTS_SHOWN: usize = 50;

const TRACKED_SHOWN: usize = 500;

/// Jobs that are in memory as a whole at the same time: each can have 16 KiB of tags, and as much history.
const LOADED_AT_ONCE: usize = 50;

/// The tracked jobs and their recent events.
pub async fn load_tracked(engine: &Engine) -> Result<TrackedView> {
    let mut keys = engine.tracked_keys().await?;
    keys.truncate(TRACKED_SHOWN);
    let (mut jobs, mut missing) = (Vec::new(), Vec::new());
    for keys in keys.chunks(LOADED_AT_ONCE) {
        let found = engine.short_jobs_by_key(keys).await?;
        let now = engine.now(None);
        for (key, job) in keys.iter().zip(found) {
            let Some(mut job) = job else {
                missing.push(key.id.clone());
                continue;
            };
            let last = job.events().pop().map(entry);
            job.tags.truncate(LISTED_TAGS_MAX);
            jobs.push((job_row(engine, &job, now), last));
        }
    }
    let newest = engine.last_event().await?;
    let searched = newest.min(EVENTS_SEARCHED);
    let limit = usize::try_from(searched).unwrap_or_default();
    let (events, _) = match limit {
        0 => (Vec::new(), newest),
        _ => engine.events(newest - searched, limit, None).await?,
    };
    Ok(TrackedView {
        total: engine.known_tracked().ids().len(),
        jobs,
        missing,
        events: events
            .into_iter()
            .rev()
            .filter_map(of_tracked)
            // Leaves out jobs that are no longer tracked.
            .filter(|event| engine.known_tracked().contains(&event.id))
            .take(EVENTS_SHOWN)
            .collect(),
        searched,
    })
}

/// Converts an event. Only events of tracked jobs have the job's ID as their data; other events have objects.
fn of_tracked(event: PublishedEvent) -> Option<TrackedEvent> {
    let id = serde_json::from_str::<String>(&event.data).ok()?;
    Some(TrackedEvent {
        seq: event.seq,
        when: event.when.0,
        what: event.channel,
        id,
    })
}
