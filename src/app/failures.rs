//! `/ui/failures?range=&q=`: failed jobs by group.

use leptos::prelude::*;
use leptos_meta::Title;

use super::chart::spark;
use super::parts::{ago, loaded, many, queue_name};
use super::tables;
use super::visit::{Visit, to, visit};
use crate::api::read::{self, FAILURES_COUNTED_MAX};
use crate::api::views::{FailingGroup, FailuresView, Place};
use crate::time;

/// The ranges that are offered: in addresses, and in words.
pub const RANGES: [(&str, &str); 4] = [
    ("1h", "1 hour"),
    ("24h", "24 hours"),
    ("7d", "7 days"),
    ("all", "All"),
];

/// Queues that a row names.
const QUEUES_NAMED: usize = 3;

#[component]
pub fn FailuresPage() -> impl IntoView {
    let visit = visit();
    let text = visit.param("q").unwrap_or_default();
    let range = visit.param("range").unwrap_or_default();
    loaded(read::failures(range, text.clone()), move |view| {
        view! {
            <Title text="Failures" />
            <h1>"Failures"</h1>
            {if view.failed == 0 { none(&view, &visit) } else { some(&view, &text, &visit) }}
        }
        .into_any()
    })
}

fn none(view: &FailuresView, visit: &Visit) -> AnyView {
    view! {
        <div class="card">
            <p class="empty">
                "No failed jobs. When a worker fails a job, it appears here by failure group, ready to retry. Last failure: "
                {match view.last {
                    Some(last) => ago(last, visit.now),
                    None => "none recorded".into_any(),
                }} "."
            </p>
        </div>
    }
    .into_any()
}

/// Links to the ranges, of which this one is shown; `address` is where they lead.
pub fn ranges(shown: &str, address: impl Fn(&str) -> String) -> AnyView {
    let links = RANGES.map(|(name, word)| {
        let current = (shown == name).then_some("true");
        view! { <a class="button" href=address(name) aria-current=current>{word}</a> }
    });
    view! { <nav class="row ranges" aria-label="Time range">{links}</nav> }.into_any()
}

fn some(view: &FailuresView, text: &str, visit: &Visit) -> AnyView {
    let counted: i64 = view.groups.iter().map(|group| group.count).sum();
    let groups = i64::try_from(view.groups.len() + view.more).unwrap_or(i64::MAX);
    let address = |range: &str| to::filled("/ui/failures", [("range", range), ("q", text)]);
    view! {
        <p class="lead">
            {match counted == view.failed {
                true => format!("{} in {}", many(counted, "failed job", "failed jobs"), many(groups, "group", "groups")),
                false => format!(
                    "{} of {}, in {}",
                    time::number(counted),
                    many(view.failed, "failed job", "failed jobs"),
                    many(groups, "group", "groups"),
                ),
            }}
        </p>
        <div class="bar-above">
            {ranges(&view.range, address)}
            <form method="get" action="/ui/failures" role="search" class="row">
                <label for="q">"Group or message contains"</label>
                <input id="q" name="q" type="search" value=text.to_owned() maxlength="255" autocomplete="off" />
                <input type="hidden" name="range" value=view.range.clone() />
                <button type="submit" class="button">"Filter"</button>
            </form>
        </div>
        <div class="card">
            {if view.groups.is_empty() {
                view! {
                    <p class="empty">
                        {if text.is_empty() {
                            "No still-failed jobs in this time range. ".to_owned()
                        } else {
                            format!("No failures in this time range contain “{text}”. ")
                        }} <a href="/ui/failures">"Show all failures"</a>
                    </p>
                }
                    .into_any()
            } else {
                groups_table(view, visit)
            }}
        </div>
        {(view.more > 0)
            .then(|| {
                let more = i64::try_from(view.more).unwrap_or(i64::MAX);
                view! { <p class="aside">{format!("{} with fewer jobs not shown. Filter to see them.", many(more, "group", "groups"))}</p> }
            })}
    }
    .into_any()
}

fn groups_table(view: &FailuresView, visit: &Visit) -> AnyView {
    let columns = [
        ("Failure", "first"),
        ("Jobs", "n"),
        ("Share", "n mid"),
        ("Last 24 hours", "wide"),
        ("First", "n wide"),
        ("Last", "n mid"),
        ("Queues", "wide"),
        ("Action", "act"),
    ];
    let rows = view
        .groups
        .iter()
        .map(|group| row(group, view, visit))
        .collect_view();
    tables::table("Failures by group", tables::head(&columns), rows.into_any())
}

fn row(group: &FailingGroup, view: &FailuresView, visit: &Visit) -> AnyView {
    let row = &group.row;
    let moment = |moment: Option<i64>| moment.map(|moment| ago(moment, visit.now));
    let share = row.count as f64 / view.failed.max(1) as f64 * 100.0;
    let day: i64 = group.day.iter().sum();
    let about = format!(
        "{} failed in the last 24 hours, at most {} in one hour",
        many(day, "job", "jobs"),
        time::number(group.day.iter().max().copied().unwrap_or_default()),
    );
    let drawn = match day {
        0 => view! { <td class="wide zero">"none"</td> }.into_any(),
        _ => view! { <td class="wide">{spark(&group.day, "s-failed", &about)}</td> }.into_any(),
    };
    let address = to::failing(&row.group, &view.range, "");
    view! {
        <tr data-key=row.group.clone()>
            <th scope="row" class="first text">
                <a class="name" href=address>{row.group.clone()}</a>
                {group.most.as_ref().map(|most| view! { <span class="note">{most.text.clone()}</span> })}
                {group
                    .most
                    .as_ref()
                    .filter(|most| most.count < group.looked_at)
                    .map(|most| view! { <span class="klass">{format!("{} of the newest {} jobs", time::number(most.count), time::number(group.looked_at))}</span> })}
            </th>
            <td class="n s-failed">{at_least(group.count)}</td>
            <td class="n mid">{format!("{share:.0}%")}</td>
            {drawn}
            <td class="n wide">{moment(row.first)}</td>
            <td class="n mid">{moment(row.last)}</td>
            <td class="wide">{places(&group.queues)}</td>
            <td class="act">{tables::retry_all(row, visit)}</td>
        </tr>
    }
    .into_any()
}

/// A number of jobs, of which not more than so many were counted.
fn at_least(n: i64) -> String {
    match n > FAILURES_COUNTED_MAX {
        true => format!("{}+", time::number(FAILURES_COUNTED_MAX)),
        false => time::number(n),
    }
}

fn places(queues: &[(Place, i64)]) -> AnyView {
    let shown = queues.iter().take(QUEUES_NAMED);
    let more = queues.len().saturating_sub(QUEUES_NAMED);
    view! {
        {shown.map(|(place, _)| view! { <div>{queue_name(place)}</div> }).collect_view()}
        {(more > 0).then(|| view! { <span class="aside">{format!("and {more} more")}</span> })}
    }
    .into_any()
}
