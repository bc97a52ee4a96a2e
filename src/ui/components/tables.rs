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
use crate::ui::components::links::{job_link, queue_name, tag_link, worker_link};
use crate::ui::components::pause;
use crate::ui::components::reschedule;
use crate::ui::components::state::{bar, chip, count_cell, not_applicable_cell};
use crate::ui::components::time::ago;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::state::EffectiveState;
use crate::ui::model::worker::{WorkerActivity, WorkerRow};
use crate::ui::page_request::PageRequest;
use crate::ui::urls;

/// Lists load only so many dependencies of a job (`job_columns!(brief)`).
const LISTED_EDGES_MAX: usize = 100;

/// Maximum number of tags of a job in a list; the job's page shows the others.
const TAGS_LISTED: usize = 20;

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
        <td class="num wide">{queue.oldest_waiting.filter(|_| counts.waiting > 0).map(|since| waited(since, now))}</td>
    }
    .into_any()
}

fn waited(since: i64, now: i64) -> AnyView {
    ago(since, now)
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
                    {queue_name(&queue.queue_ref)} {queue.paused.then(|| pause::chip(&queue.pause, now))}
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

/// The kinds of job lists, which differ in their columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum JobList {
    /// Jobs of one queue, all in one state.
    Queue(EffectiveState),
    /// Jobs of one failure group, from any queue.
    Group,
    /// Jobs of one worker, running or stalled, from any queue.
    Worker,
    /// Jobs from any queue, in any state.
    Mixed,
    /// Jobs of one recurring job, in any state.
    Children,
    /// Scheduled jobs from any queue.
    Due,
    /// Search results: jobs of any protocol, in any state.
    Found,
}

impl JobList {
    /// Whether the list can contain jobs of different queues.
    fn of_any_queue(self) -> bool {
        !matches!(self, JobList::Queue(_))
    }

    /// Whether the page has buttons for the selected jobs.
    fn is_selectable(self) -> bool {
        self != JobList::Children
    }

    /// Whether the list can contain jobs in different states.
    fn of_any_state(self) -> bool {
        matches!(
            self,
            JobList::Worker | JobList::Mixed | JobList::Children | JobList::Found
        )
    }
}

/// The meaning of the time that a list shows for the job.
fn time_label(job: &JobRow) -> &'static str {
    match job.state {
        EffectiveState::Waiting => "available ",
        EffectiveState::Scheduled => "due ",
        EffectiveState::Depends => "depends since ",
        EffectiveState::Running => "lease ends ",
        EffectiveState::Stalled if job.is_timed_out() => "timed out ",
        EffectiveState::Stalled => "lease ended ",
        EffectiveState::Failed => "failed ",
        EffectiveState::Complete => "completed ",
        EffectiveState::Dead => "dead-lettered ",
        EffectiveState::Record => "changed ",
    }
}

/// A list of jobs.
pub fn jobs(caption: &str, list: JobList, jobs: &[JobRow], request: &PageRequest) -> AnyView {
    let moment = match list {
        JobList::Queue(EffectiveState::Waiting) => "Available",
        JobList::Queue(EffectiveState::Scheduled) | JobList::Due => "Due",
        JobList::Queue(EffectiveState::Depends) => "Depends since",
        JobList::Queue(EffectiveState::Running) => "Lease ends",
        JobList::Queue(EffectiveState::Stalled) => "Lease ended",
        JobList::Queue(EffectiveState::Failed) | JobList::Group => "Failed",
        JobList::Queue(EffectiveState::Complete) => "Completed",
        JobList::Queue(EffectiveState::Dead) => "Dead-lettered",
        JobList::Queue(EffectiveState::Record) => "Changed",
        JobList::Worker => "Lease ends",
        JobList::Mixed | JobList::Children | JobList::Found => "When",
    };
    let is_selectable = list.is_selectable() && bulk::may_select(request);
    let mut columns = vec![("Job", "xl:min-w-68")];
    if is_selectable {
        columns.insert(0, bulk::SELECT);
    }
    if list.of_any_state() {
        columns.push(("State", ""));
    }
    if list.of_any_queue() {
        columns.push(("Queue", "mid"));
    }
    columns.push((moment, "num w-[1%]"));
    columns.extend(subject_column(list).map(|word| (word, "mid")));
    if list == JobList::Found {
        columns.push(("Worker", "wide"));
    }
    columns.extend([
        ("Priority", "num w-[1%] wide"),
        ("Retries left", "num w-[1%] wide"),
    ]);
    columns.push(("Payload", "w-[35%] wide"));
    if retriable(list) || list == JobList::Due && reschedule::is_allowed() {
        columns.push(("Action", "w-[1%] text-right"));
    }
    let rows = jobs
        .iter()
        .map(|job| job_row(list, is_selectable, job, request))
        .collect_view();
    table(caption, head(&columns), rows.into_any())
}

fn retriable(list: JobList) -> bool {
    matches!(
        list,
        JobList::Group | JobList::Queue(EffectiveState::Failed)
    ) && may_post(Retry::PATH)
}

/// The heading of the column with the detail that matters in this list.
fn subject_column(list: JobList) -> Option<&'static str> {
    match list {
        JobList::Queue(EffectiveState::Running | EffectiveState::Stalled) => Some("Worker"),
        JobList::Queue(EffectiveState::Failed) => Some("Failure"),
        JobList::Queue(EffectiveState::Depends) => Some("Depends on"),
        JobList::Group => Some("Message"),
        JobList::Queue(_)
        | JobList::Worker
        | JobList::Mixed
        | JobList::Children
        | JobList::Due
        | JobList::Found => None,
    }
}

fn job_row(list: JobList, is_selectable: bool, job: &JobRow, request: &PageRequest) -> AnyView {
    let now = request.now;
    let subject =
        subject_column(list).map(|_| view! { <td class="text-cell mid">{subject(list, job)}</td> });
    view! {
        <tr data-key=urls::row(job)>
            {is_selectable.then(|| bulk::checkbox(job, request))}
            <th scope="row">
                {job_link(job)}
                {job.klass.clone().map(|klass| view! { <span class="block text-xs leading-4 text-muted wrap-anywhere">{klass}</span> })}
                {job.is_timed_out()
                    .then(|| view! { <span class="block text-xs leading-4 text-muted wrap-anywhere">"timed out, first in line"</span> })}
                {(list == JobList::Found && !job.tags.is_empty())
                    .then(|| view! { <span class="mt-0.5 block">{job.tags.iter().take(TAGS_LISTED).map(|tag| tag_link(tag)).collect_view()}</span> })}
            </th>
            {list.of_any_state().then(|| view! { <td>{chip(job.list())}</td> })}
            {list.of_any_queue().then(|| view! { <td class="mid">{queue_name(&job.queue_ref)}</td> })}
            <td class="num">
                {matches!(list, JobList::Mixed | JobList::Children | JobList::Found).then(|| view! { <span class="text-muted wrap-anywhere mid">{time_label(job)}</span> })}
                {ago(job.state_time, now)}
            </td>
            {subject}
            {(list == JobList::Found).then(|| view! { <td class="wide">{job.worker.as_deref().map(worker_link)}</td> })}
            {priority_and_retries(job)}
            <td class="w-[35%] max-w-0 truncate text-muted wide"><code>{job.preview.clone()}</code></td>
            {(list == JobList::Due && reschedule::is_allowed()).then(|| view! { <td class="w-[1%] text-right whitespace-nowrap">{reschedule::row_buttons(job, request)}</td> })}
            {retriable(list).then(|| view! { <td class="w-[1%] text-right whitespace-nowrap">{retry_button(&job.id, request)}</td> })}
        </tr>
    }
    .into_any()
}

/// The cells of the priority and of the retries that are left. Not every protocol has them.
fn priority_and_retries(job: &JobRow) -> AnyView {
    let protocol = job.queue_ref.protocol;
    let priority = match protocol {
        Protocol::Qless => {
            view! { <td class="num wide">{job.priority.to_string()}</td> }.into_any()
        }
        _ => not_applicable_cell(protocol, "wide"),
    };
    let retries = match protocol {
        Protocol::Jobq => not_applicable_cell(protocol, "wide"),
        _ => view! { <td class="num wide">{job.retries_left()}</td> }.into_any(),
    };
    view! { {priority} {retries} }.into_any()
}

fn subject(list: JobList, job: &JobRow) -> AnyView {
    match list {
        JobList::Queue(EffectiveState::Failed) => job
            .failure
            .as_ref()
            .map(|failure| {
                view! {
                    <a class="name" href=urls::failure(&failure.group)>{failure.group.clone()}</a>
                    <span class="line-clamp-2 text-xs leading-4 text-muted wrap-anywhere">{failure.message.clone()}</span>
                }
            })
            .into_any(),
        JobList::Group => job
            .failure
            .as_ref()
            .map(|failure| view! { <span class="line-clamp-2 text-xs leading-4 text-muted wrap-anywhere">{failure.message.clone()}</span> })
            .into_any(),
        JobList::Queue(EffectiveState::Depends) => match job.dependency_count {
            n if n >= LISTED_EDGES_MAX => format!("at least {n} jobs").into_any(),
            n => plural(i64::try_from(n).unwrap_or(i64::MAX), "job", "jobs").into_any(),
        },
        JobList::Queue(_) | JobList::Worker | JobList::Mixed | JobList::Children | JobList::Due | JobList::Found => {
            job.worker.as_deref().map(worker_link).into_any()
        }
    }
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

/// That a failure group is muted, and why.
pub fn muted_chip(group: &GroupRow) -> Option<AnyView> {
    let muted = group.muted.as_ref()?;
    let why = format!("Muted by {}: {}", muted.who, muted.reason);
    Some(
        view! { <span class="chip text-paused" title=why>{icon("paused")} " muted"</span> }
            .into_any(),
    )
}

/// The failure groups.
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
