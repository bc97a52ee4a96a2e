//! `/ui/queues/{queue}/stats?day=YYYY-MM-DD`: the statistics of a queue on a UTC day.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::{definitions, loaded};
use crate::ui::components::commands::{api, curl_commands, shell_quote};
use crate::ui::components::histogram::{Histogram, histogram, quantile_label};
use crate::ui::components::icons::icon;
use crate::ui::components::styles::{CARD, CARD_PADDED, EMPTY, TILES};
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::series::StatisticsQuery;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::daily_stats::model::{DailyStatsView, DurationStats};
use crate::ui::pages::queue::{Tab, api_segment, head};
use crate::ui::urls;

#[component]
pub fn DailyStatsPage() -> impl IntoView {
    let request = page_request();
    let day = request.param("day").unwrap_or_default();
    loaded(load::daily_stats(request.queue().0, day), move |view| {
        page(&view, &request)
    })
}

fn page(view: &DailyStatsView, request: &PageRequest) -> AnyView {
    let queue_ref = &view.queue.queue_ref;
    let quiet = view.wait.total + view.run.total + view.failures + view.retries == 0;
    view! {
        <Title text=format!("{}: statistics", queue_ref.label()) />
        {head(&view.queue, view.trend, Tab::Stats, request)}
        {days(view)}
        {if quiet { nothing(view) } else { content(view) }}
        {(queue_ref.protocol == Protocol::Qless).then(|| curl(view, request))}
    }
    .into_any()
}

fn curl(view: &DailyStatsView, request: &PageRequest) -> AnyView {
    let name = api_segment(&view.queue.queue_ref.name);
    let path = format!("/stats/{name}/{}", time::date(view.day));
    let line = format!("curl {}", shell_quote(&api(request, &path)));
    curl_commands(vec![("This day", line)])
}

/// The day, and links to other days.
fn days(view: &DailyStatsView) -> AnyView {
    let name = &view.queue.queue_ref;
    let (day, today) = (view.day, view.today);
    let so_far = if day == today { ", so far" } else { "" };
    let link = |to_day: i64, word: &'static str, rel: &'static str| {
        let date = time::date(to_day);
        let label = format!("{word}, {date}");
        view! { <a class="btn" rel=rel href=urls::daily_stats(name, Some(to_day)) aria-label=label>{word}</a> }
    };
    view! {
        <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <h2>{format!("{}, {}", time::weekday(day), time::date(day))} <span class="text-muted wrap-anywhere">{format!(" UTC{so_far}")}</span></h2>
            <form method="get" action=urls::daily_stats(name, None) class="flex flex-wrap items-center gap-2">
                {link(day - 1, "Previous day", "prev")}
                <label for="day" class="sr-only">"Day"</label>
                <input id="day" name="day" type="date" value=time::date(day) max=time::date(today) required />
                <button type="submit" class="btn">"Show"</button>
                {(day < today).then(|| link(day + 1, "Next day", "next"))}
                <a href=urls::statistics(&StatisticsQuery { queue: urls::queue_param(name), ..StatisticsQuery::default() })>"Other time ranges"</a>
                {(day + 1 < today).then(|| view! { <a href=urls::daily_stats(name, None)>"Today"</a> })}
            </form>
        </div>
    }
    .into_any()
}

fn nothing(view: &DailyStatsView) -> AnyView {
    let when = match view.day - view.today {
        0 => "No activity in this queue today.",
        1.. => "This day is in the future.",
        _ => "No activity in this queue on this day, or its statistics are no longer kept.",
    };
    view! {
        <div class=CARD>
            <p class=EMPTY>
                {when}
                " This page shows wait times and run times with histograms, failures and expired leases for each day."
            </p>
        </div>
    }
    .into_any()
}

fn content(view: &DailyStatsView) -> AnyView {
    let protocol = view.queue.queue_ref.protocol;
    view! {
        {count_tiles(view)}
        {durations(
            &view.wait,
            &Histogram {
                id: "wait",
                title: "Jobs by wait time",
                class: "text-waiting",
                buckets: &view.wait.buckets,
            },
            "Wait time",
            match protocol {
                Protocol::Qless => "From when a job is put, retried or timed out until a worker claims it, including delays and dependencies; after an expired lease, from the previous claim. Counted on the day of the claim.",
                Protocol::Lmstfy | Protocol::Relay | Protocol::Jobq => "From when a job becomes available until it is claimed. Counted on the day of the claim.",
            },
            "No jobs were claimed on this day.",
        )}
        {durations(
            &view.run,
            &Histogram {
                id: "run",
                title: "Jobs by run time",
                class: "text-running",
                buckets: &view.run.buckets,
            },
            "Run time",
            match protocol {
                Protocol::Qless => "From when a worker claims a job until it completes. Counted on the day of completion.",
                Protocol::Lmstfy => "From when a consumer gets a job until it acknowledges it. Counted on the day of the acknowledgment.",
                Protocol::Relay | Protocol::Jobq => "From when a worker claims a job until the run completes. Counted on the day of completion.",
            },
            match protocol {
                Protocol::Qless => "No jobs completed on this day.",
                Protocol::Lmstfy => "No running jobs were acknowledged on this day.",
                Protocol::Relay | Protocol::Jobq => "No runs completed on this day.",
            },
        )}
    }
    .into_any()
}

/// The counts of the day.
fn count_tiles(view: &DailyStatsView) -> AnyView {
    let queue_ref = &view.queue.queue_ref;
    let done = match queue_ref.protocol {
        Protocol::Qless | Protocol::Relay | Protocol::Jobq => "completed",
        Protocol::Lmstfy => "acknowledged",
    };
    let mut tiles = vec![
        ("running", "text-running", "claimed", view.wait.total, None),
        ("complete", "text-complete", done, view.run.total, None),
    ];
    if queue_ref.protocol.has(EffectiveState::Failed) {
        let failed = urls::state(queue_ref, EffectiveState::Failed);
        tiles.push(("failed", "text-failed", "failures", view.failures, None));
        tiles.push((
            "failed",
            "text-failed",
            "still failed",
            view.failed,
            Some(failed),
        ));
    }
    tiles.push((
        "stalled",
        "text-stalled",
        "leases expired",
        view.retries,
        None,
    ));
    let columns = if tiles.len() == 5 {
        "grid-cols-5 max-sm:grid-cols-3 max-sm:[&>:last-child]:col-span-2"
    } else {
        "grid-cols-3"
    };
    let tiles = tiles.into_iter().map(|(shape, color, word, n, address)| {
        let class = if n == 0 {
            "tile-count font-normal text-muted"
        } else {
            "tile-count"
        };
        let inside = view! {
            <span class=format!("tile-name {color}")>{icon(shape)} {word}</span>
            <span class=class>{time::number(n)}</span>
        };
        let inside = match address {
            Some(address) => view! { <a href=address>{inside}</a> }.into_any(),
            None => view! { <div>{inside}</div> }.into_any(),
        };
        view! { <li class="tile">{inside}</li> }
    });
    view! { <ul class=format!("{TILES} {columns}") aria-label="Totals of the day">{tiles.collect_view()}</ul> }.into_any()
}

fn durations(
    duration_stats: &DurationStats,
    drawing: &Histogram<'_>,
    title: &'static str,
    about: &'static str,
    none: &'static str,
) -> AnyView {
    let inside = if duration_stats.total == 0 {
        view! { <p class="text-muted wrap-anywhere">{none}</p> }.into_any()
    } else {
        let kept = duration_stats.buckets.iter().any(|n| *n > 0);
        let drawn = if kept {
            histogram(drawing)
        } else {
            view! { <p class="text-muted wrap-anywhere">"The histogram of this day is no longer kept."</p> }.into_any()
        };
        view! {
            <div class="mt-3 grid grid-cols-[216px_minmax(0,1fr)] gap-x-8 gap-y-4 max-sm:grid-cols-1 [&_dl>div]:grid-cols-[80px_minmax(0,1fr)] max-sm:[&_dl]:grid max-sm:[&_dl]:grid-cols-[repeat(auto-fit,minmax(144px,1fr))] max-sm:[&_dl]:gap-x-4 max-sm:[&_dl>div]:grid-cols-[64px_minmax(0,1fr)] max-sm:[&_dl>div]:gap-2">
                {facts(duration_stats)}
                <div>{drawn}</div>
            </div>
        }
        .into_any()
    };
    let id = format!("{}-section", drawing.id);
    view! {
        <section class=CARD_PADDED aria-labelledby=id>
            <h2 id=id.clone()>{title}</h2>
            <p class="text-muted wrap-anywhere">{about}</p>
            {inside}
        </section>
    }
    .into_any()
}

fn facts(duration_stats: &DurationStats) -> AnyView {
    let mut facts = vec![
        ("Jobs", time::number(duration_stats.total)),
        ("Mean", time::seconds(duration_stats.mean)),
    ];
    // The variance of a single value is undefined.
    if duration_stats.total > 1 {
        facts.push((
            "Standard deviation",
            time::seconds(duration_stats.variance.sqrt()),
        ));
        facts.push(("Variance", squared(duration_stats.variance)));
    }
    for (word, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        facts.extend(quantile_label(&duration_stats.buckets, share).map(|time| (word, time)));
    }
    definitions(facts)
}

/// A variance in square seconds.
#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn squared(variance: f64) -> String {
    match variance {
        ..1.0 => format!("{variance:.3} s²"),
        ..1_000.0 => format!("{variance:.1} s²"),
        _ => format!("{} s²", time::number(variance as i64)),
    }
}
