//! `/ui`: problems first, then counts, queues by urgency, failures and workers.

pub mod load;
pub mod model;
pub mod problems;
pub mod reportable;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::{empty_note, loaded, number_of};
use crate::ui::components::chart::{Chart, Dash, Line, Unit, chart, data_table, per_minute};
use crate::ui::components::commands::{api, commands, shell_quote};
use crate::ui::components::icons::icon;
use crate::ui::components::links::link_if_allowed;
use crate::ui::components::pause;
use crate::ui::components::state::{
    color, count_cell, not_applicable_cell, protocol_badge, state_label,
};
use crate::ui::components::styles::{CARD, CARD_PADDED, CARD_TITLE, HEALTHY, TILES};
use crate::ui::components::tables;
use crate::ui::components::time::ago;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::series::{RecentActivity, Span};
use crate::ui::model::state::{Counts, EffectiveState};
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::overview::model::OverviewView;
use crate::ui::pages::overview::problems::{SuggestedAction, problems};
use crate::ui::pages::queue::dead_letter::requeue_all_button;
use crate::ui::pages::queue::relay::enqueue;
use crate::ui::pages::queue::resume_button;
use crate::ui::pages::queues::{Sort, sort, table};
use crate::ui::pages::records::example_commands;

/// Maximum number of queues, failure groups and workers on the overview.
const QUEUES_SHOWN: usize = 12;

const GROUPS_SHOWN: usize = 6;

const WORKERS_SHOWN: usize = 8;

#[component]
pub fn OverviewPage() -> impl IntoView {
    let request = page_request();
    loaded(load::overview(), move |overview| {
        view! {
            <Title text="Overview" />
            {if overview.queues.is_empty() { getting_started(&request) } else { content(overview, &request) }}
        }
        .into_any()
    })
}

fn content(mut overview: OverviewView, request: &PageRequest) -> AnyView {
    sort(&mut overview.queues, Sort::Need, request.now);
    let failures = usize::try_from(overview.failure_totals().groups).unwrap_or_default();
    view! {
        <h1>"Overview"</h1>
        {problem_list(&overview, request)}
        {count_tiles(&overview.totals)}
        {recent_activity(&overview.recent, request.now)}
        {by_protocol(&overview)}
        <div class=CARD>
            {title("Queues", "/ui/queues", overview.queues.len())}
            {table("Queues, problems first", first(&overview.queues, QUEUES_SHOWN), None, None, request.now)}
        </div>
        <div class="grid grid-cols-2 items-start gap-4 empty:hidden max-lg:grid-cols-1">
            <div class=CARD>
                {title("Failures", "/ui/failures", failures)}
                {if overview.groups.is_empty() {
                    empty_note("No failed jobs.")
                } else {
                    tables::groups(first(&overview.groups, GROUPS_SHOWN), request, false)
                }}
            </div>
            <div class=CARD>
                {title("Workers", "/ui/workers", overview.workers.len())}
                {if overview.workers.is_empty() {
                    empty_note("No workers seen recently.")
                } else {
                    tables::workers(first(&overview.workers, WORKERS_SHOWN), request.now)
                }}
            </div>
        </div>
    }
    .into_any()
}

fn first<T>(list: &[T], n: usize) -> &[T] {
    list.get(..n).unwrap_or(list)
}

fn icon_color(shape: &str) -> &'static str {
    match shape {
        "stalled" => "text-stalled",
        "waiting" => "text-waiting",
        "dead" => "text-dead",
        "failed" => "text-failed",
        _ => "text-paused",
    }
}

fn title(name: &'static str, address: &'static str, total: usize) -> AnyView {
    let all = format!("All {total}");
    let label = format!("{name}: all {total}");
    view! {
        <div class=CARD_TITLE>
            <h2>{name}</h2>
            <a class="text-sm" href=address aria-label=label>{all}</a>
        </div>
    }
    .into_any()
}

/// The list of problems, each in the color of its icon.
const PROBLEMS: &str = "divide-y divide-line overflow-hidden rounded-md border border-line bg-card *:flex *:items-center \
    [&>li>a]:flex [&>li>a]:min-h-9 [&>li>a]:min-w-0 [&>li>a]:flex-1 [&>li>a]:items-center [&>li>a]:gap-2 [&>li>a]:px-4 \
    [&>li>a]:py-1.5 [&>li>a]:wrap-anywhere [&>li>a]:text-inherit [&>li>a]:hover:bg-hover [&>li>a>span]:min-w-0 \
    [&>li>a_span]:text-ink";

/// The problems, or one line if there are none.
fn problem_list(overview: &OverviewView, request: &PageRequest) -> AnyView {
    let now = request.now;
    let found = problems(overview, now);
    if found.is_empty() {
        let queues = number_of(overview.queues.len());
        return view! {
            <p id="problems" class=HEALTHY>
                {icon("complete")}
                <span>
                    {if queues == 1 { "The queue is healthy".to_owned() } else { format!("All {} queues are healthy", time::number(queues)) }}
                    <span class="text-muted wrap-anywhere">{format!(" · checked at {} UTC", time::clock(now))}</span>
                </span>
            </p>
        }
        .into_any();
    }
    let rows = found.into_iter().map(|problem| {
        let shape = problem.shape;
        let key = format!("{} {}", problem.kind.as_str(), problem.address);
        view! {
            <li class=icon_color(shape) data-key=key>
                <a href=problem.address>{icon(shape)} <span>
                        {problem.text}
                        {problem.since.map(|(what, since)| view! { <span class="text-muted wrap-anywhere">" · " {what} " " {ago(since, now)}</span> })}
                        " " {problem.protocol.map(protocol_badge)}
                        {problem.pause.map(|pause| view! { <span class="text-muted wrap-anywhere">" · paused " {pause::details(&pause, now)}</span> })}
                    </span></a>
                {problem
                    .remedy
                    .map(|remedy| match remedy {
                        SuggestedAction::ResumeQueue(queue) => view! { <div class="shrink-0 pr-4">{resume_button(&queue, request)}</div> }.into_any(),
                        SuggestedAction::RetryGroup(group) => view! { <div class="shrink-0 pr-4">{tables::retry_all_with_prefix("problem-", &group, request)}</div> }.into_any(),
                        SuggestedAction::RequeueDead(queue, count) => view! { <div class="shrink-0 pr-4">{requeue_all_button(&queue, count, request)}</div> }.into_any(),
                    })}
            </li>
        }
    });
    view! { <ul id="problems" class=PROBLEMS aria-label="Problems">{rows.collect_view()}</ul> }
        .into_any()
}

/// The states, in the order of the tiles and of the columns.
const STATES: [EffectiveState; 9] = [
    EffectiveState::Running,
    EffectiveState::Waiting,
    EffectiveState::Scheduled,
    EffectiveState::Depends,
    EffectiveState::Stalled,
    EffectiveState::Failed,
    EffectiveState::Dead,
    EffectiveState::Complete,
    EffectiveState::Record,
];

/// The counts of the whole server, for the states that its protocols have.
fn count_tiles(totals: &[(Protocol, Counts)]) -> AnyView {
    let counts = totals.iter().map(|(_, counts)| *counts);
    let total = counts.fold(Counts::default(), Counts::plus);
    let known = |state: &EffectiveState| {
        let has = totals.iter().any(|(protocol, _)| protocol.has(*state));
        has || total.of(*state) > 0
    };
    let shown: Vec<EffectiveState> = STATES.into_iter().filter(known).collect();
    let columns = match shown.len() {
        9 => {
            "grid-cols-9 max-lg:grid-cols-5 max-sm:grid-cols-3 max-lg:[&>:last-child]:col-span-2 max-sm:[&>:last-child]:col-span-1"
        }
        8 => "grid-cols-8 max-lg:grid-cols-4 max-xs:[&>li>*]:px-1.5 max-xs:[&_svg]:hidden",
        5 => "grid-cols-5 max-sm:grid-cols-3 max-sm:[&>:last-child]:col-span-2",
        4 => "grid-cols-4 max-sm:grid-cols-2",
        1 => "grid-cols-1",
        _ => {
            "grid-cols-7 max-lg:grid-cols-4 max-sm:grid-cols-3 max-lg:[&>:last-child]:col-span-2 max-sm:[&>:last-child]:col-span-3"
        }
    };
    let tiles = shown.into_iter().map(|state| {
        let n = total.of(state);
        let class = if n == 0 { "tile-count font-normal text-muted" } else { "tile-count" };
        let name = match state {
            EffectiveState::Record => "Jobq jobs",
            other => state_label(other),
        };
        let address = match state {
            EffectiveState::Failed => "/ui/failures".to_owned(),
            EffectiveState::Dead => "/ui/dead".to_owned(),
            other => format!("/ui/queues?sort={}", other.as_str()),
        };
        view! {
            <li class="tile">
                <a href=address>
                    <span class=format!("tile-name whitespace-nowrap {}", color(state))>{icon(state.as_str())} {name}</span>
                    <span class=class>{time::number(n)}</span>
                </a>
            </li>
        }
    });
    view! { <ul class=format!("{TILES} {columns}") aria-label="Jobs by state">{tiles.collect_view()}</ul> }.into_any()
}

/// The last hour as a chart, and the last five minutes.
fn recent_activity(recent: &RecentActivity, now: i64) -> AnyView {
    let line = |name, class, dash, value: fn(&Span) -> i64| Line {
        name,
        class,
        dash,
        values: (recent.hour.spans.iter())
            .map(|span| Some(per_minute(value(span), span.from, recent.hour.width, now)))
            .collect(),
    };
    let drawing = Chart {
        id: "hour",
        title: "Completed and failed jobs/min, last hour",
        unit: Unit::Rate,
        from: recent.hour.spans.first().map_or(0, |span| span.from),
        width: recent.hour.width,
        is_in_progress: true,
        marks: Vec::new(),
        lines: vec![
            line("completed", "text-complete", Dash::Solid, |span| {
                span.completed
            }),
            line("failed", "text-failed", Dash::Long, |span| span.failed),
        ],
    };
    let latest = &recent.now;
    let tiles = [
        (
            "text-complete",
            "complete",
            "Completed/min",
            Unit::Rate.text(latest.completed as f64 / 5.0),
            "/ui/stats?range=1h",
        ),
        (
            "text-failed",
            "failed",
            "Failure rate",
            latest
                .failure_rate()
                .map_or("–".to_owned(), |rate| Unit::Share.text(rate)),
            "/ui/failures?range=1h",
        ),
        (
            "text-waiting",
            "waiting",
            "Wait p95",
            latest.wait_p95.map_or("–".to_owned(), time::seconds),
            "/ui/queues?sort=wait",
        ),
    ];
    let tiles = tiles.map(|(class, shape, word, value, address)| {
        view! {
            <li class="tile">
                <a href=address>
                    <span class=format!("tile-name {class}")>{icon(shape)} {word}</span>
                    <span class="tile-count">{value}</span>
                </a>
            </li>
        }
    });
    view! {
        <div class="grid grid-cols-[minmax(0,1fr)_216px] gap-4 max-[900px]:grid-cols-1">
            <section class=CARD_PADDED aria-label="Last hour">
                {chart(&drawing)}
                {data_table("Completed and failed jobs per minute", &[&drawing])}
            </section>
            <ul class=format!("{TILES} grid-cols-1 max-[900px]:grid-cols-3 max-xs:grid-cols-1") aria-label="Last 5 minutes">{tiles}</ul>
        </div>
    }
    .into_any()
}

/// The counts of each protocol, if several protocols have queues.
fn by_protocol(overview: &OverviewView) -> AnyView {
    if overview.totals.len() < 2 {
        return ().into_any();
    }
    let columns = [
        ("Protocol", ""),
        ("Queues", "num mid"),
        ("Running", "num"),
        ("Waiting", "num"),
        ("Scheduled", "num mid"),
        ("Depends", "num wide"),
        ("Stalled", "num mid"),
        ("Failed", "num"),
        ("Dead", "num"),
        ("Complete", "num wide"),
        ("Jobq jobs", "num max-sm:whitespace-normal"),
    ];
    let class = |state: EffectiveState| match state {
        EffectiveState::Scheduled | EffectiveState::Stalled => "mid",
        EffectiveState::Depends | EffectiveState::Complete => "wide",
        _ => "",
    };
    let rows = overview.totals.iter().map(|(protocol, counts)| {
        let of_protocol = overview
            .queues
            .iter()
            .filter(|queue| queue.queue_ref.protocol == *protocol);
        let queues = number_of(of_protocol.count());
        let cells = STATES.map(|state| match counts.of(state) {
            0 if !protocol.has(state) => not_applicable_cell(*protocol, class(state)),
            n => count_cell(n, state, class(state)),
        });
        view! {
            <tr data-key=protocol.as_str()>
                <th scope="row">{protocol_badge(*protocol)}</th>
                <td class="num mid">{time::number(queues)}</td>
                {cells.collect_view()}
            </tr>
        }
    });
    view! {
        <div class=CARD>
            {tables::table("Jobs by protocol", tables::head(&columns), rows.collect_view().into_any())}
        </div>
    }
    .into_any()
}

/// The page of a server without queues: commands that create one.
fn getting_started(request: &PageRequest) -> AnyView {
    let job = r#"{"data": {"meta": {"to": "ada@example.com"}, "klass": "Mail::Send"}}"#;
    view! {
        <h1>"No queues yet"</h1>
        <p class="text-muted wrap-anywhere">
            "A queue is created with its first job. Run these three commands and watch this page."
        </p>
        <section class=CARD_PADDED>
            {commands(
                "first",
                vec![
                    ("Add a job to the queue mail", format!("curl {} -d {}", api(request, "/add/mail"), shell_quote(job))),
                    ("Claim it as worker ada", format!("curl {}", shell_quote(&api(request, "/get/mail?host=ada")))),
                    ("Show the queue’s counts", format!("curl {}", api(request, "/queue/mail"))),
                ],
            )}
        </section>
        <section class=CARD_PADDED aria-labelledby="by-lmstfy">
            <h2 id="by-lmstfy">"With lmstfy"</h2>
            <p>"lmstfy queues belong to namespaces. " {link_if_allowed("/ui/namespaces".to_owned(), "Create a token".to_owned())} " for the namespace shop and use it here:"</p>
            {commands(
                "first-lmstfy",
                vec![
                    (
                        "Publish a job to the queue mail in the namespace shop",
                        format!(
                            "curl -X PUT -H {} {} --data-binary {}",
                            shell_quote("X-Token: …"),
                            shell_quote(&api(request, "/api/shop/mail")),
                            shell_quote("hello"),
                        ),
                    ),
                    (
                        "Consume it with a time to run of 120 s",
                        format!("curl -H {} {}", shell_quote("X-Token: …"), shell_quote(&api(request, "/api/shop/mail?ttr=120"))),
                    ),
                ],
            )}
        </section>
        {getting_started_relay(request)}
        <section class=CARD_PADDED aria-labelledby="by-jobq">
            <h2 id="by-jobq">"With Jobq"</h2>
            <p>"Jobq queues must be created, with curl or " <a href="/ui/queues?new=#new">"on the Queues page"</a> "."</p>
            {commands("first-jobq", example_commands(request))}
        </section>
    }
    .into_any()
}

fn getting_started_relay(request: &PageRequest) -> AnyView {
    let job = r#"[{"queue": "mail", "id": "1", "timeout": 30, "max_retries": 3, "payload": {"to": "ada@example.com"}}]"#;
    view! {
        <section class=CARD_PADDED aria-labelledby="by-relay">
            <h2 id="by-relay">"With Relay"</h2>
            {commands(
                "first-relay",
                vec![
                    ("Enqueue a job in the queue mail", enqueue(request, job)),
                    ("Get the job; a heartbeat is due within its timeout", format!("curl {}", api(request, "/v2/queues/mail/jobs"))),
                ],
            )}
        </section>
    }
    .into_any()
}
