//! `/ui/jobs/{id}`: one job with everything that is known of it.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use super::parts::{
    Ask, ago, api, ask, chip, commands, copy, exact, hidden, json, loaded, many, queue_link,
    quoted, worker_link,
};
use super::payload::payload;
use super::tables;
use super::timeline::timeline;
use super::visit::{Visit, segment, to, visit};
use crate::api::act::{Cancel, MoveJob, Prioritize};
use crate::api::read;
use crate::api::views::{FailureNote, JobView, Relatives, Stand};

#[component]
pub fn JobPage() -> impl IntoView {
    let visit = visit();
    loaded(read::job(visit.name(2)), move |job| page(&job, &visit))
}

fn page(job: &JobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let name = row.klass.clone().unwrap_or_else(|| "Job".to_owned());
    view! {
        <Title text=format!("{name} {}", row.id) />
        <p class="crumb">
            <a href="/ui/queues">"Queues"</a> <span aria-hidden="true">" › "</span> {queue_link(&row.queue)}
        </p>
        <div class="head-row">
            <h1>
                <span class="name">{name}</span> {chip(row.stand)}
            </h1>
            <div class="row">{actions(job, visit)}</div>
        </div>
        <p class="lead row">
            <code id="jid" class="id">{row.id.clone()}</code> {copy("jid".to_owned(), "Copy the id".to_owned())}
        </p>
        {row.failure.as_ref().map(|failure| failure_card(failure, row.stand, visit))}
        <div class="columns even">
            <section class="card padded" aria-labelledby="facts">
                <h2 id="facts">"Facts"</h2>
                {facts(job, visit)}
            </section>
            <section class="card padded" aria-labelledby="data">
                <div class="card-title">
                    <h2 id="data">"Payload"</h2>
                    <span class="row">
                        <span class="aside">{many(i64::try_from(job.body.len()).unwrap_or(i64::MAX), "byte", "bytes")}</span>
                        {copy("payload".to_owned(), "Copy the payload".to_owned())}
                    </span>
                </div>
                {payload(&job.body)}
            </section>
        </div>
        <section class="card padded" aria-labelledby="timeline">
            <h2 id="timeline">"Timeline"</h2>
            {timeline(job, visit.now)}
        </section>
        <div class="columns">
            {relatives("Waits for", &job.dependencies)}
            {relatives("Awaited by", &job.dependents)}
        </div>
        {curl(job, visit)}
    }
    .into_any()
}

fn facts(job: &JobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let now = visit.now;
    let moment = |moment: i64| {
        view! { {ago(moment, now)} <span class="aside">" · " {exact(moment)}</span> }.into_any()
    };
    let mut facts: Vec<(&str, AnyView)> = vec![
        ("Queue", queue_link(&row.queue)),
        ("In this state", moment(job.since)),
        ("Created", moment(job.created)),
    ];
    match row.stand {
        Stand::Scheduled => facts.push(("Due", moment(job.ready))),
        Stand::Waiting => facts.push(("Available", moment(job.ready))),
        Stand::Running => facts.extend(job.expires.map(|end| ("Lease ends", moment(end)))),
        Stand::Stalled => facts.extend(job.expires.map(|end| ("Lease ended", moment(end)))),
        Stand::Depends | Stand::Failed | Stand::Complete => {}
    }
    if let Some(worker) = &row.worker {
        facts.push(("Worker", worker_link(worker)));
    }
    facts.push((
        "Priority",
        view! { {row.priority.to_string()} <span class="aside">" · lowest runs first"</span> }
            .into_any(),
    ));
    facts.push((
        "Retries left",
        format!("{} of {}", row.remaining.max(0), row.retries).into_any(),
    ));
    if !row.tags.is_empty() {
        let tags = row
            .tags
            .iter()
            .map(|tag| view! { <span class="tag">{tag.clone()}</span> })
            .collect_view();
        facts.push(("Tags", tags.into_any()));
    }
    let rows = facts
        .into_iter()
        .map(|(name, value)| view! { <div><dt>{name}</dt> <dd>{value}</dd></div> });
    view! { <dl class="facts">{rows.collect_view()}</dl> }.into_any()
}

/// What can be done with the job as it stands.
fn actions(job: &JobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let retry = (row.stand == Stand::Failed).then(|| tables::retry_one(&row.id, visit));
    let cancel = (row.stand != Stand::Complete).then(|| {
        ask(Ask {
            id: "cancel".to_owned(),
            button: "Cancel…".to_owned(),
            danger: true,
            title: "Cancel this job?".to_owned(),
            text: match &row.worker {
                Some(worker) => format!(
                    "The job and its history are gone then, and {worker}, which works on it, cannot complete it any more. This cannot be undone."
                ),
                None => "The job and its history are gone then. This cannot be undone.".to_owned(),
            },
            action: Cancel::PATH,
            fields: vec![
                ("id", row.id.clone()),
                ("back", visit.here()),
                ("after", to::stand(&row.queue, row.stand)),
            ],
            yes: "Cancel the job".to_owned(),
            no: "Keep it",
        })
    });
    let priority = (row.stand != Stand::Complete).then(|| priority_form(job, visit));
    view! { {retry} {priority} {move_form(job, visit)} {cancel} }.into_any()
}

fn priority_form(job: &JobView, visit: &Visit) -> AnyView {
    let effect = match job.row.stand {
        Stand::Waiting => "Its place in the queue changes at once.",
        _ => "It counts once the job waits in its queue.",
    };
    view! {
        <button type="button" class="button" popovertarget="priority">"Priority…"</button>
        <div id="priority" class="ask" popover="auto" role="dialog" aria-labelledby="priority-title">
            <h2 id="priority-title">"Change the priority"</h2>
            <p>{format!("The lowest number runs first. {effect}")}</p>
            <form method="post" action=Prioritize::PATH>
                {hidden(vec![("id", job.row.id.clone()), ("back", visit.here())])}
                <label for="priority-value">"Priority"</label>
                <input
                    id="priority-value"
                    name="priority"
                    type="number"
                    step="any"
                    value=job.row.priority.to_string()
                    required
                    autocomplete="off"
                />
                <div class="row">
                    <button type="submit" class="button strong">"Change it"</button>
                    <button type="button" class="button" popovertarget="priority" popovertargetaction="hide">"Leave it"</button>
                </div>
            </form>
        </div>
    }
    .into_any()
}

fn move_form(job: &JobView, visit: &Visit) -> AnyView {
    let effect = if job.row.stand == Stand::Running {
        "It starts anew there, with all its retries; its worker loses it."
    } else {
        "It starts anew there, with all its retries."
    };
    view! {
        <button type="button" class="button" popovertarget="move">"Move…"</button>
        <div id="move" class="ask" popover="auto" role="dialog" aria-labelledby="move-title">
            <h2 id="move-title">"Move this job"</h2>
            <p>{effect}</p>
            <form method="post" action=MoveJob::PATH>
                {hidden(vec![("id", job.row.id.clone()), ("back", visit.here())])}
                <label for="move-queue">"Queue"</label>
                <input
                    id="move-queue"
                    name="queue"
                    type="text"
                    value=job.row.queue.clone()
                    required
                    maxlength="255"
                    autocomplete="off"
                />
                <div class="row">
                    <button type="submit" class="button strong">"Move"</button>
                    <button type="button" class="button" popovertarget="move" popovertargetaction="hide">"Leave it"</button>
                </div>
            </form>
        </div>
    }
    .into_any()
}

fn failure_card(failure: &FailureNote, stand: Stand, visit: &Visit) -> AnyView {
    let title = if stand == Stand::Failed {
        "Failure"
    } else {
        "Last failure"
    };
    view! {
        <section class="card padded failure" aria-labelledby="failure">
            <div class="card-title">
                <h2 id="failure">{title} ": " <a class="name" href=to::failure(&failure.group)>{failure.group.clone()}</a></h2>
                <span class="aside">
                    {ago(failure.when, visit.now)}
                    {(!failure.worker.is_empty()).then(|| view! { " on " {worker_link(&failure.worker)} })}
                </span>
            </div>
            <pre class="message" tabindex="0" aria-label="Message">{failure.message.clone()}</pre>
        </section>
    }
    .into_any()
}

/// The jobs before or after this one, each with where it stands.
fn relatives(title: &'static str, relatives: &Relatives) -> Option<AnyView> {
    if relatives.total == 0 {
        return None;
    }
    let rows = relatives.jobs.iter().map(|relative| {
        let job = relative.job.as_ref();
        view! {
            <tr data-key=relative.id.clone()>
                <th scope="row" class="first">
                    <a class="id" href=to::job(&relative.id)>{relative.id.clone()}</a>
                    {job.and_then(|job| job.klass.clone()).map(|klass| view! { <span class="klass">{klass}</span> })}
                </th>
                <td>{job.map(|job| chip(job.stand))}</td>
                <td class="mid">{job.map(|job| queue_link(&job.queue))}</td>
            </tr>
        }
    });
    let more = relatives.total - relatives.jobs.len().min(relatives.total);
    let columns = [("Job", "first"), ("State", ""), ("Queue", "mid")];
    let view = view! {
        <div class="card">
            <div class="card-title">
                <h2>{title}</h2>
                <span class="aside">{many(i64::try_from(relatives.total).unwrap_or(i64::MAX), "job", "jobs")}</span>
            </div>
            {tables::table(title, tables::head(&columns), rows.collect_view().into_any())}
            {(more > 0).then(|| view! { <p class="empty">{format!("And {more} more; the API lists them all.")}</p> })}
        </div>
    };
    Some(view.into_any())
}

fn curl(job: &JobView, visit: &Visit) -> AnyView {
    let id = json(&job.row.id);
    let mut lines = vec![(
        "Look at it",
        format!(
            "curl {}",
            quoted(&api(visit, &format!("/job/{}", segment(&job.row.id))))
        ),
    )];
    if job.row.stand != Stand::Complete {
        lines.push((
            "Change its priority",
            format!(
                "curl {} -d {}",
                quoted(&api(visit, "/priority")),
                quoted(&format!(
                    r#"{{"data": {{"id": {id}, "priority": {}}}}}"#,
                    job.row.priority
                ))
            ),
        ));
        lines.push((
            "Cancel it",
            format!(
                "curl {} -d {}",
                quoted(&api(visit, "/cancel")),
                quoted(&format!(r#"{{"data": {id}}}"#))
            ),
        ));
    }
    if let (Stand::Failed, Some(failure)) = (job.row.stand, &job.row.failure) {
        let group = json(&failure.group);
        lines.push((
            "Retry the oldest of its group",
            format!(
                "curl {} -d {}",
                quoted(&api(visit, &format!("/unfail/{}", segment(&job.row.queue)))),
                quoted(&format!(r#"{{"data": {{"group": {group}, "count": 1}}}}"#))
            ),
        ));
    }
    view! {
        <details class="more">
            <summary>"The same by curl"</summary>
            {commands("curl", lines)}
        </details>
    }
    .into_any()
}
