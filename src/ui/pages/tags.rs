//! `/ui/tags`: the tags, most used first; `/ui/tags/{tag}`: the jobs with a tag.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::{empty_note, loaded, plural};
use crate::ui::components::bulk::{self, BulkBar};
use crate::ui::components::commands::{api, curl_commands, shell_quote};
use crate::ui::components::exports::search_and_exports;
use crate::ui::components::links::tag_link;
use crate::ui::components::paging::key_pager;
use crate::ui::components::styles::{CARD, CRUMB};
use crate::ui::components::tables::{
    self,
    job_list::{self, JobList},
};
use crate::ui::model::operation::JobActionKind;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::search::model::in_quotes;
use crate::ui::pages::tags::load::PAGE_TAGS;
use crate::ui::pages::tags::model::{TagView, TagsView};
use crate::ui::urls;
use crate::ui::urls::encoding::segment;

#[component]
pub fn TagsPage() -> impl IntoView {
    let request = page_request();
    loaded(load::tags(request.offset()), move |view| {
        all(&view, &request)
    })
}

fn all(view: &TagsView, request: &PageRequest) -> AnyView {
    let rows = view.tags.iter().map(|row| {
        view! {
            <tr data-key=row.tag.clone()>
                <th scope="row">{tag_link(&row.tag)}</th>
                <td class="num">{time::number(row.jobs)}</td>
            </tr>
        }
    });
    let columns = [("Tag", ""), ("Jobs", "num")];
    view! {
        <Title text="Tags" />
        <h1>"Tags"</h1>
        <p class="text-muted wrap-anywhere">"All tags of jobs, most used first."</p>
        <div class=CARD>
            {if view.tags.is_empty() {
                empty_note("No tags. Tag a job when you add it, or on its page.")
            } else {
                tables::table("Tags", tables::head(&columns), rows.collect_view().into_any())
            }}
        </div>
        {tag_pager(view, request)}
        {curl_commands(vec![("Tags used by two or more jobs", format!("curl {}", shell_quote(&api(request, "/tags"))))])}
    }
    .into_any()
}

/// Links to the previous and the next page; the total is unknown.
fn tag_pager(view: &TagsView, request: &PageRequest) -> AnyView {
    let offset = request.offset();
    let address = |offset: usize| format!("/ui/tags?offset={offset}");
    if offset == 0 && !view.more {
        return ().into_any();
    }
    view! {
        <nav class="flex items-center gap-3 text-muted" aria-label="Pagination">
            {(offset > 0)
                .then(|| view! { <a class="btn" rel="prev" href=address(offset.saturating_sub(PAGE_TAGS))>"Previous"</a> })}
            {(!view.tags.is_empty()).then(|| view! { <span>{format!("{}–{}", offset + 1, offset + view.tags.len())}</span> })}
            {view.more.then(|| view! { <a class="btn" rel="next" href=address(offset + PAGE_TAGS)>"Next"</a> })}
        </nav>
    }
    .into_any()
}

#[component]
pub fn TagPage() -> impl IntoView {
    let request = page_request();
    loaded(
        load::tagged_jobs(request.name(2), request.page()),
        move |view| tag_page(&view, &request),
    )
}

fn tag_page(view: &TagView, request: &PageRequest) -> AnyView {
    let tag = &view.tag;
    let search = format!("tag:{}", in_quotes(&tag.tag));
    let bar = BulkBar {
        search: Some(&search),
        all: Some(tag.jobs),
        shown: view.jobs.len(),
        actions: bulk::actions_of(Some(Protocol::Qless), None),
    };
    view! {
        <Title text=tag.tag.clone() />
        <p class=CRUMB><a href="/ui/tags">"Tags"</a></p>
        <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <h1 class="name">{tag.tag.clone()}</h1>
            {(tag.jobs > 0).then(|| bulk::link_for_all(JobActionKind::RenameTag, &search, "Rename tag…", request))}
        </div>
        <p class="text-muted wrap-anywhere">{format!("{} this tag. Jobs are listed in the order in which they were tagged.", plural(tag.jobs, "job has", "jobs have"))}</p>
        <div class=CARD>
            {bulk::bar(bar, request)}
            {if view.jobs.is_empty() {
                empty_note("No jobs have this tag.")
            } else {
                job_list::jobs("Jobs with this tag", JobList::Mixed, &view.jobs, request)
            }}
        </div>
        {key_pager(&urls::tag(&tag.tag), &view.neighbors, view.jobs.len(), tag.jobs)}
        {(!view.jobs.is_empty()).then(|| search_and_exports(&search))}
        {curl_commands(vec![("List the IDs of these jobs", format!("curl {}", shell_quote(&api(request, &format!("/tag/{}", segment(&tag.tag))))))])}
    }
    .into_any()
}
