//! Lists of jobs.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::actions::jobs::Retry;
use crate::ui::components::basics::{number_of, plural};
use crate::ui::components::bulk;
use crate::ui::components::forms::{may_post, row_button, row_form};
use crate::ui::components::links::{
    job_link, queue_link, queue_link_with_protocol, tag_link, worker_link,
};
use crate::ui::components::reschedule;
use crate::ui::components::state::{chip, not_applicable_cell};
use crate::ui::components::tables::{head, table};
use crate::ui::components::time::ago;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;
use crate::ui::urls;

/// Lists load at most this many dependencies of a job (`job_columns!(brief)`); then the number is a lower bound.
const LISTED_DEPENDENCIES_MAX: usize = 100;

/// Maximum number of tags of a job in a list; the job's page shows the others.
pub const TAGS_LISTED: usize = 20;

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
        EffectiveState::Running => "lease expires ",
        EffectiveState::Stalled if job.is_timed_out() => "timed out ",
        EffectiveState::Stalled => "lease expired ",
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
        JobList::Queue(EffectiveState::Running) => "Lease expires",
        JobList::Queue(EffectiveState::Stalled) => "Lease expired",
        JobList::Queue(EffectiveState::Failed) | JobList::Group => "Failed",
        JobList::Queue(EffectiveState::Complete) => "Completed",
        JobList::Queue(EffectiveState::Dead) => "Dead-lettered",
        JobList::Queue(EffectiveState::Record) => "Changed",
        JobList::Worker => "Lease expires",
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
    let buttons = RowButtons::of(list);
    if buttons.is_some() {
        columns.push(("Action", "w-[1%] text-right"));
    }
    let rows = jobs
        .iter()
        .map(|job| job_row(list, is_selectable, buttons, job, request))
        .collect_view();
    let table = table(caption, head(&columns), rows.into_any());
    let forms = match buttons {
        Some(RowButtons::Retry) => {
            row_form(RETRY_FORM, Retry::PATH, vec![("back", request.here())])
        }
        Some(RowButtons::Reschedule) => reschedule::row_forms(request),
        None => return table,
    };
    view! { {table} {forms} }.into_any()
}

/// The buttons of each row.
#[derive(Clone, Copy)]
enum RowButtons {
    Retry,
    Reschedule,
}

impl RowButtons {
    /// Those of a list; `None` if the list has none, or the user may not use them.
    fn of(list: JobList) -> Option<RowButtons> {
        match list {
            JobList::Group | JobList::Queue(EffectiveState::Failed) => {
                may_post(Retry::PATH).then_some(RowButtons::Retry)
            }
            JobList::Due => reschedule::is_allowed().then_some(RowButtons::Reschedule),
            JobList::Queue(_)
            | JobList::Worker
            | JobList::Mixed
            | JobList::Children
            | JobList::Found => None,
        }
    }
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

fn job_row(
    list: JobList,
    is_selectable: bool,
    buttons: Option<RowButtons>,
    job: &JobRow,
    request: &PageRequest,
) -> AnyView {
    let now = request.now;
    let subject =
        subject_column(list).map(|_| view! { <td class="text-cell mid">{subject(list, job)}</td> });
    view! {
        <tr data-key=job.seq.to_string()>
            {is_selectable.then(|| bulk::checkbox(job, request))}
            <th scope="row">
                {job_link(job)}
                {job.klass.clone().map(|klass| view! { <span class="block text-xs leading-4 text-muted wrap-anywhere">{klass}</span> })}
                {job.is_timed_out()
                    .then(|| view! { <span class="block text-xs leading-4 text-muted wrap-anywhere">"timed out, before other waiting jobs"</span> })}
                {(list == JobList::Found && !job.tags.is_empty())
                    .then(|| view! { <span class="mt-0.5 block">{job.tags.iter().take(TAGS_LISTED).map(|tag| tag_link(tag)).collect_view()}</span> })}
            </th>
            {list.of_any_state().then(|| view! { <td>{chip(job.listed_state())}</td> })}
            {list.of_any_queue().then(|| view! { <td class="mid">{queue_cell(list, job)}</td> })}
            <td class="num">
                {matches!(list, JobList::Mixed | JobList::Children | JobList::Found).then(|| view! { <span class="text-muted wrap-anywhere mid">{time_label(job)}</span> })}
                {ago(job.state_time, now)}
            </td>
            {subject}
            {(list == JobList::Found).then(|| view! { <td class="wide">{job.worker.as_deref().map(worker_link)}</td> })}
            {priority_and_retries(job)}
            <td class="max-w-0 truncate text-muted wide"><code>{job.preview.clone()}</code></td>
            {buttons.map(|buttons| match buttons {
                RowButtons::Retry => view! { <td class="text-right">{row_retry_button(&job.id)}</td> }.into_any(),
                RowButtons::Reschedule => view! { <td>{reschedule::row_buttons(job)}</td> }.into_any(),
            })}
        </tr>
    }
    .into_any()
}

/// The queue of a job. Only qless jobs are in failure groups, so these lists do not show the protocol.
fn queue_cell(list: JobList, job: &JobRow) -> AnyView {
    match list {
        JobList::Group => queue_link(&job.queue_ref),
        _ => queue_link_with_protocol(&job.queue_ref),
    }
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
            n if n >= LISTED_DEPENDENCIES_MAX => format!("at least {n} jobs").into_any(),
            n => plural(number_of(n), "job", "jobs").into_any(),
        },
        JobList::Queue(_) | JobList::Worker | JobList::Mixed | JobList::Children | JobList::Due | JobList::Found => {
            job.worker.as_deref().map(worker_link).into_any()
        }
    }
}

/// The ID of the form of [`row_retry_button`].
const RETRY_FORM: &str = "retry";

/// The button that retries the job of a row, without a confirmation.
fn row_retry_button(id: &str) -> AnyView {
    let about = format!("Retry job {id}");
    row_button(RETRY_FORM, ("id", id.to_owned()), "Retry", about, Some("r"))
}
