//! Loads statistics over time.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{
    Engine, HOUR, HOURS_KEPT, MINUTES_KEPT, QueueKey, Result, SeriesTotals, Time, minute, quantile,
};
use crate::ui::context::{read, read_or_missing};
use crate::ui::dates::{DATETIME_LOCAL, parse_time};
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::series::{RecentActivity, Series, Span, Sparkline, StatisticsQuery};
use crate::ui::page_request::queue_at;
use crate::ui::pages::statistics::model::RangeView;
use crate::ui::present::queue_refs::{key, queue_ref};

/// The statistics of one queue or of all queues.
#[server]
pub async fn range(query: StatisticsQuery) -> Result<RangeView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_range(&context.engine, &query).await,
        || "Queue not found.".to_owned(),
    )
    .await
}

/// The number of completed jobs per minute of each queue in the last 30 minutes. Queues without completed jobs are
/// omitted.
#[server]
pub async fn sparks() -> Result<Vec<Sparkline>, PageError> {
    read(Role::Viewer, async |context| {
        load_sparks(&context.engine).await
    })
    .await
}

const MINUTE_US: i64 = 60_000_000;

const DAY: i64 = 24 * HOUR;

/// The length of the chart of the overview, and of the sparklines in the list of queues, in minutes.
const OVERVIEW_MINUTES: usize = 60;

const SPARK_MINUTES: usize = 30;

/// The length of the period whose failure rate is compared with the hour before, in minutes.
const NOW_MINUTES: usize = 5;

/// Maximum number of queues in the selection.
const QUEUES_OFFERED: usize = 200;

/// The named ranges: name, length in minutes, and length of a span in minutes.
pub const RANGES: [(&str, i64, i64); 5] = [
    ("1h", HOUR, 1),
    ("6h", 6 * HOUR, 5),
    ("24h", DAY, HOUR),
    ("7d", 7 * DAY, 2 * HOUR),
    ("30d", 30 * DAY, 8 * HOUR),
];

/// The possible lengths of a span, in minutes. A custom range uses the shortest one that results in at most `SPANS_MAX`
/// spans.
const WIDTHS: [i64; 8] = [1, 5, 15, HOUR, 2 * HOUR, 8 * HOUR, DAY, 7 * DAY];

const SPANS_MAX: i64 = 120;

/// The last hour of all queues.
pub async fn load_recent(engine: &Engine) -> Result<RecentActivity> {
    let last = minute(engine.now(None));
    // Includes the hour before the last five minutes.
    let count = OVERVIEW_MINUTES + NOW_MINUTES;
    let from = last - count as i64 + 1;
    let sums = engine.series(None, from, 1, count).await?;
    let (before, now) = sums.split_at(OVERVIEW_MINUTES.min(sums.len()));
    let shown = sums.get(NOW_MINUTES..).unwrap_or_default();
    Ok(RecentActivity {
        hour: series(shown, from + NOW_MINUTES as i64, 1),
        now: total(now, from + OVERVIEW_MINUTES as i64),
        before: total(before, from),
        commits_p95: engine.commits_p95().map(|took| took.as_secs_f64()),
        is_disk_full: engine.is_full(),
    })
}

/// The number of completed jobs per minute of each queue in the last 30 minutes.
pub async fn load_sparks(engine: &Engine) -> Result<Vec<Sparkline>> {
    let from = minute(engine.now(None)) - SPARK_MINUTES as i64 + 1;
    let found = engine.throughputs(from, SPARK_MINUTES).await?;
    let known = engine.known_queues();
    let spark = |(queue, completed)| {
        Some(Sparkline {
            queue_ref: queue_ref(&known.by_id(queue)?.key),
            completed,
        })
    };
    Ok(found.into_iter().filter_map(spark).collect())
}

/// The statistics of a range; `None` if the queue does not exist.
pub async fn load_range(engine: &Engine, query: &StatisticsQuery) -> Result<Option<RangeView>> {
    let queue_ref = (!query.queue.is_empty()).then(|| queue_at(&query.queue));
    let queue = queue_ref.as_ref().map(key);
    if let Some(queue) = &queue
        && engine.queue(queue, None).await?.is_none()
    {
        return Ok(None);
    }
    let now = engine.now(None);
    let (window, range_error) = match Window::of(query, now) {
        Ok(window) => (window, None),
        Err(range_error) => (Window::named("1h", now), Some(range_error)),
    };
    let before = window.before();
    let known = query.compare && before.is_known(now);
    let queue = queue.as_ref();
    Ok(Some(RangeView {
        queue_ref,
        queues: queues(engine),
        range_error,
        from: window.from.saturating_mul(MINUTE_US),
        to: window.end().saturating_mul(MINUTE_US),
        is_in_progress: window.end().saturating_mul(MINUTE_US) > now.0,
        series: window.read(engine, queue).await?,
        before: match known {
            true => Some(before.read(engine, queue).await?),
            false => None,
        },
        is_previous_missing: query.compare && !known,
    }))
}
/// The queues in the selection, sorted by name.
fn queues(engine: &Engine) -> Vec<QueueRef> {
    let mut known = engine.known_queues().unordered();
    known.retain(|queue| !queue.forgotten && queue.key.protocol != Protocol::Jobq);
    let known = known.iter().map(|queue| queue_ref(&queue.key));
    let mut queues: Vec<(String, QueueRef)> = known.map(|it| (it.label(), it)).collect();
    let order = |a: &(String, QueueRef), b: &(String, QueueRef)| {
        (&a.0, a.1.protocol).cmp(&(&b.0, b.1.protocol))
    };
    if queues.len() > QUEUES_OFFERED {
        queues.select_nth_unstable_by(QUEUES_OFFERED, order);
        queues.truncate(QUEUES_OFFERED);
    }
    queues.sort_by(order);
    queues.into_iter().map(|(_, queue_ref)| queue_ref).collect()
}

/// Consecutive spans of equal length. Times and lengths are in minutes, times since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    from: i64,
    width: i64,
    count: i64,
}

impl Window {
    fn of(query: &StatisticsQuery, now: Time) -> std::result::Result<Window, String> {
        if query.from.is_empty() && query.to.is_empty() {
            let known = RANGES.iter().any(|(name, ..)| *name == query.range);
            return match known || query.range.is_empty() {
                true => Ok(Window::named(&query.range, now)),
                false => Err(format!(
                    "Unknown range “{}”. Use 1h, 6h, 24h, 7d or 30d.",
                    query.range
                )),
            };
        }
        let from = parse_minute("From", &query.from)?;
        let to = match query.to.is_empty() {
            true => minute(now) + 1,
            false => parse_minute("To", &query.to)?,
        };
        if from >= to {
            return Err("From must be before To.".to_owned());
        }
        if from > minute(now) {
            return Err("From must not be in the future.".to_owned());
        }
        let window = Window::between(from, to.min(minute(now) + 1), now);
        match window.is_known(now) {
            true => Ok(window),
            false => Err(format!(
                "From is too far in the past. Statistics are kept for {} days.",
                HOURS_KEPT / 24
            )),
        }
    }

    /// A named range that ends now.
    fn named(name: &str, now: Time) -> Window {
        let range = RANGES.iter().find(|(range, ..)| *range == name);
        let (_, minutes, width) = range.copied().unwrap_or(("1h", HOUR, 1));
        let count = minutes / width;
        let last = minute(now).div_euclid(width) * width;
        Window {
            from: last - (count - 1) * width,
            width,
            count,
        }
    }

    /// A custom range, from one minute to another. Rounded to whole hours if only hours are still stored.
    fn between(from: i64, to: i64, now: Time) -> Window {
        let has_minutes = minute(now) - from <= MINUTES_KEPT - HOUR;
        let fits =
            |width: &i64| (has_minutes || *width >= HOUR) && (to - from) / width <= SPANS_MAX;
        let longest = 7 * DAY;
        let width = WIDTHS.into_iter().find(fits).unwrap_or(longest);
        let from = from.div_euclid(width) * width;
        let count = (to - from + width - 1) / width;
        Window { from, width, count }
    }

    fn end(&self) -> i64 {
        self.from
            .saturating_add(self.width.saturating_mul(self.count))
    }

    /// The previous period of the same length.
    fn before(self) -> Window {
        Window {
            from: self.from - self.width * self.count,
            ..self
        }
    }

    /// Whether statistics of this resolution are stored for the whole range.
    fn is_known(&self, now: Time) -> bool {
        let age = minute(now).saturating_sub(self.from);
        match self.width < HOUR {
            true => age <= MINUTES_KEPT,
            false => age <= HOURS_KEPT * HOUR,
        }
    }

    async fn read(&self, engine: &Engine, queue: Option<&QueueKey>) -> Result<Series> {
        let count = usize::try_from(self.count).unwrap_or_default();
        let sums = engine.series(queue, self.from, self.width, count).await?;
        Ok(series(&sums, self.from, self.width))
    }
}

/// Parses a point in time to the minute.
fn parse_minute(field: &str, text: &str) -> std::result::Result<i64, String> {
    let text = text.trim().trim_end_matches('Z');
    let [minutes, seconds] = DATETIME_LOCAL;
    let found = parse_time(text, &[minutes, seconds, "%Y-%m-%d %H:%M"]);
    let found = found.map(|time| time.0.div_euclid(MINUTE_US));
    found.ok_or_else(|| match text.is_empty() {
        true => format!("{field} is missing. Enter a UTC time such as 2026-11-20T13:00."),
        false => format!(
            "{field} “{text}” is not a valid time. Enter a UTC time such as 2026-11-20T13:00."
        ),
    })
}

fn series(sums: &[SeriesTotals], from: i64, width: i64) -> Series {
    let spans = sums.iter().zip(0..);
    Series {
        width: width.saturating_mul(MINUTE_US),
        spans: spans
            .map(|(sums, n)| span(sums, from + n * width))
            .collect(),
        total: total(sums, from),
    }
}

fn total(sums: &[SeriesTotals], from: i64) -> Span {
    let all = sums
        .iter()
        .fold(SeriesTotals::default(), SeriesTotals::plus);
    span(&all, from)
}

fn span(sums: &SeriesTotals, from: i64) -> Span {
    Span {
        from: from.saturating_mul(MINUTE_US),
        put: sums.put,
        claimed: sums.claimed(),
        completed: sums.completed(),
        failed: sums.failed,
        wait_p50: quantile(&sums.waits, 0.5),
        wait_p95: quantile(&sums.waits, 0.95),
        run_p95: quantile(&sums.runs, 0.95),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::model::queue_ref::QueueRef;
    use crate::ui::model::series::StatisticsQuery;

    use crate::ui::urls;

    /// 2026-11-01 02:26:40 UTC.
    const NOW: Time = Time(1_793_500_000_000_000);

    fn window(range: &str, from: &str, to: &str) -> std::result::Result<Window, String> {
        let query = StatisticsQuery {
            range: range.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            ..StatisticsQuery::default()
        };
        Window::of(&query, NOW)
    }

    #[test]
    fn a_range_ends_with_the_span_in_progress() {
        let now = minute(NOW);
        for (name, minutes, width) in RANGES {
            let window = window(name, "", "").unwrap();
            assert_eq!(window.width * window.count, minutes, "{name}");
            assert_eq!(window.from % width, 0, "{name}");
            assert!(window.end() > now && window.end() - width <= now, "{name}");
            assert!(
                window.is_known(NOW) && window.before().is_known(NOW),
                "{name}"
            );
        }
        assert_eq!(window("", "", ""), window("1h", "", ""));
    }

    #[test]
    fn a_custom_range_uses_stored_spans() {
        let found = window("", "2026-11-01T01:00", "2026-11-01T02:00").unwrap();
        assert_eq!((found.width, found.count), (1, 60));
        let found = window("", "2026-10-31 03:30", "").unwrap();
        assert_eq!((found.width, found.count), (15, 92));
        // For yesterday only hours are stored, so the range starts at a full hour.
        let found = window("", "2026-10-30T10:30Z", "2026-10-30T11:10").unwrap();
        assert_eq!((found.width, found.count), (HOUR, 2));
        assert_eq!(found.from % HOUR, 0);
        let found = window("", "2026-09-15", "2026-11-01").unwrap();
        assert_eq!(found.width, DAY);
    }

    #[test]
    fn an_invalid_range_is_an_error() {
        for (range, from, to, why) in [
            ("2h", "", "", "Unknown range “2h”"),
            ("", "yesterday", "", "From “yesterday” is not a valid time"),
            ("", "", "2026-11-01", "From is missing"),
            (
                "",
                "2026-11-01",
                "2026-02-30",
                "To “2026-02-30” is not a valid time",
            ),
            ("", "2026-11-01", "2026-11-01", "From must be before To"),
            ("", "2027-11-01", "", "From must be before To"),
            ("", "2027-11-01", "2027-11-02", "in the future"),
            ("", "2026-01-01", "", "kept for 62 days"),
        ] {
            let range_error = window(range, from, to).unwrap_err();
            assert!(range_error.contains(why), "{from} {to}: {range_error}");
        }
    }

    #[test]
    fn a_queue_address_names_the_queue() {
        for queue_ref in [
            QueueRef::qless("a/b"),
            QueueRef::lmstfy("shop", ".."),
            QueueRef::relay(""),
        ] {
            assert_eq!(queue_at(&urls::queue_param(&queue_ref)), queue_ref);
        }
    }
}
