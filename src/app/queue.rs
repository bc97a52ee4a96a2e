//! `/ui/queues/{queue}` and `/ui/queues/{queue}/{state}`, and the same below `/ui/lmstfy/{namespace}/{queue}` and
//! `/ui/relay/{queue}`: one queue, its jobs by state; and what stands above its statistics, too (`app/stats.rs`).
//! What is otherwise in other queues stands in `app/lmstfy.rs` and `app/relay.rs`, dead letters in `app/letter.rs`;
//! queues of Jobq, which are quite otherwise, in `app/jobq.rs`.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use super::icons::icon;
use super::letter;
use super::lmstfy;
use super::parts::{
    Ask, ago, api, ask, badge, bar, commands, deed, hot, link_if_seen, loaded, many, may, pager,
    paused, quoted, word,
};
use super::relay;
use super::tables::{self, JobList};
use super::visit::{Visit, segment, to, visit};
use crate::api::act::{ForgetQueue, PauseQueue, UnpauseQueue};
use crate::api::read;
use crate::api::views::{Api, Place, QueueRow, QueueView, Stand};
use crate::time;

/// What of a queue is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    Jobs(Stand),
    Stats,
}

#[component]
pub fn QueuePage() -> impl IntoView {
    let visit = visit();
    let (place, next) = visit.place();
    let state = Some(visit.name(next)).filter(|state| !state.is_empty());
    let state = state.unwrap_or_else(|| Stand::Waiting.as_str().to_owned());
    loaded(read::queue(place, state, visit.offset()), move |view| {
        page(&view, &visit)
    })
}

fn page(view: &QueueView, visit: &Visit) -> AnyView {
    let (queue, stand) = (&view.queue, view.stand);
    let place = &queue.place;
    let empty = view.jobs.is_empty() && visit.offset() == 0;
    let list = match place.api {
        _ if empty => view! { <p class="empty">{nothing(place.api, stand)}</p> }.into_any(),
        _ if stand == Stand::Dead => letter::list(view, visit),
        Api::Qless => {
            let caption = format!("Jobs, {}", word(stand));
            tables::jobs(&caption, JobList::Queue(stand), &view.jobs, visit)
        }
        Api::Lmstfy => lmstfy::list(view, visit),
        Api::Relay => relay::list(view, visit),
        // Its records have pages of their own (`app/jobq.rs`).
        Api::Jobq => ().into_any(),
    };
    view! {
        <Title text=place.label() />
        {head(queue, Tab::Jobs(stand), visit)}
        {(stand == Stand::Dead).then(|| letter::question(view, visit))}
        <div class="card">{list}</div>
        {pager(visit, &to::stand(place, stand), visit.offset(), view.jobs.len(), queue.tally.of(stand))}
        {curl(view, visit)}
    }
    .into_any()
}

/// The way to a queue, its name, and what can be done with it.
pub fn title(place: &Place, paused: Option<AnyView>, actions: AnyView) -> AnyView {
    view! {
        <p class="crumb">
            <a href="/ui/queues">"Queues"</a>
            {(place.api == Api::Lmstfy).then(|| {
                view! {
                    <span aria-hidden="true">" › "</span>
                    {link_if_seen(to::namespace(&place.namespace), format!("namespace {}", place.namespace))}
                }
            })}
        </p>
        <div class="head-row">
            <div class="row">
                <h1 class="name">{place.label()}</h1>
                {badge(place.api)}
                {paused}
            </div>
            <div class="row">{actions}</div>
        </div>
    }
    .into_any()
}

/// What stands above every tab of a queue.
pub fn head(queue: &QueueRow, here: Tab, visit: &Visit) -> AnyView {
    let (tally, place) = (&queue.tally, &queue.place);
    let oldest = queue.oldest_waiting.filter(|_| tally.waiting > 0);
    let actions = view! {
        {if queue.paused { unpause(place, visit) } else { pause(place, visit) }}
        {match place.api {
            Api::Qless => {
                view! {
                    {may("/ui/put").then(|| view! { <a class="button" href=to::put(&place.name)>"Add job…"</a> })}
                    <a class="button" href=to::config(&place.name)>"Options…"</a>
                }
                    .into_any()
            }
            Api::Lmstfy => lmstfy::destroy(queue, visit),
            Api::Relay | Api::Jobq => ().into_any(),
        }}
        // lmstfy's queues go by themselves when they have been empty for a while.
        {(place.api == Api::Qless && queue.is_idle() && !queue.forgotten)
            .then(|| forget(place, visit))}
    };
    view! {
        {title(place, queue.paused.then(paused), actions.into_any())}
        {queue.paused.then(|| held_up(tally.waiting))}
        {queue
            .forgotten
            .then(|| {
                view! {
                    <p class="notice">"This queue is hidden from the lists. It reappears when a job is added to it."</p>
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
        0 => "No jobs are waiting.".to_owned(),
        n => format!("{} waiting.", many(n, "job is", "jobs are")),
    };
    view! {
        <p class="notice s-paused">
            {icon("paused")}
            <span>
                "This queue is paused: workers get no jobs from it. " {jobs}
                " Jobs can still be added, and running jobs continue."
            </span>
        </p>
    }
    .into_any()
}

/// At once, for it is as easily undone.
fn pause(queue: &Place, visit: &Visit) -> AnyView {
    let fields = [queue.fields(), vec![("back", visit.here())]].concat();
    let about = format!("Pause queue {}", queue.label());
    hot("", deed(PauseQueue::PATH, fields, "Pause queue", about))
}

/// Lets a paused queue go on.
pub fn unpause(queue: &Place, visit: &Visit) -> AnyView {
    let fields = [queue.fields(), vec![("back", visit.here())]].concat();
    let about = format!("Resume queue {}", queue.label());
    hot("", deed(UnpauseQueue::PATH, fields, "Resume queue", about))
}

fn forget(queue: &Place, visit: &Visit) -> AnyView {
    ask(Ask {
        id: "forget".to_owned(),
        button: "Forget…".to_owned(),
        danger: false,
        title: "Forget this queue?".to_owned(),
        text: "Hides the queue from the lists until a job is added to it. Its complete jobs and statistics are kept.".to_owned(),
        action: ForgetQueue::PATH,
        fields: [
            queue.fields(),
            vec![("back", visit.here()), ("after", "/ui/queues".to_owned())],
        ]
        .concat(),
        yes: "Forget queue".to_owned(),
        no: "Keep queue",
    })
}

fn tabs(queue: &QueueRow, here: Tab) -> AnyView {
    let place = &queue.place;
    let tabs = queue.stands().map(|stand| {
        let n = queue.tally.of(stand);
        let look = if n == 0 { "tab zero" } else { "tab" };
        view! {
            <a
                class=look
                href=to::stand(place, stand)
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
            {(place.api == Api::Qless).then(|| recurring_tab(queue))}
            <a
                class=if place.api == Api::Qless { "tab" } else { "tab apart" }
                href=to::stats(place, None)
                aria-current=(here == Tab::Stats).then_some("page")
            >
                {icon("stats")}
                <span>"statistics"</span>
            </a>
        </nav>
    }
    .into_any()
}

fn recurring_tab(queue: &QueueRow) -> AnyView {
    view! {
        <a
            class=if queue.recurring == 0 { "tab apart zero" } else { "tab apart" }
            href=to::recurring_in(&queue.place.name)
        >
            <span class="s-recurring">{icon("recurring")}</span>
            <span>"recurring"</span>
            <span class="tab-n">{time::number(queue.recurring)}</span>
        </a>
    }
    .into_any()
}

fn nothing(api: Api, stand: Stand) -> &'static str {
    match stand {
        _ if api == Api::Relay => relay::nothing(stand),
        Stand::Waiting if api == Api::Lmstfy => {
            "No waiting jobs. Jobs appear here when they are published and leave when a consumer gets them."
        }
        Stand::Running if api == Api::Lmstfy => {
            "No running jobs. Jobs appear here when a consumer gets them, until they are acknowledged or their time to run (TTR) ends."
        }
        Stand::Waiting => {
            "No waiting jobs. Jobs appear here when they are added and leave when a worker claims them."
        }
        Stand::Scheduled => "No scheduled jobs. Jobs with a delay appear here until they are due.",
        Stand::Depends => {
            "No jobs depend on other jobs. Jobs appear here until all their dependencies are complete."
        }
        Stand::Running => "No running jobs. Jobs appear here while a worker holds their lease.",
        Stand::Stalled => {
            "No stalled jobs. Jobs appear here when their lease expires because a worker missed its heartbeat."
        }
        Stand::Failed => {
            "No failed jobs. Jobs that fail appear here until they are retried or canceled."
        }
        Stand::Complete => {
            "No complete jobs. By default the newest 50,000 of the last 7 days are kept."
        }
        Stand::Record => {
            "No jobs. Jobs appear here when they are created and stay until they are deleted."
        }
        Stand::Dead => {
            "No dead jobs. A job is published with a number of tries, and each delivery uses one. When the last try’s time to run (TTR) ends without an acknowledgment, the job is dead-lettered. It stays here until you respawn or delete it."
        }
    }
}

fn curl(view: &QueueView, visit: &Visit) -> AnyView {
    let lines = match view.queue.place.api {
        Api::Qless => lines(view, visit),
        Api::Lmstfy => lmstfy::lines(view, visit),
        Api::Relay => relay::lines(view, visit),
        Api::Jobq => Vec::new(),
    };
    view! {
        <details class="more">
            <summary>"API call (curl)"</summary>
            {commands("curl", lines)}
        </details>
    }
    .into_any()
}

fn lines(view: &QueueView, visit: &Visit) -> Vec<(&'static str, String)> {
    let name = api_segment(&view.queue.place.name);
    let list = match view.stand {
        Stand::Complete => "/jobs/complete".to_owned(),
        Stand::Failed => "/failed".to_owned(),
        other => format!("/jobs/{}/{name}", other.as_str()),
    };
    let call = |path: String| quoted(&api(visit, &path));
    let (what, path) = if view.queue.paused {
        ("Resume the queue", "unpause")
    } else {
        ("Pause the queue", "pause")
    };
    vec![
        ("List these jobs", format!("curl {}", call(list))),
        (
            "Add a job",
            format!(
                "curl {} -d {}",
                call(format!("/add/{name}")),
                quoted(r#"{"data": {"meta": {}}}"#)
            ),
        ),
        (
            "Claim a job",
            format!("curl {}", call(format!("/get/{name}?host=me"))),
        ),
        (
            what,
            format!("curl -X POST {}", call(format!("/{path}/{name}"))),
        ),
        (
            "Show the queue’s counts",
            format!("curl {}", call(format!("/queue/{name}"))),
        ),
    ]
}

/// A name in a path of the API. curl resolves `..` like a browser, and the API knows no way around that.
pub fn api_segment(name: &str) -> String {
    let coded = segment(name);
    coded.strip_prefix('~').map_or(coded.clone(), str::to_owned)
}
