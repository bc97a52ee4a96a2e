//! `/ui/jobq/{queue}/job/{id}`: one record of Jobq.

use leptos::prelude::*;

use super::super::parts::{
    commands, copy, definitions, deleting, hot, job_head, loaded, many, queue_link, quoted, when,
};
use super::super::payload::{payload, state};
use super::super::timeline::events;
use super::super::visit::{Visit, to, visit};
use super::{call, forms, state_chip};
use crate::api::read;
use crate::api::views::RecordView;
use crate::time;

/// A state longer than this in bytes is not put into a command.
const COMMAND_BYTES_MAX: usize = 500;

#[component]
pub fn RecordPage() -> impl IntoView {
    let visit = visit();
    let (place, next) = visit.place();
    // After the queue's name stands `job`.
    loaded(read::record(place, visit.name(next + 1)), move |record| {
        page(&record, &visit)
    })
}

fn page(record: &RecordView, visit: &Visit) -> AnyView {
    let undone = forms::undone();
    let undone = undone.as_ref();
    let id = record.id.to_string();
    view! {
        {job_head(&record.place, &id, None, state_chip(&record.word), hot("c", delete(record, visit)))}
        {forms::conflict(undone, visit)}
        <section class="card padded" aria-labelledby="facts">
            <h2 id="facts">"Details"</h2>
            {facts(record, visit)}
        </section>
        <div class="columns even">
            {text_card("data", "Payload", "payload", &record.payload, payload(&record.payload))}
            {text_card("kept", "State", "state", &record.state, state(&record.state))}
        </div>
        <div class="columns even">
            {forms::advance(record, undone, visit)}
            {forms::append(undone, visit)}
        </div>
        <section class="card padded" aria-labelledby="timeline">
            <h2 id="timeline">"Timeline"</h2>
            {left_out(record)}
            {events(&record.place, &record.log)}
        </section>
        {curl(record, visit)}
    }
    .into_any()
}

/// A text in a card of its own; `of` is the element in which it stands.
fn text_card(
    id: &'static str,
    title: &'static str,
    of: &'static str,
    text: &str,
    shown: AnyView,
) -> AnyView {
    let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
    view! {
        <section class="card padded" aria-labelledby=id>
            <div class="card-title">
                <h2 id=id>{title}</h2>
                <span class="row">
                    <span class="aside">{many(bytes, "byte", "bytes")}</span>
                    {copy(of.to_owned(), format!("Copy the {of}"))}
                </span>
            </div>
            {shown}
        </section>
    }
    .into_any()
}

fn facts(record: &RecordView, visit: &Visit) -> AnyView {
    let moment = |moment: i64| when(moment, visit.now);
    let events = time::number(i64::try_from(record.events).unwrap_or(i64::MAX));
    let facts: [(&str, AnyView); 6] = [
        ("ID", record.id.to_string().into_any()),
        ("Queue", queue_link(&record.place)),
        ("State", state_chip(&record.word)),
        ("Changed", moment(record.modified)),
        ("Created", moment(record.created)),
        ("Events", events.into_any()),
    ];
    definitions(facts)
}

/// That a log is too long to be shown whole.
fn left_out(record: &RecordView) -> Option<AnyView> {
    let newest = record.log.len().saturating_sub(1);
    let note = move || {
        let events = time::number(i64::try_from(record.events).unwrap_or(i64::MAX));
        view! {
            <p class="aside">{format!("Shows the first and the newest {newest} of {events} entries. The API returns all of them.")}</p>
        }
        .into_any()
    };
    (record.log.len() < record.events).then(note)
}

fn delete(record: &RecordView, visit: &Visit) -> AnyView {
    let place = &record.place;
    let text = "Deletes the job with its payload, state and log. Its ID is not reused. This cannot be undone.";
    deleting(
        place,
        &record.id.to_string(),
        to::queue(place),
        text.to_owned(),
        visit,
    )
}

fn curl(record: &RecordView, visit: &Visit) -> AnyView {
    let path = |rest: &str| format!("/job/{}{rest}", record.id);
    let call = |method: &str, rest: &str| call(&record.place, visit, method, &path(rest));
    let old = match record.state.len() {
        ..=COMMAND_BYTES_MAX => record.state.as_str(),
        _ => "…",
    };
    let swap = format!(r#"{{"old": {old}, "new": ["FINISHED"]}}"#);
    let lines = vec![
        ("Get the job", call("GET", "")),
        (
            "Set its state if it is still this",
            format!("{} -d {}", call("GET", "/state"), quoted(&swap)),
        ),
        (
            "Append an event",
            format!(
                "{} -d {}",
                call("GET", "/event"),
                quoted(r#"{"progress": 0.5}"#)
            ),
        ),
        ("Delete the job", call("DELETE", "")),
    ];
    view! {
        <details class="more">
            <summary>"API call (curl)"</summary>
            {commands("curl", lines)}
        </details>
    }
    .into_any()
}
