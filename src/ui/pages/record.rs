//! `/ui/jobq/{queue}/job/{id}`: one Jobq record.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::basics::{card, definitions, job_head, loaded, number_of, text_card};
use crate::ui::components::commands::{copy, curl_commands, shell_quote};
use crate::ui::components::forms::{delete_dialog, shortcut};
use crate::ui::components::links::queue_link;
use crate::ui::components::payload::{payload, state};
use crate::ui::components::styles::CARD_PADDED;
use crate::ui::components::time::when;
use crate::ui::components::timeline::events;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::records::model::RecordView;
use crate::ui::pages::records::{call, forms, load, state_chip};
use crate::ui::urls;

/// Maximum size of a state in the API call, in bytes; a longer one is left out.
const COMMAND_BYTES_MAX: usize = 500;

#[component]
pub fn RecordPage() -> impl IntoView {
    let request = page_request();
    let (queue_ref, id) = request.queue_and_job();
    loaded(load::record(queue_ref, id), move |record| {
        page(&record, &request)
    })
}

fn page(record: &RecordView, request: &PageRequest) -> AnyView {
    let form_error = forms::form_error();
    let form_error = form_error.as_ref();
    let id = record.id.to_string();
    view! {
        {job_head(&record.queue_ref, &id, None, state_chip(&record.word), shortcut("c", delete(record, request)))}
        {forms::conflict(form_error, request)}
        {card("facts", "Details", facts(record, request))}
        <div class="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
            {text_card("data", "Payload", record.payload.len(), copy("payload".to_owned(), "Copy the payload".to_owned()), payload(&record.payload, request))}
            {text_card("kept", "State", record.state.len(), copy("state".to_owned(), "Copy the state".to_owned()), state(&record.state))}
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

fn facts(record: &RecordView, request: &PageRequest) -> AnyView {
    let moment = |moment: i64| when(moment, request.now);
    let events = time::number(number_of(record.events));
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
        let events = time::number(number_of(record.events));
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
    curl_commands(lines)
}
