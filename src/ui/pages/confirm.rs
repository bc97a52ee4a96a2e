//! `/ui/confirm`: the confirmation of a bulk operation: the action, the number of jobs, and three samples.

pub mod load;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::auth::Role;
use crate::time;
use crate::ui::actions::operations::StartOperation;
use crate::ui::components::basics::{loaded, number_of, plural};
use crate::ui::components::forms::{hidden, queue_names};
use crate::ui::components::icons::icon;
use crate::ui::components::links::{job_link, queue_link_with_protocol};
use crate::ui::components::state::chip;
use crate::ui::components::styles::{CRUMB, NOTICE, QUESTION};
use crate::ui::context;
use crate::ui::model::job::JobRow;
use crate::ui::model::operation::{ConfirmView, JobActionKind, OperationRequest};
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::urls;
use crate::ui::urls::encoding::is_dashboard_page;

#[component]
pub fn ConfirmPage() -> impl IntoView {
    let request = page_request();
    let back = request.param("from").filter(|from| is_dashboard_page(from));
    let back = back.unwrap_or_else(|| urls::search(&request.raw_param("q").unwrap_or_default()));
    let bulk = OperationRequest {
        action: request.param("do").unwrap_or_default(),
        all: request.param("of").is_some_and(|of| of == "all"),
        q: request.raw_param("q").unwrap_or_default(),
        jobs: request.params("job"),
        arg: request.param("arg").unwrap_or_default(),
    };
    // Counted once, so that the number does not change while the user types it.
    if request.is_refresh {
        return page("Confirm", ().into_any());
    }
    loaded(load::confirm(bulk.clone()), move |view| {
        match (view, JobActionKind::parse(&bulk.action)) {
            (Ok(view), Some(action)) => page(
                &title(action, &view),
                question(action, &bulk, &view, &back, &request),
            ),
            (Err(why), _) => page("No action taken", no_action(&why, &back)),
            (Ok(_), None) => page("No action taken", no_action("no action was given", &back)),
        }
    })
}

fn page(title: &str, body: AnyView) -> AnyView {
    view! {
        <Title text=title.to_owned() />
        <p class=CRUMB><a href="/ui/jobs">"Jobs"</a></p>
        <div id="confirm" class="flex flex-col gap-4" data-keep="">
            <h1>{title.to_owned()}</h1>
            {body}
        </div>
    }
    .into_any()
}

/// The action on this many jobs.
pub fn sentence(action: JobActionKind, jobs: &str) -> String {
    match action {
        JobActionKind::Retry => format!("Retry {jobs}"),
        JobActionKind::Move => format!("Move {jobs}"),
        JobActionKind::Priority => format!("Set the priority of {jobs}"),
        JobActionKind::Tag => format!("Tag {jobs}"),
        JobActionKind::Untag => format!("Untag {jobs}"),
        JobActionKind::RenameTag => format!("Rename the tag of {jobs}"),
        JobActionKind::Track => format!("Track {jobs}"),
        JobActionKind::Untrack => format!("Untrack {jobs}"),
        JobActionKind::TimeOut => format!("Time out {jobs}"),
        JobActionKind::Cancel => format!("Cancel or delete {jobs}"),
        JobActionKind::EditAndRetry => format!("Retry {jobs} with changes"),
        JobActionKind::Complete => format!("Complete {jobs}"),
    }
}

/// The number of jobs, or “at least” that number.
pub fn job_count(jobs: i64, is_minimum: bool) -> String {
    let jobs = plural(jobs, "job", "jobs");
    if is_minimum {
        format!("at least {jobs}")
    } else {
        jobs
    }
}

fn title(action: JobActionKind, view: &ConfirmView) -> String {
    format!(
        "{}?",
        sentence(action, &job_count(view.jobs, view.is_minimum))
    )
}

fn no_action(why: &str, back: &str) -> AnyView {
    let hint = ["no jobs are selected", "no action was given"]
        .contains(&why)
        .then_some("Select jobs in the list, or choose all matching jobs. ");
    view! {
        <p class=format!("{NOTICE} text-stalled")>
            {icon("stalled")}
            <span>
                {context::sentence(&why)} " " {hint} <a href=back.to_owned()>"Back to jobs"</a>
            </span>
        </p>
    }
    .into_any()
}

fn question(
    action: JobActionKind,
    bulk: &OperationRequest,
    view: &ConfirmView,
    back: &str,
    request: &PageRequest,
) -> AnyView {
    let (class, frame) = match action {
        JobActionKind::Cancel => ("btn btn-danger", format!("{QUESTION} border-l-failed")),
        _ => ("btn btn-strong", format!("{QUESTION} border-l-accent")),
    };
    let of = if bulk.all { "all" } else { "" };
    let undo = if view.can_be_undone { "yes" } else { "" };
    let mut fields = vec![
        ("action", bulk.action.clone()),
        ("of", of.to_owned()),
        ("q", bulk.q.clone()),
        ("counted", view.jobs.to_string()),
        ("undo", undo.to_owned()),
        ("from", request.param("from").unwrap_or_default()),
    ];
    if !bulk.all {
        fields.extend(bulk.jobs.iter().map(|job| ("jobs[]", job.clone())));
    }
    let jobs = job_count(view.jobs, view.is_minimum);
    let form = request.may(Role::Operator).then(|| {
        view! {
            <form method="post" action=StartOperation::PATH>
                {hidden(fields)} {argument(action, bulk, view)}
                {view.must_type.then(|| must_type(view, request))}
                <div class="flex flex-wrap items-center gap-2">
                    {(!applies_to_none(view)).then(|| view! { <button type="submit" class=class>{sentence(action, &jobs)}</button> })}
                    <a class="btn" href=back.to_owned()>
                        "Back"
                    </a>
                </div>
            </form>
        }
    });
    view! {
        <section class=frame aria-label="Confirm">
            <p>{selection(bulk)}</p>
            {effect(action, view).into_iter().map(|line| view! { <p>{line}</p> }).collect_view()}
            {samples(view)} {form}
        </section>
    }
    .into_any()
}

/// The jobs that are selected, or the search.
fn selection(bulk: &OperationRequest) -> AnyView {
    if !bulk.all {
        return "The selected jobs.".into_any();
    }
    if bulk.q.trim().is_empty() {
        return view! { <strong>"All jobs of this server"</strong> ", of every protocol." }
            .into_any();
    }
    view! {
        "All jobs matching " <a href=urls::search(&bulk.q)><code>{bulk.q.clone()}</code></a>
        ". Each job is re-checked before it is changed."
    }
    .into_any()
}

/// Whether the action would skip all jobs.
fn applies_to_none(view: &ConfirmView) -> bool {
    view.jobs > 0 && view.applicable == 0 && !view.is_minimum
}

/// The effect of the action, in sentences.
fn effect(action: JobActionKind, view: &ConfirmView) -> Vec<String> {
    let mut lines = vec![match action {
        JobActionKind::Retry => {
            "Failed qless jobs return to their queues with all retries. Dead lmstfy jobs are respawned without an \
             expiry (to set one, respawn them on the pages of their queues), and dead Relay jobs are requeued. Other \
             jobs are skipped."
        }
        JobActionKind::Cancel => {
            "Cancels qless jobs and deletes lmstfy, Relay and Jobq jobs. Workers lose the jobs they are running. \
             Complete jobs, and jobs that other remaining jobs depend on, are skipped."
        }
        JobActionKind::Move => {
            "Moves qless jobs in any state to the target queue. Workers lose the jobs they are running, and \
             complete jobs run again. Jobs of other protocols are skipped."
        }
        JobActionKind::Priority => "Sets the priority of qless jobs; lower numbers run first. Other jobs are skipped.",
        JobActionKind::Tag => "Adds this tag to qless jobs. Other jobs are skipped.",
        JobActionKind::Untag => "Removes this tag from qless jobs. Other jobs are skipped.",
        JobActionKind::RenameTag => {
            "Replaces the tag in the search with the new tag. Recurring jobs keep the old tag, and the jobs that they \
             create later still get it. Other jobs are skipped."
        }
        JobActionKind::Track => {
            "Lists the events of qless jobs under Tracked. Other jobs are skipped."
        }
        JobActionKind::Untrack => "Stops tracking qless jobs. Other jobs are skipped.",
        JobActionKind::TimeOut => {
            "Takes running qless jobs from their workers and puts them before all waiting jobs, without using a retry. \
             Other jobs are skipped."
        }
        JobActionKind::EditAndRetry | JobActionKind::Complete => {
            "Applies to a single job, on its page."
        }
    }
    .to_owned()];
    let inapplicable = view.jobs - view.applicable;
    if applies_to_none(view) {
        lines.push("This action applies to none of these jobs. Choose another action, or change the search.".to_owned());
    } else if inapplicable > 0 {
        lines.push(format!(
            "{} of them will be skipped: the action does not apply to {} protocol or state.",
            time::number(inapplicable),
            if inapplicable == 1 { "its" } else { "their" },
        ));
    }
    if view.is_minimum {
        lines.push(
            "The number is a minimum: counting stopped after 2 s, or after reading 1,000,000 jobs."
                .to_owned(),
        );
    }
    if action == JobActionKind::Cancel {
        lines.push(if view.can_be_undone {
            "You can undo this for 30 s after it ends.".to_owned()
        } else {
            "This cannot be undone: undo covers at most 100,000 jobs and 64 MiB.".to_owned()
        });
    }
    lines
}

/// The field for the argument: a queue, a priority, a tag.
fn argument(action: JobActionKind, bulk: &OperationRequest, view: &ConfirmView) -> AnyView {
    let (label, kind) = match action {
        JobActionKind::Move => ("Target queue", "text"),
        JobActionKind::Priority => ("Priority", "number"),
        JobActionKind::Tag | JobActionKind::Untag => ("Tag", "text"),
        JobActionKind::RenameTag => ("New tag", "text"),
        JobActionKind::Retry
        | JobActionKind::Cancel
        | JobActionKind::Track
        | JobActionKind::Untrack
        | JobActionKind::TimeOut
        | JobActionKind::EditAndRetry
        | JobActionKind::Complete => {
            return ().into_any();
        }
    };
    view! {
        <label class="mt-3 grid max-w-80 gap-1">
            <span>{label}</span>
            <input
                type=kind
                name="arg"
                value=bulk.arg.clone()
                step=(kind == "number").then_some("any")
                list=(action == JobActionKind::Move).then_some("queues")
                required
                autocomplete="off"
                maxlength="255"
            />
        </label>
        {(action == JobActionKind::Move).then(|| queue_names("queues", &view.queues))}
    }
    .into_any()
}

/// The field in which the user types the number of jobs, to prevent accidents.
fn must_type(view: &ConfirmView, request: &PageRequest) -> AnyView {
    view! {
        <label class="mt-3 grid max-w-80 gap-1">
            <span>{format!("Type {} to confirm", time::number(view.jobs))}</span>
            <input
                type="text"
                name="typed"
                value=request.param("typed").unwrap_or_default()
                inputmode="numeric"
                required
                autocomplete="off"
            />
        </label>
    }
    .into_any()
}

/// Samples of the jobs.
fn samples(view: &ConfirmView) -> AnyView {
    let shown = number_of(view.samples.len());
    let more = view.jobs - shown;
    let row = |job: &JobRow| {
        view! {
            <li>{job_link(job)} " " {chip(job.listed_state())} " " {queue_link_with_protocol(&job.queue_ref)} " " <code class="text-muted wrap-anywhere">{job.preview.clone()}</code></li>
        }
    };
    view! {
        <ul class="*:py-0.5 *:wrap-anywhere [&_a]:underline">
            {view.samples.iter().map(row).collect_view()}
            {(more > 0).then(|| view! { <li class="text-muted wrap-anywhere">{format!("and {} more", time::number(more))}</li> })}
        </ul>
    }
    .into_any()
}
