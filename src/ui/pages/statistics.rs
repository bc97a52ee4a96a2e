//! `/ui/stats?queue=&range=&from=&to=&compare=`: statistics over hours, days and weeks, of one queue or all queues.

mod by_queue;
mod charts;
mod events;
pub mod export;
pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::loaded;
use crate::ui::components::chart::{Chart, chart, data_table, span_name};
use crate::ui::components::links::queue_link;
use crate::ui::components::state::protocol_badge;
use crate::ui::components::styles::{CARD_PADDED, NOTICE};
use crate::ui::components::time::exact;
use crate::ui::components::{commands, forms};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::series::{Compare, StatisticsQuery};
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::statistics::charts::{charts, total_texts};
use crate::ui::pages::statistics::load::RANGES;
use crate::ui::pages::statistics::model::{RangeView, Zoom};
use crate::ui::urls;

#[component]
pub fn StatisticsPage() -> impl IntoView {
    let request = page_request();
    let query = request.statistics_query();
    loaded(load::statistics(query.clone()), move |view| {
        page(&view, &query, &request)
    })
}

fn page(view: &RangeView, query: &StatisticsQuery, request: &PageRequest) -> AnyView {
    let title = match &view.queue_ref {
        Some(queue_ref) => format!("Statistics: {}", queue_ref.label()),
        None => "Statistics".to_owned(),
    };
    let about = match &view.queue_ref {
        Some(queue_ref) => view! {
            "Queue " {queue_link(queue_ref)} " " {protocol_badge(queue_ref.protocol)} ". "
            <a href=urls::daily_stats(queue_ref, None)>"Daily statistics and histograms"</a>
        }
        .into_any(),
        None => "All queues, including deleted queues.".into_any(),
    };
    view! {
        <Title text=title />
        <h1>"Statistics"</h1>
        <p class="text-muted wrap-anywhere">{about}</p>
        {form(view, query)}
        {view
            .range_error
            .clone()
            .map(|range_error| view! { <p class=format!("{NOTICE} text-failed") role="alert"><span>{range_error} " Showing the last hour."</span></p> })}
        {view
            .is_previous_missing
            .then(|| {
                view! { <p class=format!("{NOTICE} text-waiting")><span>"Nothing to compare: the statistics of that period are no longer kept."</span></p> }
            })}
        {content(view, request.now)}
        {events::list(view, request)}
        {by_queue::small_charts(view, query)}
        {downloads(query, request)}
    }
    .into_any()
}

/// The form that selects a queue and a range.
fn form(view: &RangeView, query: &StatisticsQuery) -> AnyView {
    let custom = !(query.from.is_empty() && query.to.is_empty());
    let range = match query.range.as_str() {
        "" => "1h",
        range => range,
    };
    let links = RANGES.map(|(name, word, ..)| {
        let address = urls::statistics(&StatisticsQuery {
            range: name.to_owned(),
            from: String::new(),
            to: String::new(),
            ..query.clone()
        });
        let current = (!custom && view.range_error.is_none() && range == name).then_some("true");
        view! { <a class="btn" href=address aria-current=current>{word}</a> }
    });
    view! {
        <div class="flex flex-wrap items-center gap-x-4 gap-y-2">
            <nav class="flex flex-wrap items-center gap-2 [&>[aria-current]]:border-accent [&>[aria-current]]:font-semibold [&>[aria-current]]:text-accent" aria-label="Range">{links}</nav>
            {zoom_links(&view.zoom, query)}
            {compare_links(query)}
        </div>
        <div class="flex flex-wrap items-center gap-x-4 gap-y-2">
            {which_queue(view, query, range, custom)}
            // Dragging across a chart fills in the fields (`islands/live/zoom.rs`).
            <form id="range" method="get" action="/ui/stats" class="flex flex-wrap items-center gap-2" data-from=view.from.to_string() data-to=view.to.to_string()>
                <input type="hidden" name="queue" value=query.queue.clone() />
                {(query.compare != Compare::Nothing).then(|| view! { <input type="hidden" name="compare" value=query.compare.as_str() /> })}
                <label for="from">"From"</label>
                <input id="from" name="from" type="datetime-local" value=datetime_local_value(&query.from) required aria-describedby="in-utc" />
                <label for="to">"to"</label>
                <input id="to" name="to" type="datetime-local" value=datetime_local_value(&query.to) aria-describedby="in-utc" />
                <span id="in-utc" class="text-muted wrap-anywhere">"UTC"</span>
                <button type="submit" class="btn">"Show"</button>
            </form>
        </div>
    }
    .into_any()
}

/// Links to an earlier, later, shorter and longer period.
fn zoom_links(zoom: &Zoom, query: &StatisticsQuery) -> AnyView {
    let links = [
        (&zoom.earlier, "Earlier"),
        (&zoom.later, "Later"),
        (&zoom.shorter, "Zoom in"),
        (&zoom.longer, "Zoom out"),
    ];
    let links = links.map(|(range, word)| {
        let (from, to) = range.clone()?;
        let address = urls::statistics(&StatisticsQuery {
            range: String::new(),
            from,
            to,
            ..query.clone()
        });
        Some(view! { <a class="btn" href=address>{word}</a> })
    });
    view! { <nav class="flex flex-wrap items-center gap-2" aria-label="Zoom">{links}</nav> }
        .into_any()
}

/// Links that compare the range with another one, or stop it.
fn compare_links(query: &StatisticsQuery) -> AnyView {
    let choices = [
        (Compare::Previous, "Compare with previous period"),
        (Compare::LastWeek, "Compare with last week"),
        (Compare::Nothing, "Stop comparing"),
    ];
    let links = choices.map(|(compare, word)| {
        let address = urls::statistics(&StatisticsQuery {
            compare,
            ..query.clone()
        });
        (compare != query.compare).then(|| view! { <a href=address>{word}</a> })
    });
    links.into_iter().collect_view().into_any()
}

fn which_queue(view: &RangeView, query: &StatisticsQuery, range: &str, custom: bool) -> AnyView {
    let mut queues: Vec<&QueueRef> = view.queues.iter().collect();
    // The list can lack the selected queue, because it is limited.
    queues.extend(
        view.queue_ref
            .iter()
            .filter(|queue_ref| !view.queues.contains(queue_ref)),
    );
    let options = queues.into_iter().map(|queue_ref| {
        let address = urls::queue_param(queue_ref);
        let is_selected = view.queue_ref.as_ref() == Some(queue_ref);
        let word = format!("{} ({})", queue_ref.label(), queue_ref.protocol.as_str());
        view! { <option value=address selected=is_selected>{word}</option> }
    });
    let mut kept = match custom {
        true => vec![("from", query.from.clone()), ("to", query.to.clone())],
        false => vec![("range", range.to_owned())],
    };
    kept.push(("compare", query.compare.as_str().to_owned()));
    view! {
        <form method="get" action="/ui/stats" class="flex flex-wrap items-center gap-2">
            {forms::hidden(kept)}
            <label for="queue">"Queue"</label>
            <select id="queue" name="queue">
                <option value="" selected=view.queue_ref.is_none()>"All queues"</option>
                {options.collect_view()}
            </select>
            <button type="submit" class="btn">"Show queue"</button>
        </form>
    }
    .into_any()
}

fn content(view: &RangeView, now: i64) -> AnyView {
    let charts = charts(view, now);
    let total_texts = total_texts(view);
    let all: Vec<&Chart> = charts.iter().collect();
    let so_far = if view.is_in_progress {
        ", last period in progress"
    } else {
        ""
    };
    let drawn = charts.iter().zip(total_texts).map(|(drawing, words)| {
        view! {
            <section class=CARD_PADDED aria-label=drawing.title>
                {chart(drawing)}
                <p class="text-muted wrap-anywhere">{words}</p>
            </section>
        }
    });
    view! {
        <h2>
            {exact(view.from)} " to " {exact(view.to)}
            <span class="text-muted wrap-anywhere">{format!(", {}{so_far}", steps(view.series.width))}</span>
        </h2>
        <div class="grid grid-cols-2 gap-4 max-[900px]:grid-cols-1">{drawn.collect_view()}</div>
        {data_table("Statistics", &all)}
        <p class="text-muted wrap-anywhere">
            <span class="unscripted:hidden">"Drag across a chart to zoom in. "</span>
            "Percentiles are within 10% of the exact value, from 0.1 ms to 100 days. Percentiles of data from earlier versions \
            are less accurate. The dashed end of a line is the period in progress, and shows the rate so far."
        </p>
    }
    .into_any()
}

/// The length of the spans, in words.
fn steps(width: i64) -> String {
    match span_name(width) {
        unit @ ("minute" | "hour" | "day") => format!("per {unit}"),
        _ => format!("in steps of {}", time::span(width)),
    }
}

/// The value for a `datetime-local` field.
fn datetime_local_value(text: &str) -> String {
    let is_like = |form: &str| {
        let fits = |(c, f): (char, char)| if f == '0' { c.is_ascii_digit() } else { c == f };
        text.len() == form.len() && text.chars().zip(form.chars()).all(fits)
    };
    if is_like("0000-00-00") {
        format!("{text}T00:00")
    } else if is_like("0000-00-00T00:00") {
        text.to_owned()
    } else {
        String::new()
    }
}

fn downloads(query: &StatisticsQuery, request: &PageRequest) -> AnyView {
    let of =
        |kind: &str| urls::statistics(query).replacen("/ui/stats", &format!("/ui/stats.{kind}"), 1);
    let curl = format!(
        "curl {}",
        commands::shell_quote(&format!("{}{}", request.origin, of("json")))
    );
    view! {
        <div class="flex flex-wrap items-center gap-2">
            <a class="btn" href=of("csv") download="">"Download as CSV"</a>
            <a class="btn" href=of("json") download="">"Download as JSON"</a>
        </div>
        {commands::curl_commands(vec![("Get this data", curl)])}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_shows_only_valid_values() {
        assert_eq!(datetime_local_value("2026-11-01"), "2026-11-01T00:00");
        assert_eq!(datetime_local_value("2026-11-01T10:30"), "2026-11-01T10:30");
        assert_eq!(datetime_local_value("yesterday"), "");
        assert_eq!(datetime_local_value("2026-11-01T10:3x"), "");
    }
}
