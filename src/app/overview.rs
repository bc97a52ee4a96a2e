//! `/ui`: what needs eyes first, then the numbers, the queues by need, failures and workers.

use leptos::prelude::*;
use leptos_meta::Title;

use super::chart::{Chart, Dash, Line, Unit, chart, numbers as chart_numbers};
use super::icons::icon;
use super::jobq::first_lines;
use super::letter::all_again;
use super::parts::{
    ago, api, badge, commands, count_cell, lacking, link_if_seen, loaded, quoted, word,
};
use super::problems::{Remedy, problems};
use super::queue::unpause;
use super::queues::{Sort, sort, table};
use super::relay::enqueue;
use super::tables;
use super::visit::{Visit, visit};
use crate::api::read;
use crate::api::views::{Api, OverviewView, Recent, Span, Stand, Tally};
use crate::time;

/// Queues, groups and workers that the overview lists.
const QUEUES_SHOWN: usize = 12;
const GROUPS_SHOWN: usize = 6;
const WORKERS_SHOWN: usize = 8;

#[component]
pub fn OverviewPage() -> impl IntoView {
    let visit = visit();
    loaded(read::overview(), move |overview| {
        view! {
            <Title text="Overview" />
            {if overview.queues.is_empty() { nothing_yet(&visit) } else { everything(overview, &visit) }}
        }
        .into_any()
    })
}

fn everything(mut overview: OverviewView, visit: &Visit) -> AnyView {
    sort(&mut overview.queues, Sort::Need, visit.now);
    view! {
        <h1>"Overview"</h1>
        {strip(&overview, visit)}
        {numbers(&overview.totals)}
        {pace(&overview.recent)}
        {by_api(&overview)}
        <div class="card">
            {title("Queues", "/ui/queues", overview.queues.len())}
            {table("Queues, problems first", first(&overview.queues, QUEUES_SHOWN), None, None, visit.now)}
        </div>
        <div class="columns">
            <div class="card">
                {title("Failures", "/ui/failures", overview.groups.len())}
                {if overview.groups.is_empty() {
                    view! { <p class="empty">"No failed jobs."</p> }.into_any()
                } else {
                    tables::groups(first(&overview.groups, GROUPS_SHOWN), visit, false)
                }}
            </div>
            <div class="card">
                {title("Workers", "/ui/workers", overview.workers.len())}
                {if overview.workers.is_empty() {
                    view! { <p class="empty">"No workers seen in the last 24 hours."</p> }.into_any()
                } else {
                    tables::workers(first(&overview.workers, WORKERS_SHOWN), visit.now)
                }}
            </div>
        </div>
    }
    .into_any()
}

fn first<T>(list: &[T], n: usize) -> &[T] {
    list.get(..n).unwrap_or(list)
}

fn title(name: &'static str, address: &'static str, there: usize) -> AnyView {
    let all = format!("All {there}");
    let label = format!("{name}: all {there}");
    view! {
        <div class="card-title">
            <h2>{name}</h2>
            <a href=address aria-label=label>{all}</a>
        </div>
    }
    .into_any()
}

/// The problems, or one line that says that there are none.
fn strip(overview: &OverviewView, visit: &Visit) -> AnyView {
    let now = visit.now;
    let found = problems(overview, now);
    if found.is_empty() {
        let queues = i64::try_from(overview.queues.len()).unwrap_or(i64::MAX);
        return view! {
            <p class="strip fine">
                {icon("complete")}
                <span>
                    {if queues == 1 { "The queue is healthy".to_owned() } else { format!("All {} queues are healthy", time::number(queues)) }}
                    <span class="aside">{format!(" · checked at {} UTC", time::clock(now))}</span>
                </span>
            </p>
        }
        .into_any();
    }
    let rows = found.into_iter().map(|problem| {
        let shape = problem.shape;
        view! {
            <li class=format!("s-{shape}")>
                <a href=problem.address>{icon(shape)} <span>
                        {problem.text}
                        {problem.since.map(|(what, since)| view! { <span class="aside">" · " {what} " " {ago(since, now)}</span> })}
                        " " {problem.api.map(badge)}
                    </span></a>
                {problem
                    .remedy
                    .map(|remedy| match remedy {
                        Remedy::Unpause(queue) => view! { <div class="remedy">{unpause(&queue, visit)}</div> }.into_any(),
                        Remedy::RetryGroup(group) => view! { <div class="remedy">{tables::retry_all_as("mend-", &group, visit)}</div> }.into_any(),
                        Remedy::PutToWork(queue, count) => view! { <div class="remedy">{all_again(&queue, count, visit)}</div> }.into_any(),
                    })}
            </li>
        }
    });
    view! { <ul class="strip" aria-label="Problems">{rows.collect_view()}</ul> }.into_any()
}

/// The states in the order in which they are looked at.
const STANDS: [Stand; 9] = [
    Stand::Running,
    Stand::Waiting,
    Stand::Scheduled,
    Stand::Depends,
    Stand::Stalled,
    Stand::Failed,
    Stand::Dead,
    Stand::Complete,
    Stand::Record,
];

/// How many jobs stand where in the whole server, in the states that its APIs have.
fn numbers(totals: &[(Api, Tally)]) -> AnyView {
    let tallies = totals.iter().map(|(_, tally)| *tally);
    let total = tallies.fold(Tally::default(), Tally::plus);
    let known = |stand: &Stand| {
        let has = totals.iter().any(|(api, _)| api.has(*stand));
        has || total.of(*stand) > 0
    };
    let shown: Vec<Stand> = STANDS.into_iter().filter(known).collect();
    let look = match shown.len() {
        9 => "tiles nine",
        8 => "tiles eight",
        5 => "tiles five",
        4 => "tiles four",
        1 => "tiles one",
        _ => "tiles",
    };
    let tiles = shown.into_iter().map(|stand| {
        let n = total.of(stand);
        let look = if n == 0 { "tile zero" } else { "tile" };
        let address = match stand {
            Stand::Failed => "/ui/failures".to_owned(),
            Stand::Dead => "/ui/dead".to_owned(),
            other => format!("/ui/queues?sort={}", other.as_str()),
        };
        view! {
            <li class=look>
                <a href=address>
                    <span class=format!("tile-name s-{}", stand.as_str())>{icon(stand.as_str())} {word(stand)}</span>
                    <span class="tile-n">{time::number(n)}</span>
                </a>
            </li>
        }
    });
    view! { <ul class=look aria-label="Jobs by state">{tiles.collect_view()}</ul> }.into_any()
}

/// How the last hour went, and how it goes now.
fn pace(recent: &Recent) -> AnyView {
    let line = |name, look, dash, value: fn(&Span) -> i64| Line {
        name,
        look,
        dash,
        values: (recent.hour.spans.iter())
            .map(|span| Some(value(span) as f64))
            .collect(),
    };
    let drawing = Chart {
        id: "hour",
        title: "Completed and failed jobs/min, last hour",
        unit: Unit::Rate,
        from: recent.hour.spans.first().map_or(0, |span| span.from),
        width: recent.hour.width,
        goes_on: true,
        lines: vec![
            line("completed", "s-complete", Dash::Solid, |span| {
                span.completed
            }),
            line("failed", "s-failed", Dash::Long, |span| span.failed),
        ],
    };
    let now = &recent.now;
    let tiles = [
        (
            "s-complete",
            "complete",
            "Completed/min",
            Unit::Rate.told(now.completed as f64 / 5.0),
            "/ui/stats?range=1h",
        ),
        (
            "s-failed",
            "failed",
            "Failure rate",
            now.failure_rate()
                .map_or("–".to_owned(), |rate| Unit::Share.told(rate)),
            "/ui/failures?range=1h",
        ),
        (
            "s-waiting",
            "waiting",
            "Wait p95",
            now.wait_p95.map_or("–".to_owned(), time::seconds),
            "/ui/queues?sort=wait",
        ),
    ];
    let tiles = tiles.map(|(look, shape, word, value, address)| {
        view! {
            <li class="tile">
                <a href=address>
                    <span class=format!("tile-name {look}")>{icon(shape)} {word}</span>
                    <span class="tile-n">{value}</span>
                </a>
            </li>
        }
    });
    view! {
        <div class="pace">
            <section class="card padded" aria-label="Last hour">
                {chart(&drawing)}
                {chart_numbers("Completed and failed jobs per minute", &[&drawing])}
            </section>
            <ul class="tiles one" aria-label="Last 5 minutes">{tiles}</ul>
        </div>
    }
    .into_any()
}

/// The same for each API, where there is more than one.
fn by_api(overview: &OverviewView) -> AnyView {
    if overview.totals.len() < 2 {
        return ().into_any();
    }
    let columns = [
        ("Protocol", "first"),
        ("Queues", "n mid"),
        ("Running", "n"),
        ("Waiting", "n"),
        ("Scheduled", "n mid"),
        ("Depends", "n wide"),
        ("Stalled", "n mid"),
        ("Failed", "n"),
        ("Dead", "n"),
        ("Complete", "n wide"),
        ("Records", "n"),
    ];
    let class = |stand: Stand| match stand {
        Stand::Scheduled | Stand::Stalled => "mid",
        Stand::Depends | Stand::Complete => "wide",
        _ => "",
    };
    let rows = overview.totals.iter().map(|(api, tally)| {
        let of_api = overview
            .queues
            .iter()
            .filter(|queue| queue.place.api == *api);
        let queues = i64::try_from(of_api.count()).unwrap_or(i64::MAX);
        let cells = STANDS.map(|stand| match tally.of(stand) {
            0 if !api.has(stand) => lacking(*api, class(stand)),
            n => count_cell(n, stand, class(stand)),
        });
        view! {
            <tr data-key=api.as_str()>
                <th scope="row" class="first">{badge(*api)}</th>
                <td class="n mid">{time::number(queues)}</td>
                {cells.collect_view()}
            </tr>
        }
    });
    view! {
        <div class="card">
            {tables::table("Jobs by protocol", tables::head(&columns), rows.collect_view().into_any())}
        </div>
    }
    .into_any()
}

/// A server without queues: how to make one.
fn nothing_yet(visit: &Visit) -> AnyView {
    let job = r#"{"data": {"meta": {"to": "ada@example.com"}, "klass": "Mail::Send"}}"#;
    view! {
        <h1>"No queues yet"</h1>
        <p class="lead">
            "A queue is created with its first job. Run these three commands and watch this page."
        </p>
        <section class="card padded">
            {commands(
                "first",
                vec![
                    ("Add a job to the queue mail", format!("curl {} -d {}", api(visit, "/add/mail"), quoted(job))),
                    ("Claim it as worker ada", format!("curl {}", quoted(&api(visit, "/get/mail?host=ada")))),
                    ("Show the queue’s counts", format!("curl {}", api(visit, "/queue/mail"))),
                ],
            )}
        </section>
        <section class="card padded" aria-labelledby="by-lmstfy">
            <h2 id="by-lmstfy">"With lmstfy"</h2>
            <p>"lmstfy queues belong to namespaces. " {link_if_seen("/ui/namespaces".to_owned(), "Create a token".to_owned())} " for the namespace shop and use it here:"</p>
            {commands(
                "first-lmstfy",
                vec![
                    (
                        "Publish a job to the queue mail in the namespace shop",
                        format!(
                            "curl -X PUT -H {} {} --data-binary {}",
                            quoted("X-Token: …"),
                            quoted(&api(visit, "/api/shop/mail")),
                            quoted("hello"),
                        ),
                    ),
                    (
                        "Consume it with a time to run of 120 s",
                        format!("curl -H {} {}", quoted("X-Token: …"), quoted(&api(visit, "/api/shop/mail?ttr=120"))),
                    ),
                ],
            )}
        </section>
        {nothing_by_relay(visit)}
        <section class="card padded" aria-labelledby="by-jobq">
            <h2 id="by-jobq">"With Jobq"</h2>
            <p>"Jobq queues must be created, with curl or " <a href="/ui/queues?new=#new">"on the Queues page"</a> "."</p>
            {commands("first-jobq", first_lines(visit))}
        </section>
    }
    .into_any()
}

fn nothing_by_relay(visit: &Visit) -> AnyView {
    let job = r#"[{"queue": "mail", "id": "1", "timeout": 30, "max_retries": 3, "payload": {"to": "ada@example.com"}}]"#;
    view! {
        <section class="card padded" aria-labelledby="by-relay">
            <h2 id="by-relay">"With Relay"</h2>
            {commands(
                "first-relay",
                vec![
                    ("Enqueue a job in the queue mail", enqueue(visit, job)),
                    ("Get the job; a heartbeat is due within its timeout", format!("curl {}", api(visit, "/v2/queues/mail/jobs"))),
                ],
            )}
        </section>
    }
    .into_any()
}
