//! `/ui/put`: the form for a new qless job. `?queue=` fills in the queue, `?like=` copies another job.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::components::basics::loaded;
use crate::ui::components::commands::escape_textarea;
use crate::ui::components::forms::queue_field;
use crate::ui::components::icons::icon;
use crate::ui::components::links::queue_link;
use crate::ui::components::styles::{CARD_PADDED, CRUMB, FIELDS};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::page_request::page_request;
use crate::ui::pages::put::model::{NewJob, NewJobView, RejectedJob};
use crate::ui::urls;

#[component]
pub fn PutPage() -> impl IntoView {
    let request = page_request();
    let queue = request.param("queue").unwrap_or_default();
    let like = request.param("like").unwrap_or_default();
    let rejected: Option<RejectedJob> = use_context();
    loaded(load::new_job(queue, like.clone()), move |view| {
        page(view, &like, rejected)
    })
}

fn page(view: NewJobView, like: &str, rejected: Option<RejectedJob>) -> AnyView {
    let (form, why) = match rejected {
        Some(RejectedJob { typed, why }) => (typed, Some(why)),
        None => (view.form, None),
    };
    let queue_ref = QueueRef::qless(&form.queue);
    let crumb = (!form.queue.is_empty()).then(|| {
        view! { <p class=CRUMB><a href="/ui/queues">"Queues"</a> <span aria-hidden="true">" › "</span> {queue_link(&queue_ref)}</p> }
    });
    let left_out = (view.is_without_payload)
        .then_some(" Its payload was not copied, because it is larger than 1 MiB.");
    let lead = (!like.is_empty()).then(|| {
        let text = match view.is_copy {
            true => view! { "Copied from job " <a class="id" href=urls::qless_job(like)>{like.to_owned()}</a> ". The new job gets its own ID." {left_out} }.into_any(),
            false => format!("Job “{like}” not found, so nothing was copied.").into_any(),
        };
        view! { <p class="text-muted wrap-anywhere">{text}</p> }
    });
    view! {
        <Title text="Add job" />
        {crumb}
        <h1>"Add job"</h1>
        {lead}
        // A refresh keeps what was typed.
        <section id="put" class=CARD_PADDED aria-label="The job" data-keep="">
            {why.map(|why| view! { <p class="mt-1 flex gap-1.5 text-sm text-failed [&_svg]:mt-0.5" role="alert">{icon("failed")} <span>{why}</span></p> })}
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
        <form method="post" action="/ui/put" class=FIELDS>
            {queue_field("put-queue", "queue", &form.queue, queues)}
            {lines.into_iter().collect_view()}
            <div class="flex-[1_0_100%]">
                <label for="put-data">"Payload (JSON)"</label>
                <textarea id="put-data" name="data" rows="8" spellcheck="false" autocomplete="off">{escape_textarea(&form.data)}</textarea>
            </div>
            <div class="flex-[1_0_100%]">
                <label for="put-depends">"Depends on job IDs (optional, separated by spaces)"</label>
                <textarea id="put-depends" name="depends" rows="2" spellcheck="false" autocomplete="off">{escape_textarea(&form.depends)}</textarea>
            </div>
            <button type="submit" class="btn btn-strong">"Add job"</button>
        </form>
    }
    .into_any()
}
