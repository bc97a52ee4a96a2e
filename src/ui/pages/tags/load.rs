//! Loads the tags, and the jobs with a tag.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, JobKey, OffsetPage, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::model::paging::PagePlace;
use crate::ui::pages::tags::model::{TagRow, TagView, TagsView};
use crate::ui::present::paging::{neighbors, place};
use crate::ui::present::rows;

/// Tags per page.
pub const PAGE_TAGS: usize = 100;

/// The tags from `offset` on, most used first.
#[server]
pub async fn tags(offset: usize) -> Result<TagsView, PageError> {
    read(Role::Viewer, async |context| {
        load_tags(&context.engine, offset).await
    })
    .await
}

/// A page of the jobs with a tag.
#[server(name = LoadTaggedJobs, endpoint = "tagged")]
pub async fn tagged_jobs(
    tag: String,
    #[server(default)] page: PagePlace,
) -> Result<TagView, PageError> {
    read(Role::Viewer, async |context| {
        load_tagged(&context.engine, &tag, &page).await
    })
    .await
}

/// A page of the tags, most used first.
pub async fn load_tags(engine: &Engine, offset: usize) -> Result<TagsView> {
    let page = OffsetPage {
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

/// A page of the jobs with the tag; empty if no job has it.
pub async fn load_tagged(engine: &Engine, tag: &str, page: &PagePlace) -> Result<TagView> {
    let (total, found) = engine.tagged_page(tag, place(page), PAGE_ROWS).await?;
    let neighbors = neighbors(&found);
    let keys: Vec<JobKey> = found.rows.into_iter().map(JobKey::qless).collect();
    let jobs: Vec<_> = engine
        .short_jobs_by_key(&keys)
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
        neighbors,
    })
}
