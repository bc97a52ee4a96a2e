//! Tables that several pages show: queues, jobs, failure groups, workers.

use std::collections::HashMap;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::time;
use crate::ui::actions::failures::{RetryGroup, retry_request};
use crate::ui::actions::jobs::Retry;
use crate::ui::actions::operations::TYPED_ABOVE;
use crate::ui::components::basics::{element_id, plural};
use crate::ui::components::bulk;
use crate::ui::components::chart::sparkline;
use crate::ui::components::forms::{
    ConfirmDialog, action_button, allowed, confirm_dialog, may_post, shortcut,
};
use crate::ui::components::icons::icon;
use crate::ui::components::links::{queue_link_with_protocol, worker_link};
use crate::ui::components::pause;
use crate::ui::components::state::{bar, count_cell, not_applicable_cell};
use crate::ui::components::time::ago;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::state::EffectiveState;
use crate::ui::model::worker::{WorkerActivity, WorkerRow};
use crate::ui::page_request::PageRequest;
use crate::ui::urls;

pub mod job_list;

/// A table with its caption, which scrolls horizontally on narrow screens.
pub fn table(caption: &str, head: AnyView, rows: AnyView) -> AnyView {
    let id = element_id("t-", caption);
    view! {
        <div class="overflow-x-auto rounded-md" role="region" tabindex="0" aria-labelledby=id>
            <table>
                <caption id=id.clone() class="sr-only">{caption.to_owned()}</caption>
                <thead>
                    <tr>{head}</tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// Table headings: the text and the classes of each column. The width of a column is in its heading.
pub fn head(columns: &[(&'static str, &'static str)]) -> AnyView {
    columns
        .iter()
        .map(|(word, class)| {
            // One checkbox for all rows of the page, for scripts (`islands/live/select.rs`).
            let select_all = ((*word, *class) == bulk::SELECT)
                .then(|| view! { <input type="checkbox" class="unscripted:hidden" data-select-all="" aria-label="Select all on this page" /> });
            match select_all {
                Some(checkbox) => view! { <th scope="col" class=*class><span class="sr-only">{*word}</span> {checkbox}</th> }.into_any(),
                None => view! { <th scope="col" class=(!class.is_empty()).then_some(*class)>{*word}</th> }.into_any(),
            }
        })
        .collect_view()
        .into_any()
}

/// The cells of a queue after the cell with its name.
fn queue_cells(queue: &QueueRow, with_records: bool, now: i64) -> AnyView {
    let counts = &queue.counts;
    let protocol = queue.queue_ref.protocol;
    let count = |state: EffectiveState, class: &str| match counts.of(state) {
        0 if !protocol.has(state) => not_applicable_cell(protocol, class),
        n => count_cell(n, state, class),
    };
    view! {
        <td class="mid">{bar(counts)}</td>
        {count(EffectiveState::Running, "")}
        {count(EffectiveState::Waiting, "")}
        {count(EffectiveState::Scheduled, "mid")}
        {count(EffectiveState::Depends, "wide")}
        {count(EffectiveState::Stalled, "mid")}
        {count(EffectiveState::Failed, "")}
        {count(EffectiveState::Dead, "")}
        {with_records.then(|| count(EffectiveState::Record, ""))}
        <td class="num wide">{queue.oldest_waiting.filter(|_| counts.waiting > 0).map(|since| ago(since, now))}</td>
    }
    .into_any()
}

/// Completed jobs of a queue per minute.
pub type Sparklines = HashMap<QueueRef, Vec<i64>>;

fn sparkline_cell(completed: Option<&Vec<i64>>) -> AnyView {
    let Some(completed) = completed else {
        return view! { <td class="zero wide">"0"</td> }.into_any();
    };
    let all = plural(completed.iter().sum(), "job", "jobs");
    let most = completed.iter().max().copied().unwrap_or_default();
    let about = format!(
        "{all} completed in the last 30 minutes, at most {} per minute",
        time::number(most)
    );
    view! { <td class="wide">{sparkline(completed, "text-complete", &about)}</td> }.into_any()
}

/// One row per queue. Selectable ones have a checkbox and a button to pause or resume them.
pub fn queue_rows(
    queues: &[QueueRow],
    with_records: bool,
    sparks: Option<&Sparklines>,
    is_selectable: bool,
    now: i64,
) -> AnyView {
    queues
        .iter()
        .map(|queue| {
            let name = view! {
                <th scope="row">
                    {queue_link_with_protocol(&queue.queue_ref)} {queue.paused.then(|| pause::chip(&queue.pause, now))}
                </th>
            };
            // A list, because each absent cell would otherwise add a marker to the page.
            let cells = [
                is_selectable.then(|| pause::checkbox(queue)),
                Some(name.into_any()),
                Some(queue_cells(queue, with_records, now)),
                sparks.map(|sparks| sparkline_cell(sparks.get(&queue.queue_ref))),
                is_selectable.then(|| pause::row_button(queue)),
            ];
            view! { <tr data-key=urls::queue(&queue.queue_ref)>{cells.into_iter().flatten().collect_view()}</tr> }
        })
        .collect_view()
        .into_any()
}

/// The button that retries one job, without a confirmation.
pub fn retry_button(id: &str, request: &PageRequest) -> AnyView {
    let fields = vec![("id", id.to_owned()), ("back", request.here())];
    let about = format!("Retry job {id}");
    shortcut("r", action_button(Retry::PATH, fields, "Retry", about))
}

/// The button that retries all jobs of a group, with a confirmation.
pub fn retry_all(group: &GroupRow, request: &PageRequest) -> AnyView {
    retry_all_with_prefix("retry-", group, request)
}

/// Like [`retry_all`], with a prefix for the dialog's ID, for pages that show the button twice.
pub fn retry_all_with_prefix(prefix: &str, group: &GroupRow, request: &PageRequest) -> AnyView {
    let jobs = plural(group.count, "job", "jobs");
    // The confirmation page asks to type the number.
    if group.count > TYPED_ABOVE {
        let button = format!("Retry all {}…", time::number(group.count));
        let address = urls::confirm(&retry_request(&group.group), "", "");
        let link = view! { <a class="btn" href=address>{button}</a> }.into_any();
        return allowed(RetryGroup::PATH, || shortcut("r", link));
    }
    let fields = vec![
        ("group", group.group.clone()),
        ("count", group.count.to_string()),
        ("back", request.here()),
    ];
    let dialog = ConfirmDialog {
        id: element_id(prefix, &group.group),
        button: if group.count == 1 {
            "Retry 1…".to_owned()
        } else {
            format!("Retry all {}…", time::number(group.count))
        },
        danger: false,
        title: format!("Retry {jobs}?"),
        text: format!(
            "{} in group “{}” {} now, with all retries.",
            if group.count == 1 {
                "The failed job".to_owned()
            } else {
                format!("All {} failed jobs", time::number(group.count))
            },
            group.group,
            if group.count == 1 {
                "returns to its queue"
            } else {
                "return to their queues"
            },
        ),
        action: RetryGroup::PATH,
        fields,
        confirm_label: format!("Retry {jobs}"),
        cancel_label: "Close",
    };
    shortcut("r", confirm_dialog(dialog))
}

/// The label of a muted failure group, with the reason as its title; `None` if it is not muted.
pub fn muted_chip(group: &GroupRow) -> Option<AnyView> {
    let muted = group.muted.as_ref()?;
    let why = format!("Muted by {}: {}", muted.who, muted.reason);
    Some(
        view! { <span class="chip text-paused" title=why>{icon("paused")} " muted"</span> }
            .into_any(),
    )
}

/// The table of failure groups. `full`: with the time of the first failure.
pub fn groups(groups: &[GroupRow], request: &PageRequest, full: bool) -> AnyView {
    let mut columns = vec![("Failure", ""), ("Jobs", "num")];
    if full {
        columns.push(("First", "num mid"));
    }
    columns.push(("Last", "num mid"));
    let acts = may_post(RetryGroup::PATH);
    columns.extend(acts.then_some(("Action", "w-[1%] text-right")));
    let rows = groups.iter().map(|group| {
        let moment = |moment: Option<i64>| moment.map(|moment| ago(moment, request.now));
        view! {
            <tr data-key=group.group.clone()>
                <th scope="row" class="text-cell">
                    <a class="name" href=urls::failure(&group.group)>{group.group.clone()}</a> {muted_chip(group)}
                    {group.message.clone().map(|message| view! { <span class="line-clamp-2 text-xs leading-4 text-muted wrap-anywhere">{message}</span> })}
                </th>
                <td class="num text-failed">{time::number(group.count)}</td>
                {full.then(|| view! { <td class="num mid">{moment(group.first)}</td> })}
                <td class="num mid">{moment(group.last)}</td>
                {acts.then(|| view! { <td class="w-[1%] text-right whitespace-nowrap">{retry_all(group, request)}</td> })}
            </tr>
        }
    });
    table(
        "Failures by group",
        head(&columns),
        rows.collect_view().into_any(),
    )
}

/// Whether a worker is active.
pub fn activity_chip(worker: &WorkerRow, now: i64) -> AnyView {
    let (class, shape, word, description) = match worker.activity(now) {
        WorkerActivity::Alive => (
            "text-complete",
            "complete",
            "alive",
            "Active in the last minute",
        ),
        WorkerActivity::Late => (
            "text-waiting",
            "waiting",
            "late",
            "Active in the last 5 minutes",
        ),
        WorkerActivity::Silent => (
            "text-paused",
            "failed",
            "silent",
            "Inactive for 5 minutes or more",
        ),
    };
    view! { <span class=format!("chip {class}") title=description>{icon(shape)} {word}</span> }
        .into_any()
}

/// The workers.
pub fn workers(workers: &[WorkerRow], now: i64) -> AnyView {
    let columns = [
        ("Worker", ""),
        ("State", ""),
        ("Last seen", "num"),
        ("Running", "num"),
        ("Stalled", "num"),
    ];
    let rows = workers.iter().map(|worker| {
        view! {
            <tr data-key=worker.name.clone()>
                <th scope="row">{worker_link(&worker.name)}</th>
                <td>{activity_chip(worker, now)}</td>
                <td class="num">{ago(worker.last_seen, now)}</td>
                {count_cell(worker.running, EffectiveState::Running, "")}
                {count_cell(worker.stalled, EffectiveState::Stalled, "")}
            </tr>
        }
    });
    table("Workers", head(&columns), rows.collect_view().into_any())
}
