//! `/ui/confirm`: the question before something is done to many jobs: what it is, to how many, and three of them.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use super::icons::icon;
use super::parts::{chip, hidden, job_link, loaded, many, queue_name, queue_names};
use super::visit::{Visit, to, visit};
use crate::api::act::Operate;
use crate::api::read;
use crate::api::views::{ConfirmView, Deed, JobRow, Role, Wish};
use crate::time;

#[component]
pub fn ConfirmPage() -> impl IntoView {
    let visit = visit();
    let wish = Wish {
        deed: visit.param("do").unwrap_or_default(),
        all: visit.param("of").is_some_and(|of| of == "all"),
        q: visit.param("q").unwrap_or_default(),
        jobs: visit.params("job"),
        arg: visit.param("arg").unwrap_or_default(),
    };
    // It was counted once: nobody wants the number to move while he types it.
    if visit.refresh {
        return page("Confirm", ().into_any());
    }
    loaded(read::confirm(wish.clone()), move |view| {
        match (view, Deed::parse(&wish.deed)) {
            (Ok(view), Some(deed)) => {
                page(&title(deed, &view), question(deed, &wish, &view, &visit))
            }
            (Err(why), _) => page("No action taken", nothing(&why, &wish)),
            (Ok(_), None) => page("No action taken", nothing("no action was given", &wish)),
        }
    })
}

fn page(title: &str, body: AnyView) -> AnyView {
    view! {
        <Title text=title.to_owned() />
        <p class="crumb"><a href="/ui/jobs">"Jobs"</a></p>
        <div id="confirm" data-keep="">
            <h1>{title.to_owned()}</h1>
            {body}
        </div>
    }
    .into_any()
}

/// What is done, to so many jobs.
pub fn sentence(deed: Deed, jobs: &str) -> String {
    match deed {
        Deed::Retry => format!("Retry {jobs}"),
        Deed::Move => format!("Move {jobs}"),
        Deed::Priority => format!("Set the priority of {jobs}"),
        Deed::Tag => format!("Tag {jobs}"),
        Deed::Untag => format!("Untag {jobs}"),
        Deed::Track => format!("Track {jobs}"),
        Deed::Untrack => format!("Untrack {jobs}"),
        Deed::Cancel => format!("Cancel or delete {jobs}"),
    }
}

/// How many jobs, as far as they were counted.
pub fn amount(jobs: i64, is_least: bool) -> String {
    let jobs = many(jobs, "job", "jobs");
    if is_least {
        format!("at least {jobs}")
    } else {
        jobs
    }
}

fn title(deed: Deed, view: &ConfirmView) -> String {
    format!("{}?", sentence(deed, &amount(view.jobs, view.is_least)))
}

fn nothing(why: &str, wish: &Wish) -> AnyView {
    let mut chars = why.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    let why = format!("{}{}.", first.unwrap_or_default(), chars.as_str());
    view! {
        <p class="notice s-stalled">
            {icon("stalled")}
            <span>
                {why} " Select jobs in the list, or choose all matching jobs. " <a href=to::search(&wish.q)>"Back to jobs"</a>
            </span>
        </p>
    }
    .into_any()
}

fn question(deed: Deed, wish: &Wish, view: &ConfirmView, visit: &Visit) -> AnyView {
    let (look, frame) = match deed {
        Deed::Cancel => ("button danger", "card padded question danger"),
        _ => ("button strong", "card padded question"),
    };
    let of = if wish.all { "all" } else { "" };
    let undo = if view.can_be_undone { "yes" } else { "" };
    let mut fields = vec![
        ("deed", wish.deed.clone()),
        ("of", of.to_owned()),
        ("q", wish.q.clone()),
        ("counted", view.jobs.to_string()),
        ("undo", undo.to_owned()),
    ];
    if !wish.all {
        fields.extend(wish.jobs.iter().map(|job| ("jobs[]", job.clone())));
    }
    let jobs = amount(view.jobs, view.is_least);
    let form = visit.may(Role::Operator).then(|| {
        view! {
            <form method="post" action=Operate::PATH>
                {hidden(fields)} {argument(deed, wish, view)}
                {view.must_type.then(|| must_type(view, visit))}
                <div class="row">
                    <button type="submit" class=look>{sentence(deed, &jobs)}</button>
                    <a class="button" href=to::search(&wish.q)>
                        "Back"
                    </a>
                </div>
            </form>
        }
    });
    view! {
        <section class=frame aria-label="Confirm">
            <p>{which(wish)}</p>
            {effect(deed, view).into_iter().map(|line| view! { <p>{line}</p> }).collect_view()}
            {samples(view)} {form}
        </section>
    }
    .into_any()
}

/// Which jobs are meant.
fn which(wish: &Wish) -> AnyView {
    if !wish.all {
        return "The selected jobs.".into_any();
    }
    if wish.q.trim().is_empty() {
        return view! { <strong>"All jobs of this server"</strong> ", of every protocol." }
            .into_any();
    }
    view! {
        "All jobs matching " <a href=to::search(&wish.q)><code>{wish.q.clone()}</code></a>
        ". Each job is re-checked before it is changed."
    }
    .into_any()
}

/// What becomes of them, in sentences.
fn effect(deed: Deed, view: &ConfirmView) -> Vec<String> {
    let mut lines = vec![match deed {
        Deed::Retry => {
            "Failed qless jobs return to their queues with all retries. Dead lmstfy and Relay jobs are respawned or \
             requeued; lmstfy jobs get no expiry. Other jobs are skipped."
        }
        Deed::Cancel => {
            "Cancels qless jobs and deletes lmstfy, Relay and Jobq jobs in any state. Workers lose the jobs they are \
             running. Complete jobs, and jobs that other remaining jobs depend on, are skipped."
        }
        Deed::Move => {
            "Moves qless jobs to that queue in any state. Workers lose the jobs they are running, and complete jobs \
             run again. Other jobs are skipped."
        }
        Deed::Priority => "Sets the priority of qless jobs; lower numbers run first. Other jobs are skipped.",
        Deed::Tag => "Adds this tag to qless jobs. Other jobs are skipped.",
        Deed::Untag => "Removes this tag from qless jobs. Other jobs are skipped.",
        Deed::Track => {
            "Lists the events of qless jobs under Tracked. Other jobs are skipped."
        }
        Deed::Untrack => "Stops tracking qless jobs. Other jobs are skipped.",
    }
    .to_owned()];
    let unable = view.jobs - view.able;
    if unable > 0 {
        lines.push(format!(
            "{} of them will be skipped because of their current state.",
            time::number(unable)
        ));
    }
    if view.is_least {
        lines.push(
            "There are too many jobs to count exactly; counting stopped after 2 s. There may be more."
                .to_owned(),
        );
    }
    if deed == Deed::Cancel {
        lines.push(if view.can_be_undone {
            "You can undo this for 30 s after it ends.".to_owned()
        } else {
            "This cannot be undone: undo covers at most 100,000 jobs and 64 MiB.".to_owned()
        });
    }
    lines
}

/// What must be said besides: a queue, a priority, a tag.
fn argument(deed: Deed, wish: &Wish, view: &ConfirmView) -> AnyView {
    let (label, kind) = match deed {
        Deed::Move => ("Target queue", "text"),
        Deed::Priority => ("Priority", "number"),
        Deed::Tag | Deed::Untag => ("Tag", "text"),
        Deed::Retry | Deed::Cancel | Deed::Track | Deed::Untrack => return ().into_any(),
    };
    view! {
        <label>
            <span>{label}</span>
            <input
                type=kind
                name="arg"
                value=wish.arg.clone()
                step=(kind == "number").then_some("any")
                list=(deed == Deed::Move).then_some("queues")
                required
                autocomplete="off"
                maxlength="255"
            />
        </label>
        {(deed == Deed::Move).then(|| queue_names("queues", &view.queues))}
    }
    .into_any()
}

/// The number of jobs, to be typed, so that nobody does it by accident.
fn must_type(view: &ConfirmView, visit: &Visit) -> AnyView {
    view! {
        <label>
            <span>{format!("Type {} to confirm", time::number(view.jobs))}</span>
            <input
                type="text"
                name="typed"
                value=visit.param("typed").unwrap_or_default()
                inputmode="numeric"
                required
                autocomplete="off"
            />
        </label>
    }
    .into_any()
}

/// A few of the jobs.
fn samples(view: &ConfirmView) -> AnyView {
    let shown = i64::try_from(view.samples.len()).unwrap_or(i64::MAX);
    let more = view.jobs - shown;
    let row = |job: &JobRow| {
        view! {
            <li>{job_link(job)} " " {chip(job.stand)} " " {queue_name(&job.place)} " " <code class="aside">{job.glimpse.clone()}</code></li>
        }
    };
    view! {
        <ul class="samples">
            {view.samples.iter().map(row).collect_view()}
            {(more > 0).then(|| view! { <li class="aside">{format!("and {} more", time::number(more))}</li> })}
        </ul>
    }
    .into_any()
}
