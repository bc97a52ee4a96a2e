//! `/ui/relay/{queue}/job/{id}`: one Relay job; `/ui/relay/{queue}/dead/{number}`: one dead Relay job.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::time;
use crate::ui::actions::dead_letters::{DeleteDeadJobs, RequeueJob};
use crate::ui::components::basics::{card, definitions, job_head, loaded, text_card};
use crate::ui::components::commands::{copy, curl_commands};
use crate::ui::components::forms::{ConfirmDialog, confirm_dialog, delete_dialog, shortcut};
use crate::ui::components::links::queue_link;
use crate::ui::components::payload::{payload, state};
use crate::ui::components::reschedule;
use crate::ui::components::state::{chip, state_view};
use crate::ui::components::styles::NOTICE;
use crate::ui::components::time::when;
use crate::ui::components::timeline::timeline;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::queue::relay::{UNLIMITED_RETRIES, call, requeue_effect, retries};
use crate::ui::pages::relay_job::model::RelayJobView;
use crate::ui::urls;
use crate::ui::urls::encoding::encode;

#[component]
pub fn RelayJobPage() -> impl IntoView {
    let request = page_request();
    let (queue_ref, id) = request.queue_and_job();
    loaded(load::relay_job(queue_ref, id), move |job| {
        page(&job, &request)
    })
}

#[component]
pub fn DeadRelayJobPage() -> impl IntoView {
    let request = page_request();
    let (queue_ref, id) = request.queue_and_job();
    loaded(load::dead_relay_job(queue_ref, id), move |job| {
        page(&job, &request)
    })
}

fn page(job: &RelayJobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let dead = (row.state == EffectiveState::Dead).then(|| {
        view! { <a href=urls::state(&row.queue_ref, EffectiveState::Dead)>"dead"</a> }.into_any()
    });
    view! {
        {job_head(&row.queue_ref, &row.id, dead, chip(row.state), actions(job, request))}
        {(row.state == EffectiveState::Dead).then(|| view! {
            <p class=format!("{NOTICE} text-dead")>
                "This job has no retries left. Clients no longer see it and can reuse its ID. It stays here for 30 days unless you requeue or delete it."
            </p>
        })}
        {card("facts", "Details", facts(job, request))}
        <div class="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
            {text_card("data", "Payload", job.payload.len(), copy("payload".to_owned(), "Copy the payload".to_owned()), payload(&job.payload, request))}
            {stored_state(job)}
        </div>
        {card("timeline", "Timeline", timeline(row, &job.times, request.now))}
        {(row.state != EffectiveState::Dead).then(|| curl(job, request))}
    }
    .into_any()
}

/// The card with the stored state of the job, or the note that it has none.
fn stored_state(job: &RelayJobView) -> AnyView {
    match &job.state {
        Some(text) => text_card("kept", "State", text.len(), copy("state".to_owned(), "Copy the state".to_owned()), state(text)),
        None => card("kept", "State", view! {
            <p class="text-muted wrap-anywhere">"No state. It is set when the job is enqueued, or by heartbeats. Each run starts with the state of the previous run."</p>
        }
        .into_any()),
    }
}

fn facts(job: &RelayJobView, request: &PageRequest) -> AnyView {
    let (row, times) = (&job.row, &job.times);
    let moment = |moment: i64| when(moment, request.now);
    let mut facts: Vec<(&str, AnyView)> = vec![
        ("Queue", queue_link(&row.queue_ref)),
        ("State", state_view(row)),
        ("State since", moment(times.state_since)),
    ];
    if let Some(run) = &job.run_id {
        facts.push((
            "Run",
            view! { <code class="id">{run.clone()}</code> }.into_any(),
        ));
    }
    if let Some(end) = times.expires {
        let name = if end > request.now {
            "Timeout ends"
        } else {
            "Timeout ended"
        };
        facts.push((name, moment(end)));
    }
    facts.push(("Timeout", timeout(job)));
    facts.push(("Retries left", left(job)));
    facts.push(("Run at", moment(times.available_at)));
    facts.extend(job.updated.map(|updated| ("Updated", moment(updated))));
    facts.push(("Enqueued", moment(times.created)));
    definitions(facts)
}

fn timeout(job: &RelayJobView) -> AnyView {
    view! {
        {format!("{} s", time::number(job.timeout_s))}
        <span class="text-muted wrap-anywhere">" · between heartbeats"</span>
    }
    .into_any()
}

fn left(job: &RelayJobView) -> AnyView {
    let more = match job.row.retries {
        UNLIMITED_RETRIES => "",
        _ => " · each timeout uses one",
    };
    view! { {retries(&job.row)} <span class="text-muted wrap-anywhere">{more}</span> }.into_any()
}

fn actions(job: &RelayJobView, request: &PageRequest) -> AnyView {
    match job.row.dead_number {
        Some(number) => actions_on_dead(job, number, request),
        None => {
            view! { {reschedule::buttons(&job.row, request)} {shortcut("c", delete(job, request))} }
                .into_any()
        }
    }
}

fn delete(job: &RelayJobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let effect = match row.state {
        EffectiveState::Running | EffectiveState::Stalled => {
            "The worker is not notified and may continue, but its next heartbeat gets a 404 and its result is ignored."
        }
        _ => "It will not run.",
    };
    delete_dialog(
        &row.queue_ref,
        &row.id,
        urls::state(&row.queue_ref, row.listed_state()),
        format!("Deletes the job with its payload and state. {effect} This cannot be undone."),
        request,
    )
}

fn actions_on_dead(job: &RelayJobView, number: i64, request: &PageRequest) -> AnyView {
    let queue_ref = &job.row.queue_ref;
    let again = confirm_dialog(ConfirmDialog {
        id: "again".to_owned(),
        button: "Requeue…".to_owned(),
        danger: false,
        title: "Requeue this job?".to_owned(),
        text: requeue_effect(queue_ref, 1),
        action: RequeueJob::PATH,
        fields: [
            queue_ref.fields(),
            vec![("number", number.to_string()), ("back", request.here())],
        ]
        .concat(),
        confirm_label: "Requeue job".to_owned(),
        cancel_label: "Close",
    });
    let delete = confirm_dialog(ConfirmDialog {
        id: "delete".to_owned(),
        button: "Delete…".to_owned(),
        danger: true,
        title: "Delete this dead job?".to_owned(),
        text: "Deletes the job with its payload and state. A newer job with the same ID is kept. This cannot be undone.".to_owned(),
        action: DeleteDeadJobs::PATH,
        fields: [
            queue_ref.fields(),
            vec![
                ("ids[]", number.to_string()),
                ("back", urls::state(queue_ref, EffectiveState::Dead)),
            ],
        ]
        .concat(),
        confirm_label: "Delete job".to_owned(),
        cancel_label: "Keep job",
    });
    view! { {shortcut("r", again)} {shortcut("c", delete)} }.into_any()
}

fn curl(job: &RelayJobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let mut id = String::new();
    encode(&row.id, &mut id);
    let call = |method: &str, rest: &[&str]| {
        let path: Vec<&str> = ["jobs", &id]
            .into_iter()
            .chain(rest.iter().copied())
            .collect();
        call(&row.queue_ref, request, method, &path)
    };
    let mut lines = vec![("Get the job", call("GET", &[]))];
    if let Some(run) = &job.run_id {
        let run = ["run-id", run];
        lines.extend([
            ("Send a heartbeat for this run", call("PATCH", &run)),
            (
                "Send a heartbeat that also sets the state",
                format!(
                    r#"{} -H 'Content-Type: application/json' -d '{{"step": 2}}'"#,
                    call("PATCH", &run)
                ),
            ),
            ("Complete this run", call("DELETE", &run)),
        ]);
    }
    lines.push(("Delete the job in any state", call("DELETE", &[])));
    curl_commands(lines)
}
