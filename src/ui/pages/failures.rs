//! `/ui/failures?range=&q=`: failed jobs by group.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::failures::SeeFailures;
use crate::ui::components::basics::{loaded, number_of, plural};
use crate::ui::components::chart::sparkline;
use crate::ui::components::forms::action_button;
use crate::ui::components::icons::icon;
use crate::ui::components::links::queue_link_with_protocol;
use crate::ui::components::styles::{CARD, EMPTY, NOTICE};
use crate::ui::components::tables;
use crate::ui::components::time::ago;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::failures::load::{FAILURES_COUNTED_MAX, RANGES};
use crate::ui::pages::failures::model::{FailureGroupRow, FailuresView};
use crate::ui::urls;

/// Maximum number of queues in a row.
const QUEUES_NAMED: usize = 3;

#[component]
pub fn FailuresPage() -> impl IntoView {
    let request = page_request();
    let text = request.param("q").unwrap_or_default();
    let range = request.param("range").unwrap_or_default();
    loaded(load::failures(range, text.clone()), move |view| {
        view! {
            <Title text="Failures" />
            <h1>"Failures"</h1>
            {if view.failed == 0 { no_failures(&view, &request) } else { groups_and_filter(&view, &text, &request) }}
        }
        .into_any()
    })
}

fn no_failures(view: &FailuresView, request: &PageRequest) -> AnyView {
    view! {
        <div class=CARD>
            <p class=EMPTY>
                "No failed jobs. When a worker fails a job, it appears here by failure group, ready to retry. Last failure: "
                {match view.last {
                    Some(last) => ago(last, request.now),
                    None => "none recorded".into_any(),
                }} "."
            </p>
        </div>
    }
    .into_any()
}

/// Links to the ranges. `shown` is the current range, and `address` returns the address for a range.
pub fn ranges(shown: &str, address: impl Fn(&str) -> String) -> AnyView {
    let links = RANGES.map(|(name, word, ..)| {
        let current = (shown == name).then_some("true");
        view! { <a class="btn" href=address(name) aria-current=current>{word}</a> }
    });
    view! { <nav class="flex flex-wrap items-center gap-2 [&>[aria-current]]:border-accent [&>[aria-current]]:font-semibold [&>[aria-current]]:text-accent" aria-label="Time range">{links}</nav> }.into_any()
}

fn groups_and_filter(view: &FailuresView, text: &str, request: &PageRequest) -> AnyView {
    let counted: i64 = view.groups.iter().map(|group| group.count).sum();
    let groups = number_of(view.groups.len());
    let address = |range: &str| urls::with_fields("/ui/failures", [("range", range), ("q", text)]);
    view! {
        <p class="text-muted wrap-anywhere">
            {match counted == view.failed {
                true => format!("{} in {}", plural(counted, "failed job", "failed jobs"), plural(groups, "group", "groups")),
                false => format!(
                    "{} of {}, in {}",
                    time::number(counted),
                    plural(view.failed, "failed job", "failed jobs"),
                    plural(groups, "group", "groups"),
                ),
            }}
        </p>
        {new_failures_notice(view, request)}
        <div class="flex flex-wrap items-center gap-x-4 gap-y-2">
            {ranges(&view.range, address)}
            <form method="get" action="/ui/failures" role="search" class="flex flex-wrap items-center gap-2">
                <label for="q">"Group or message contains"</label>
                <input id="q" name="q" type="search" value=text.to_owned() maxlength="255" autocomplete="off" />
                <input type="hidden" name="range" value=view.range.clone() />
                <button type="submit" class="btn">"Filter"</button>
            </form>
        </div>
        <div class=CARD>
            {if view.groups.is_empty() {
                view! {
                    <p class=EMPTY>
                        {if text.is_empty() {
                            "No still-failed jobs in this time range. ".to_owned()
                        } else {
                            format!("No failures in this time range contain “{text}”. ")
                        }} <a href="/ui/failures">"Show all failures"</a>
                    </p>
                }
                    .into_any()
            } else {
                groups_table(view, request)
            }}
        </div>
        {(view.unchecked > 0)
            .then(|| {
                let unchecked = plural(number_of(view.unchecked), "group", "groups");
                view! { <p class="text-muted wrap-anywhere">{format!("The filter did not reach {unchecked}: it reads the groups with the most jobs first, and stops after 16 MiB or 2 s.")}</p> }
            })}
        {(view.more > 0)
            .then(|| {
                let more = number_of(view.more);
                view! { <p class="text-muted wrap-anywhere">{format!("{} with fewer jobs not shown. Filter to see them.", plural(more, "group", "groups"))}</p> }
            })}
    }
    .into_any()
}

/// The notice that some failures are new for the browser, with the button that marks them as seen.
fn new_failures_notice(view: &FailuresView, request: &PageRequest) -> AnyView {
    let Some(seen) = view.seen.filter(|_| view.new > 0) else {
        return ().into_any();
    };
    let fields = vec![("until", request.now.to_string()), ("back", request.here())];
    view! {
        <div class=format!("{NOTICE} flex-wrap items-center text-failed")>
            {icon("failed")}
            <span>{plural(view.new, "new failure", "new failures")} " since " {ago(seen, request.now)} " (your first visit, or when you last marked failures as seen)"</span>
            {action_button(SeeFailures::PATH, fields, "Mark as seen", "Mark these failures as seen".to_owned())}
        </div>
    }
    .into_any()
}

fn groups_table(view: &FailuresView, request: &PageRequest) -> AnyView {
    let columns = [
        ("Failure", ""),
        ("Jobs", "num"),
        ("Share", "num mid"),
        ("Last 24 hours", "wide"),
        ("First", "num wide"),
        ("Last", "num mid"),
        ("Queues", "wide"),
        ("Action", "w-[1%] text-right"),
    ];
    let rows = view
        .groups
        .iter()
        .map(|group| row(group, view, request))
        .collect_view();
    tables::table("Failures by group", tables::head(&columns), rows.into_any())
}

fn row(group: &FailureGroupRow, view: &FailuresView, request: &PageRequest) -> AnyView {
    let row = &group.row;
    let moment = |moment: Option<i64>| moment.map(|moment| ago(moment, request.now));
    let share = row.count as f64 / view.failed.max(1) as f64 * 100.0;
    let day: i64 = group.day.iter().sum();
    let about = format!(
        "{} failed in the last 24 hours, at most {} in one hour",
        plural(day, "job", "jobs"),
        time::number(group.day.iter().max().copied().unwrap_or_default()),
    );
    let drawn = match day {
        0 => view! { <td class="zero wide">"none"</td> }.into_any(),
        _ => view! { <td class="wide">{sparkline(&group.day, "text-failed", &about)}</td> }
            .into_any(),
    };
    let address = urls::filtered_failure(&row.group, &view.range, "");
    view! {
        <tr data-key=row.group.clone()>
            <th scope="row" class="text-cell">
                <a class="name" href=address>{row.group.clone()}</a> {tables::muted_chip(row)}
                {group.top_kind.as_ref().map(|top_kind| view! { <span class="line-clamp-2 text-xs leading-4 text-muted wrap-anywhere">{top_kind.text.clone()}</span> })}
                {group
                    .top_kind
                    .as_ref()
                    .filter(|top_kind| top_kind.count < group.analyzed)
                    .map(|top_kind| view! { <span class="block text-xs leading-4 text-muted wrap-anywhere">{format!("{} of the newest {} jobs", time::number(top_kind.count), time::number(group.analyzed))}</span> })}
            </th>
            <td class="num text-failed">
                {at_least(group.count)}
                {(group.new > 0).then(|| view! { <span class="block text-xs leading-4">{format!("{} new", at_least(group.new))}</span> })}
            </td>
            <td class="num mid">{format!("{share:.0}%")}</td>
            {drawn}
            <td class="num wide">{moment(row.first)}</td>
            <td class="num mid">{moment(row.last)}</td>
            <td class="wide">{queue_links(&group.queues)}</td>
            <td class="w-[1%] text-right whitespace-nowrap">{tables::retry_all(row, request)}</td>
        </tr>
    }
    .into_any()
}

/// The number of jobs; above the limit of counting, the limit and a “+”.
fn at_least(n: i64) -> String {
    match n > FAILURES_COUNTED_MAX {
        true => format!("{}+", time::number(FAILURES_COUNTED_MAX)),
        false => time::number(n),
    }
}

fn queue_links(queues: &[(QueueRef, i64)]) -> AnyView {
    let shown = queues.iter().take(QUEUES_NAMED);
    let more = queues.len().saturating_sub(QUEUES_NAMED);
    view! {
        {shown.map(|(queue_ref, _)| view! { <div>{queue_link_with_protocol(queue_ref)}</div> }).collect_view()}
        {(more > 0).then(|| view! { <span class="text-muted wrap-anywhere">{format!("and {more} more")}</span> })}
    }
    .into_any()
}
