//! `/ui/edit?job=`: retries a failed job with another payload, or after a delay.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::components::basics::loaded;
use crate::ui::components::commands::escape_textarea;
use crate::ui::components::forms::hidden;
use crate::ui::components::icons::icon;
use crate::ui::components::links::queue_link;
use crate::ui::components::payload::formatter::format;
use crate::ui::components::state::chip;
use crate::ui::components::styles::{CARD_PADDED, CRUMB, FIELDS, NOTICE};
use crate::ui::components::time::ago;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::edit::model::{EditView, EditedJob, RejectedEdit};
use crate::ui::urls;

#[component]
pub fn EditPage() -> impl IntoView {
    let request = page_request();
    let rejected: Option<RejectedEdit> = use_context();
    let id = match &rejected {
        Some(rejected) => rejected.typed.id.clone(),
        None => request.param("job").unwrap_or_default(),
    };
    loaded(load::edit(id), move |view| page(&view, rejected, &request))
}

fn page(view: &EditView, rejected: Option<RejectedEdit>, request: &PageRequest) -> AnyView {
    let row = &view.row;
    let (typed, why) = match rejected {
        Some(RejectedEdit { typed, why }) => (Some(typed), Some(why)),
        None => (None, None),
    };
    let is_failed = row.state == EffectiveState::Failed;
    let failure = row.failure.as_ref().map(|failure| {
        view! { <p class="text-muted wrap-anywhere">{failure.group.clone()} ": " {failure.message.clone()}</p> }
    });
    view! {
        <Title text="Edit and retry" />
        <p class=CRUMB>
            <a href="/ui/queues">"Queues"</a> <span aria-hidden="true">" › "</span> {queue_link(&row.queue_ref)}
            <span aria-hidden="true">" › "</span> <a class="id" href=urls::qless_job(&row.id)>{row.id.clone()}</a>
        </p>
        <h1>"Edit and retry"</h1>
        <p class="flex flex-wrap items-center gap-2 text-muted">{chip(row.listed_state())} <span>{ago(row.state_time, request.now)}</span></p>
        {failure}
        // A refresh keeps what was typed, and the state that the user has seen.
        <section id="edit" class=CARD_PADDED aria-label="The job" data-keep="">
            {why.map(|why| view! { <p class="mt-1 flex gap-1.5 text-sm text-failed [&_svg]:mt-0.5" role="alert">{icon("failed")} <span>{why}</span></p> })}
            {if is_failed || typed.is_some() {
                fields(&view.form, typed.as_ref())
            } else {
                view! {
                    <p class=format!("{NOTICE} text-stalled")>
                        {icon("stalled")}
                        <span>"Only failed jobs can be edited. " <a href=urls::qless_job(&row.id)>"Back to the job"</a></span>
                    </p>
                }
                    .into_any()
            }}
        </section>
    }
    .into_any()
}

/// Maximum size of a payload that is shown with line breaks, in bytes. Line breaks can make a text several times as
/// long.
const INDENTED_BYTES_MAX: usize = 200_000;

/// The payload as it is edited: JSON with line breaks, whose strings and numbers are as they were.
fn indented(data: &str) -> String {
    match Some(data)
        .filter(|data| data.len() <= INDENTED_BYTES_MAX)
        .and_then(format)
    {
        Some(tokens) => tokens.into_iter().map(|(_, text)| text).collect(),
        None => data.to_owned(),
    }
}

fn fields(form: &EditedJob, typed: Option<&EditedJob>) -> AnyView {
    // The state is always the current one: after an error, the user sees it above.
    let seen = vec![
        ("id", form.id.clone()),
        ("state", form.state.clone()),
        ("since", form.since.clone()),
    ];
    let shown = typed.unwrap_or(form);
    let data = match typed {
        Some(typed) => typed.data.clone(),
        None => form.data.as_deref().map(indented),
    };
    let payload = match &data {
        Some(data) => view! {
            <label for="edit-data">"Payload (JSON)"</label>
            <textarea id="edit-data" name="data" rows="12" spellcheck="false" autocomplete="off">{escape_textarea(data)}</textarea>
        }
        .into_any(),
        None => "The payload is larger than 1 MiB, and cannot be edited here. A retry does not change it."
            .into_any(),
    };
    view! {
        // With the query, live updates of a rejected form show this page again.
        <form method="post" action=urls::edit(&form.id) class=FIELDS>
            {hidden(seen)}
            <div class="flex-[1_0_100%]">{payload}</div>
            <div>
                <label for="edit-delay">"Delay (s)"</label>
                <input
                    id="edit-delay"
                    name="delay"
                    type="number"
                    step="any"
                    min="0"
                    value=shown.delay.clone()
                    placeholder="0"
                    autocomplete="off"
                />
            </div>
            <button type="submit" class="btn btn-strong">"Retry"</button>
            <a class="btn" href=urls::qless_job(&form.id)>"Back"</a>
        </form>
    }
    .into_any()
}
