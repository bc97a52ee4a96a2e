//! `/ui/jobs/{id}`: one qless job.

pub mod actions;
pub mod curl;
pub mod errors;
pub mod graph;
pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::ui::actions::jobs::{RemoveTag, Undepend};
use crate::ui::components::basics::{card, definitions, loaded, number_of, plural, text_card};
use crate::ui::components::commands::copy;
use crate::ui::components::forms::{action_button, may_post, shortcut};
use crate::ui::components::icons::icon;
use crate::ui::components::links::{queue_link, queue_link_with_protocol, tag_link, worker_link};
use crate::ui::components::payload::beginning;
use crate::ui::components::state::{chip, protocol_badge, state_view};
use crate::ui::components::styles::{CARD, CARD_PADDED, CARD_TITLE, CRUMB, EMPTY, NOTICE};
use crate::ui::components::tables;
use crate::ui::components::time::when;
use crate::ui::components::timeline::timeline;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::job::model::{JobView, RelatedJobs};
use crate::ui::urls;

/// Maximum number of tags on the page.
const TAGS_SHOWN: usize = 100;

#[component]
pub fn JobPage() -> impl IntoView {
    let request = page_request();
    loaded(load::job(request.name(2)), move |job| page(&job, &request))
}

fn page(job: &JobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let name = row.klass.clone().unwrap_or_else(|| "Job".to_owned());
    view! {
        <Title text=format!("{name} {}", row.id) />
        <p class=CRUMB>
            <a href="/ui/queues">"Queues"</a> <span aria-hidden="true">" › "</span> {queue_link(&row.queue_ref)}
        </p>
        <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <div class="flex flex-wrap items-center gap-2">
                <h1>
                    <span class="name">{name}</span> {chip(row.listed_state())}
                    {job.tracked.then(|| view! { <span class="chip text-accent">{icon("tracked")} "tracked"</span> })}
                </h1>
                {protocol_badge(row.queue_ref.protocol)}
            </div>
            <div class="flex flex-wrap items-center gap-2">{actions::actions(job, request)}</div>
        </div>
        <p class="-mt-3 flex flex-wrap items-center gap-2 text-muted wrap-anywhere">
            <code id="jid" class="id">{row.id.clone()}</code> {shortcut("y", copy("jid".to_owned(), "Copy ID".to_owned()))}
        </p>
        {blocked_notice(job)}
        {errors::errors_card(row, &job.times.history, request)}
        <div class="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
            {card("facts", "Details", facts(job, request))}
            {text_card("data", "Payload", job.bytes, copy("payload".to_owned(), "Copy the payload".to_owned()), beginning(&job.body, job.bytes, request))}
        </div>
        <section class=CARD_PADDED aria-labelledby="timeline">
            <h2 id="timeline">"Timeline"</h2>
            {timeline(row, &job.times, request.now)}
            {actions::note_form(&row.id, request)}
        </section>
        {graph::graph(&job.graph)}
        <div class="grid grid-cols-2 items-start gap-4 empty:hidden max-lg:grid-cols-1">
            {related_jobs("Depends on", &job.dependencies, (row.state == EffectiveState::Depends).then_some((job, request)))}
            {related_jobs("Dependents", &job.dependents, None)}
        </div>
        {curl::curl(job, request)}
    }
    .into_any()
}

/// The failed jobs that a notice names; it counts the others.
const BLOCKING_NAMED: usize = 5;

/// A warning that the job waits for failed jobs, directly or through other jobs.
fn blocked_notice(job: &JobView) -> Option<AnyView> {
    let failed = job.graph.failed_dependencies();
    if job.row.state != EffectiveState::Depends || failed.is_empty() {
        return None;
    }
    let (named, more) = failed.split_at(failed.len().min(BLOCKING_NAMED));
    let links = named.iter().map(|id| {
        view! { " " <a class="id" href=urls::qless_job(id)>{(*id).to_owned()}</a> }
    });
    let n = number_of(failed.len());
    let more = (!more.is_empty()).then(|| format!(" and {} more", more.len()));
    let view = view! {
        <p class=format!("{NOTICE} text-failed")>
            {icon("failed")}
            <span>
                "This job waits for " {plural(n, "failed job", "failed jobs")} ":" {links.collect_view()} {more}
                ". It never starts unless a retry succeeds or the dependency is removed."
            </span>
        </p>
    };
    Some(view.into_any())
}

fn facts(job: &JobView, request: &PageRequest) -> AnyView {
    let (row, times) = (&job.row, &job.times);
    let now = request.now;
    let moment = |moment: i64| when(moment, now);
    let mut facts: Vec<(&str, AnyView)> = vec![
        ("Queue", queue_link(&row.queue_ref)),
        ("State", state_view(row)),
        ("State since", moment(times.state_since)),
        ("Created", moment(times.created)),
    ];
    match row.state {
        EffectiveState::Scheduled => facts.push(("Due", moment(times.available_at))),
        EffectiveState::Waiting => facts.push(("Available", moment(times.available_at))),
        // A job with dependencies can also have a delay.
        EffectiveState::Depends if times.available_at > now => {
            facts.push(("Not before", moment(times.available_at)));
        }
        EffectiveState::Running => {
            facts.extend(times.expires.map(|end| ("Lease expires", moment(end))));
        }
        EffectiveState::Stalled => {
            facts.extend(times.expires.map(|end| ("Lease expired", moment(end))));
        }
        EffectiveState::Depends
        | EffectiveState::Failed
        | EffectiveState::Complete
        | EffectiveState::Dead
        | EffectiveState::Record => {}
    }
    if let Some(worker) = &row.worker {
        facts.push(("Worker", worker_link(worker)));
    }
    facts.push((
        "Priority",
        view! { {row.priority.to_string()} <span class="text-muted wrap-anywhere">" · lower numbers run first"</span> }
            .into_any(),
    ));
    facts.push((
        "Retries left",
        format!("{} of {}", row.remaining.max(0), row.retries).into_any(),
    ));
    facts.push(("Tags", tags(job, request)));
    if let Some(origin) = &job.origin {
        let name = if origin.exists {
            view! { <a class="name" href=urls::recurring(&origin.id)>{origin.id.clone()}</a> }
                .into_any()
        } else {
            view! { <span class="name">{origin.id.clone()}</span> <span class="text-muted wrap-anywhere">" · ended"</span> }.into_any()
        };
        facts.push(("Recurring job", name));
    }
    definitions(facts)
}

/// The tags. The button that removes a tag is attached to the tag.
const TAGS: &str = "flex flex-wrap gap-x-2 gap-y-1.5 *:flex *:min-w-0 [&>li>a]:mr-0 [&>li>form]:flex [&>li>form]:shrink-0 \
    [&>li:has(>form)>a]:rounded-r-none [&>li:has(>form)>a]:border-r-0 [&>li>form>button]:min-h-6 [&>li>form>button]:min-w-6 \
    [&>li>form>button]:justify-center [&>li>form>button]:rounded-l-none [&>li>form>button]:rounded-r-sm \
    [&>li>form>button]:border-line [&>li>form>button]:p-0 [&>li>form>button]:text-muted [&>li>form>button]:hover:text-failed \
    [&>li>span>button]:min-h-6 [&>li>span>button]:px-2 [&>li>span>button]:text-xs";

/// The tags, each with a button that removes it, and the form for a new one.
fn tags(job: &JobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let tags = row.tags.iter().take(TAGS_SHOWN).map(|tag| {
        let fields = vec![
            ("id", row.id.clone()),
            ("tag", tag.clone()),
            ("back", request.here()),
        ];
        view! {
            <li data-key=tag.clone()>
                {tag_link(tag)} {action_button(RemoveTag::PATH, fields, "×", format!("Remove tag {tag}"))}
            </li>
        }
    });
    let more = row.tags.len().saturating_sub(TAGS_SHOWN);
    view! {
        <ul class=TAGS>
            {tags.collect_view()}
            {(more > 0).then(|| view! { <li class="text-muted">{format!("and {more} more")}</li> })}
            <li data-key="">{shortcut("", actions::tag_form(&row.id, request))}</li>
        </ul>
    }
    .into_any()
}

/// The dependencies or dependents of this job, with their states. `dependent` is this job if the user can remove its
/// dependencies.
fn related_jobs(
    title: &'static str,
    related_jobs: &RelatedJobs,
    dependent: Option<(&JobView, &PageRequest)>,
) -> Option<AnyView> {
    if related_jobs.total == 0 {
        return None;
    }
    let dependent = dependent.filter(|_| may_post(Undepend::PATH));
    let rows = related_jobs.jobs.iter().map(|related| {
        let job = related.job.as_ref();
        view! {
            <tr data-key=related.id.clone()>
                <th scope="row">
                    <a class="id" href=urls::qless_job(&related.id)>{related.id.clone()}</a>
                    {job.and_then(|job| job.klass.clone()).map(|klass| view! { <span class="block text-xs leading-4 text-muted wrap-anywhere">{klass}</span> })}
                </th>
                <td>{job.map(|job| chip(job.listed_state()))}</td>
                <td class="mid">{job.map(|job| queue_link_with_protocol(&job.queue_ref))}</td>
                {dependent.map(|(dependent, request)| view! { <td class="w-[1%] text-right whitespace-nowrap">{remove_dependency_button(dependent, &related.id, request)}</td> })}
            </tr>
        }
    });
    let more = related_jobs.total - related_jobs.jobs.len().min(related_jobs.total);
    let mut columns = vec![("Job", ""), ("State", ""), ("Queue", "mid")];
    columns.extend(dependent.map(|_| ("Action", "w-[1%] text-right")));
    let view = view! {
        <div class=CARD>
            <div class=CARD_TITLE>
                <h2>{title}</h2>
                <span class="flex flex-wrap items-center gap-2">
                    <span class="text-muted wrap-anywhere">{plural(number_of(related_jobs.total), "job", "jobs")}</span>
                    {dependent.filter(|_| related_jobs.total > 1).map(|(dependent, request)| actions::remove_dependencies_button(dependent, request))}
                </span>
            </div>
            {tables::table(title, tables::head(&columns), rows.collect_view().into_any())}
            {(more > 0).then(|| view! { <p class=EMPTY>{format!("{more} more not shown. The API lists all of them.")}</p> })}
        </div>
    };
    Some(view.into_any())
}

/// Has no confirmation, because the API can add the dependency again.
fn remove_dependency_button(dependent: &JobView, other: &str, request: &PageRequest) -> AnyView {
    let fields = vec![
        ("id", dependent.row.id.clone()),
        ("on", other.to_owned()),
        ("back", request.here()),
    ];
    let about = format!("Remove dependency on {other}");
    action_button(Undepend::PATH, fields, "Remove dependency", about)
}
