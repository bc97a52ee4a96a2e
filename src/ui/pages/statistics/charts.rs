//! The charts of the statistics, and the totals below them.

use crate::time;
use crate::ui::components::basics::plural;
use crate::ui::components::chart::{Chart, DAY, Dash, Line, Unit, per_minute};
use crate::ui::model::series::{Compare, Series, Span};
use crate::ui::pages::statistics::events;
use crate::ui::pages::statistics::model::RangeView;

/// A line of the chart, and the same line for the period with which the range is compared.
fn lines(
    view: &RangeView,
    name: &'static str,
    class: &'static str,
    value: impl Fn(&Series, &Span) -> Option<f64>,
) -> Vec<Line> {
    let mut lines = vec![Line {
        name,
        class,
        dash: Dash::Solid,
        values: values(&view.series, &value),
    }];
    lines.extend(view.before.as_ref().map(|before| Line {
        name: match view.compared {
            Compare::LastWeek => "last week",
            _ => "previous",
        },
        class: "text-paused",
        dash: Dash::Dots,
        values: compared_values(view, before, &value),
    }));
    lines
}

fn values(series: &Series, value: &impl Fn(&Series, &Span) -> Option<f64>) -> Vec<Option<f64>> {
    series
        .spans
        .iter()
        .map(|span| value(series, span))
        .collect()
}

/// The values of the other period, one for each span of the range. Its spans can be longer.
fn compared_values(
    view: &RangeView,
    before: &Series,
    value: &impl Fn(&Series, &Span) -> Option<f64>,
) -> Vec<Option<f64>> {
    let width = &view.series.width;
    let earlier = match view.compared {
        Compare::LastWeek => 7 * DAY,
        _ => width.saturating_mul(view.series.spans.len() as i64),
    };
    let first = before.spans.first().map_or(0, |span| span.from);
    let spans = view.series.spans.iter().map(|span| {
        let index = (span.from - earlier - first).div_euclid(before.width.max(1));
        let other = usize::try_from(index)
            .ok()
            .and_then(|at| before.spans.get(at))?;
        value(before, other)
    });
    spans.collect()
}

/// The charts of the page.
pub fn charts(view: &RangeView, now: i64) -> Vec<Chart> {
    let rate =
        |n: i64, series: &Series, span: &Span| Some(per_minute(n, span.from, series.width, now));
    let second = |name, class, value: &dyn Fn(&Span) -> Option<f64>| Line {
        name,
        class,
        dash: Dash::Long,
        values: view.series.spans.iter().map(value).collect(),
    };
    let marks = events::marks(view);
    let new = |id, title, unit, lines| Chart {
        id,
        title,
        unit,
        from: view.from,
        width: view.series.width,
        is_in_progress: view.is_in_progress,
        lines,
        marks: marks.clone(),
    };
    let mut waits = lines(view, "p95", "text-waiting", |_, span| span.wait_p95);
    waits.insert(1, second("p50", "text-scheduled", &|span| span.wait_p50));
    let mut flow = lines(view, "added", "text-running", |series, span| {
        rate(span.put, series, span)
    });
    flow.truncate(1);
    flow.push(second("completed", "text-complete", &|span| {
        rate(span.completed, &view.series, span)
    }));
    vec![
        new(
            "throughput",
            "Completed/min",
            Unit::Rate,
            lines(view, "completed", "text-complete", |series, span| {
                rate(span.completed, series, span)
            }),
        ),
        new(
            "failures",
            "Failure rate",
            Unit::Share,
            lines(view, "failed", "text-failed", |_, span| span.failure_rate()),
        ),
        new("waits", "Wait time", Unit::Seconds, waits),
        new(
            "runs",
            "Run time",
            Unit::Seconds,
            lines(view, "p95", "text-running", |_, span| span.run_p95),
        ),
        new("flow", "Added vs. completed/min", Unit::Rate, flow),
        new(
            "waiting",
            "Waiting jobs",
            Unit::Rate,
            lines(view, "waiting", "text-waiting", |_, span| span.waiting),
        ),
    ]
}

/// The totals of each chart.
pub fn total_texts(view: &RangeView) -> [String; 6] {
    let total = &view.series.total;
    let share = |share: Option<f64>| {
        share.map_or("no completed or failed jobs".to_owned(), |share| {
            Unit::Share.text(share)
        })
    };
    let took = |took: Option<f64>| took.map_or("–".to_owned(), time::seconds);
    let against = |value: &dyn Fn(&Span) -> Option<f64>| match &view.before {
        Some(before) => {
            let change = change(value(total), value(&before.total), view.compared);
            format!("; {change}")
        }
        None => String::new(),
    };
    let completed = match &view.before {
        Some(before) => {
            // The other period can be longer, because it consists of whole hours.
            let length = |series: &Series| series.width as f64 * series.spans.len() as f64;
            let share = length(&view.series) / length(before).max(1.0);
            let earlier = before.total.completed as f64 * share;
            let change = change(Some(total.completed as f64), Some(earlier), view.compared);
            format!("; {change}")
        }
        None => String::new(),
    };
    let backlog = total.put - total.completed - total.failed;
    [
        format!(
            "{} completed{completed}",
            plural(total.completed, "job", "jobs"),
        ),
        format!(
            "{} failed ({}){}",
            plural(total.failed, "job", "jobs"),
            share(total.failure_rate()),
            against(&Span::failure_rate)
        ),
        format!(
            "Wait: p50 {}, p95 {}{}",
            took(total.wait_p50),
            took(total.wait_p95),
            against(&|span| span.wait_p95)
        ),
        format!(
            "Run: p95 {}{}",
            took(total.run_p95),
            against(&|span| span.run_p95)
        ),
        format!(
            "{} added, {} {} than completed or failed",
            plural(total.put, "job", "jobs"),
            time::number(backlog.abs()),
            if backlog < 0 { "fewer" } else { "more" },
        ),
        match total.waiting {
            Some(waiting) => format!(
                "{} waiting on average, recorded once a minute{}",
                Unit::Rate.text(waiting),
                against(&|span| span.waiting)
            ),
            None => "The number of waiting jobs was not recorded in this period.".to_owned(),
        },
    ]
}

/// The change from the other period, in percent.
fn change(now: Option<f64>, before: Option<f64>, compared: Compare) -> String {
    let (the, in_the) = match compared {
        Compare::LastWeek => ("the same time last week", "at the same time last week"),
        _ => ("the previous period", "in the previous period"),
    };
    let (Some(now), Some(before)) = (now, before) else {
        return format!("no data {in_the}");
    };
    if before == 0.0 {
        return match now == 0.0 {
            true => format!("same as {the}"),
            false => format!("none {in_the}"),
        };
    }
    let percent = ((now - before) / before * 100.0).round();
    let sign = match percent {
        0.0 => return format!("about the same as {the}"),
        1.0.. => "+",
        _ => "−",
    };
    format!("{sign}{}% vs. {the}", percent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_described_in_words() {
        let text = |now, before| change(Some(now), Some(before), Compare::Previous);
        assert_eq!(text(112.0, 100.0), "+12% vs. the previous period");
        assert_eq!(text(50.0, 100.0), "−50% vs. the previous period");
        assert_eq!(text(100.1, 100.0), "about the same as the previous period");
        assert_eq!(text(0.0, 0.0), "same as the previous period");
        assert_eq!(text(7.0, 0.0), "none in the previous period");
        let week = |now, before| change(now, before, Compare::LastWeek);
        assert_eq!(week(None, Some(1.0)), "no data at the same time last week");
        assert_eq!(
            week(Some(2.0), Some(1.0)),
            "+100% vs. the same time last week"
        );
    }
}
