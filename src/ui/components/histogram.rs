//! Histograms of durations: a chart, its description for screen readers, and its data table.
//!
//! The engine counts by second, minute, hour and day. The chart joins these buckets into bars that cover increasing
//! ranges, so that seconds and days fit side by side. All of these histograms have the same bars, so that they can be
//! compared. The run times of a worker are known to the millisecond, and have bars of their own.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::{basics, tables};
use crate::ui::model::histogram::{daily_bucket, daily_bucket_end};
use crate::ui::model::worker::RUN_BARS_MS;

const MINUTE: usize = 60;

const HOUR: usize = 60 * MINUTE;

const DAY: usize = 24 * HOUR;

/// The start of each bar in seconds. The last bar is unbounded.
const BARS: [usize; 18] = [
    0,
    1,
    2,
    5,
    10,
    30,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    6 * DAY,
];

/// The bars with a label.
const LABELED_BARS: [usize; 9] = [0, 1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 6 * DAY];

/// The same for run times, in milliseconds.
const LABELED_RUN_BARS: [usize; 7] = [0, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000];

/// The top of the highest bar and the baseline, in pixels from the top, and the distance from the baseline to the
/// labels.
const TOP: f64 = 18.0;

const FLOOR: f64 = 146.0;

const LABEL_OFFSET: f64 = 18.0;

/// A duration in its largest unit.
fn duration_label(seconds: usize) -> String {
    match seconds {
        ..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} m", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        _ => format!("{} d", seconds / DAY),
    }
}

/// The range of a bar: `2–5 s`.
fn range(from: usize, to: Option<usize>) -> String {
    let unit = match from {
        ..MINUTE => (1, "s"),
        MINUTE..HOUR => (MINUTE, "m"),
        HOUR..DAY => (HOUR, "h"),
        _ => (DAY, "d"),
    };
    match to {
        Some(to) => format!("{}–{} {}", from / unit.0, to / unit.0, unit.1),
        None => format!("{} or more", duration_label(from)),
    }
}

/// A duration in milliseconds, in its largest unit.
fn short_duration_label(ms: usize) -> String {
    match ms {
        0 => "0".to_owned(),
        1..1_000 => format!("{ms} ms"),
        _ => duration_label(ms / 1_000),
    }
}

/// The range of a bar of run times: `20–50 ms`.
fn short_range(from_ms: usize, to_ms: Option<usize>) -> String {
    match to_ms {
        Some(to) if from_ms < 1_000 => format!("{from_ms}–{to} ms"),
        to => range(from_ms / 1_000, to.map(|to| to / 1_000)),
    }
}

/// One bar.
struct Bar {
    name: String,
    /// The label at its start, if it has one.
    label: Option<String>,
    n: i64,
}

fn bars(buckets: &[i64]) -> Vec<Bar> {
    let starts = BARS.iter().copied();
    let ends = BARS.iter().copied().skip(1).map(Some).chain([None]);
    starts
        .zip(ends)
        .map(|(from, to)| {
            let buckets = buckets.get(daily_bucket(from)..to.map_or(buckets.len(), daily_bucket));
            let label = match from {
                0 => "0".to_owned(),
                _ => duration_label(from),
            };
            Bar {
                name: range(from, to),
                label: LABELED_BARS.contains(&from).then_some(label),
                n: buckets.unwrap_or_default().iter().sum(),
            }
        })
        .collect()
}

fn run_time_bars(counts: &[i64]) -> Vec<Bar> {
    let starts = RUN_BARS_MS.iter().copied();
    let ends = starts.clone().skip(1).map(Some).chain([None]);
    let bars = starts.zip(ends).zip(counts).map(|((from, to), n)| Bar {
        name: short_range(from, to),
        label: (LABELED_RUN_BARS.contains(&from)).then(|| short_duration_label(from)),
        n: *n,
    });
    bars.collect()
}

/// An upper bound for this share of the durations: the end of the bucket that contains the quantile.
pub fn quantile_label(buckets: &[i64], share: f64) -> Option<String> {
    let total: i64 = buckets.iter().sum();
    if total == 0 {
        return None;
    }
    let mut sum = 0;
    let bucket = buckets.iter().position(|n| {
        sum += n;
        sum as f64 >= share * total as f64
    })?;
    Some(match daily_bucket_end(bucket) {
        Some(end) => format!("≤ {}", duration_label(end)),
        None => format!("> {}", duration_label(6 * DAY)),
    })
}

/// A round number at or above the highest bar; half of it is a whole number.
fn ceiling(highest: i64) -> i64 {
    let mut unit = 1_i64;
    loop {
        for step in [2, 4, 6, 8, 10, 12, 16] {
            let ceiling = unit.saturating_mul(step);
            if ceiling >= highest {
                return ceiling;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// A number, below a billion in at most four characters: `999`, `1.2k`, `34k`, `5.6M`.
pub fn short(n: i64) -> String {
    match n {
        ..1_000 => n.to_string(),
        1_000..9_950 => format!("{:.1}k", n as f64 / 1e3),
        9_950..999_500 => format!("{:.0}k", n as f64 / 1e3),
        999_500..9_950_000 => format!("{:.1}M", n as f64 / 1e6),
        _ => format!("{:.0}M", n as f64 / 1e6),
    }
}

fn share(n: i64, of: i64) -> String {
    let percent = n as f64 / of.max(1) as f64 * 100.0;
    match n {
        0 => "0%".to_owned(),
        _ if n == of => "100%".to_owned(),
        _ if percent < 0.1 => "< 0.1%".to_owned(),
        _ if percent > 99.9 => "> 99.9%".to_owned(),
        _ => format!("{percent:.1}%"),
    }
}

/// The content of a histogram.
pub struct Histogram<'a> {
    /// The ID of the chart.
    pub id: &'static str,
    pub title: &'static str,
    /// The class of the bars.
    pub class: &'static str,
    /// The number of jobs in each bucket of a day's statistics, or for run times in each bar.
    pub buckets: &'a [i64],
}

/// The chart and its data table.
pub fn histogram(histogram: &Histogram<'_>) -> AnyView {
    let quantile = |share| quantile_label(histogram.buckets, share).unwrap_or_default();
    let quantiles = [quantile(0.5), quantile(0.95)];
    chart_and_table(histogram, &bars(histogram.buckets), quantiles)
}

/// The chart of run times with the bars [`RUN_BARS_MS`], and its data table. `quantiles` are p50 and p95.
pub fn run_times(histogram: &Histogram<'_>, quantiles: [String; 2]) -> AnyView {
    chart_and_table(histogram, &run_time_bars(histogram.buckets), quantiles)
}

fn chart_and_table(histogram: &Histogram<'_>, bars: &[Bar], quantiles: [String; 2]) -> AnyView {
    let total: i64 = bars.iter().map(|bar| bar.n).sum();
    view! {
        <figure>
            <figcaption>{histogram.title}</figcaption>
            {drawing(histogram, bars, total, quantiles)}
        </figure>
        <details>
            <summary>"Show data table"</summary>
            {data_table(histogram.title, bars, total)}
        </details>
    }
    .into_any()
}

/// The description for screen readers.
fn description(bars: &[Bar], [half, nearly_all]: [String; 2]) -> String {
    let Some(most) = bars.iter().rev().max_by_key(|bar| bar.n) else {
        return String::new();
    };
    format!(
        "Histogram with {} bars. Highest: {}, with {}. p50 {half}, p95 {nearly_all}. The data table follows.",
        bars.len(),
        most.name,
        jobs(most.n),
    )
}

fn jobs(n: i64) -> String {
    basics::plural(n, "job", "jobs")
}

/// The scale of a bar chart: vertical positions in pixels, horizontal ones in percent, so that text keeps its size.
pub struct Scale {
    floor: f64,
    /// The count at the top of the scale.
    ceiling: i64,
    /// The horizontal distance between bars, in percent.
    step: f64,
}

impl Scale {
    /// A scale for this many bars; `highest` is the largest count, and `floor` the baseline in pixels from the top.
    pub fn new(bars: usize, highest: i64, floor: f64) -> Scale {
        Scale {
            floor,
            ceiling: ceiling(highest),
            step: 100.0 / bars.max(1) as f64,
        }
    }

    fn above_floor(&self, n: i64) -> f64 {
        n as f64 / self.ceiling as f64 * (self.floor - TOP)
    }

    /// The bar with index `i` for the count `n`; `None` if `n` is 0. `class` is the class of a state.
    pub fn bar(&self, i: usize, n: i64, class: &'static str, title: String) -> Option<AnyView> {
        if n == 0 {
            return None;
        }
        // At least 2 pixels, so that small counts are visible.
        let height = self.above_floor(n).max(2.0);
        let (at, top) = (i as f64 * self.step, self.floor - height);
        let view = view! {
            <g>
                <title>{title}</title>
                <rect
                    class=class
                    x=format!("{:.2}%", at + self.step * 0.08)
                    y=format!("{top:.1}")
                    width=format!("{:.2}%", self.step * 0.84)
                    height=format!("{height:.1}")
                />
                <text class="bar-n" x=format!("{:.2}%", at + self.step / 2.0) y=format!("{:.1}", top - 4.0)>
                    {short(n)}
                </text>
            </g>
        };
        Some(view.into_any())
    }

    /// The axis label at the start of bar `i`.
    pub fn time(&self, i: usize, word: String) -> AnyView {
        let x = format!("{:.2}%", i as f64 * self.step);
        let class = if i == 0 { "time first" } else { "time" };
        view! {
            <line class="tick" x1=x.clone() x2=x.clone() y1=self.floor.to_string() y2=(self.floor + 5.0).to_string() />
            <text class=class x=x y=(self.floor + LABEL_OFFSET).to_string()>{word}</text>
        }
        .into_any()
    }

    /// The line at the baseline.
    pub fn baseline(&self) -> AnyView {
        let y = self.floor.to_string();
        view! { <line class="floor" x1="0" x2="100%" y1=y.clone() y2=y /> }.into_any()
    }
}

fn drawing(histogram: &Histogram<'_>, bars: &[Bar], total: i64, quantiles: [String; 2]) -> AnyView {
    let highest = bars.iter().map(|bar| bar.n).max().unwrap_or_default();
    let scale = Scale::new(bars.len(), highest, FLOOR);
    let columns = bars.iter().enumerate().map(|(i, bar)| {
        let title = format!("{}: {}, {}", bar.name, jobs(bar.n), share(bar.n, total));
        scale.bar(i, bar.n, histogram.class, title)
    });
    let levels = [scale.ceiling / 2, scale.ceiling].map(|level| {
        let y = format!("{:.1}", FLOOR - scale.above_floor(level));
        let above = format!("{:.1}", FLOOR - scale.above_floor(level) - 4.0);
        view! {
            <line x1="0" x2="100%" y1=y.clone() y2=y />
            <text class="level-n" x="100%" y=above>{short(level)}</text>
        }
    });
    let times = bars.iter().enumerate();
    let times = times.filter_map(|(i, bar)| Some(scale.time(i, bar.label.clone()?)));
    let (title, about) = (
        format!("{}-title", histogram.id),
        format!("{}-about", histogram.id),
    );
    view! {
        <svg class="histogram" role="img" aria-labelledby=title.clone() aria-describedby=about.clone()>
            <title id=title.clone()>{histogram.title}</title>
            <desc id=about.clone()>{description(bars, quantiles)}</desc>
            {levels.collect_view()}
            {columns.collect_view()}
            {scale.baseline()}
            {times.collect_view()}
        </svg>
    }
    .into_any()
}

fn data_table(title: &str, bars: &[Bar], total: i64) -> AnyView {
    let columns = [
        ("Time", ""),
        ("Jobs", "num"),
        ("Share", "num"),
        ("Cumulative", "num"),
    ];
    let mut sum = 0;
    let last = bars.iter().rposition(|bar| bar.n > 0);
    let rows = bars
        .iter()
        // Omits empty rows after the longest duration.
        .take(last.map_or(0, |last| last + 1))
        .map(|bar| {
            sum += bar.n;
            let class = if bar.n == 0 { "zero" } else { "num" };
            view! {
                <tr>
                    <th scope="row">{bar.name.clone()}</th>
                    <td class=class>{time::number(bar.n)}</td>
                    <td class=class>{share(bar.n, total)}</td>
                    <td class="num">{share(sum, total)}</td>
                </tr>
            }
        })
        .collect_view();
    tables::table(title, tables::head(&columns), rows.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(filled: &[(usize, i64)]) -> Vec<i64> {
        let mut buckets = vec![0; 148];
        for (seconds, n) in filled {
            buckets[daily_bucket(*seconds)] += n;
        }
        buckets
    }

    #[test]
    fn every_bucket_belongs_to_one_bar() {
        let all: Vec<i64> = vec![1; 148];
        let bars = bars(&all);
        assert_eq!(bars.iter().map(|bar| bar.n).sum::<i64>(), 148);
        let named = |name: &str| bars.iter().find(|bar| bar.name == name).unwrap().n;
        assert_eq!(named("0–1 s"), 1);
        assert_eq!(named("30–60 s"), 30);
        assert_eq!(named("30–60 m"), 30);
        assert_eq!(named("12–24 h"), 12);
        assert_eq!(named("6 d or more"), 1);
    }

    #[test]
    fn run_times_have_bars_from_milliseconds_to_hours() {
        let counts: Vec<i64> = (0..18).collect();
        let bars = run_time_bars(&counts);
        let names: Vec<&str> = bars.iter().map(|bar| bar.name.as_str()).collect();
        let some = [0, 1, 6, 7, 10, 12, 16, 17].map(|i| names[i]);
        assert_eq!(
            some,
            [
                "0–10 ms",
                "10–20 ms",
                "500–1000 ms",
                "1–2 s",
                "10–30 s",
                "1–2 m",
                "30–60 m",
                "1 h or more"
            ]
        );
        let labels: Vec<&str> = bars.iter().filter_map(|bar| bar.label.as_deref()).collect();
        assert_eq!(labels, ["0", "100 ms", "1 s", "10 s", "1 m", "10 m", "1 h"]);
        assert_eq!(
            (bars.len(), bars[17].n),
            (18, 17),
            "each count belongs to one bar"
        );
    }

    #[test]
    fn percentiles_are_rounded_up_to_buckets() {
        let some = buckets(&[(0, 50), (3, 45), (7200, 4), (600_000, 1)]);
        assert_eq!(quantile_label(&some, 0.5).as_deref(), Some("≤ 1 s"));
        assert_eq!(quantile_label(&some, 0.95).as_deref(), Some("≤ 4 s"));
        assert_eq!(quantile_label(&some, 0.99).as_deref(), Some("≤ 3 h"));
        assert_eq!(quantile_label(&some, 1.0).as_deref(), Some("> 6 d"));
        assert_eq!(quantile_label(&buckets(&[]), 0.5), None);
    }

    #[test]
    fn axis_values_are_round_and_numbers_short() {
        let tops = [0, 1, 3, 5, 11, 115, 1_700].map(ceiling);
        assert_eq!(tops, [2, 2, 4, 6, 12, 120, 2_000]);
        assert!(ceiling(i64::MAX) > 0);
        let shorts = [7, 999, 1_234, 9_949, 9_950, 999_499, 1_500_000, 12_000_000].map(short);
        assert_eq!(
            shorts,
            ["7", "999", "1.2k", "9.9k", "10k", "999k", "1.5M", "12M"]
        );
    }

    #[test]
    fn shares_are_never_rounded_to_0_or_100_percent() {
        assert_eq!(share(0, 10), "0%");
        assert_eq!(share(1, 100_000), "< 0.1%");
        assert_eq!(share(99_999, 100_000), "> 99.9%");
        assert_eq!(share(1, 3), "33.3%");
        assert_eq!(share(10, 10), "100%");
    }
}
