//! `/ui/stats?queue=&range=&from=&to=&compare=`: statistics over hours, days and weeks, of one queue or all queues.

pub mod export;
pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::{loaded, plural};
use crate::ui::components::chart::{
    Chart, Dash, Line, Unit, chart, data_table, per_minute, span_name,
};
use crate::ui::components::links::queue_link;
use crate::ui::components::state::protocol_badge;
use crate::ui::components::styles::{CARD_PADDED, NOTICE};
use crate::ui::components::time::exact;
use crate::ui::components::{commands, forms};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::series::{Series, Span, StatisticsQuery};
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::statistics::model::RangeView;
use crate::ui::urls;

/// The ranges: name in addresses, and label.
const RANGES: [(&str, &str); 5] = [
    ("1h", "1 hour"),
    ("6h", "6 hours"),
    ("24h", "24 hours"),
    ("7d", "7 days"),
    ("30d", "30 days"),
];

#[component]
pub fn StatisticsPage() -> impl IntoView {
    let request = page_request();
    let query = request.statistics_query();
    loaded(load::range(query.clone()), move |view| {
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
            <a href=urls::stats(queue_ref, None)>"Daily statistics and histograms"</a>
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
                view! { <p class=format!("{NOTICE} text-waiting")><span>"Nothing to compare: the previous period is not kept at this resolution."</span></p> }
            })}
        {content(view, request.now)}
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
    let links = RANGES.map(|(name, word)| {
        let address = urls::statistics(&StatisticsQuery {
            range: name.to_owned(),
            from: String::new(),
            to: String::new(),
            ..query.clone()
        });
        let current = (!custom && view.range_error.is_none() && range == name).then_some("true");
        view! { <a class="btn" href=address aria-current=current>{word}</a> }
    });
    let compare = StatisticsQuery {
        compare: !query.compare,
        ..query.clone()
    };
    view! {
        <div class="flex flex-wrap items-center gap-x-4 gap-y-2">
            <nav class="flex flex-wrap items-center gap-2 [&>[aria-current]]:border-accent [&>[aria-current]]:font-semibold [&>[aria-current]]:text-accent" aria-label="Range">{links}</nav>
            <a href=urls::statistics(&compare)>
                {if query.compare { "Stop comparing" } else { "Compare with previous period" }}
            </a>
        </div>
        <div class="flex flex-wrap items-center gap-x-4 gap-y-2">
            {which_queue(view, query, range, custom)}
            <form method="get" action="/ui/stats" class="flex flex-wrap items-center gap-2">
                <input type="hidden" name="queue" value=query.queue.clone() />
                {query.compare.then(|| view! { <input type="hidden" name="compare" value="1" /> })}
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
    kept.extend(query.compare.then(|| ("compare", "1".to_owned())));
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
            "Percentiles are within 10 % of the exact value, from 0.1 ms to 100 days. Percentiles of data from earlier versions \
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

/// A line of the chart, and the same line for the previous period.
fn lines(
    view: &RangeView,
    name: &'static str,
    class: &'static str,
    value: impl Fn(&Span) -> Option<f64>,
) -> Vec<Line> {
    let values = |series: &Series| series.spans.iter().map(&value).collect();
    let mut lines = vec![Line {
        name,
        class,
        dash: Dash::Solid,
        values: values(&view.series),
    }];
    lines.extend(view.before.as_ref().map(|before| Line {
        name: "previous",
        class: "text-paused",
        dash: Dash::Dots,
        values: values(before),
    }));
    lines
}

fn charts(view: &RangeView, now: i64) -> Vec<Chart> {
    let rate = |n: i64, span: &Span| Some(per_minute(n, span.from, view.series.width, now));
    let second = |name, class, value: &dyn Fn(&Span) -> Option<f64>| Line {
        name,
        class,
        dash: Dash::Long,
        values: view.series.spans.iter().map(value).collect(),
    };
    let new = |id, title, unit, lines| Chart {
        id,
        title,
        unit,
        from: view.from,
        width: view.series.width,
        is_in_progress: view.is_in_progress,
        lines,
    };
    let mut waits = lines(view, "p95", "text-waiting", |span| span.wait_p95);
    waits.insert(1, second("p50", "text-scheduled", &|span| span.wait_p50));
    let mut flow = lines(view, "enqueued", "text-running", |span| {
        rate(span.put, span)
    });
    flow.truncate(1);
    flow.push(second("completed", "text-complete", &|span| {
        rate(span.completed, span)
    }));
    vec![
        new(
            "throughput",
            "Completed/min",
            Unit::Rate,
            lines(view, "completed", "text-complete", |span| {
                rate(span.completed, span)
            }),
        ),
        new(
            "failures",
            "Failure rate",
            Unit::Share,
            lines(view, "failed", "text-failed", Span::failure_rate),
        ),
        new("waits", "Wait time", Unit::Seconds, waits),
        new(
            "runs",
            "Run time",
            Unit::Seconds,
            lines(view, "p95", "text-running", |span| span.run_p95),
        ),
        new("flow", "Enqueued vs. completed/min", Unit::Rate, flow),
    ]
}

/// The totals of each chart.
fn total_texts(view: &RangeView) -> [String; 5] {
    let total = &view.series.total;
    let before = view.before.as_ref().map(|before| &before.total);
    let share = |share: Option<f64>| {
        share.map_or("no completed or failed jobs".to_owned(), |share| {
            Unit::Share.text(share)
        })
    };
    let took = |took: Option<f64>| took.map_or("–".to_owned(), time::seconds);
    let against = |now: Option<f64>, value: &dyn Fn(&Span) -> Option<f64>| match before {
        Some(before) => format!("; {}", change(now, value(before))),
        None => String::new(),
    };
    let count = |n: i64| Some(n as f64);
    let backlog = total.put - total.completed - total.failed;
    [
        format!(
            "{} completed{}",
            plural(total.completed, "job", "jobs"),
            against(count(total.completed), &|span| count(span.completed))
        ),
        format!(
            "{} failed ({}){}",
            plural(total.failed, "job", "jobs"),
            share(total.failure_rate()),
            against(total.failure_rate(), &Span::failure_rate)
        ),
        format!(
            "Wait: p50 {}, p95 {}{}",
            took(total.wait_p50),
            took(total.wait_p95),
            against(total.wait_p95, &|span| span.wait_p95)
        ),
        format!(
            "Run: p95 {}{}",
            took(total.run_p95),
            against(total.run_p95, &|span| span.run_p95)
        ),
        format!(
            "{} enqueued, {} {} than completed or failed",
            plural(total.put, "job", "jobs"),
            time::number(backlog.abs()),
            if backlog < 0 { "fewer" } else { "more" },
        ),
    ]
}

/// The change from the previous period, in percent.
fn change(now: Option<f64>, before: Option<f64>) -> String {
    let (Some(now), Some(before)) = (now, before) else {
        return "no data in the previous period".to_owned();
    };
    if before == 0.0 {
        return match now == 0.0 {
            true => "same as the previous period".to_owned(),
            false => "none in the previous period".to_owned(),
        };
    }
    let percent = ((now - before) / before * 100.0).round();
    let sign = match percent {
        0.0 => return "about the same as the previous period".to_owned(),
        1.0.. => "+",
        _ => "−",
    };
    format!("{sign}{}% vs. the previous period", percent.abs())
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

    #[test]
    fn changes_are_described_in_words() {
        let text = |now, before| change(Some(now), Some(before));
        assert_eq!(text(112.0, 100.0), "+12% vs. the previous period");
        assert_eq!(text(50.0, 100.0), "−50% vs. the previous period");
        assert_eq!(text(100.1, 100.0), "about the same as the previous period");
        assert_eq!(text(0.0, 0.0), "same as the previous period");
        assert_eq!(text(7.0, 0.0), "none in the previous period");
        assert_eq!(change(None, Some(1.0)), "no data in the previous period");
    }
}
