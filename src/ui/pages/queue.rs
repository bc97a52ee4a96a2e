//! `/ui/queues/{queue}` and `/ui/queues/{queue}/{state}`, and the same below `/ui/lmstfy/{namespace}/{queue}` and
//! `/ui/relay/{queue}`: one queue and its jobs by state. Also the head of the queue's statistics (`daily_stats.rs`).
//! Jobq queues have a page of their own (`records.rs`).

pub mod dead_letter;
pub mod lmstfy;
pub mod load;
pub mod model;
pub mod relay;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::queues::{ForgetQueue, PauseQueue, UnpauseQueue};
use crate::ui::components::basics::{empty_note, loaded, plural};
use crate::ui::components::bulk::{self, BulkBar};
use crate::ui::components::commands::{api, curl_commands, shell_quote};
use crate::ui::components::exports::search_and_exports;
use crate::ui::components::forms::{
    ConfirmDialog, action_button, confirm_dialog, may_post, shortcut,
};
use crate::ui::components::icons::icon;
use crate::ui::components::links::{job_link, link_if_allowed, worker_link};
use crate::ui::components::paging::key_pager;
use crate::ui::components::pause;
use crate::ui::components::state::{bar, color, paused_chip, protocol_badge, state_label};
use crate::ui::components::styles::{CARD, CRUMB, NOTICE};
use crate::ui::components::tables::{
    self,
    job_list::{self, JobList},
};
use crate::ui::components::time::{ago, exact};
use crate::ui::components::worker_results;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::queue_trend::QueueTrend;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::queue::model::QueueView;
use crate::ui::pages::search::model::search_of_queue;
use crate::ui::urls;
use crate::ui::urls::encoding::segment;

/// The tabs of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    Jobs(EffectiveState),
    Stats,
}

#[component]
pub fn QueuePage() -> impl IntoView {
    let request = page_request();
    let (queue_ref, next) = request.queue();
    let state = Some(request.name(next)).filter(|state| !state.is_empty());
    let state = state.unwrap_or_else(|| EffectiveState::Waiting.as_str().to_owned());
    loaded(load::queue(queue_ref, state, request.page()), move |view| {
        page(&view, &request)
    })
}

fn page(view: &QueueView, request: &PageRequest) -> AnyView {
    let (queue, state) = (&view.queue, view.state);
    let queue_ref = &queue.queue_ref;
    let empty = view.jobs.is_empty() && view.neighbors.previous.is_none();
    let list = match queue_ref.protocol {
        _ if empty => empty_note(nothing(queue_ref.protocol, state)),
        _ if state == EffectiveState::Dead => dead_letter::list(view, request),
        Protocol::Qless => {
            let caption = format!("Jobs, {}", state_label(state));
            job_list::jobs(&caption, JobList::Queue(state), &view.jobs, request)
        }
        Protocol::Lmstfy => lmstfy::list(view, request),
        Protocol::Relay => relay::list(view, request),
        // Jobq queues have pages of their own (`records.rs`).
        Protocol::Jobq => ().into_any(),
    };
    let search = search_of_queue(queue_ref, state);
    let bar = BulkBar {
        search: Some(&search),
        all: Some(queue.counts.of(state)),
        shown: view.jobs.len(),
        actions: bulk::actions_of(Some(queue_ref.protocol), Some(state)),
    };
    // Dead letters have buttons of their own, for the oldest jobs and a new time to live.
    let is_dead = state == EffectiveState::Dead;
    view! {
        <Title text=queue_ref.label() />
        {head(queue, view.trend, Tab::Jobs(state), request)}
        {is_dead.then(|| dead_letter::confirmation(view, request))}
        <div class=CARD>{(!is_dead).then(|| bulk::bar(bar, request))} {list}</div>
        {key_pager(&urls::state(queue_ref, state), &view.neighbors, view.jobs.len(), queue.counts.of(state))}
        {(!empty).then(|| search_and_exports(&search))}
        {worker_results::workers(&view.workers, request.now)}
        {curl(view, request)}
    }
    .into_any()
}

/// The jobs of a queue in one state: the ID, cells for `columns`, and the beginning of the payload in a column named
/// `payload`.
fn job_table(
    view: &QueueView,
    columns: &[(&'static str, &'static str)],
    payload: &'static str,
    request: &PageRequest,
    cells: impl Fn(&JobRow) -> AnyView,
) -> AnyView {
    let is_selectable = bulk::may_select(request);
    let select = is_selectable.then_some(bulk::SELECT);
    let (id, payload) = (("Job", "xl:min-w-68"), (payload, "w-[35%] wide"));
    let columns = [select.as_slice(), &[id], columns, &[payload]].concat();
    let rows = view.jobs.iter().map(|job| {
        view! {
            <tr data-key=job.id.clone()>
                {is_selectable.then(|| bulk::checkbox(job, request))}
                <th scope="row">{job_link(job)}</th>
                {cells(job)}
                <td class="w-[35%] max-w-0 truncate text-muted wide"><code>{job.preview.clone()}</code></td>
            </tr>
        }
    });
    let caption = format!("Jobs, {}", state_label(view.state));
    let rows = rows.collect_view().into_any();
    tables::table(&caption, tables::head(&columns), rows)
}

/// Breadcrumb, name and actions of a queue.
pub fn title(queue_ref: &QueueRef, paused: Option<AnyView>, actions: AnyView) -> AnyView {
    view! {
        <p class=CRUMB>
            <a href="/ui/queues">"Queues"</a>
            {(queue_ref.protocol == Protocol::Lmstfy).then(|| {
                view! {
                    <span aria-hidden="true">" › "</span>
                    {link_if_allowed(urls::namespace(&queue_ref.namespace), format!("namespace {}", queue_ref.namespace))}
                }
            })}
        </p>
        <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <div class="flex flex-wrap items-center gap-2">
                <h1 class="name">{queue_ref.label()}</h1>
                {protocol_badge(queue_ref.protocol)}
                {paused}
            </div>
            <div class="flex flex-wrap items-center gap-2">{actions}</div>
        </div>
    }
    .into_any()
}

/// The part above the content of every tab of a queue.
pub fn head(
    queue: &QueueRow,
    trend: Option<QueueTrend>,
    here: Tab,
    request: &PageRequest,
) -> AnyView {
    let (counts, queue_ref) = (&queue.counts, &queue.queue_ref);
    let oldest = queue.oldest_waiting.filter(|_| counts.waiting > 0);
    let actions = view! {
        {if queue.paused { resume_button(queue_ref, request) } else { pause_button(queue_ref, request) }}
        {pause::dialog(queue, request)}
        {match queue_ref.protocol {
            Protocol::Qless => {
                view! {
                    {may_post("/ui/put").then(|| view! { <a class="btn" href=urls::put(&queue_ref.name)>"Add job…"</a> })}
                    <a class="btn" href=urls::config(&queue_ref.name)>"Options…"</a>
                }
                    .into_any()
            }
            Protocol::Lmstfy => lmstfy::destroy(queue, request),
            Protocol::Relay | Protocol::Jobq => ().into_any(),
        }}
        // Empty lmstfy queues are deleted automatically.
        {(queue_ref.protocol == Protocol::Qless && queue.is_idle() && !queue.forgotten)
            .then(|| forget(queue_ref, request))}
    };
    view! {
        {title(queue_ref, queue.paused.then(paused_chip), actions.into_any())}
        {queue.paused.then(|| paused_notice(queue, request.now))}
        {queue
            .forgotten
            .then(|| {
                view! {
                    <p class=NOTICE>"This queue is hidden from the lists. It reappears when a job is added to it."</p>
                }
            })}
        <div class="flex max-w-180 items-center gap-4 max-sm:flex-wrap">
            {bar(counts)}
            {oldest.map(|since| view! { <span class="shrink-0 text-sm text-muted">"Oldest waiting: " {ago(since, request.now)}</span> })}
        </div>
        {trend.map(|trend| view! { <p class="text-sm text-muted wrap-anywhere">{trend.sentence()}</p> })}
        {claimants(queue, request)}
        {tabs(queue, here)}
    }
    .into_any()
}

/// The workers that claimed from the queue last, or a warning if jobs wait and none has tried for over two minutes.
fn claimants(queue: &QueueRow, request: &PageRequest) -> AnyView {
    if let Some(since) = queue.unclaimed_since(request.now) {
        return view! {
            <p class=format!("{NOTICE} text-stalled")>
                {icon("stalled")}
                <span>"No worker has tried to claim from this queue since " {exact(since)} ", " {ago(since, request.now)} "."</span>
            </p>
        }
        .into_any();
    }
    let names = queue.claimants.iter().map(|(name, at)| {
        view! { <li>{worker_link(name)} " " <span class="text-muted wrap-anywhere">{ago(*at, request.now)}</span></li> }
    });
    (!queue.claimants.is_empty())
        .then(|| view! { <div class="flex flex-wrap items-center gap-2"><span class="text-muted wrap-anywhere">"Last claims by:"</span> <ul class="flex flex-wrap items-center gap-2">{names.collect_view()}</ul></div> })
        .into_any()
}

/// The note that the queue is paused.
fn paused_notice(queue: &QueueRow, now: i64) -> AnyView {
    let jobs = match queue.counts.waiting {
        0 => "No jobs are waiting.".to_owned(),
        n => format!("{} waiting.", plural(n, "job is", "jobs are")),
    };
    view! {
        <p class=format!("{NOTICE} text-paused")>
            {icon("paused")}
            <span>
                "This queue is paused: workers get no jobs from it. " {jobs}
                " Jobs can still be added, and running jobs continue." {pause::sentences(&queue.pause, now)}
            </span>
        </p>
    }
    .into_any()
}

/// Has no confirmation, because the queue can be resumed.
fn pause_button(queue: &QueueRef, request: &PageRequest) -> AnyView {
    let fields = [queue.fields(), vec![("back", request.here())]].concat();
    let about = format!("Pause queue {}", queue.label());
    shortcut(
        "",
        action_button(PauseQueue::PATH, fields, "Pause queue", about),
    )
}

/// The button that resumes a paused queue.
pub fn resume_button(queue: &QueueRef, request: &PageRequest) -> AnyView {
    let fields = [queue.fields(), vec![("back", request.here())]].concat();
    let about = format!("Resume queue {}", queue.label());
    shortcut(
        "",
        action_button(UnpauseQueue::PATH, fields, "Resume queue", about),
    )
}

fn forget(queue: &QueueRef, request: &PageRequest) -> AnyView {
    confirm_dialog(ConfirmDialog {
        id: "forget".to_owned(),
        button: "Forget…".to_owned(),
        danger: false,
        title: "Forget this queue?".to_owned(),
        text: "Hides the queue from the lists until a job is added to it. Its complete jobs and statistics are kept.".to_owned(),
        action: ForgetQueue::PATH,
        fields: [
            queue.fields(),
            vec![("back", request.here()), ("after", "/ui/queues".to_owned())],
        ]
        .concat(),
        confirm_label: "Forget queue".to_owned(),
        cancel_label: "Keep queue",
    })
}

fn tabs(queue: &QueueRow, here: Tab) -> AnyView {
    let queue_ref = &queue.queue_ref;
    let tabs = queue.states().map(|state| {
        let n = queue.counts.of(state);
        view! {
            <a
                class="tab"
                href=urls::state(queue_ref, state)
                aria-current=(Tab::Jobs(state) == here).then_some("page")
            >
                <span class=color(state)>{icon(state.as_str())}</span>
                <span>{state_label(state)}</span>
                <span class="text-muted">{time::number(n)}</span>
            </a>
        }
    });
    view! {
        <nav class="flex flex-wrap gap-1 border-b border-line max-sm:gap-0" aria-label="This queue">
            {tabs.collect_view()}
            {(queue_ref.protocol == Protocol::Qless).then(|| recurring_tab(queue))}
            <a
                class=if queue_ref.protocol == Protocol::Qless { "tab" } else { "tab ml-auto max-sm:ml-0" }
                href=urls::daily_stats(queue_ref, None)
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
            class="tab ml-auto max-sm:ml-0"
            href=urls::recurring_in(&queue.queue_ref.name)
        >
            <span class="text-recurring">{icon("recurring")}</span>
            <span>"recurring"</span>
            <span class="text-muted">{time::number(queue.recurring)}</span>
        </a>
    }
    .into_any()
}

fn nothing(protocol: Protocol, state: EffectiveState) -> &'static str {
    match state {
        _ if protocol == Protocol::Relay => relay::nothing(state),
        EffectiveState::Waiting if protocol == Protocol::Lmstfy => {
            "No waiting jobs. Jobs appear here when they are published and leave when a consumer gets them."
        }
        EffectiveState::Running if protocol == Protocol::Lmstfy => {
            "No running jobs. Jobs appear here when a consumer gets them, until they are acknowledged or their time to run (TTR) ends."
        }
        EffectiveState::Waiting => {
            "No waiting jobs. Jobs appear here when they are added and leave when a worker claims them."
        }
        EffectiveState::Scheduled => {
            "No scheduled jobs. Jobs with a delay appear here until they are due."
        }
        EffectiveState::Depends => {
            "No jobs depend on other jobs. Jobs appear here until all their dependencies are complete."
        }
        EffectiveState::Running => {
            "No running jobs. Jobs appear here while a worker has a lease on them."
        }
        EffectiveState::Stalled => {
            "No stalled jobs. Jobs appear here when their lease expires because a worker missed its heartbeat."
        }
        EffectiveState::Failed => {
            "No failed jobs. Jobs that fail appear here until they are retried or canceled."
        }
        EffectiveState::Complete => {
            "No complete jobs. By default the newest 50,000 of the last 7 days are kept."
        }
        EffectiveState::Record => {
            "No jobs. Jobs appear here when they are created and stay until they are deleted."
        }
        EffectiveState::Dead => {
            "No dead jobs. A job is published with a number of tries, and each delivery uses one. When the last try’s time to run (TTR) ends without an acknowledgment, the job is dead-lettered. It stays here until you respawn or delete it."
        }
    }
}

fn curl(view: &QueueView, request: &PageRequest) -> AnyView {
    let lines = match view.queue.queue_ref.protocol {
        Protocol::Qless => lines(view, request),
        Protocol::Lmstfy => lmstfy::lines(view, request),
        Protocol::Relay => relay::lines(view, request),
        Protocol::Jobq => Vec::new(),
    };
    curl_commands(lines)
}

fn lines(view: &QueueView, request: &PageRequest) -> Vec<(&'static str, String)> {
    let queue = &view.queue.queue_ref;
    let name = api_segment(&queue.name);
    let call = |path: String| shell_quote(&api(request, &path));
    let get = |path: String| format!("curl {}", call(path));
    let mut lines = match view.state {
        EffectiveState::Complete => vec![(
            "List the complete jobs of all queues",
            get("/jobs/complete".to_owned()),
        )],
        EffectiveState::Failed => vec![(
            "Count the failed jobs of all queues by group",
            get("/failed".to_owned()),
        )],
        other => vec![(
            "List these jobs",
            get(format!("/jobs/{}/{name}", other.as_str())),
        )],
    };
    // The API lists neither the complete nor the failed jobs of one queue.
    if matches!(
        view.state,
        EffectiveState::Complete | EffectiveState::Failed
    ) {
        let page = api(request, &urls::state(queue, view.state));
        lines.push(("Address of this page; the API has no such list", page));
    }
    let (what, path) = if view.queue.paused {
        ("Resume the queue", "unpause")
    } else {
        ("Pause the queue", "pause")
    };
    lines.extend([
        (
            "Add a job",
            format!(
                "curl {} -d {}",
                call(format!("/add/{name}")),
                shell_quote(r#"{"data": {"meta": {}}}"#)
            ),
        ),
        ("Claim a job", get(format!("/get/{name}?host=me"))),
        (
            what,
            format!("curl -X POST {}", call(format!("/{path}/{name}"))),
        ),
        ("Show the queue’s counts", get(format!("/queue/{name}"))),
    ]);
    lines
}

/// A name as a segment of a path of the API: without the leading `~` that only addresses of the dashboard have.
pub fn api_segment(name: &str) -> String {
    let coded = segment(name);
    coded.strip_prefix('~').map_or(coded.clone(), str::to_owned)
}
