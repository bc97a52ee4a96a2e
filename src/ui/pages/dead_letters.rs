//! `/ui/dead`: the queues with dead jobs, most dead jobs first. The page of a queue lists its dead jobs.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::{loaded, number_of, plural};
use crate::ui::components::bulk;
use crate::ui::components::exports::search_and_exports;
use crate::ui::components::links::{job_link, queue_link_with_protocol};
use crate::ui::components::paging::pager;
use crate::ui::components::styles::{CARD, EMPTY};
use crate::ui::components::tables;
use crate::ui::components::time::ago;
use crate::ui::model::operation::JobActionKind;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::dead_letters::model::{DeadRow, DeadView};
use crate::ui::pages::queue::dead_letter::requeue_all_button;
use crate::ui::urls;
use crate::ui::urls::encoding::encode;

/// The search that finds the dead jobs of all queues.
const SEARCH: &str = "state:dead";

#[component]
pub fn DeadPage() -> impl IntoView {
    let request = page_request();
    let namespace = request.param("ns").unwrap_or_default();
    let queue = request.param("queue").unwrap_or_default();
    loaded(
        load::dead_letters(namespace.clone(), queue.clone(), request.offset()),
        move |view| page(&view, &namespace, &queue, &request),
    )
}

fn page(view: &DeadView, namespace: &str, queue: &str, request: &PageRequest) -> AnyView {
    let filtered = !namespace.is_empty() || !queue.is_empty();
    let mut here = "/ui/dead?ns=".to_owned();
    encode(namespace, &mut here);
    here.push_str("&queue=");
    encode(queue, &mut here);
    let list = if !view.rows.is_empty() || request.offset() > 0 {
        queue_table(&view.rows, request)
    } else if filtered {
        view! {
            <p class=EMPTY>"No matching dead letters. " <a href="/ui/dead">"Clear the filter"</a></p>
        }
        .into_any()
    } else {
        no_dead_letters()
    };
    view! {
        <Title text="Dead letters" />
        <h1>"Dead letters"</h1>
        {(view.jobs > 0)
            .then(|| {
                view! {
                    <p class="text-muted wrap-anywhere">
                        {format!(
                            "{} in {}. Dead lmstfy jobs stay until you respawn or delete them. Dead Relay jobs stay for 30 days, unless you requeue or delete them earlier.",
                            plural(view.jobs, "dead job", "dead jobs"),
                            plural(number_of(view.queues), "queue", "queues"),
                        )}
                    </p>
                }
            })}
        {(filtered || !view.namespaces.is_empty()).then(|| filter(view, namespace, queue))}
        {(!view.rows.is_empty() && !filtered)
            .then(|| bulk::all_jobs_bar(SEARCH.to_owned(), &[JobActionKind::Retry, JobActionKind::Cancel], request))}
        <div class=CARD>{list}</div>
        {pager(request, &here, view.rows.len(), number_of(view.queues))}
        {(!view.rows.is_empty() && !filtered).then(|| search_and_exports(SEARCH))}
    }
    .into_any()
}

fn filter(view: &DeadView, namespace: &str, queue: &str) -> AnyView {
    let mut names = view.namespaces.clone();
    if !namespace.is_empty() && !names.iter().any(|name| name == namespace) {
        names.push(namespace.to_owned());
    }
    let options = names.iter().map(|name| {
        view! { <option value=name.clone() selected=name == namespace>{name.clone()}</option> }
    });
    view! {
        <div class="flex flex-wrap items-center gap-x-4 gap-y-2">
            <form method="get" action="/ui/dead" role="search" class="flex flex-wrap items-center gap-2">
                <label for="ns">"Namespace"</label>
                <select id="ns" name="ns">
                    <option value="">"all"</option>
                    {options.collect_view()}
                </select>
                <label for="queue">"Queue name contains"</label>
                <input id="queue" name="queue" type="search" value=queue.to_owned() maxlength="255" autocomplete="off" data-shortcut="/" />
                <button type="submit" class="btn">"Filter"</button>
            </form>
        </div>
    }
    .into_any()
}

fn queue_table(rows: &[DeadRow], request: &PageRequest) -> AnyView {
    let columns = [
        ("Queue", "xl:min-w-68"),
        ("Dead", "num"),
        ("Oldest dead since", "num max-sm:whitespace-normal"),
        ("Oldest job", "w-[35%] wide"),
        ("Action", "w-[1%] text-right"),
    ];
    let rows = rows.iter().map(|row| {
        let list = urls::state(&row.queue_ref, EffectiveState::Dead);
        let label = format!("Open the dead jobs of {}", row.queue_ref.label());
        let oldest = row.oldest.as_ref();
        view! {
            <tr data-key=list.clone()>
                <th scope="row">{queue_link_with_protocol(&row.queue_ref)}</th>
                <td class="num text-dead">{time::number(row.size)}</td>
                <td class="num">{oldest.map(|job| ago(job.state_time, request.now))}</td>
                <td class="w-[35%] max-w-0 truncate text-muted wide">
                    {oldest
                        .map(|job| {
                            view! {
                                {job_link(job)}
                                " "
                                <code>{job.preview.clone()}</code>
                            }
                        })}
                </td>
                <td class="w-[1%] text-right whitespace-nowrap">
                    <span class="flex items-center justify-end gap-2 max-sm:flex-wrap">
                        <a class="btn" href=list.clone() aria-label=label>"Open"</a>
                        {requeue_all_button(&row.queue_ref, row.size, request)}
                    </span>
                </td>
            </tr>
        }
    });
    tables::table(
        "Dead letters",
        tables::head(&columns),
        rows.collect_view().into_any(),
    )
}

fn no_dead_letters() -> AnyView {
    view! {
        <p class=EMPTY>
            "No dead jobs. An lmstfy job is published with a number of "
            <code>"tries"</code>
            " (default 1). Each delivery uses one try. When the last try’s time to run (TTR) ends without an acknowledgment, the job is dead-lettered. It stays here until you respawn or delete it."
        </p>
        <p class=EMPTY>
            "A Relay job is enqueued with a number of "
            <code>"max_retries"</code>
            "; without one it is retried indefinitely. A run that sends no heartbeat within its timeout uses one retry. When no retries are left, the job is dead-lettered: clients no longer see it, and it stays here for 30 days."
        </p>
    }
    .into_any()
}
