//! `/ui/put`: the form for a new job of qless. `?queue=` fills in the queue, `?like=` all that another job has.

use leptos::prelude::*;
use leptos_meta::Title;

use super::icons::icon;
use super::parts::{loaded, queue_link, queue_names, written};
use super::visit::{to, visit};
use crate::api::read;
use crate::api::views::{NewJob, NewJobView, NotPut, Place};

#[component]
pub fn PutPage() -> impl IntoView {
    let visit = visit();
    let queue = visit.param("queue").unwrap_or_default();
    let like = visit.param("like").unwrap_or_default();
    let not_put: Option<NotPut> = use_context();
    loaded(read::new_job(queue, like.clone()), move |view| {
        page(view, &like, not_put)
    })
}

fn page(view: NewJobView, like: &str, not_put: Option<NotPut>) -> AnyView {
    let (form, why) = match not_put {
        Some(NotPut { typed, why }) => (typed, Some(why)),
        None => (view.form, None),
    };
    let place = Place::qless(&form.queue);
    let crumb = (!form.queue.is_empty()).then(|| {
        view! { <p class="crumb"><a href="/ui/queues">"Queues"</a> <span aria-hidden="true">" › "</span> {queue_link(&place)}</p> }
    });
    let lead = (!like.is_empty()).then(|| {
        view! { <p class="lead">"Copied from job " <a class="id" href=to::qless_job(like)>{like.to_owned()}</a> ". The new job gets its own ID."</p> }
    });
    view! {
        <Title text="Add job" />
        {crumb}
        <h1>"Add job"</h1>
        {lead}
        // What was typed stays while the page follows what happens elsewhere.
        <section id="put" class="card padded" aria-label="The job" data-keep="">
            {why.map(|why| view! { <p class="wrong" role="alert">{icon("failed")} <span>{why}</span></p> })}
            {fields(&form, &view.queues)}
        </section>
    }
    .into_any()
}

/// A field of one line.
struct Line {
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    step: Option<&'static str>,
    min: Option<&'static str>,
    max_length: Option<&'static str>,
    hint: &'static str,
}

const LINES: [Line; 6] = [
    Line::text("id", "ID (optional)"),
    Line::text("klass", "Class (optional)"),
    Line::number("priority", "Priority (lower runs first)", None, "0"),
    Line::number("retries", "Retries", Some("0"), "5"),
    Line::number("delay", "Delay (s)", Some("0"), "0"),
    Line {
        max_length: Some("8000"),
        hint: "vip, eu",
        ..Line::text("tags", "Tags (comma-separated)")
    },
];

impl Line {
    const fn text(name: &'static str, label: &'static str) -> Line {
        Line {
            name,
            label,
            kind: "text",
            step: None,
            min: None,
            max_length: Some("255"),
            hint: "",
        }
    }

    const fn number(
        name: &'static str,
        label: &'static str,
        min: Option<&'static str>,
        hint: &'static str,
    ) -> Line {
        Line {
            name,
            label,
            kind: "number",
            step: Some("any"),
            min,
            max_length: None,
            hint,
        }
    }
}

fn fields(form: &NewJob, queues: &[String]) -> AnyView {
    let lines = LINES.map(|line| {
        let value = match line.name {
            "id" => &form.id,
            "klass" => &form.klass,
            "priority" => &form.priority,
            "retries" => &form.retries,
            "delay" => &form.delay,
            _ => &form.tags,
        };
        let id = format!("put-{}", line.name);
        view! {
            <div>
                <label for=id.clone()>{line.label}</label>
                <input
                    id=id
                    name=line.name
                    type=line.kind
                    step=line.step
                    min=line.min
                    maxlength=line.max_length
                    placeholder=line.hint
                    value=value.clone()
                    autocomplete="off"
                />
            </div>
        }
    });
    view! {
        <form method="post" action="/ui/put" class="fields">
            <div>
                <label for="put-queue">"Queue"</label>
                <input id="put-queue" name="queue" type="text" value=form.queue.clone() list="queue-names" required maxlength="255" autocomplete="off" />
                {queue_names("queue-names", queues)}
            </div>
            {lines.into_iter().collect_view()}
            <div class="whole">
                <label for="put-data">"Data (JSON)"</label>
                <textarea id="put-data" name="data" rows="8" spellcheck="false" autocomplete="off">{written(&form.data)}</textarea>
            </div>
            <div class="whole">
                <label for="put-depends">"Depends on job IDs (optional, separated by spaces)"</label>
                <textarea id="put-depends" name="depends" rows="2" spellcheck="false" autocomplete="off">{written(&form.depends)}</textarea>
            </div>
            <button type="submit" class="button strong">"Add job"</button>
        </form>
    }
    .into_any()
}
