//! `/ui/relay/{queue}/job/{id}`: one Relay job; and `/ui/relay/{queue}/dead/{number}`: one that is dead.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::super::parts::{
    Ask, ask, chip, commands, copy, definitions, deleting, hot, job_head, loaded, many, queue_link,
    standing, when,
};
use super::super::payload::{payload, state};
use super::super::timeline::timeline;
use super::super::visit::{Visit, encode, to, visit};
use super::{FOR_EVER, call, enqueuing, retries};
use crate::api::act::{DeleteDeadJobs, ReviveJob};
use crate::api::read;
use crate::api::views::{RelayJobView, Stand};
use crate::time;

#[component]
pub fn RelayJobPage() -> impl IntoView {
    let visit = visit();
    let (place, next) = visit.place();
    // After the queue's name stands `job`.
    loaded(read::relay_job(place, visit.name(next + 1)), move |job| {
        page(&job, &visit)
    })
}

#[component]
pub fn DeadRelayJobPage() -> impl IntoView {
    let visit = visit();
    let (place, next) = visit.place();
    // After the queue's name stands `dead`.
    let found = read::dead_relay_job(place, visit.name(next + 1));
    loaded(found, move |job| page(&job, &visit))
}

fn page(job: &RelayJobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let dead = (row.stand == Stand::Dead)
        .then(|| view! { <a href=to::stand(&row.place, Stand::Dead)>"dead"</a> }.into_any());
    view! {
        {job_head(&row.place, &row.id, dead, chip(row.stand), actions(job, visit))}
        {(row.stand == Stand::Dead).then(|| view! {
            <p class="notice s-dead">
                "This job has no retries left. Clients no longer see it and can reuse its ID. It stays here for 30 days unless you requeue or delete it."
            </p>
        })}
        <section class="card padded" aria-labelledby="facts">
            <h2 id="facts">"Details"</h2>
            {facts(job, visit)}
        </section>
        <div class="columns even">
            <section class="card padded" aria-labelledby="data">
                <div class="card-title">
                    <h2 id="data">"Payload"</h2>
                    <span class="row">
                        {size(&job.payload)}
                        {copy("payload".to_owned(), "Copy the payload".to_owned())}
                    </span>
                </div>
                {payload(&job.payload)}
            </section>
            <section class="card padded" aria-labelledby="kept">
                <div class="card-title">
                    <h2 id="kept">"State"</h2>
                    {job.state.as_ref().map(|state| view! {
                        <span class="row">
                            {size(state)}
                            {copy("state".to_owned(), "Copy the state".to_owned())}
                        </span>
                    })}
                </div>
                {kept(job)}
            </section>
        </div>
        <section class="card padded" aria-labelledby="timeline">
            <h2 id="timeline">"Timeline"</h2>
            {timeline(row, &job.life, visit.now)}
        </section>
        {(row.stand != Stand::Dead).then(|| curl(job, visit))}
    }
    .into_any()
}

fn size(text: &str) -> AnyView {
    let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
    view! { <span class="aside">{many(bytes, "byte", "bytes")}</span> }.into_any()
}

/// The state, or that there is none.
fn kept(job: &RelayJobView) -> AnyView {
    match &job.state {
        Some(text) => state(text),
        None => view! {
            <p class="aside">"No state. It is set when the job is enqueued or by heartbeats; each run starts with the state of the last one."</p>
        }
        .into_any(),
    }
}

fn facts(job: &RelayJobView, visit: &Visit) -> AnyView {
    let (row, life) = (&job.row, &job.life);
    let moment = |moment: i64| when(moment, visit.now);
    let mut facts: Vec<(&str, AnyView)> = vec![
        ("Queue", queue_link(&row.place)),
        ("State", standing(row)),
        ("State since", moment(life.since)),
    ];
    if let Some(run) = &job.run_id {
        facts.push((
            "Run",
            view! { <code class="id">{run.clone()}</code> }.into_any(),
        ));
    }
    if let Some(end) = life.expires {
        let name = if end > visit.now {
            "Timeout ends"
        } else {
            "Timeout ended"
        };
        facts.push((name, moment(end)));
    }
    facts.push(("Timeout", timeout(job)));
    facts.push(("Retries left", left(job)));
    facts.push(("Run at", moment(life.ready)));
    facts.extend(job.updated.map(|updated| ("Updated", moment(updated))));
    facts.push(("Enqueued", moment(life.created)));
    definitions(facts)
}

fn timeout(job: &RelayJobView) -> AnyView {
    view! {
        {format!("{} s", time::number(job.timeout_s))}
        <span class="aside">" · between heartbeats"</span>
    }
    .into_any()
}

fn left(job: &RelayJobView) -> AnyView {
    let more = match job.row.retries {
        FOR_EVER => "",
        _ => " · each timeout uses one",
    };
    view! { {retries(&job.row)} <span class="aside">{more}</span> }.into_any()
}

fn actions(job: &RelayJobView, visit: &Visit) -> AnyView {
    match job.row.letter {
        Some(letter) => actions_on_dead(job, letter, visit),
        None => hot("c", delete(job, visit)),
    }
}

fn delete(job: &RelayJobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let effect = match row.stand {
        Stand::Running | Stand::Stalled => {
            "The runner is not notified and may continue, but its next heartbeat gets a 404 and its result is ignored."
        }
        _ => "It will not run.",
    };
    deleting(
        &row.place,
        &row.id,
        to::stand(&row.place, row.list()),
        format!("Deletes the job with its payload and state. {effect} This cannot be undone."),
        visit,
    )
}

fn actions_on_dead(job: &RelayJobView, letter: i64, visit: &Visit) -> AnyView {
    let place = &job.row.place;
    let again = ask(Ask {
        id: "again".to_owned(),
        button: "Requeue…".to_owned(),
        danger: false,
        title: "Requeue this job?".to_owned(),
        text: enqueuing(place, 1),
        action: ReviveJob::PATH,
        fields: [
            place.fields(),
            vec![("letter", letter.to_string()), ("back", visit.here())],
        ]
        .concat(),
        yes: "Requeue job".to_owned(),
        no: "Close",
    });
    let delete = ask(Ask {
        id: "delete".to_owned(),
        button: "Delete…".to_owned(),
        danger: true,
        title: "Delete this dead job?".to_owned(),
        text: "Deletes the job with its payload and state. A newer job with the same ID is kept. This cannot be undone.".to_owned(),
        action: DeleteDeadJobs::PATH,
        fields: [
            place.fields(),
            vec![
                ("ids[]", letter.to_string()),
                ("back", to::stand(place, Stand::Dead)),
            ],
        ]
        .concat(),
        yes: "Delete job".to_owned(),
        no: "Keep job",
    });
    view! { {hot("r", again)} {hot("c", delete)} }.into_any()
}

fn curl(job: &RelayJobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let mut id = String::new();
    encode(&row.id, &mut id);
    let call = |method: &str, rest: &[&str]| {
        let path: Vec<&str> = ["jobs", &id]
            .into_iter()
            .chain(rest.iter().copied())
            .collect();
        call(&row.place, visit, method, &path)
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
    view! {
        <details class="more">
            <summary>"API call (curl)"</summary>
            {commands("curl", lines)}
        </details>
    }
    .into_any()
}
