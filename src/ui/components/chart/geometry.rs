//! The geometry of line charts.

use crate::time;
use crate::ui::components::chart::{DAY, MINUTE, Unit};

/// Vertical positions in the chart, in pixels from the top.
pub const TOP: f64 = 18.0;

pub const FLOOR: f64 = 118.0;

pub const LABEL_Y: f64 = 136.0;

/// The width and height of the coordinate system of the lines, which is stretched to the size of the chart.
pub const WIDTH: f64 = 1_000.0;

pub const HEIGHT: f64 = 100.0;

/// Minimum distance between line labels, in pixels.
const LABEL_DISTANCE: f64 = 14.0;

/// Approximate maximum number of labels on the time axis.
const AXIS_LABELS_MAX: i64 = 5;

/// The top of the vertical axis: a round number, at least `highest`.
pub fn ceiling(highest: f64, unit: Unit) -> f64 {
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
            // Hundredths are not exact in binary.
            if power * step >= highest * 0.999_999 {
                return power * step;
            }
        }
        power *= 10.0;
    }
    power
}

/// The horizontal position of the middle of a span.
pub fn x_position(index: usize, count: usize) -> f64 {
    (index as f64 + 0.5) / count.max(1) as f64 * WIDTH
}

/// The vertical position of a value.
pub fn y_position(value: f64, top: f64) -> f64 {
    HEIGHT - (value / top).clamp(0.0, 1.0) * HEIGHT
}

/// The sequences of values between gaps, each value with its index.
pub fn segments(values: &[Option<f64>]) -> Vec<Vec<(usize, f64)>> {
    let mut segments = vec![Vec::new()];
    for (index, value) in values.iter().enumerate() {
        match (value, segments.last_mut()) {
            (Some(value), Some(segment)) => segment.push((index, *value)),
            _ => segments.push(Vec::new()),
        }
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}

/// A point of an SVG path, rounded to about a pixel.
fn point(x: f64, y: f64) -> String {
    format!("{x:.0} {y:.0}")
}

/// The part of an SVG path through these values, without points within a horizontal line.
fn line(values: &[(usize, f64)], count: usize, top: f64) -> String {
    let height = |at: Option<&(usize, f64)>| at.map(|(_, value)| y_position(*value, top));
    let is_within = |at: usize, y: f64| {
        let before = at.checked_sub(1).and_then(|at| values.get(at));
        [before, values.get(at + 1)].map(height) == [Some(y); 2]
    };
    let points = values
        .iter()
        .enumerate()
        .filter_map(|(at, (index, value))| {
            let y = y_position(*value, top);
            (!is_within(at, y)).then(|| point(x_position(*index, count), y))
        });
    points.collect::<Vec<_>>().join("L")
}

/// The SVG paths of a line: one for complete spans, and one for the segment to the span in progress.
pub fn paths(values: &[Option<f64>], top: f64, is_in_progress: bool) -> (String, String) {
    let count = values.len();
    // A single value is a line over the whole span.
    let path = |values: &[(usize, f64)]| match values {
        [] => String::new(),
        [(index, value)] => {
            let [from, to] = [*index, index + 1].map(|at| at as f64 / count.max(1) as f64 * WIDTH);
            let y = y_position(*value, top);
            format!("M{}L{}", point(from, y), point(to, y))
        }
        _ => format!("M{}", line(values, count, top)),
    };
    let (mut done, mut last) = (String::new(), String::new());
    for segment in segments(values) {
        let open = is_in_progress && segment.last().is_some_and(|(index, _)| index + 1 == count);
        let closed = segment.len() - usize::from(open);
        done.push_str(&path(segment.get(..closed).unwrap_or_default()));
        if open {
            let from = closed.saturating_sub(1);
            last.push_str(&path(segment.get(from..).unwrap_or_default()));
        }
    }
    (done, last)
}

/// The SVG path of the area below a line.
pub fn area(values: &[Option<f64>], top: f64) -> String {
    let count = values.len();
    let ground = |at: &(usize, f64)| point(x_position(at.0, count), HEIGHT);
    let mut path = String::new();
    for segment in segments(values) {
        if let (Some(first), Some(last)) = (segment.first(), segment.last()) {
            let above = line(&segment, count, top);
            path.push_str(&format!("M{}L{above}L{}Z", ground(first), ground(last)));
        }
    }
    path
}

/// Moves positions apart so that labels do not overlap, within `TOP` and `FLOOR`.
pub fn spread_labels(heights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    let height = |index: &usize| heights.get(*index).copied().unwrap_or_default();
    order.sort_by(|a, b| height(a).total_cmp(&height(b)));
    let mut placed = vec![0.0; heights.len()];
    let mut least = TOP;
    for (rank, index) in order.iter().enumerate() {
        let below = (order.len() - 1 - rank) as f64 * LABEL_DISTANCE;
        let y = height(index).max(least).min(FLOOR - below);
        if let Some(slot) = placed.get_mut(*index) {
            *slot = y;
        }
        least = y + LABEL_DISTANCE;
    }
    placed
}

/// The labels of the time axis: the index of a span, the time at its start, and that time as text.
pub fn labels(from: i64, width: i64, count: usize) -> Vec<(usize, i64, String)> {
    let all = width.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
    let steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map(|minutes| minutes * MINUTE);
    let days = [1, 2, 7, 14, 30].map(|days| days * DAY);
    let mut steps = steps.into_iter().chain(days);
    let step = steps
        .find(|step| all / step <= AXIS_LABELS_MAX)
        .unwrap_or(60 * DAY);
    let step = step.max(width);
    let mut labels = Vec::new();
    for index in 0..count {
        let at =
            from.saturating_add(width.saturating_mul(i64::try_from(index).unwrap_or_default()));
        // Labels the first span that starts in a new step, because spans need not start exactly at the step.
        if at.rem_euclid(step) < width {
            labels.push((index, at, axis_time(at, step)));
        }
    }
    labels
}

/// A time in the precision of the axis: the date for steps of days, otherwise hour and minute.
pub fn axis_time(at: i64, step: i64) -> String {
    if step >= DAY {
        let date = time::date(at.div_euclid(DAY));
        date.get(5..).unwrap_or_default().to_owned()
    } else {
        time::clock(at).get(..5).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::components::chart::DAY;
    use crate::ui::components::chart::HOUR;
    use crate::ui::components::chart::MINUTE;
    use crate::ui::components::chart::Unit;

    #[test]
    fn missing_values_are_gaps_in_the_line() {
        let values = [Some(1.0), Some(2.0), None, Some(4.0)];
        assert_eq!(segments(&values).len(), 2);
        let (done, last) = paths(&values, 4.0, false);
        assert_eq!(done, "M125 75L375 50M750 0L1000 0");
        assert_eq!(last, "");
        assert_eq!(segments(&[None, None]), Vec::<Vec<(usize, f64)>>::new());
        assert_eq!(paths(&[], 1.0, true), (String::new(), String::new()));
    }

    #[test]
    fn a_horizontal_line_has_two_points() {
        let values = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0].map(Some);
        let (done, _) = paths(&values, 1.0, false);
        assert_eq!(done, "M62 100L312 100L438 0L812 0L938 100");
    }

    #[test]
    fn the_line_to_the_span_in_progress_is_separate() {
        let values = [Some(0.0), Some(4.0)];
        let (done, last) = paths(&values, 4.0, true);
        assert_eq!(done, "M0 100L500 100");
        assert_eq!(last, "M250 100L750 0");
        let (done, last) = paths(&[None, Some(4.0)], 4.0, true);
        assert_eq!((done.as_str(), last.as_str()), ("", "M500 0L1000 0"));
    }

    #[test]
    fn an_area_ends_at_the_baseline() {
        let path = area(&[Some(1.0), None, Some(2.0), Some(0.0)], 2.0);
        assert_eq!(
            path,
            "M125 100L125 50L125 100ZM625 100L625 0L875 100L875 100Z"
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
    fn labels_do_not_overlap() {
        assert_eq!(spread_labels(&[50.0, 52.0]), [50.0, 64.0]);
        assert_eq!(
            spread_labels(&[FLOOR, FLOOR, FLOOR]),
            [FLOOR - 28.0, FLOOR - 14.0, FLOOR]
        );
        assert_eq!(spread_labels(&[90.0, 20.0]), [90.0, 20.0]);
        assert_eq!(spread_labels(&[]), Vec::<f64>::new());
    }

    #[test]
    fn the_axis_has_a_few_round_times() {
        let words = |from, width, count| -> Vec<String> {
            labels(from, width, count)
                .into_iter()
                .map(|(.., word)| word)
                .collect()
        };
        let morning = 3 * HOUR + 7 * MINUTE;
        assert_eq!(
            words(morning, MINUTE, 60),
            ["03:15", "03:30", "03:45", "04:00"]
        );
        assert_eq!(words(0, HOUR, 24), ["00:00", "06:00", "12:00", "18:00"]);
        assert_eq!(words(DAY, 2 * HOUR, 84), ["01-03", "01-05", "01-07"]);
        assert_eq!(labels(0, MINUTE, 0), []);
    }
}
