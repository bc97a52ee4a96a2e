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
                "Its last retry is used up. For clients it is gone, and its id is free. It stays here for 30 days, unless somebody enqueues it again or deletes it."
            </p>
        })}
        <section class="card padded" aria-labelledby="facts">
            <h2 id="facts">"Facts"</h2>
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
            <p class="aside">"None. It is given when the job is enqueued, and by its runner’s heartbeats; the next run finds it as the last one left it."</p>
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
        ("In this state", moment(life.since)),
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
        <span class="aside">" · from one heartbeat to the next"</span>
    }
    .into_any()
}

fn left(job: &RelayJobView) -> AnyView {
    let more = match job.row.retries {
        FOR_EVER => " · it never dies",
        _ => " · one is used up when a run times out",
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
            "Its runner is not told and may go on; but its next heartbeat is answered with 404, and what it makes of the run changes nothing."
        }
        _ => "Nobody will run it.",
    };
    deleting(
        &row.place,
        &row.id,
        to::stand(&row.place, row.list()),
        format!(
            "The job, its payload and its state are gone then. {effect} This cannot be undone."
        ),
        visit,
    )
}

fn actions_on_dead(job: &RelayJobView, letter: i64, visit: &Visit) -> AnyView {
    let place = &job.row.place;
    let again = ask(Ask {
        id: "again".to_owned(),
        button: "Enqueue again…".to_owned(),
        danger: false,
        title: "Enqueue this job again?".to_owned(),
        text: enqueuing(place, 1),
        action: ReviveJob::PATH,
        fields: [
            place.fields(),
            vec![("letter", letter.to_string()), ("back", visit.here())],
        ]
        .concat(),
        yes: "Enqueue the job again".to_owned(),
        no: "Leave it",
    });
    let delete = ask(Ask {
        id: "delete".to_owned(),
        button: "Delete…".to_owned(),
        danger: true,
        title: "Delete this dead job?".to_owned(),
        text: "The job, its payload and its state are gone then. A job of the same id that is in the queue by now stays. This cannot be undone.".to_owned(),
        action: DeleteDeadJobs::PATH,
        fields: [
            place.fields(),
            vec![
                ("ids[]", letter.to_string()),
                ("back", to::stand(place, Stand::Dead)),
            ],
        ]
        .concat(),
        yes: "Delete the job".to_owned(),
        no: "Keep it",
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
    let mut lines = vec![("Look at it", call("GET", &[]))];
    if let Some(run) = &job.run_id {
        let run = ["run-id", run];
        lines.extend([
            ("A heartbeat of this run", call("PATCH", &run)),
            (
                "A heartbeat that sets the state, too",
                format!(
                    r#"{} -H 'Content-Type: application/json' -d '{{"step": 2}}'"#,
                    call("PATCH", &run)
                ),
            ),
            ("This run is complete", call("DELETE", &run)),
        ]);
    }
    lines.push(("Delete it, whatever it does", call("DELETE", &[])));
    view! {
        <details class="more">
            <summary>"The same by curl"</summary>
            {commands("curl", lines)}
        </details>
    }
    .into_any()
}
