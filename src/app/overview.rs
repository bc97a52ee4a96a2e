//! `/ui`: what needs eyes first, then the numbers, the queues by need, failures and workers.

use leptos::prelude::*;
use leptos_meta::Title;

use super::icons::icon;
use super::parts::{api, commands, loaded, many, quoted, word};
use super::problems::problems;
use super::queue::unpause;
use super::queues::{Sort, heads, sort};
use super::tables;
use super::time;
use super::visit::{Visit, visit};
use crate::api::read;
use crate::api::views::{OverviewView, Stand, Tally};

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
        {numbers(&overview.total)}
        <div class="card">
            {title("Queues", "/ui/queues", overview.queues.len())}
            {tables::table(
                "Queues by need",
                heads(None),
                tables::queue_rows(first(&overview.queues, QUEUES_SHOWN), visit.now),
            )}
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
                    view! { <p class="empty">"No worker has shown itself within a day."</p> }.into_any()
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
                    {format!("{} healthy", many(queues, "queue is", "queues are"))}
                    <span class="aside">{format!(" · checked {} UTC", time::clock(now))}</span>
                </span>
            </p>
        }
        .into_any();
    }
    let rows = found.into_iter().map(|problem| {
        let shape = problem.shape;
        view! {
            <li class=format!("s-{shape}")>
                <a href=problem.address>{icon(shape)} <span>{problem.text}</span></a>
                {problem.unpause.map(|queue| unpause(&queue, visit))}
            </li>
        }
    });
    view! { <ul class="strip" aria-label="Problems">{rows.collect_view()}</ul> }.into_any()
}

/// How many jobs stand where in the whole server.
fn numbers(total: &Tally) -> AnyView {
    let tiles = [
        Stand::Running,
        Stand::Waiting,
        Stand::Scheduled,
        Stand::Depends,
        Stand::Stalled,
        Stand::Failed,
        Stand::Complete,
    ]
    .map(|stand| {
        let n = total.of(stand);
        let look = if n == 0 { "tile zero" } else { "tile" };
        let address = match stand {
            Stand::Failed => "/ui/failures".to_owned(),
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
    view! { <ul class="tiles" aria-label="Jobs by state">{tiles.collect_view()}</ul> }.into_any()
}

/// A server without queues: how to make one.
fn nothing_yet(visit: &Visit) -> AnyView {
    let job = r#"{"data": {"meta": {"to": "ada@example.com"}, "klass": "Mail::Send"}}"#;
    view! {
        <h1>"No queue yet"</h1>
        <p class="lead">
            "A queue comes into being with its first job. Run these three lines in a shell, and watch this page."
        </p>
        <section class="card padded">
            {commands(
                "first",
                vec![
                    ("Add a job to the queue mail", format!("curl {} -d {}", api(visit, "/add/mail"), quoted(job))),
                    ("Take it as the worker ada", format!("curl {}", quoted(&api(visit, "/get/mail?host=ada")))),
                    ("See how the queue stands", format!("curl {}", api(visit, "/queue/mail"))),
                ],
            )}
        </section>
    }
    .into_any()
}
