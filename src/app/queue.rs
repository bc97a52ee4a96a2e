//! `/ui/queues/{queue}` and `/ui/queues/{queue}/{state}`: one queue, its jobs by state; and what stands
//! above its statistics, too (`app/stats.rs`).

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use super::icons::icon;
use super::parts::{
    Ask, ago, api, ask, bar, commands, deed, loaded, many, pager, paused, quoted, word,
};
use super::tables::{self, JobList};
use super::time;
use super::visit::{Visit, segment, to, visit};
use crate::api::act::{ForgetQueue, PauseQueue, UnpauseQueue};
use crate::api::read;
use crate::api::views::{QueueRow, QueueView, Stand};

/// What of a queue is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    Jobs(Stand),
    Stats,
}

#[component]
pub fn QueuePage() -> impl IntoView {
    let visit = visit();
    let state = Some(visit.name(3)).filter(|state| !state.is_empty());
    let state = state.unwrap_or_else(|| Stand::Waiting.as_str().to_owned());
    loaded(
        read::queue(visit.name(2), state, visit.offset()),
        move |view| page(&view, &visit),
    )
}

fn page(view: &QueueView, visit: &Visit) -> AnyView {
    let (queue, stand) = (&view.queue, view.stand);
    view! {
        <Title text=queue.name.clone() />
        {head(queue, Tab::Jobs(stand), visit)}
        <div class="card">
            {if view.jobs.is_empty() && visit.offset() == 0 {
                view! { <p class="empty">{nothing(stand)}</p> }.into_any()
            } else {
                tables::jobs(&format!("Jobs, {}", word(stand)), JobList::Queue(stand), &view.jobs, visit)
            }}
        </div>
        {pager(visit, &to::stand(&queue.name, stand), visit.offset(), view.jobs.len(), queue.tally.of(stand))}
        {curl(view, stand, visit)}
    }
    .into_any()
}

/// What stands above every tab of a queue.
pub fn head(queue: &QueueRow, here: Tab, visit: &Visit) -> AnyView {
    let tally = &queue.tally;
    let oldest = queue.oldest_waiting.filter(|_| tally.waiting > 0);
    view! {
        <p class="crumb"><a href="/ui/queues">"Queues"</a></p>
        <div class="head-row">
            <div class="row">
                <h1 class="name">{queue.name.clone()}</h1>
                {queue.paused.then(paused)}
            </div>
            <div class="row">
                {if queue.paused { unpause(&queue.name, visit) } else { pause(&queue.name, visit) }}
                <a class="button" href=to::config(&queue.name)>"Options…"</a>
                {(queue.is_idle() && !queue.forgotten).then(|| forget(&queue.name, visit))}
            </div>
        </div>
        {queue.paused.then(|| held_up(tally.waiting))}
        {queue
            .forgotten
            .then(|| {
                view! {
                    <p class="notice">"This queue is forgotten: it comes back into the lists with its next job."</p>
                }
            })}
        <div class="queue-head">
            {bar(tally)}
            {oldest.map(|since| view! { <span class="aside">"Oldest waiting: " {ago(since, visit.now)}</span> })}
        </div>
        {tabs(queue, here)}
    }
    .into_any()
}

/// What it means that the queue is paused.
fn held_up(waiting: i64) -> AnyView {
    let jobs = match waiting {
        0 => "Nothing waits in it.".to_owned(),
        n => format!("{} until it goes on.", many(n, "job waits", "jobs wait")),
    };
    view! {
        <p class="notice s-paused">
            {icon("paused")}
            <span>
                "This queue is paused: no worker gets a job of it. " {jobs}
                " Jobs can be put into it, and those that run go on."
            </span>
        </p>
    }
    .into_any()
}

/// At once, for it is as easily undone.
fn pause(queue: &str, visit: &Visit) -> AnyView {
    let fields = vec![("queue", queue.to_owned()), ("back", visit.here())];
    let about = format!("Pause queue {queue}: no worker gets a job of it");
    deed(PauseQueue::PATH, fields, "Pause", about)
}

/// Lets a paused queue go on.
pub fn unpause(queue: &str, visit: &Visit) -> AnyView {
    let fields = vec![("queue", queue.to_owned()), ("back", visit.here())];
    let about = format!("Unpause queue {queue}: let it go on");
    deed(UnpauseQueue::PATH, fields, "Unpause", about)
}

fn forget(queue: &str, visit: &Visit) -> AnyView {
    ask(Ask {
        id: "forget".to_owned(),
        button: "Forget…".to_owned(),
        danger: false,
        title: "Forget this queue?".to_owned(),
        text: "It leaves the lists until something is put into it again. Its complete jobs and its statistics stay.".to_owned(),
        action: ForgetQueue::PATH,
        fields: vec![
            ("queue", queue.to_owned()),
            ("back", visit.here()),
            ("after", "/ui/queues".to_owned()),
        ],
        yes: "Forget the queue".to_owned(),
        no: "Keep it",
    })
}

fn tabs(queue: &QueueRow, here: Tab) -> AnyView {
    let tabs = Stand::ALL.map(|stand| {
        let n = queue.tally.of(stand);
        let look = if n == 0 { "tab zero" } else { "tab" };
        view! {
            <a
                class=look
                href=to::stand(&queue.name, stand)
                aria-current=(Tab::Jobs(stand) == here).then_some("page")
            >
                <span class=format!("s-{}", stand.as_str())>{icon(stand.as_str())}</span>
                <span>{word(stand)}</span>
                <span class="tab-n">{time::number(n)}</span>
            </a>
        }
    });
    view! {
        <nav class="tabs" aria-label="This queue">
            {tabs.collect_view()}
            <a
                class=if queue.recurring == 0 { "tab apart zero" } else { "tab apart" }
                href=to::recurring_in(&queue.name)
            >
                <span class="s-recurring">{icon("recurring")}</span>
                <span>"recurring"</span>
                <span class="tab-n">{time::number(queue.recurring)}</span>
            </a>
            <a
                class="tab"
                href=to::stats(&queue.name, None)
                aria-current=(here == Tab::Stats).then_some("page")
            >
                {icon("stats")}
                <span>"statistics"</span>
            </a>
        </nav>
    }
    .into_any()
}

fn nothing(stand: Stand) -> &'static str {
    match stand {
        Stand::Waiting => {
            "Nothing waits. Jobs appear here when they are added, and leave when a worker asks for work."
        }
        Stand::Scheduled => {
            "Nothing is scheduled. Jobs with a delay appear here until they are due."
        }
        Stand::Depends => {
            "Nothing depends on other jobs. Jobs appear here until all that they wait for is complete."
        }
        Stand::Running => "Nothing runs. Jobs appear here while a worker holds their lease.",
        Stand::Stalled => {
            "Nothing has stalled. Jobs appear here when a worker misses its heartbeat."
        }
        Stand::Failed => {
            "Nothing has failed. Jobs appear here with their failure until they are retried or cancelled."
        }
        Stand::Complete => {
            "Nothing is complete yet. The newest 50,000 complete jobs of the last seven days are kept."
        }
    }
}

fn curl(view: &QueueView, stand: Stand, visit: &Visit) -> AnyView {
    let name = api_segment(&view.queue.name);
    let list = match stand {
        Stand::Complete => "/jobs/complete".to_owned(),
        Stand::Failed => "/failed".to_owned(),
        other => format!("/jobs/{}/{name}", other.as_str()),
    };
    view! {
        <details class="more">
            <summary>"The same by curl"</summary>
            {commands(
                "curl",
                vec![
                    ("This list", format!("curl {}", quoted(&api(visit, &list)))),
                    (
                        "Add a job",
                        format!(
                            "curl {} -d {}",
                            quoted(&api(visit, &format!("/add/{name}"))),
                            quoted(r#"{"data": {"meta": {}}}"#),
                        ),
                    ),
                    ("Take a job", format!("curl {}", quoted(&api(visit, &format!("/get/{name}?host=me"))))),
                    if view.queue.paused {
                        ("Let it go on", format!("curl -X POST {}", quoted(&api(visit, &format!("/unpause/{name}")))))
                    } else {
                        ("Pause it", format!("curl -X POST {}", quoted(&api(visit, &format!("/pause/{name}")))))
                    },
                    ("The numbers", format!("curl {}", quoted(&api(visit, &format!("/queue/{name}"))))),
                ],
            )}
        </details>
    }
    .into_any()
}

/// A name in a path of the API. curl resolves `..` like a browser, and the API knows no way around that.
pub fn api_segment(name: &str) -> String {
    let coded = segment(name);
    coded.strip_prefix('~').map_or(coded.clone(), str::to_owned)
}
