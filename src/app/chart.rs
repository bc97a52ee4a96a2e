//! What happened over time: a drawing of lines, what it says in words, and its numbers.
//!
//! Across a drawing everything is in shares of its width, upright in pixels, so letters keep their size at any width.
//! Lines are told apart by their dashes, not by their colour alone, and are named at their end.

use leptos::prelude::*;

use super::tables;
use super::time;

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The drawing's lines, from above in pixels.
const TOP: f64 = 18.0;
const FLOOR: f64 = 118.0;
const LETTERS: f64 = 136.0;

/// The width and height of the lines' own drawing, which is stretched to what there is.
const ACROSS: f64 = 1_000.0;
const UPRIGHT: f64 = 100.0;

/// How far names at the ends of lines stand apart, in pixels.
const NAMES_APART: f64 = 14.0;

/// Times that the axis tells.
const TIMES_MAX: i64 = 5;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Times a minute.
    Rate,
    Seconds,
    /// A part of one.
    Share,
}

impl Unit {
    /// A value as text.
    pub fn told(self, value: f64) -> String {
        match self {
            Unit::Rate if value >= 100.0 => time::number(whole(value)),
            Unit::Rate if value > 0.0 && value < 0.1 => "< 0.1".to_owned(),
            Unit::Rate => short(value),
            Unit::Seconds => time::seconds(value),
            Unit::Share => format!("{} %", short(value * 100.0)),
        }
    }

    /// Round values of which one stands at the top of the drawing, beside those that are 1, 2 or 5 and noughts.
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

/// At most one digit after the point, and no nought there.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    Solid,
    Long,
    /// The time before.
    Dots,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: &'static str,
    /// The class of its colour.
    pub look: &'static str,
    pub dash: Dash,
    /// A value for each span; a gap where there is none.
    pub values: Vec<Option<f64>>,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Of this drawing on its page.
    pub id: &'static str,
    /// With the unit.
    pub title: &'static str,
    pub unit: Unit,
    /// When the first span began, and how long each is, in microseconds.
    pub from: i64,
    pub width: i64,
    /// Whether the last span goes on.
    pub goes_on: bool,
    pub lines: Vec<Line>,
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

/// A round number that is at least so high.
fn ceiling(highest: f64, unit: Unit) -> f64 {
    if unit == Unit::Share && highest > 0.5 {
        return 1.0;
    }
    if highest >= 10.0
        && let Some(found) = unit.ceilings().iter().find(|ceiling| **ceiling >= highest)
    {
        return *found;
    }
    let least = match unit {
        Unit::Rate => 1.0,
        Unit::Seconds | Unit::Share => 0.01,
    };
    let mut power = least;
    while power < f64::MAX / 100.0 {
        for step in [1.0, 2.0, 5.0] {
            // A hundredth is not told exactly in binary.
            if power * step >= highest * 0.999_999 {
                return power * step;
            }
        }
        power *= 10.0;
    }
    power
}

/// Where a span has its middle, across.
fn across(index: usize, count: usize) -> f64 {
    (index as f64 + 0.5) / count.max(1) as f64 * ACROSS
}

/// How high a value stands, from above.
fn upright(value: f64, top: f64) -> f64 {
    UPRIGHT - (value / top).clamp(0.0, 1.0) * UPRIGHT
}

/// The points of a line that belong together: between gaps.
fn pieces(values: &[Option<f64>]) -> Vec<Vec<(usize, f64)>> {
    let mut pieces = vec![Vec::new()];
    for (index, value) in values.iter().enumerate() {
        match (value, pieces.last_mut()) {
            (Some(value), Some(piece)) => piece.push((index, *value)),
            _ => pieces.push(Vec::new()),
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The paths of a line: what is done with, and the way to the last value, which is not.
fn paths(values: &[Option<f64>], top: f64, goes_on: bool) -> (String, String) {
    let count = values.len();
    let point = |(index, value): (usize, f64)| {
        format!("{:.1} {:.1}", across(index, count), upright(value, top))
    };
    let (mut done, mut last) = (String::new(), String::new());
    for piece in pieces(values) {
        let open = goes_on && piece.last().is_some_and(|(index, _)| index + 1 == count);
        let closed = piece.len() - usize::from(open);
        let drawn = piece.iter().take(closed).copied();
        let mut points: Vec<String> = drawn.map(point).collect();
        if points.len() == 1 {
            // A line of no length is a dot.
            points.extend(points.first().cloned());
        }
        if !points.is_empty() {
            done.push_str(&format!("M{}", points.join("L")));
        }
        if open {
            let from = closed.saturating_sub(1);
            let way: Vec<String> = piece.iter().skip(from).copied().map(point).collect();
            let way = match way.as_slice() {
                [one] => format!("M{one}L{one}"),
                _ => format!("M{}", way.join("L")),
            };
            last.push_str(&way);
        }
    }
    (done, last)
}

/// The area below a line.
fn area(values: &[Option<f64>], top: f64) -> String {
    let count = values.len();
    let mut path = String::new();
    for piece in pieces(values) {
        let (Some(first), Some(last)) = (piece.first(), piece.last()) else {
            continue;
        };
        path.push_str(&format!("M{:.1} {UPRIGHT}", across(first.0, count)));
        for (index, value) in &piece {
            let (x, y) = (across(*index, count), upright(*value, top));
            path.push_str(&format!("L{x:.1} {y:.1}"));
        }
        path.push_str(&format!("L{:.1} {UPRIGHT}Z", across(last.0, count)));
    }
    path
}

/// Heights, from above, that are as close to these as they can be and stand apart, between `TOP` and `FLOOR`.
fn apart(heights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    let height = |index: &usize| heights.get(*index).copied().unwrap_or_default();
    order.sort_by(|a, b| height(a).total_cmp(&height(b)));
    let mut placed = vec![0.0; heights.len()];
    let mut least = TOP;
    for (rank, index) in order.iter().enumerate() {
        let below = (order.len() - 1 - rank) as f64 * NAMES_APART;
        let y = height(index).max(least).min(FLOOR - below);
        if let Some(place) = placed.get_mut(*index) {
            *place = y;
        }
        least = y + NAMES_APART;
    }
    placed
}

/// The spans at whose beginning the axis tells the time.
fn told(from: i64, width: i64, count: usize) -> Vec<(usize, String)> {
    let all = width.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
    let steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map(|minutes| minutes * MINUTE);
    let days = [1, 2, 7, 14, 30].map(|days| days * DAY);
    let mut steps = steps.into_iter().chain(days);
    let step = steps
        .find(|step| all / step <= TIMES_MAX)
        .unwrap_or(60 * DAY);
    let step = step.max(width);
    let mut told = Vec::new();
    for index in 0..count {
        let at =
            from.saturating_add(width.saturating_mul(i64::try_from(index).unwrap_or_default()));
        // The first span that begins in a new step; spans need not begin with it.
        if at.rem_euclid(step) < width {
            told.push((index, moment(at, step)));
        }
    }
    told
}

/// A time to the precision of a step.
fn moment(at: i64, step: i64) -> String {
    if step >= DAY {
        let date = time::date(at.div_euclid(DAY));
        date.get(5..).unwrap_or_default().to_owned()
    } else {
        time::clock(at).get(..5).unwrap_or_default().to_owned()
    }
}

/// When a span began, as its row in the table says.
pub fn began(at: i64, width: i64) -> String {
    let day = time::date(at.div_euclid(DAY));
    match width {
        DAY.. => day,
        _ => format!("{day} {}", moment(at, MINUTE)),
    }
}

/// How long a span is.
pub fn each(width: i64) -> &'static str {
    match width {
        ..=MINUTE => "minute",
        ..HOUR => "few minutes",
        HOUR => "hour",
        ..DAY => "few hours",
        DAY => "day",
        _ => "few days",
    }
}

/// What somebody who does not see the drawing is told of it.
fn description(chart: &Chart) -> String {
    let mut words: Vec<String> = Vec::new();
    for line in &chart.lines {
        let known = || line.values.iter().flatten().copied();
        let (low, high) = (
            known().fold(f64::MAX, f64::min),
            known().fold(0.0, f64::max),
        );
        words.push(match line.values.iter().flatten().next_back() {
            None => format!("{}: nothing.", line.name),
            Some(last) => format!(
                "{}: from {} to {}, at the end {}.",
                line.name,
                chart.unit.told(low),
                chart.unit.told(high),
                chart.unit.told(*last)
            ),
        });
    }
    words.push("The numbers follow in a table.".to_owned());
    words.join(" ")
}

fn dash(line: &Line) -> &'static str {
    match line.dash {
        Dash::Solid => "line",
        Dash::Long => "line long",
        Dash::Dots => "line dots",
    }
}

/// The drawing, its title above it.
pub fn chart(chart: &Chart) -> AnyView {
    let count = chart.count();
    let top = ceiling(chart.highest(), chart.unit);
    let (title, about) = (format!("{}-title", chart.id), format!("{}-about", chart.id));
    let lines = chart.lines.iter().enumerate().map(|(index, line)| {
        let (done, last) = paths(&line.values, top, chart.goes_on);
        let below = (index == 0).then(|| area(&line.values, top));
        view! {
            <g class=line.look>
                {below.map(|path| view! { <path class="area" d=path /> })}
                <path class=dash(line) d=done />
                {(!last.is_empty()).then(|| view! { <path class="line open" d=last /> })}
            </g>
        }
    });
    let levels = [top / 2.0, top].map(|level| {
        let y = TOP + upright(level, top) / UPRIGHT * (FLOOR - TOP);
        view! {
            <line class="level" x1="0" x2="100%" y1=format!("{y:.1}") y2=format!("{y:.1}") />
            <text class="level-n" x="0" y=format!("{:.1}", y - 4.0)>{chart.unit.told(level)}</text>
        }
    });
    let times = told(chart.from, chart.width, count).into_iter().map(|(index, word)| {
        let share = index as f64 / count.max(1) as f64 * 100.0;
        let x = format!("{share:.2}%");
        let class = match share {
            ..4.0 => "time first",
            94.0.. => "time last",
            _ => "time",
        };
        view! {
            <line class="tick" x1=x.clone() x2=x.clone() y1=FLOOR.to_string() y2=(FLOOR + 5.0).to_string() />
            <text class=class x=x y=LETTERS.to_string()>{word}</text>
        }
    });
    view! {
        <figure class="chart">
            <figcaption>{chart.title}</figcaption>
            <div class="plot">
                <svg role="img" aria-labelledby=title.clone() aria-describedby=about.clone()>
                    <title id=title.clone()>{chart.title}</title>
                    <desc id=about.clone()>{description(chart)}</desc>
                    {levels.collect_view()}
                    <svg
                        x="0"
                        y=TOP.to_string()
                        width="100%"
                        height=(FLOOR - TOP).to_string()
                        viewBox=format!("0 0 {ACROSS} {UPRIGHT}")
                        preserveAspectRatio="none"
                        class="lines"
                    >
                        {lines.collect_view()}
                    </svg>
                    <line class="floor" x1="0" x2="100%" y1=FLOOR.to_string() y2=FLOOR.to_string() />
                    {times.collect_view()}
                </svg>
                {names(chart, top)}
            </div>
        </figure>
    }
    .into_any()
}

/// The names of the lines, where these end.
fn names(chart: &Chart, top: f64) -> AnyView {
    let ends: Vec<f64> = chart
        .lines
        .iter()
        .map(|line| {
            let last = line.values.iter().flatten().next_back().copied();
            TOP + upright(last.unwrap_or_default(), top) / UPRIGHT * (FLOOR - TOP)
        })
        .collect();
    let names = chart.lines.iter().zip(apart(&ends)).map(|(line, y)| {
        view! {
            <g class=line.look>
                <line class=dash(line) x1="0" x2="14" y1=format!("{y:.1}") y2=format!("{y:.1}") />
                <text x="18" y=format!("{:.1}", y + 4.0)>{line.name}</text>
            </g>
        }
    });
    view! { <svg class="names" aria-hidden="true">{names.collect_view()}</svg> }.into_any()
}

/// The numbers of drawings that show the same spans, in one table.
pub fn numbers(caption: &str, charts: &[&Chart]) -> AnyView {
    let Some(first) = charts.first() else {
        return ().into_any();
    };
    let lines = || {
        charts
            .iter()
            .flat_map(|chart| chart.lines.iter().map(move |line| (chart, line)))
    };
    let mut head = vec![view! { <th scope="col" class="first">{format!("{} from (UTC)", capital(each(first.width)))}</th> }.into_any()];
    head.extend(lines().map(|(chart, line)| {
        let word = if charts.len() == 1 {
            line.name.to_owned()
        } else {
            format!("{}: {}", chart.title, line.name)
        };
        view! { <th scope="col" class="n">{word}</th> }.into_any()
    }));
    let rows = (0..first.count()).map(|index| {
        let at = first.from + first.width * i64::try_from(index).unwrap_or_default();
        let cells = lines().map(|(chart, line)| {
            let value = line.values.get(index).copied().flatten();
            let look = if value.is_none_or(|value| value == 0.0) {
                "n zero"
            } else {
                "n"
            };
            let text = value.map_or("–".to_owned(), |value| chart.unit.told(value));
            view! { <td class=look>{text}</td> }
        });
        view! {
            <tr>
                <th scope="row" class="first">{began(at, first.width)}</th>
                {cells.collect_view()}
            </tr>
        }
    });
    view! {
        <details class="more">
            <summary>"The numbers"</summary>
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

/// A line as small as a word; `about` says what it shows.
pub fn spark(values: &[i64], look: &'static str, about: String) -> AnyView {
    let top = values.iter().copied().max().unwrap_or_default().max(1) as f64;
    let points: Vec<Option<f64>> = values.iter().map(|n| Some(*n as f64)).collect();
    let (path, _) = paths(&points, top, false);
    view! {
        <svg
            class=format!("spark {look}")
            role="img"
            aria-label=about.clone()
            viewBox=format!("0 0 {ACROSS} {UPRIGHT}")
            preserveAspectRatio="none"
        >
            <title>{about.clone()}</title>
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
    fn a_line_has_gaps_where_nothing_is_known() {
        let values = [Some(1.0), Some(2.0), None, Some(4.0)];
        assert_eq!(pieces(&values).len(), 2);
        let (done, last) = paths(&values, 4.0, false);
        assert_eq!(done, "M125.0 75.0L375.0 50.0M875.0 0.0L875.0 0.0");
        assert_eq!(last, "");
        assert_eq!(pieces(&[None, None]), Vec::<Vec<(usize, f64)>>::new());
        assert_eq!(paths(&[], 1.0, true), (String::new(), String::new()));
    }

    #[test]
    fn the_way_to_a_span_that_goes_on_is_drawn_apart() {
        let values = [Some(0.0), Some(4.0)];
        let (done, last) = paths(&values, 4.0, true);
        assert_eq!(done, "M250.0 100.0L250.0 100.0");
        assert_eq!(last, "M250.0 100.0L750.0 0.0");
        let (done, last) = paths(&[None, Some(4.0)], 4.0, true);
        assert_eq!((done.as_str(), last.as_str()), ("", "M750.0 0.0L750.0 0.0"));
    }

    #[test]
    fn an_area_stands_on_the_floor() {
        let path = area(&[Some(1.0), None, Some(2.0), Some(0.0)], 2.0);
        assert_eq!(
            path,
            "M125.0 100L125.0 50.0L125.0 100ZM625.0 100L625.0 0.0L875.0 100.0L875.0 100Z"
        );
    }

    #[test]
    fn the_top_is_a_round_number_above_everything() {
        let of = |unit, highest| ceiling(highest, unit);
        assert_eq!(
            [0.0, 1.0, 3.0, 51.0, 1_001.0].map(|n| of(Unit::Rate, n)),
            [1.0, 1.0, 5.0, 100.0, 2_000.0]
        );
        assert_eq!(
            [0.0, 0.02, 7.0, 45.0, 61.0].map(|n| of(Unit::Seconds, n)),
            [0.01, 0.02, 10.0, 60.0, 120.0]
        );
        assert_eq!(
            [0.0, 0.03, 0.51, 1.0].map(|n| of(Unit::Share, n)),
            [0.01, 0.05, 1.0, 1.0]
        );
        assert!(of(Unit::Rate, f64::MAX).is_finite());
    }

    #[test]
    fn names_stand_apart_and_inside() {
        assert_eq!(apart(&[50.0, 52.0]), [50.0, 64.0]);
        assert_eq!(
            apart(&[FLOOR, FLOOR, FLOOR]),
            [FLOOR - 28.0, FLOOR - 14.0, FLOOR]
        );
        assert_eq!(apart(&[90.0, 20.0]), [90.0, 20.0]);
        assert_eq!(apart(&[]), Vec::<f64>::new());
    }

    #[test]
    fn the_axis_tells_a_few_round_times() {
        let words = |from, width, count| -> Vec<String> {
            told(from, width, count)
                .into_iter()
                .map(|(_, word)| word)
                .collect()
        };
        let morning = 3 * HOUR + 7 * MINUTE;
        assert_eq!(
            words(morning, MINUTE, 60),
            ["03:15", "03:30", "03:45", "04:00"]
        );
        assert_eq!(words(0, HOUR, 24), ["00:00", "06:00", "12:00", "18:00"]);
        assert_eq!(words(DAY, 2 * HOUR, 84), ["01-03", "01-05", "01-07"]);
        assert_eq!(told(0, MINUTE, 0), []);
    }

    #[test]
    fn values_are_told_in_their_unit() {
        assert_eq!(
            [0.0, 0.04, 1.25, 12.0, 1_234.4].map(|n| Unit::Rate.told(n)),
            ["0", "< 0.1", "1.2", "12", "1,234"]
        );
        assert_eq!(Unit::Share.told(0.125), "12.5 %");
        assert_eq!(Unit::Seconds.told(0.25), "250 ms");
    }

    #[test]
    fn a_drawing_is_told_in_words() {
        let chart = Chart {
            id: "c",
            title: "Jobs",
            unit: Unit::Rate,
            from: 0,
            width: MINUTE,
            goes_on: true,
            lines: vec![
                Line {
                    name: "completed",
                    look: "",
                    dash: Dash::Solid,
                    values: vec![Some(3.0), None, Some(1.0)],
                },
                Line {
                    name: "failed",
                    look: "",
                    dash: Dash::Long,
                    values: vec![None; 3],
                },
            ],
        };
        assert_eq!(
            description(&chart),
            "completed: from 1 to 3, at the end 1. failed: nothing. The numbers follow in a table."
        );
    }
}
