//! What people mark jobs with to find them again: tags and tracking.

use super::super::read::{PAGE_JOBS, PAGE_TAGS};
use super::super::views::{TagRow, TagView, TagsView, TrackedEvent, TrackedView};
use super::{entry, job_row, rows};
use crate::engine::{Engine, JobKey, Page, PublishedEvent, Result};

/// Among so many newest events of the server those of tracked jobs are looked for. Nothing has them by
/// job, and a page is made too often to read all.
const EVENTS_SEARCHED: i64 = 2_000;

/// Events and jobs that the page of the tracked jobs shows.
const EVENTS_SHOWN: usize = 50;
const TRACKED_SHOWN: usize = 500;

/// A page of the tags, most used first.
pub async fn tags(engine: &Engine, offset: usize) -> Result<TagsView> {
    let page = Page {
        offset,
        limit: PAGE_TAGS + 1,
    };
    let found = engine.top_tags(1, page).await?;
    Ok(TagsView {
        more: found.len() > PAGE_TAGS,
        tags: found
            .into_iter()
            .take(PAGE_TAGS)
            .map(|(tag, jobs)| TagRow { tag, jobs })
            .collect(),
    })
}

/// A page of the jobs that have the tag. No job may have it (any more): then it is an empty list.
pub async fn tagged(engine: &Engine, tag: &str, offset: usize) -> Result<TagView> {
    let page = Page {
        offset,
        limit: PAGE_JOBS,
    };
    let (total, ids) = engine.tagged(tag, page).await?;
    let keys: Vec<JobKey> = ids.into_iter().map(JobKey::qless).collect();
    let jobs: Vec<_> = engine
        .list_jobs_by_key(&keys)
        .await?
        .into_iter()
        .flatten()
        .collect();
    Ok(TagView {
        tag: TagRow {
            tag: tag.to_owned(),
            jobs: total,
        },
        jobs: rows(engine, &jobs),
    })
}

/// The tracked jobs and what happened to them lately.
pub async fn tracked(engine: &Engine) -> Result<TrackedView> {
    let (jobs, gone) = engine.list_tracked().await?;
    let now = engine.now(None);
    let newest = engine.last_event().await?;
    let searched = newest.min(EVENTS_SEARCHED);
    let limit = usize::try_from(searched).unwrap_or_default();
    let (events, _) = match limit {
        0 => (Vec::new(), newest),
        _ => engine.events(newest - searched, limit, None).await?,
    };
    Ok(TrackedView {
        total: jobs.len() + gone.len(),
        jobs: jobs
            .iter()
            .take(TRACKED_SHOWN)
            .map(|job| {
                let last = job.history.events().pop().map(entry);
                (job_row(engine, job, now), last)
            })
            .collect(),
        gone: gone.into_iter().take(TRACKED_SHOWN).collect(),
        events: events
            .into_iter()
            .rev()
            .filter_map(of_tracked)
            // What somebody let go of is no concern any more.
            .filter(|event| engine.known_tracked().contains(&event.id))
            .take(EVENTS_SHOWN)
            .collect(),
        searched,
    })
}

/// An event of a tracked job says nothing but the job's id; the others are objects.
fn of_tracked(event: PublishedEvent) -> Option<TrackedEvent> {
    let id = serde_json::from_str::<String>(&event.data).ok()?;
    Some(TrackedEvent {
        seq: event.seq,
        when: event.when.0,
        what: event.channel,
        id,
    })
}
