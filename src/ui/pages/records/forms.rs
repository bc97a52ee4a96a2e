//! Forms with JSON texts. The response to each is its own page, so that an error keeps the user's input
//! (`http/page_forms.rs`).

use leptos::prelude::*;

use crate::ui::components::commands::escape_textarea;
use crate::ui::components::forms::{hidden, may_post};
use crate::ui::components::icons::icon;
use crate::ui::components::styles::{CARD_PADDED, FACTS, FIELDS, QUESTION};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::records::model::{
    Conflict, NewRecord, RecordFieldErrors, RecordFormError, RecordView,
};
use crate::ui::urls;

/// Maximum size of a state that a form can edit, in bytes.
const EDITED_BYTES_MAX: usize = 200_000;

/// The error of the form whose response is this page.
pub fn form_error() -> Option<RecordFormError> {
    use_context()
}

/// A field for JSON, with its error.
struct Field<'a> {
    id: &'static str,
    name: &'static str,
    label: &'static str,
    text: &'a str,
    example: &'static str,
    required: bool,
    wrong: Option<&'a str>,
}

fn field(field: &Field<'_>) -> AnyView {
    let wrong_id = format!("{}-wrong", field.id);
    let wrong = field.wrong.map(|wrong| {
        view! { <p id=wrong_id.clone() class="mt-1 flex gap-1.5 text-sm text-failed [&_svg]:mt-0.5">{icon("failed")} <span>{wrong.to_owned()}</span></p> }
    });
    view! {
        <div class="flex-[1_0_100%]">
            <label for=field.id>{field.label}</label>
            <textarea
                id=field.id
                name=field.name
                rows="3"
                spellcheck="false"
                autocomplete="off"
                placeholder=field.example
                required=field.required
                aria-invalid=field.wrong.map(|_| "true")
                aria-describedby=field.wrong.map(|_| wrong_id.clone())
            >{escape_textarea(field.text)}</textarea>
            {wrong}
        </div>
    }
    .into_any()
}

/// The form for a new record.
pub fn create(queue_ref: &QueueRef, open: bool) -> AnyView {
    if !may_post(&urls::queue(queue_ref)) {
        return ().into_any();
    }
    let (typed, wrong) = match form_error() {
        Some(RecordFormError::Create(typed, wrong)) => (typed, Some(wrong)),
        _ => (NewRecord::default(), None),
    };
    let is_rejected = wrong.is_some();
    let RecordFieldErrors { payload, state } = wrong.unwrap_or_default();
    view! {
        <section id="create" class=CARD_PADDED aria-labelledby="new" data-keep=is_rejected.then_some("")>
            <details open=open || is_rejected>
                <summary><h2 id="new">"Create job"</h2></summary>
                <form method="post" action=urls::queue(queue_ref) class=FIELDS>
                    {field(&Field {
                        id: "new-payload",
                        name: "payload",
                        label: "Payload (JSON)",
                        text: &typed.payload,
                        example: r#"{"host": "db"}"#,
                        required: true,
                        wrong: payload.as_deref(),
                    })}
                    {field(&Field {
                        id: "new-state",
                        name: "state",
                        label: "State (JSON, optional)",
                        text: &typed.state,
                        example: r#"["CREATED"]"#,
                        required: false,
                        wrong: state.as_deref(),
                    })}
                    <button type="submit" class="btn btn-strong">"Create"</button>
                </form>
            </details>
        </section>
    }
    .into_any()
}

/// The form for a new state. It also sends the state that the page shows, so that a concurrent change is detected.
pub fn advance(
    view: &RecordView,
    form_error: Option<&RecordFormError>,
    request: &PageRequest,
) -> AnyView {
    if !may_post(&request.path) {
        return ().into_any();
    }
    let (old, new, why) = match form_error {
        Some(RecordFormError::Advance { old, new, why }) => (old, new.as_str(), Some(why.as_str())),
        _ if view.state == "null" => (&view.state, "", None),
        _ => (&view.state, view.state.as_str(), None),
    };
    let form = if view.state.len() > EDITED_BYTES_MAX {
        view! { <p class="text-muted wrap-anywhere">"The state is too long to edit here. Set it through the API."</p> }
            .into_any()
    } else {
        view! {
            <form method="post" action=request.path.clone() class=FIELDS>
                {hidden(vec![("do", "state".to_owned()), ("old", old.clone())])}
                <div class="flex-[1_0_100%] text-muted wrap-anywhere">
                    <p>"Updates the job only if its state is still this; otherwise shows both values."</p>
                    <pre class="mt-1 max-h-16 overflow-auto rounded-md bg-page px-2.5 py-1 wrap-anywhere whitespace-pre-wrap text-ink" tabindex="0" aria-label="Expected state">{old.clone()}</pre>
                </div>
                {field(&Field {
                    id: "new-state",
                    name: "new",
                    label: "New state (JSON)",
                    text: new,
                    example: r#"["CREATED"]"#,
                    required: true,
                    wrong: why,
                })}
                <button type="submit" class="btn btn-strong">"Set state"</button>
            </form>
        }
        .into_any()
    };
    view! {
        <section
            id="advance"
            class=CARD_PADDED
            aria-labelledby="advance-title"
            data-keep=why.map(|_| "")
            data-keep-typed=""
        >
            <h2 id="advance-title">"Set state"</h2>
            {form}
        </section>
    }
    .into_any()
}

/// The form for a new event.
pub fn append(form_error: Option<&RecordFormError>, request: &PageRequest) -> AnyView {
    if !may_post(&request.path) {
        return ().into_any();
    }
    let (event, why) = match form_error {
        Some(RecordFormError::Append { event, why }) => (event.as_str(), Some(why.as_str())),
        _ => ("", None),
    };
    view! {
        <section id="append" class=CARD_PADDED aria-labelledby="append-title" data-keep=why.map(|_| "")>
            <h2 id="append-title">"Append event"</h2>
            <form method="post" action=request.path.clone() class=FIELDS>
                {hidden(vec![("do", "event".to_owned())])}
                <p class="flex-[1_0_100%] text-muted wrap-anywhere">"Adds an entry to the log. The state does not change."</p>
                {field(&Field {
                    id: "new-event",
                    name: "event",
                    label: "Event (JSON)",
                    text: event,
                    example: r#"{"progress": 0.5}"#,
                    required: true,
                    wrong: why,
                })}
                <button type="submit" class="btn btn-strong">"Append"</button>
            </form>
        </section>
    }
    .into_any()
}

/// The note that the state has changed since the page was loaded.
pub fn conflict(form_error: Option<&RecordFormError>, request: &PageRequest) -> AnyView {
    let inner = match form_error {
        Some(RecordFormError::Conflict(conflict)) => differing(conflict, request),
        _ => ().into_any(),
    };
    view! { <div id="conflict" data-keep="">{inner}</div> }.into_any()
}

fn differing(conflict: &Conflict, request: &PageRequest) -> AnyView {
    let Conflict { shown, now, wanted } = conflict;
    let state = |name: &'static str, text: &str| {
        view! { <div><dt>{name}</dt> <dd><code>{text.to_owned()}</code></dd></div> }
    };
    let fields = vec![
        ("do", "state".to_owned()),
        ("old", now.clone()),
        ("new", wanted.clone()),
    ];
    view! {
        <section class=format!("{QUESTION} border-l-failed") role="alert" aria-labelledby="conflict-title">
            <h2 id="conflict-title" class="text-failed">{icon("stalled")} " State not set: it has changed since you loaded the page"</h2>
            <dl class=format!("{FACTS} [&_code]:block [&_code]:max-h-45 [&_code]:overflow-auto [&_code]:whitespace-pre-wrap")>
                {state("You saw", shown)}
                {state("Now", now)}
                {state("Your value", wanted)}
            </dl>
            <form method="post" action=request.path.clone()>
                {hidden(fields)}
                <div class="flex flex-wrap items-center gap-2">
                    <button type="submit" class="btn btn-danger btn-strong">"Set anyway"</button>
                    <a class="btn" href=request.path.clone()>"Keep the current state"</a>
                </div>
            </form>
        </section>
    }
    .into_any()
}
