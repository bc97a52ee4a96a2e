//! `/ui/scheduled`: the scheduled jobs of all queues, and a chart of the next day.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::{empty_note, loaded, plural};
use crate::ui::components::bulk::{self, BulkBar};
use crate::ui::components::commands::{api, curl_commands, shell_quote};
use crate::ui::components::exports::search_and_exports;
use crate::ui::components::histogram::Scale;
use crate::ui::components::paging::key_pager;
use crate::ui::components::styles::{CARD, CARD_PADDED};
use crate::ui::components::tables::{
    self,
    job_list::{self, JobList},
};
use crate::ui::components::time::exact;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::scheduled::model::ScheduledView;

/// The baseline of the bars, in pixels from the top.
const FLOOR: f64 = 96.0;

/// Number of hours between labels of the axis.
const LABEL_HOURS: usize = 6;

/// The search that finds these jobs.
const SEARCH: &str = "state:scheduled";

const HOUR_US: i64 = 3_600_000_000;

#[component]
pub fn ScheduledPage() -> impl IntoView {
    let request = page_request();
    loaded(load::scheduled(request.page()), move |view| {
        page(&view, &request)
    })
}

fn page(view: &ScheduledView, request: &PageRequest) -> AnyView {
    let due: i64 = view.by_hour.iter().sum();
    let hours = view.by_hour.len();
    let bar = BulkBar {
        search: Some(SEARCH),
        all: Some(view.total),
        shown: view.jobs.len(),
        actions: bulk::actions_of(None, Some(EffectiveState::Scheduled)),
    };
    view! {
        <Title text="Scheduled jobs" />
        <h1>"Scheduled jobs"</h1>
        <p class="text-muted wrap-anywhere">
            {plural(view.total, "scheduled job", "scheduled jobs")}
            {(view.total > 0).then(|| format!(", {} due within {hours} hours", time::number(due)))}
            "."
        </p>
        {(due > 0).then(|| next_hours(view, request))}
        <div class=CARD>
            {bulk::bar(bar, request)}
            {if view.jobs.is_empty() {
                empty_note("Nothing scheduled. Jobs with a delay or a run time appear here until they are due. Recurring jobs are listed under Recurring.")
            } else {
                job_list::jobs("Scheduled jobs, next due first", JobList::Due, &view.jobs, request)
            }}
        </div>
        {key_pager("/ui/scheduled", &view.neighbors, view.jobs.len(), view.total)}
        {search_and_exports(SEARCH)}
        {curl_commands(vec![
                    (
                        "List the scheduled jobs of a qless queue",
                        format!("curl {}", shell_quote(&api(request, "/jobs/scheduled/mail"))),
                    ),
                ])}
    }
    .into_any()
}

/// The jobs due in each of the next hours: a chart, and its data table.
fn next_hours(view: &ScheduledView, request: &PageRequest) -> AnyView {
    let hours = view.by_hour.len();
    view! {
        <section class=CARD_PADDED aria-labelledby="next">
            <h2 id="next">{format!("The next {hours} hours")}</h2>
            {view.until.map(|until| view! { <p class="text-muted wrap-anywhere">"Too many jobs to count. The counts include only those due until " {exact(until)} "."</p> })}
            {drawing(view, request)}
            <details>
                <summary>"Show data table"</summary>
                {data_table(view, request)}
            </details>
        </section>
    }
    .into_any()
}

/// The time of the day, `13:22`.
fn clock(moment: i64) -> String {
    time::clock(moment).chars().take(5).collect()
}

/// The start of an hour, counted from now.
fn hour_start(hour: usize, now: i64) -> i64 {
    now.saturating_add(HOUR_US.saturating_mul(i64::try_from(hour).unwrap_or(i64::MAX)))
}

fn description(view: &ScheduledView, request: &PageRequest) -> String {
    let most = view
        .by_hour
        .iter()
        .enumerate()
        .rev()
        .max_by_key(|(_, n)| **n);
    let Some((hour, n)) = most else {
        return String::new();
    };
    format!(
        "Jobs due in each of the next hours, in UTC. Highest: {}, in the hour starting at {}. The data table follows.",
        time::number(*n),
        clock(hour_start(hour, request.now))
    )
}

fn drawing(view: &ScheduledView, request: &PageRequest) -> AnyView {
    let highest = view.by_hour.iter().copied().max().unwrap_or_default();
    let scale = Scale::new(view.by_hour.len(), highest, FLOOR);
    let from = |hour: usize| clock(hour_start(hour, request.now));
    let bars = view.by_hour.iter().enumerate().map(|(hour, n)| {
        let title = format!("from {}: {}", from(hour), plural(*n, "job", "jobs"));
        scale.bar(hour, *n, "text-scheduled", title)
    });
    let times = (0..view.by_hour.len()).step_by(LABEL_HOURS).map(|hour| {
        let word = if hour == 0 {
            "now".to_owned()
        } else {
            from(hour)
        };
        scale.time(hour, word)
    });
    view! {
        <svg class="histogram h-30" role="img" aria-labelledby="hours-title" aria-describedby="hours-about">
            <title id="hours-title">"Jobs due per hour"</title>
            <desc id="hours-about">{description(view, request)}</desc>
            {bars.collect_view()}
            {scale.baseline()}
            {times.collect_view()}
        </svg>
    }
    .into_any()
}

fn data_table(view: &ScheduledView, request: &PageRequest) -> AnyView {
    let rows = view.by_hour.iter().enumerate().map(|(hour, n)| {
        view! {
            <tr>
                <th scope="row">
                    {format!("{} – {}", clock(hour_start(hour, request.now)), clock(hour_start(hour + 1, request.now)))}
                </th>
                <td class=if *n == 0 { "zero" } else { "num" }>{time::number(*n)}</td>
            </tr>
        }
    });
    let columns = [("Hour (UTC)", ""), ("Jobs", "num")];
    tables::table(
        "Jobs due per hour",
        tables::head(&columns),
        rows.collect_view().into_any(),
    )
}
