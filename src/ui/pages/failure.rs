//! `/ui/failures/{group}?range=&fp=`: the failed jobs of one group. `fp` selects those with one kind of message.

pub mod incident;
pub mod mute;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::jobs::Retry;
use crate::ui::components::basics::{empty_note, loaded, plural};
use crate::ui::components::bulk::{self, BulkBar};
use crate::ui::components::chart::{Chart, Dash, Line, Unit, chart, data_table};
use crate::ui::components::commands::{api, curl_commands, json_string, shell_quote};
use crate::ui::components::exports::exports;
use crate::ui::components::forms::action_button;
use crate::ui::components::links::{job_link, queue_link, worker_link};
use crate::ui::components::paging::key_pager;
use crate::ui::components::styles::{CARD, CARD_PADDED, CRUMB, EMPTY, PAYLOAD};
use crate::ui::components::tables::{
    self,
    job_list::{self, JobList},
};
use crate::ui::components::time::ago;
use crate::ui::model::job::JobRow;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::failure::incident::incident;
use crate::ui::pages::failures::load::{self, ALL, FAILURES_COUNTED_MAX};
use crate::ui::pages::failures::model::{FailureGroupView, MessageKind};
use crate::ui::pages::failures::ranges;
use crate::ui::pages::search::model::in_quotes;
use crate::ui::urls;
use crate::ui::urls::encoding::segment;

/// A link to the jobs with one message.
const MESSAGE: &str = "flex min-h-7 gap-2 rounded-md border border-control px-2.5 py-0.75 text-sm wrap-anywhere text-ink \
    hover:bg-hover hover:no-underline aria-[current]:border-accent aria-[current]:[box-shadow:inset_0_0_0_1px_var(--color-accent)]";

#[component]
pub fn FailurePage() -> impl IntoView {
    let request = page_request();
    let text = |name: &str| request.param(name).unwrap_or_default();
    let failure = load::failure(request.name(2), text("range"), text("fp"), request.page());
    loaded(failure, move |view| page(&view, &request))
}

fn page(view: &FailureGroupView, request: &PageRequest) -> AnyView {
    let group = &view.group;
    view! {
        <Title text=group.group.clone() />
        <p class=CRUMB><a href="/ui/failures">"Failures"</a></p>
        <h1 class="name">{group.group.clone()}</h1>
        {if group.count == 0 { no_jobs().into_any() } else { jobs_and_messages(view, request) }}
    }
    .into_any()
}

fn no_jobs() -> impl IntoView {
    view! {
        <div class=CARD>
            <p class=EMPTY>
                "No failed jobs in this group. Its jobs were retried, moved or canceled, or the group never existed. "
                <a href="/ui/operations">"Bulk operations"</a> " shows how many jobs each operation changed, and why it skipped others."
            </p>
        </div>
    }
}

fn jobs_and_messages(view: &FailureGroupView, request: &PageRequest) -> AnyView {
    let group = &view.group;
    let moment = |moment: Option<i64>| moment.map(|moment| ago(moment, request.now));
    let fingerprint = view
        .selected_kind
        .as_ref()
        .map_or("", |kind| kind.hash.as_str());
    let here = urls::filtered_failure(&group.group, &view.range, fingerprint);
    let search = equivalent_search(view);
    let bar = BulkBar {
        search: Some(&search),
        all: (!view.is_cut).then_some(view.count),
        shown: view.jobs.len(),
        actions: bulk::actions_of(None, Some(EffectiveState::Failed)),
    };
    view! {
        <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <p class="text-muted wrap-anywhere">
                {plural(group.count, "failed job", "failed jobs")} " · first " {moment(group.first)} " · last "
                {moment(group.last)}
            </p>
            <div class="flex flex-wrap items-center gap-2">
                {view.sample.as_ref().map(canary)}
                {tables::retry_all(group, request)}
                {mute::button(view, request)}
                {mute::tracker(view)}
            </div>
        </div>
        {mute::notice(view, request)}
        {ranges(&view.range, |range| urls::filtered_failure(&group.group, range, fingerprint))}
        <section class=CARD_PADDED aria-label="Failures over time">
            {times(view)}
        </section>
        {messages(view)}
        {where_from(view)}
        {view.sample.as_ref().map(|sample| newest(sample, request))}
        <p>
            <a href=urls::search(&search)>"Search these jobs"</a>
        </p>
        <div class=CARD>
            {bulk::bar(bar, request)}
            {if view.jobs.is_empty() {
                empty_note("No matching jobs among the newest of this group. Choose another message or time range.")
            } else {
                job_list::jobs("Failed jobs, newest first", JobList::Group, &view.jobs, request)
            }}
        </div>
        {key_pager(&here, &view.neighbors, view.jobs.len(), view.count)}
        {(!view.jobs.is_empty()).then(|| exports(&search))}
        {incident(view, request)}
        {by_curl(view, request)}
    }
    .into_any()
}

/// The button that retries only the newest job of the group, so that the user can check the outcome before retrying the
/// others.
fn canary(sample: &JobRow) -> AnyView {
    let fields = vec![
        ("id", sample.id.clone()),
        ("back", urls::qless_job(&sample.id)),
    ];
    let about = format!("Retry 1 as a canary: job {}", sample.id);
    let button = action_button(Retry::PATH, fields, "Retry 1 as a canary", about);
    // Another element for another job, so that a refresh does not turn a focused button into that of a newer job.
    view! { <div class="contents" data-key=sample.id.clone()>{button}</div> }.into_any()
}

/// The search that finds the same jobs.
fn equivalent_search(view: &FailureGroupView) -> String {
    let mut text = format!("state:failed group:{}", in_quotes(&view.group.group));
    if let Some(kind) = &view.selected_kind {
        text.push_str(&format!(" fp:{}", kind.hash));
    }
    if view.range != ALL {
        text.push_str(&format!(" updated:<{}", view.range));
    }
    text
}

fn times(view: &FailureGroupView) -> AnyView {
    let drawing = Chart {
        id: "times",
        title: match view.width / 60_000_000 {
            ..60 => "Still-failed jobs, per minute",
            60 => "Still-failed jobs, per hour",
            240 => "Still-failed jobs, per 4 hours",
            _ => "Still-failed jobs, per day",
        },
        unit: Unit::Rate,
        from: view.from,
        width: view.width,
        is_in_progress: true,
        marks: Vec::new(),
        lines: vec![Line {
            name: "failed",
            class: "text-failed",
            dash: Dash::Solid,
            values: view.spans.iter().map(|n| Some(*n as f64)).collect(),
        }],
    };
    view! {
        {chart(&drawing)}
        {view
            .is_cut
            .then(|| view! { <p class="text-muted wrap-anywhere">{format!("Shows the newest {} jobs only. Older failures are not counted.", time::number(FAILURES_COUNTED_MAX))}</p> })}
        {data_table("Failures over time, data", &[&drawing])}
    }
    .into_any()
}

/// The kinds of messages, as links that filter by kind.
fn messages(view: &FailureGroupView) -> AnyView {
    let group = &view.group.group;
    let selected_kind = view.selected_kind.as_ref();
    let chip = |kind: &MessageKind, is_selected: bool| {
        let fp = if is_selected { "" } else { kind.hash.as_str() };
        let text = match kind.text.as_str() {
            "" => "(no message)".to_owned(),
            text => text.to_owned(),
        };
        let example = (!kind.example.is_empty() && kind.example != kind.text).then(
            || view! { <span class="line-clamp-2 text-xs leading-4 text-muted wrap-anywhere">{format!("e.g. {}", kind.example)}</span> },
        );
        view! {
            <li>
                <a href=urls::filtered_failure(group, &view.range, fp) class=MESSAGE aria-current=is_selected.then_some("true")>
                    <span class="shrink-0 font-medium text-failed">{time::number(kind.count)}</span>
                    <span class="min-w-0">{text}</span> {example}
                </a>
            </li>
        }
    };
    let is_selected = |kind: &MessageKind| {
        selected_kind.is_some_and(|selected_kind| selected_kind.hash == kind.hash)
    };
    let hidden = selected_kind.filter(|selected_kind| {
        !view
            .message_kinds
            .iter()
            .any(|kind| kind.hash == selected_kind.hash)
    });
    let more_kinds = match view.more_kinds {
        0 => String::new(),
        n => format!(" Messages not listed: {n}."),
    };
    view! {
        <section class=CARD_PADDED aria-labelledby="messages">
            <h2 id="messages">"Messages"</h2>
            <ul class="flex flex-wrap gap-2">
                {view.message_kinds.iter().map(|kind| chip(kind, is_selected(kind))).collect_view()}
                {hidden.map(|kind| chip(kind, true))}
            </ul>
            <p class="text-muted wrap-anywhere">
                {format!("Messages of the newest {}. “·” replaces the parts that vary: numbers, IDs and quoted text.{more_kinds}", plural(view.analyzed, "job", "jobs"))}
                {selected_kind
                    .map(|kind| {
                        view! {
                            " Selected: " <code>{format!("fp:{}", kind.hash)}</code> ". "
                            <a href=urls::filtered_failure(group, &view.range, "")>"All messages"</a>
                        }
                    })}
            </p>
        </section>
    }
    .into_any()
}

fn where_from(view: &FailureGroupView) -> AnyView {
    let row = |name: AnyView, n: i64| {
        view! { <tr><th scope="row">{name}</th> <td class="num">{time::number(n)}</td></tr> }
            .into_any()
    };
    let table = |caption: &str, word, rows: Vec<AnyView>| {
        tables::table(
            caption,
            tables::head(&[(word, ""), ("Jobs", "num")]),
            rows.into_any(),
        )
    };
    let queues = view
        .queues
        .iter()
        .map(|(queue_ref, n)| row(queue_link(queue_ref), *n));
    let workers = view
        .workers
        .iter()
        .map(|(name, n)| row(worker_link(name), *n));
    view! {
        <div class="grid grid-cols-2 items-start gap-4 empty:hidden max-lg:grid-cols-1">
            <div class=CARD>{table("Queues of these jobs", "Queue", queues.collect())}</div>
            <div class=CARD>{table("Workers that reported the failures", "Worker", workers.collect())}</div>
        </div>
    }
    .into_any()
}

fn newest(sample: &JobRow, request: &PageRequest) -> AnyView {
    let failure = sample.failure.as_ref();
    view! {
        <section class=CARD_PADDED aria-labelledby="newest">
            <h2 id="newest">"Newest message"</h2>
            <p class="text-muted wrap-anywhere">
                {job_link(sample)} " in " {queue_link(&sample.queue_ref)}
                {failure.map(|failure| view! { ", " {ago(failure.when, request.now)} })}
            </p>
            {failure.map(|failure| view! { <pre class=PAYLOAD tabindex="0">{failure.message.clone()}</pre> })}
        </section>
    }
    .into_any()
}

fn by_curl(view: &FailureGroupView, request: &PageRequest) -> AnyView {
    let group = &view.group;
    let body = format!(
        r#"{{"data": {{"group": {}, "count": {}}}}}"#,
        json_string(&group.group),
        group.count
    );
    let queue = view
        .jobs
        .first()
        .map(|job| segment(&job.queue_ref.name))
        .unwrap_or_default();
    let list = format!("/failed/{}", segment(&group.group));
    let list = format!("curl {}", shell_quote(&api(request, &list)));
    let retry = shell_quote(&api(request, &format!("/unfail/{queue}")));
    let retry = format!("curl {retry} -d {}", shell_quote(&body));
    curl_commands(vec![
        ("List these jobs", list),
        ("Retry all into one queue", retry),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::model::failure::GroupRow;
    use crate::ui::model::paging::Neighbors;
    use crate::ui::pages::failures::model::FailureGroupView;

    #[test]
    fn the_search_finds_the_same_jobs() {
        let view = |range: &str, selected_kind: Option<&str>| FailureGroupView {
            group: GroupRow {
                group: r#"a "b" \"#.to_owned(),
                count: 1,
                first: None,
                last: None,
                message: None,
                muted: None,
            },
            range: range.to_owned(),
            from: 0,
            width: 60_000_000,
            spans: vec![],
            is_cut: false,
            analyzed: 0,
            message_kinds: vec![],
            more_kinds: 0,
            selected_kind: selected_kind.map(|hash| MessageKind {
                hash: hash.to_owned(),
                text: String::new(),
                example: String::new(),
                count: 1,
            }),
            queues: vec![],
            workers: vec![],
            sample: None,
            count: 1,
            jobs: vec![],
            neighbors: Neighbors::default(),
        };
        let plain = r#"state:failed group:"a \"b\" \\""#;
        assert_eq!(equivalent_search(&view("all", None)), plain);
        assert_eq!(
            equivalent_search(&view("7d", Some("1a2b3c4d"))),
            format!("{plain} fp:1a2b3c4d updated:<7d")
        );
    }
}
