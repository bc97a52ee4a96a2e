//! Line charts: a drawing, its description for screen readers, and its data table.
//!
//! Horizontal positions are shares of the width, vertical ones are pixels, so that text keeps its size at any width.
//! Lines differ in their dashes, not only in color, and are labeled at their end.

pub mod geometry;

use leptos::prelude::*;

use crate::time;
use crate::ui::components::chart::geometry::{
    FLOOR, HEIGHT, LABEL_Y, TOP, WIDTH, area, axis_time, ceiling, labels, paths, spread_labels,
    y_position,
};
use crate::ui::components::tables;

pub const MINUTE: i64 = 60_000_000;

pub const HOUR: i64 = 60 * MINUTE;

pub const DAY: i64 = 24 * HOUR;

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number: of events per minute, or of jobs.
    Rate,
    Seconds,
    /// A fraction from 0 to 1.
    Share,
}

impl Unit {
    /// A value as text.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Rate if value >= 100.0 => time::number(whole(value)),
            Unit::Rate if value > 0.0 && value < 0.1 => "< 0.1".to_owned(),
            Unit::Rate => short(value),
            Unit::Seconds => time::seconds(value),
            Unit::Share => format!("{}%", short(value * 100.0)),
        }
    }

    /// Round values for the top of the chart, in addition to 1, 2 and 5 times powers of ten.
    fn ceilings(self) -> &'static [f64] {
        match self {
            Unit::Seconds => &[
                10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0, 7_200.0,
            ],
            Unit::Rate | Unit::Share => &[],
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn whole(value: f64) -> i64 {
    value.round() as i64
}

/// The value with at most one decimal.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    Solid,
    Long,
    /// The previous period.
    Dots,
}

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: &'static str,
    /// The class of its color.
    pub class: &'static str,
    pub dash: Dash,
    /// One value per span; `None` is a gap.
    pub values: Vec<Option<f64>>,
}

/// The content of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The ID of the chart.
    pub id: &'static str,
    /// The title, which includes the unit.
    pub title: &'static str,
    pub unit: Unit,
    /// The start of the first span, and the length of each span, in microseconds.
    pub from: i64,
    pub width: i64,
    /// Whether the last span is in progress.
    pub is_in_progress: bool,
    pub lines: Vec<Line>,
    pub marks: Vec<Mark>,
}

/// A vertical line at a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub at: i64,
    pub title: String,
}

impl Chart {
    fn count(&self) -> usize {
        self.lines
            .iter()
            .map(|line| line.values.len())
            .max()
            .unwrap_or(0)
    }

    fn highest(&self) -> f64 {
        let values = self
            .lines
            .iter()
            .flat_map(|line| line.values.iter().flatten());
        values.copied().fold(0.0, f64::max)
    }
}

/// The start of a span, as text for its row in the data table.
pub fn span_start(at: i64, width: i64) -> String {
    let day = time::date(at.div_euclid(DAY));
    match width {
        DAY.. => day,
        _ => format!("{day} {}", axis_time(at, MINUTE)),
    }
}

/// Events per minute in the span that starts at `from`; in a span in progress, per minute until `now`, but at least a
/// tenth of the span.
pub fn per_minute(n: i64, from: i64, width: i64, now: i64) -> f64 {
    let elapsed = now.saturating_sub(from).clamp(width / 10, width);
    n as f64 * MINUTE as f64 / elapsed.max(1) as f64
}

/// The unit of time that is as long as a span; "interval" if there is none.
pub fn span_name(width: i64) -> &'static str {
    match width {
        MINUTE => "minute",
        HOUR => "hour",
        DAY => "day",
        _ => "interval",
    }
}

/// The description for screen readers.
fn description(chart: &Chart) -> String {
    let mut words: Vec<String> = Vec::new();
    for line in &chart.lines {
        let known = || line.values.iter().flatten().copied();
        let (low, high) = (
            known().fold(f64::MAX, f64::min),
            known().fold(0.0, f64::max),
        );
        words.push(match line.values.iter().flatten().next_back() {
            None => format!("{}: no data.", line.name),
            Some(last) => format!(
                "{}: minimum {}, maximum {}, latest {}.",
                line.name,
                chart.unit.text(low),
                chart.unit.text(high),
                chart.unit.text(*last)
            ),
        });
    }
    if !chart.marks.is_empty() {
        words.push("The marked events are listed below.".to_owned());
    }
    words.push("The data table follows.".to_owned());
    words.join(" ")
}

fn dash(line: &Line) -> &'static str {
    match line.dash {
        Dash::Solid => "line",
        Dash::Long => "line long",
        Dash::Dots => "line dots",
    }
}

/// The chart with its title.
pub fn chart(chart: &Chart) -> AnyView {
    let count = chart.count();
    let top = ceiling(chart.highest(), chart.unit);
    let (title, about) = (format!("{}-title", chart.id), format!("{}-about", chart.id));
    let lines = chart.lines.iter().enumerate().map(|(index, line)| {
        let (done, last) = paths(&line.values, top, chart.is_in_progress);
        let below = (index == 0).then(|| area(&line.values, top));
        view! {
            <g class=line.class>
                {below.map(|path| view! { <path class="area" d=path /> })}
                <path class=dash(line) d=done />
                {(!last.is_empty()).then(|| view! { <path class="line open" d=last /> })}
            </g>
        }
    });
    let levels = [top / 2.0, top].map(|level| {
        let y = TOP + y_position(level, top) / HEIGHT * (FLOOR - TOP);
        view! {
            <line x1="0" x2="100%" y1=format!("{y:.1}") y2=format!("{y:.1}") />
            <text class="level-n" x="0" y=format!("{:.1}", y - 4.0)>{chart.unit.text(level)}</text>
        }
    });
    let times = labels(chart.from, chart.width, count).into_iter().map(|(index, at, word)| {
        let share = index as f64 / count.max(1) as f64 * 100.0;
        let x = format!("{share:.2}%");
        let class = match share {
            ..4.0 => "time first",
            94.0.. => "time last",
            _ => "time",
        };
        view! {
            <line class="tick" x1=x.clone() x2=x.clone() y1=FLOOR.to_string() y2=(FLOOR + 5.0).to_string() />
            // The browser shows the time in the zone of the display settings; dates of whole days stay as they are.
            {match word.contains(':') {
                true => view! { <text class=class x=x y=LABEL_Y.to_string() data-t=at.to_string() data-as="axis">{word}</text> }.into_any(),
                false => view! { <text class=class x=x y=LABEL_Y.to_string()>{word}</text> }.into_any(),
            }}
        }
    });
    view! {
        <figure>
            <figcaption>{chart.title}</figcaption>
            <div class="plot mt-1 grid grid-cols-[minmax(0,1fr)_84px] gap-2 max-xs:gap-1" data-chart=chart.id>
                <svg role="img" aria-labelledby=title.clone() aria-describedby=about.clone()>
                    <title id=title.clone()>{chart.title}</title>
                    <desc id=about.clone()>{description(chart)}</desc>
                    {levels.collect_view()}
                    <svg
                        x="0"
                        y=TOP.to_string()
                        width="100%"
                        height=(FLOOR - TOP).to_string()
                        viewBox=format!("0 0 {WIDTH} {HEIGHT}")
                        preserveAspectRatio="none"
                        class="lines"
                    >
                        {lines.collect_view()}
                    </svg>
                    <line class="floor" x1="0" x2="100%" y1=FLOOR.to_string() y2=FLOOR.to_string() />
                    {times.collect_view()}
                    {marks(chart, count)}
                </svg>
                {names(chart, top)}
            </div>
        </figure>
    }
    .into_any()
}

/// The vertical lines. The triangle at the top shows the title at the pointer.
fn marks(chart: &Chart, count: usize) -> AnyView {
    let all = chart
        .width
        .saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
    let marks = chart.marks.iter().map(|mark| {
        let share = mark.at.saturating_sub(chart.from) as f64 / all.max(1) as f64 * 100.0;
        view! {
            <svg class="text-accent" x=format!("{share:.2}%") overflow="visible" fill="currentColor" stroke="currentColor">
                <title>{mark.title.clone()}</title>
                <path d=format!("M-4 6H4L0 14ZM0 14V{FLOOR}") />
            </svg>
        }
    });
    marks.collect_view().into_any()
}

/// The labels at the ends of the lines.
fn names(chart: &Chart, top: f64) -> AnyView {
    let ends: Vec<f64> = chart
        .lines
        .iter()
        .map(|line| {
            let last = line.values.iter().flatten().next_back().copied();
            TOP + y_position(last.unwrap_or_default(), top) / HEIGHT * (FLOOR - TOP)
        })
        .collect();
    let names = chart.lines.iter().zip(spread_labels(&ends)).map(|(line, y)| {
        view! {
            <g class=line.class>
                <line class=dash(line) x1="0" x2="14" y1=format!("{y:.1}") y2=format!("{y:.1}") />
                <text x="18" y=format!("{:.1}", y + 4.0)>{line.name}</text>
            </g>
        }
    });
    view! { <svg class="names" aria-hidden="true">{names.collect_view()}</svg> }.into_any()
}

/// One data table for several charts with the same spans.
pub fn data_table(caption: &str, charts: &[&Chart]) -> AnyView {
    let Some(first) = charts.first() else {
        return ().into_any();
    };
    let lines = || {
        charts
            .iter()
            .flat_map(|chart| chart.lines.iter().map(move |line| (chart, line)))
    };
    let mut head = vec![view! { <th scope="col">{format!("{} starting (UTC)", capital(span_name(first.width)))}</th> }.into_any()];
    head.extend(lines().map(|(chart, line)| {
        let word = if charts.len() == 1 {
            line.name.to_owned()
        } else {
            format!("{}: {}", chart.title, line.name)
        };
        // The browser finds the values at the pointer by the chart of their column.
        view! { <th scope="col" class="num" data-chart=chart.id>{word}</th> }.into_any()
    }));
    let rows = (0..first.count()).map(|index| {
        let at = first.from + first.width * i64::try_from(index).unwrap_or_default();
        let cells = lines().map(|(chart, line)| {
            let value = line.values.get(index).copied().flatten();
            let text = value.map_or("–".to_owned(), |value| chart.unit.text(value));
            match value {
                Some(value) if value != 0.0 => view! { <td><b>{text}</b></td> }.into_any(),
                _ => view! { <td>{text}</td> }.into_any(),
            }
        });
        view! {
            <tr>
                <th scope="row">{span_start(at, first.width)}</th>
                {cells.collect_view()}
            </tr>
        }
    });
    view! {
        // Classes of cells would double the size of the table.
        <details class="[:where(&)_td]:zero [&_b]:font-medium [&_b]:text-ink">
            <summary>"Show data table"</summary>
            {tables::table(caption, head.into_any(), rows.collect_view().into_any())}
        </details>
    }
    .into_any()
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), chars.as_str())
}

/// A sparkline; `about` describes it.
pub fn sparkline(values: &[i64], class: &'static str, about: &str) -> AnyView {
    let top = values.iter().copied().max().unwrap_or_default().max(1) as f64;
    let points: Vec<Option<f64>> = values.iter().map(|n| Some(*n as f64)).collect();
    let (path, _) = paths(&points, top, false);
    view! {
        <svg
            class=format!("spark block h-5 w-24 overflow-visible {class}")
            role="img"
            aria-label=about.to_owned()
            viewBox=format!("0 0 {WIDTH} {HEIGHT}")
            preserveAspectRatio="none"
        >
            <title>{about.to_owned()}</title>
            <path class="area" d=area(&points, top) />
            <path class="line" d=path />
        </svg>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_unit() {
        assert_eq!(
            [0.0, 0.04, 1.25, 12.0, 1_234.4].map(|n| Unit::Rate.text(n)),
            ["0", "< 0.1", "1.2", "12", "1,234"]
        );
        assert_eq!(Unit::Share.text(0.125), "12.5%");
        assert_eq!(Unit::Seconds.text(0.25), "250 ms");
    }

    #[test]
    fn a_span_in_progress_is_divided_by_the_time_so_far() {
        let rate = |now| per_minute(60, 0, HOUR, now);
        assert_eq!([2 * HOUR, HOUR, HOUR / 2].map(rate), [1.0, 1.0, 2.0]);
        assert_eq!(rate(0), 10.0, "at least six minutes");
    }

    #[test]
    fn a_chart_has_a_description() {
        let chart = Chart {
            id: "c",
            title: "Jobs",
            unit: Unit::Rate,
            from: 0,
            width: MINUTE,
            is_in_progress: true,
            marks: Vec::new(),
            lines: vec![
                Line {
                    name: "completed",
                    class: "",
                    dash: Dash::Solid,
                    values: vec![Some(3.0), None, Some(1.0)],
                },
                Line {
                    name: "failed",
                    class: "",
                    dash: Dash::Long,
                    values: vec![None; 3],
                },
            ],
        };
        assert_eq!(
            description(&chart),
            "completed: minimum 1, maximum 3, latest 1. failed: no data. The data table follows."
        );
    }
}
