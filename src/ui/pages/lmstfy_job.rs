//! `/ui/lmstfy/{namespace}/{queue}/job/{id}`: one lmstfy job.

pub mod bytes;
pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::actions::dead_letters::RespawnJobs;
use crate::ui::components::basics::{card, definitions, job_head, loaded, text_card};
use crate::ui::components::commands::{copy, curl_commands};
use crate::ui::components::forms::{ConfirmDialog, confirm_dialog_with, delete_dialog, shortcut};
use crate::ui::components::links::{link_if_allowed, queue_link};
use crate::ui::components::reschedule;
use crate::ui::components::state::{chip, state_view};
use crate::ui::components::time::when;
use crate::ui::components::timeline::timeline;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::lmstfy_job::model::LmstfyJobView;
use crate::ui::pages::queue::lmstfy::{attempts, command, respawn_effect, ttl_field};
use crate::ui::urls;
use crate::ui::urls::encoding::segment;

#[component]
pub fn LmstfyJobPage() -> impl IntoView {
    let request = page_request();
    let (queue_ref, id) = request.queue_and_job();
    loaded(load::lmstfy_job(queue_ref, id), move |job| {
        page(&job, &request)
    })
}

fn page(job: &LmstfyJobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let buttons = view! {
        {copy("payload".to_owned(), "Copy the payload as shown".to_owned())}
        <a class="btn" href=urls::body(&row.queue_ref, &row.id) download="">"Download"</a>
    };
    view! {
        {job_head(&row.queue_ref, &row.id, None, chip(row.state), view! { {reschedule::buttons(row, request)} {actions(job, request)} }.into_any())}
        <div class="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
            {card("facts", "Details", facts(job, request))}
            {text_card("data", "Payload", job.bytes.len(), buttons.into_any(), bytes::body(job, request))}
        </div>
        {card("timeline", "Timeline", timeline(row, &job.times, request.now))}
        {curl(job, request)}
    }
    .into_any()
}

fn facts(job: &LmstfyJobView, request: &PageRequest) -> AnyView {
    let (row, times) = (&job.row, &job.times);
    let moment = |moment: i64| when(moment, request.now);
    let namespace = &row.queue_ref.namespace;
    let mut facts: Vec<(&str, AnyView)> = vec![
        (
            "Namespace",
            link_if_allowed(urls::namespace(namespace), namespace.clone()),
        ),
        ("Queue", queue_link(&row.queue_ref)),
        ("State", state_view(row)),
        ("State since", moment(times.state_since)),
        ("Published", moment(times.created)),
    ];
    match row.state {
        EffectiveState::Scheduled => facts.push(("Due", moment(times.available_at))),
        EffectiveState::Waiting => facts.push(("Available", moment(times.available_at))),
        EffectiveState::Running => {
            facts.extend(times.expires.map(|end| ("TTR ends", moment(end))));
            facts.push(("Consumer", nameless()));
        }
        EffectiveState::Stalled => {
            facts.extend(times.expires.map(|end| ("TTR ended", moment(end))));
            facts.push(("Consumer", nameless()));
        }
        EffectiveState::Depends
        | EffectiveState::Failed
        | EffectiveState::Complete
        | EffectiveState::Dead
        | EffectiveState::Record => {}
    }
    facts.push(("Tries left", attempts(row).into_any()));
    facts.push(("Expires", expiry(job, request)));
    facts.push(("Attributes", attributes(job)));
    definitions(facts)
}

fn nameless() -> AnyView {
    view! { "–" <span class="text-muted wrap-anywhere">" · lmstfy consumers have no names"</span> }
        .into_any()
}

fn expiry(job: &LmstfyJobView, request: &PageRequest) -> AnyView {
    match job.row.expires_at {
        Some(end) => when(end, request.now),
        None if job.row.state == EffectiveState::Dead => {
            view! { "never" <span class="text-muted wrap-anywhere">" · dead jobs are kept until deleted"</span> }
                .into_any()
        }
        None => "never".into_any(),
    }
}

fn attributes(job: &LmstfyJobView) -> AnyView {
    if job.attributes.is_empty() {
        return view! { <span class="text-muted wrap-anywhere">"none"</span> }.into_any();
    }
    let rows = job
        .attributes
        .iter()
        .map(|(name, value)| view! { <li><code>{name.clone()}</code> ": " {value.clone()}</li> });
    view! { <ul>{rows.collect_view()}</ul> }.into_any()
}

fn actions(job: &LmstfyJobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let respawn = (row.state == EffectiveState::Dead).then(|| {
        let dialog = ConfirmDialog {
            id: "respawn".to_owned(),
            button: "Respawn…".to_owned(),
            danger: false,
            title: "Respawn this job?".to_owned(),
            text: respawn_effect(&row.queue_ref, 1),
            action: RespawnJobs::PATH,
            fields: [
                row.queue_ref.fields(),
                vec![("ids[]", row.id.clone()), ("back", request.here())],
            ]
            .concat(),
            confirm_label: "Respawn job".to_owned(),
            cancel_label: "Close",
        };
        confirm_dialog_with(dialog, ttl_field("respawn"))
    });
    let effect = match row.state {
        EffectiveState::Running | EffectiveState::Stalled => {
            "The consumer that is running it is not notified and may continue, but the job is not delivered again."
        }
        EffectiveState::Dead => "It is removed from the dead letters.",
        _ => "No consumer will receive it.",
    };
    let delete = delete_dialog(
        &row.queue_ref,
        &row.id,
        urls::state(&row.queue_ref, row.listed_state()),
        format!(
            "Acknowledges the job, which deletes it and its payload. {effect} This cannot be undone."
        ),
        request,
    );
    view! { {respawn.map(|respawn| shortcut("r", respawn))} {shortcut("c", delete)} }.into_any()
}

fn curl(job: &LmstfyJobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let path = format!("/job/{}", segment(&row.id));
    let call = |method: &str| command(&row.queue_ref, request, method, &path, "");
    curl_commands(vec![
        ("Get the job", call("GET")),
        ("Acknowledge (delete) the job", call("DELETE")),
    ])
}
