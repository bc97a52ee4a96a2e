//! `/ui/lmstfy/{namespace}/{queue}/job/{id}`: one lmstfy job.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::super::parts::{
    Ask, ask_with, chip, commands, copy, definitions, deleting, hot, job_head, link_if_seen,
    loaded, many, queue_link, standing, when,
};
use super::super::timeline::timeline;
use super::super::visit::{Visit, segment, to, visit};
use super::{bytes, command, respawning, tries, ttl_field};
use crate::api::act::RespawnJobs;
use crate::api::read;
use crate::api::views::{LmstfyJobView, Stand};

#[component]
pub fn LmstfyJobPage() -> impl IntoView {
    let visit = visit();
    let (place, next) = visit.place();
    // After the queue's name stands `job`.
    loaded(read::lmstfy_job(place, visit.name(next + 1)), move |job| {
        page(&job, &visit)
    })
}

fn page(job: &LmstfyJobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let size = i64::try_from(job.bytes.len()).unwrap_or(i64::MAX);
    view! {
        {job_head(&row.place, &row.id, None, chip(row.stand), actions(job, visit))}
        <div class="columns even">
            <section class="card padded" aria-labelledby="facts">
                <h2 id="facts">"Details"</h2>
                {facts(job, visit)}
            </section>
            <section class="card padded" aria-labelledby="data">
                <div class="card-title">
                    <h2 id="data">"Body"</h2>
                    <span class="row">
                        <span class="aside">{many(size, "byte", "bytes")}</span>
                        {copy("payload".to_owned(), "Copy the body as shown".to_owned())}
                        <a class="button" href=to::body(&row.place, &row.id) download="">"Download"</a>
                    </span>
                </div>
                {bytes::body(job, visit)}
            </section>
        </div>
        <section class="card padded" aria-labelledby="timeline">
            <h2 id="timeline">"Timeline"</h2>
            {timeline(row, &job.life, visit.now)}
        </section>
        {curl(job, visit)}
    }
    .into_any()
}

fn facts(job: &LmstfyJobView, visit: &Visit) -> AnyView {
    let (row, life) = (&job.row, &job.life);
    let moment = |moment: i64| when(moment, visit.now);
    let namespace = &row.place.namespace;
    let mut facts: Vec<(&str, AnyView)> = vec![
        (
            "Namespace",
            link_if_seen(to::namespace(namespace), namespace.clone()),
        ),
        ("Queue", queue_link(&row.place)),
        ("State", standing(row)),
        ("State since", moment(life.since)),
        ("Published", moment(life.created)),
    ];
    match row.stand {
        Stand::Scheduled => facts.push(("Due", moment(life.ready))),
        Stand::Waiting => facts.push(("Available", moment(life.ready))),
        Stand::Running => {
            facts.extend(life.expires.map(|end| ("TTR ends", moment(end))));
            facts.push(("Consumer", nameless()));
        }
        Stand::Stalled => {
            facts.extend(life.expires.map(|end| ("TTR ended", moment(end))));
            facts.push(("Consumer", nameless()));
        }
        Stand::Depends | Stand::Failed | Stand::Complete | Stand::Dead | Stand::Record => {}
    }
    facts.push(("Tries left", tries(row).into_any()));
    facts.push(("Expires", ends(job, visit)));
    facts.push(("Attributes", attributes(job)));
    definitions(facts)
}

fn nameless() -> AnyView {
    view! { "–" <span class="aside">" · lmstfy consumers have no names"</span> }.into_any()
}

fn ends(job: &LmstfyJobView, visit: &Visit) -> AnyView {
    match job.row.ends {
        Some(end) => when(end, visit.now),
        None if job.row.stand == Stand::Dead => {
            view! { "never" <span class="aside">" · dead jobs are kept until deleted"</span> }
                .into_any()
        }
        None => "never".into_any(),
    }
}

fn attributes(job: &LmstfyJobView) -> AnyView {
    if job.attributes.is_empty() {
        return view! { <span class="aside">"none"</span> }.into_any();
    }
    let rows = job
        .attributes
        .iter()
        .map(|(name, value)| view! { <li><code>{name.clone()}</code> ": " {value.clone()}</li> });
    view! { <ul class="attributes">{rows.collect_view()}</ul> }.into_any()
}

fn actions(job: &LmstfyJobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let respawn = (row.stand == Stand::Dead).then(|| {
        let ask = Ask {
            id: "respawn".to_owned(),
            button: "Respawn…".to_owned(),
            danger: false,
            title: "Respawn this job?".to_owned(),
            text: respawning(&row.place, 1),
            action: RespawnJobs::PATH,
            fields: [
                row.place.fields(),
                vec![("ids[]", row.id.clone()), ("back", visit.here())],
            ]
            .concat(),
            yes: "Respawn job".to_owned(),
            no: "Close",
        };
        ask_with(ask, ttl_field("respawn"))
    });
    let effect = match row.stand {
        Stand::Running | Stand::Stalled => {
            "The consumer that is running it is not notified and may continue, but the job is not delivered again."
        }
        Stand::Dead => "It is removed from the dead letters.",
        _ => "No consumer will receive it.",
    };
    let delete = deleting(
        &row.place,
        &row.id,
        to::stand(&row.place, row.list()),
        format!(
            "Acknowledges the job, which deletes it and its body. {effect} This cannot be undone."
        ),
        visit,
    );
    view! { {respawn.map(|respawn| hot("r", respawn))} {hot("c", delete)} }.into_any()
}

fn curl(job: &LmstfyJobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let path = format!("/job/{}", segment(&row.id));
    let call = |method: &str| command(&row.place, visit, method, &path, "");
    view! {
        <details class="more">
            <summary>"API call (curl)"</summary>
            {commands("curl", vec![("Get the job", call("GET")), ("Acknowledge (delete) the job", call("DELETE"))])}
        </details>
    }
    .into_any()
}
