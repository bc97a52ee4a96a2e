//! `/ui/tracked`: the tracked jobs and their recent events.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::jobs::Untrack;
use crate::ui::components::basics::{empty_note, loaded, number_of, plural};
use crate::ui::components::bulk::{self, BulkBar};
use crate::ui::components::commands::{api, curl_commands, shell_quote};
use crate::ui::components::exports::search_and_exports;
use crate::ui::components::forms::{may_post, row_button, row_form};
use crate::ui::components::links::queue_link_with_protocol;
use crate::ui::components::payload::FormatBudget;
use crate::ui::components::state::chip;
use crate::ui::components::styles::{CARD, CARD_TITLE};
use crate::ui::components::tables;
use crate::ui::components::time::ago;
use crate::ui::components::timeline::line;
use crate::ui::model::job::{Entry, JobRow};
use crate::ui::model::queue_ref::Protocol;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::tracked::model::{TrackedEvent, TrackedView};
use crate::ui::urls;

/// The ID of the form of all buttons.
const UNTRACK_FORM: &str = "untrack";

/// The search that finds these jobs.
const SEARCH: &str = "tracked:yes";

#[component]
pub fn TrackedPage() -> impl IntoView {
    let request = page_request();
    loaded(load::tracked(), move |view| page(&view, &request))
}

fn page(view: &TrackedView, request: &PageRequest) -> AnyView {
    let shown = view.jobs.len() + view.missing.len();
    let bar = BulkBar {
        search: Some(SEARCH),
        all: (shown == view.total).then_some(number_of(view.jobs.len())),
        shown: view.jobs.len(),
        actions: bulk::actions_of(Some(Protocol::Qless), None),
    };
    let left_out =
        (shown < view.total).then(|| format!(" Showing {}.", time::number(number_of(shown))));
    view! {
        <Title text="Tracked jobs" />
        <h1>"Tracked jobs"</h1>
        <p class="text-muted wrap-anywhere">
            {format!("{}.", plural(number_of(view.total), "tracked job", "tracked jobs"))} {left_out}
            " The puts, claims, expired leases, completions, failures and cancellations of tracked jobs are published as events, here and through the API."
        </p>
        {may_post(Untrack::PATH).then(|| row_form(UNTRACK_FORM, Untrack::PATH, vec![("back", request.here())]))}
        <div class=CARD>
            {bulk::bar(bar, request)}
            {if view.jobs.is_empty() {
                empty_note("No tracked jobs. Choose Track on a job’s page to follow it here.")
            } else {
                let mut columns = vec![("Job", ""), ("State", ""), ("Queue", "mid"), ("Last event", "mid")];
                if bulk::may_select(request) {
                    columns.insert(0, bulk::SELECT);
                }
                columns.extend(may_post(Untrack::PATH).then_some(("Action", "w-[1%] text-right")));
                let budget = FormatBudget::default();
                let rows = view.jobs.iter().map(|(job, last)| row(job, last.as_ref(), &budget, request)).collect_view();
                tables::table("Tracked jobs", tables::head(&columns), rows.into_any())
            }}
        </div>
        {(!view.jobs.is_empty()).then(|| search_and_exports(SEARCH))}
        {(!view.missing.is_empty()).then(|| missing(&view.missing))}
        {events(view, request)}
        {curl_commands(vec![
                    ("List tracked jobs", format!("curl {}", shell_quote(&api(request, "/tracked")))),
                    (
                        "Follow all events",
                        format!("curl -N -H 'Accept: text/event-stream' {}", shell_quote(&api(request, "/events"))),
                    ),
                ])}
    }
    .into_any()
}

fn row(
    job: &JobRow,
    last: Option<&Entry>,
    budget: &FormatBudget,
    request: &PageRequest,
) -> AnyView {
    view! {
        <tr data-key=job.id.clone()>
            {bulk::may_select(request).then(|| bulk::checkbox(job, request))}
            <th scope="row">
                <a class="id" href=urls::job(&job.queue_ref, &job.id)>{job.id.clone()}</a>
                {job.klass.clone().map(|klass| view! { <span class="block text-xs leading-4 text-muted wrap-anywhere">{klass}</span> })}
            </th>
            <td>{chip(job.listed_state())}</td>
            <td class="mid">{queue_link_with_protocol(&job.queue_ref)}</td>
            <td class="text-cell mid">
                {last
                    .map(|entry| {
                        view! {
                            <span class="[&_a]:underline [&>svg]:mr-1.5 [&>svg]:text-muted">{line(entry, &job.queue_ref, budget)}</span>
                            " "
                            <span class="text-muted wrap-anywhere">{ago(entry.when, request.now)}</span>
                        }
                    })}
            </td>
            {may_post(Untrack::PATH).then(|| view! { <td class="w-[1%] text-right whitespace-nowrap">{untrack(&job.id)}</td> })}
        </tr>
    }
    .into_any()
}

fn untrack(id: &str) -> AnyView {
    let about = format!("Untrack job {id}");
    row_button(
        UNTRACK_FORM,
        ("id", id.to_owned()),
        "Untrack",
        about,
        Some("t"),
    )
}

fn missing(ids: &[String]) -> AnyView {
    let acts = may_post(Untrack::PATH);
    let mut columns = vec![("Job", "")];
    columns.extend(acts.then_some(("Action", "w-[1%] text-right")));
    let rows = ids.iter().map(|id| {
        view! {
            <tr data-key=id.clone()>
                <th scope="row"><span class="id">{id.clone()}</span></th>
                {acts.then(|| view! { <td class="w-[1%] text-right whitespace-nowrap">{untrack(id)}</td> })}
            </tr>
        }
    });
    let n = number_of(ids.len());
    view! {
        <section class=CARD aria-labelledby="gone">
            <div class=CARD_TITLE>
                <h2 id="gone">"Jobs that no longer exist"</h2>
                <span class="text-muted wrap-anywhere">{plural(n, "job", "jobs")}</span>
            </div>
            <p class="px-4 pb-2 text-sm text-muted">
                "These jobs were canceled, or removed after they completed. A new job with the same ID is tracked again."
            </p>
            {tables::table(
                "Tracked jobs that no longer exist",
                tables::head(&columns),
                rows.collect_view().into_any(),
            )}
        </section>
    }
    .into_any()
}

fn events(view: &TrackedView, request: &PageRequest) -> AnyView {
    let rows = view.events.iter().map(|event| {
        view! {
            <tr data-key=event.seq.to_string()>
                <td class="w-28 whitespace-nowrap text-muted">{ago(event.when, request.now)}</td>
                <td><span class=event_class(event)>{word(&event.what)}</span></td>
                <th scope="row"><a class="id" href=urls::qless_job(&event.id)>{event.id.clone()}</a></th>
            </tr>
        }
    });
    let searched = plural(view.searched, "event", "events");
    view! {
        <section class=CARD aria-labelledby="events">
            <div class=CARD_TITLE>
                <h2 id="events">"Latest events"</h2>
                <span class="text-muted wrap-anywhere">{format!("among the server’s newest {searched}")}</span>
            </div>
            {if view.events.is_empty() {
                empty_note("No recent events of tracked jobs.")
            } else {
                tables::table(
                    "Latest events of tracked jobs",
                    tables::head(&[("When", ""), ("Event", ""), ("Job", "")]),
                    rows.collect_view().into_any(),
                )
            }}
        </section>
    }
    .into_any()
}

/// The text for an event, by its channel.
fn word(what: &str) -> String {
    match what {
        "popped" => "claimed by a worker".to_owned(),
        "stalled" => "stalled: lease expired".to_owned(),
        "put" => "added to a queue".to_owned(),
        "track" => "tracked".to_owned(),
        "untrack" => "untracked".to_owned(),
        "canceled" => "canceled".to_owned(),
        other => other.to_owned(),
    }
}

fn event_class(event: &TrackedEvent) -> &'static str {
    match event.what.as_str() {
        "failed" => "text-failed",
        "stalled" => "text-stalled",
        "completed" => "text-complete",
        "popped" => "text-running",
        "canceled" => "text-paused",
        _ => "",
    }
}
