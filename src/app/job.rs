//! `/ui/jobs/{id}`: one job with everything that is known of it.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use super::icons::icon;
use super::parts::{
    ago, badge, chip, copy, deed, definitions, hot, loaded, many, may, queue_link, queue_name,
    standing, tag_link, when, worker_link,
};
use super::payload::payload;
use super::tables;
use super::timeline::timeline;
use super::visit::{Visit, to, visit};
use crate::api::act::{RemoveTag, Undepend};
use crate::api::read;
use crate::api::views::{FailureNote, JobView, Relatives, Stand};

mod acts;
mod curl;
mod graph;

/// Tags that the page of a job shows.
const TAGS_SHOWN: usize = 100;

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
            <a href="/ui/queues">"Queues"</a> <span aria-hidden="true">" › "</span> {queue_link(&row.place)}
        </p>
        <div class="head-row">
            <div class="row">
                <h1>
                    <span class="name">{name}</span> {chip(row.stand)}
                    {job.tracked.then(|| view! { <span class="chip s-tracked">{icon("tracked")} "tracked"</span> })}
                </h1>
                {badge(row.place.api)}
            </div>
            <div class="row">{acts::actions(job, visit)}</div>
        </div>
        <p class="lead row">
            <code id="jid" class="id">{row.id.clone()}</code> {hot("y", copy("jid".to_owned(), "Copy ID".to_owned()))}
        </p>
        {row.failure.as_ref().map(|failure| failure_card(failure, row.stand, visit))}
        <div class="columns even">
            <section class="card padded" aria-labelledby="facts">
                <h2 id="facts">"Details"</h2>
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
            {timeline(row, &job.life, visit.now)}
            {acts::note_form(&row.id, visit)}
        </section>
        {graph::graph(&job.graph)}
        <div class="columns">
            {relatives("Depends on", &job.dependencies, (row.stand == Stand::Depends).then_some((job, visit)))}
            {relatives("Dependents", &job.dependents, None)}
        </div>
        {curl::curl(job, visit)}
    }
    .into_any()
}

fn facts(job: &JobView, visit: &Visit) -> AnyView {
    let (row, life) = (&job.row, &job.life);
    let now = visit.now;
    let moment = |moment: i64| when(moment, now);
    let mut facts: Vec<(&str, AnyView)> = vec![
        ("Queue", queue_link(&row.place)),
        ("State", standing(row)),
        ("State since", moment(life.since)),
        ("Created", moment(life.created)),
    ];
    match row.stand {
        Stand::Scheduled => facts.push(("Due", moment(life.ready))),
        Stand::Waiting => facts.push(("Available", moment(life.ready))),
        // It may wait for others with a delay that is not over.
        Stand::Depends if life.ready > now => facts.push(("Not before", moment(life.ready))),
        Stand::Running => facts.extend(life.expires.map(|end| ("Lease ends", moment(end)))),
        Stand::Stalled => facts.extend(life.expires.map(|end| ("Lease ended", moment(end)))),
        Stand::Depends | Stand::Failed | Stand::Complete | Stand::Dead | Stand::Record => {}
    }
    if let Some(worker) = &row.worker {
        facts.push(("Worker", worker_link(worker)));
    }
    facts.push((
        "Priority",
        view! { {row.priority.to_string()} <span class="aside">" · lower numbers run first"</span> }
            .into_any(),
    ));
    facts.push((
        "Retries left",
        format!("{} of {}", row.remaining.max(0), row.retries).into_any(),
    ));
    facts.push(("Tags", tags(job, visit)));
    if let Some(origin) = &job.origin {
        let name = if origin.lives {
            view! { <a class="name" href=to::recurring(&origin.id)>{origin.id.clone()}</a> }
                .into_any()
        } else {
            view! { <span class="name">{origin.id.clone()}</span> <span class="aside">" · ended"</span> }.into_any()
        };
        facts.push(("Recurring job", name));
    }
    definitions(facts)
}

/// The job's tags, each with a button that takes it off, and a form for another one.
fn tags(job: &JobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let tags = row.tags.iter().take(TAGS_SHOWN).map(|tag| {
        let fields = vec![
            ("id", row.id.clone()),
            ("tag", tag.clone()),
            ("back", visit.here()),
        ];
        view! {
            <li data-key=tag.clone()>
                {tag_link(tag)} {deed(RemoveTag::PATH, fields, "×", format!("Remove tag {tag}"))}
            </li>
        }
    });
    let more = row.tags.len().saturating_sub(TAGS_SHOWN);
    view! {
        <ul class="tags">
            {tags.collect_view()}
            {(more > 0).then(|| view! { <li class="aside">{format!("and {more} more")}</li> })}
            <li data-key="">{hot("", acts::tag_form(&row.id, visit))}</li>
        </ul>
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

/// The jobs before or after this one, each with where it stands. `waiter` is this job, if it waits for them
/// and need not.
fn relatives(
    title: &'static str,
    relatives: &Relatives,
    waiter: Option<(&JobView, &Visit)>,
) -> Option<AnyView> {
    if relatives.total == 0 {
        return None;
    }
    let waiter = waiter.filter(|_| may(Undepend::PATH));
    let rows = relatives.jobs.iter().map(|relative| {
        let job = relative.job.as_ref();
        view! {
            <tr data-key=relative.id.clone()>
                <th scope="row" class="first">
                    <a class="id" href=to::qless_job(&relative.id)>{relative.id.clone()}</a>
                    {job.and_then(|job| job.klass.clone()).map(|klass| view! { <span class="klass">{klass}</span> })}
                </th>
                <td>{job.map(|job| chip(job.stand))}</td>
                <td class="mid">{job.map(|job| queue_name(&job.place))}</td>
                {waiter.map(|(waiter, visit)| view! { <td class="act">{take_off(waiter, &relative.id, visit)}</td> })}
            </tr>
        }
    });
    let more = relatives.total - relatives.jobs.len().min(relatives.total);
    let mut columns = vec![("Job", "first"), ("State", ""), ("Queue", "mid")];
    columns.extend(waiter.map(|_| ("Action", "act")));
    let view = view! {
        <div class="card">
            <div class="card-title">
                <h2>{title}</h2>
                <span class="row">
                    <span class="aside">{many(i64::try_from(relatives.total).unwrap_or(i64::MAX), "job", "jobs")}</span>
                    {waiter.filter(|_| relatives.total > 1).map(|(waiter, visit)| acts::take_off_all(waiter, visit))}
                </span>
            </div>
            {tables::table(title, tables::head(&columns), rows.collect_view().into_any())}
            {(more > 0).then(|| view! { <p class="empty">{format!("{more} more not shown. The API lists all of them.")}</p> })}
        </div>
    };
    Some(view.into_any())
}

/// At once: whoever took off too much can put it back by the API, and cancel in between.
fn take_off(waiter: &JobView, other: &str, visit: &Visit) -> AnyView {
    let fields = vec![
        ("id", waiter.row.id.clone()),
        ("on", other.to_owned()),
        ("back", visit.here()),
    ];
    let about = format!("Remove dependency on {other}");
    deed(Undepend::PATH, fields, "Remove dependency", about)
}
