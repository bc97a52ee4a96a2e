//! `/ui/jobq/{queue}/job/{id}`: one Jobq record.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::basics::{definitions, job_head, loaded, plural};
use crate::ui::components::commands::{commands, copy, shell_quote};
use crate::ui::components::forms::{delete_dialog, shortcut};
use crate::ui::components::links::queue_link;
use crate::ui::components::payload::{payload, state};
use crate::ui::components::styles::{CARD_PADDED, SECTION_TITLE};
use crate::ui::components::time::when;
use crate::ui::components::timeline::events;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::records::model::RecordView;
use crate::ui::pages::records::{call, forms, load, state_chip};
use crate::ui::urls;

/// A state longer than this is left out of the API call, in bytes.
const COMMAND_BYTES_MAX: usize = 500;

#[component]
pub fn RecordPage() -> impl IntoView {
    let request = page_request();
    let (queue_ref, next) = request.queue();
    // The segment after the queue is `job`.
    loaded(
        load::record(queue_ref, request.name(next + 1)),
        move |record| page(&record, &request),
    )
}

fn page(record: &RecordView, request: &PageRequest) -> AnyView {
    let form_error = forms::form_error();
    let form_error = form_error.as_ref();
    let id = record.id.to_string();
    view! {
        {job_head(&record.queue_ref, &id, None, state_chip(&record.word), shortcut("c", delete(record, request)))}
        {forms::conflict(form_error, request)}
        <section class=CARD_PADDED aria-labelledby="facts">
            <h2 id="facts">"Details"</h2>
            {facts(record, request)}
        </section>
        <div class="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
            {text_card("data", "Payload", "payload", &record.payload, payload(&record.payload))}
            {text_card("kept", "State", "state", &record.state, state(&record.state))}
        </div>
        <div class="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
            {forms::advance(record, form_error, request)}
            {forms::append(form_error, request)}
        </div>
        <section class=CARD_PADDED aria-labelledby="timeline">
            <h2 id="timeline">"Timeline"</h2>
            {left_out(record)}
            {events(&record.queue_ref, &record.log)}
        </section>
        {curl(record, request)}
    }
    .into_any()
}

/// A text in a card; `of` is the ID of its element.
fn text_card(
    id: &'static str,
    title: &'static str,
    of: &'static str,
    text: &str,
    shown: AnyView,
) -> AnyView {
    let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
    view! {
        <section class=CARD_PADDED aria-labelledby=id>
            <div class=SECTION_TITLE>
                <h2 id=id>{title}</h2>
                <span class="flex flex-wrap items-center gap-2">
                    <span class="text-muted wrap-anywhere">{plural(bytes, "byte", "bytes")}</span>
                    {copy(of.to_owned(), format!("Copy the {of}"))}
                </span>
            </div>
            {shown}
        </section>
    }
    .into_any()
}

fn facts(record: &RecordView, request: &PageRequest) -> AnyView {
    let moment = |moment: i64| when(moment, request.now);
    let events = time::number(i64::try_from(record.events).unwrap_or(i64::MAX));
    let facts: [(&str, AnyView); 6] = [
        ("ID", record.id.to_string().into_any()),
        ("Queue", queue_link(&record.queue_ref)),
        ("State", state_chip(&record.word)),
        ("Changed", moment(record.modified)),
        ("Created", moment(record.created)),
        ("Events", events.into_any()),
    ];
    definitions(facts)
}

/// The note that the log is not complete.
fn left_out(record: &RecordView) -> Option<AnyView> {
    let newest = record.log.len().saturating_sub(1);
    let note = move || {
        let events = time::number(i64::try_from(record.events).unwrap_or(i64::MAX));
        view! {
            <p class="text-muted wrap-anywhere">{format!("Shows the first and the newest {newest} of {events} entries. The API returns all of them.")}</p>
        }
        .into_any()
    };
    (record.log.len() < record.events).then(note)
}

fn delete(record: &RecordView, request: &PageRequest) -> AnyView {
    let queue_ref = &record.queue_ref;
    let text = "Deletes the job with its payload, state and log. Its ID is not reused. This cannot be undone.";
    delete_dialog(
        queue_ref,
        &record.id.to_string(),
        urls::queue(queue_ref),
        text.to_owned(),
        request,
    )
}

fn curl(record: &RecordView, request: &PageRequest) -> AnyView {
    let path = |rest: &str| format!("/job/{}{rest}", record.id);
    let call = |method: &str, rest: &str| call(&record.queue_ref, request, method, &path(rest));
    let old = match record.state.len() {
        ..=COMMAND_BYTES_MAX => record.state.as_str(),
        _ => "…",
    };
    let swap = format!(r#"{{"old": {old}, "new": ["FINISHED"]}}"#);
    let lines = vec![
        ("Get the job", call("GET", "")),
        (
            "Set its state if it has not changed",
            format!("{} -d {}", call("GET", "/state"), shell_quote(&swap)),
        ),
        (
            "Append an event",
            format!(
                "{} -d {}",
                call("GET", "/event"),
                shell_quote(r#"{"progress": 0.5}"#)
            ),
        ),
        ("Delete the job", call("DELETE", "")),
    ];
    view! {
        <details>
            <summary>"API call (curl)"</summary>
            {commands("curl", lines)}
        </details>
    }
    .into_any()
}
