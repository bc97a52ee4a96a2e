//! Loads statistics over time.

mod events;
mod window;

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, QueueKey, Result, SeriesTotals, minute, quantile};
use crate::ui::context::{read, read_or_missing};
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::series::{Compare, RecentActivity, Series, Span, Sparkline, StatisticsQuery};
use crate::ui::page_request::queue_at;
use crate::ui::pages::statistics::load::window::{MINUTE_US, Window};
use crate::ui::pages::statistics::model::{QueueActivity, RangeView};
use crate::ui::present::queue_refs::{key, queue_ref};

pub use crate::ui::pages::statistics::load::window::RANGES;

/// The statistics of one queue or of all queues.
#[server(name = LoadStatistics, endpoint = "range")]
pub async fn statistics(query: StatisticsQuery) -> Result<RangeView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_range(&context.engine, &query).await,
        || "Queue not found.".to_owned(),
    )
    .await
}

/// The number of completed jobs per minute of each of these queues in the last 30 minutes; without queues, of all.
/// Reads up to 1,000 queues. Those without completed jobs are omitted.
#[server(name = LoadSparklines, endpoint = "sparks")]
pub async fn sparklines(
    #[server(default)] queues: Vec<QueueRef>,
) -> Result<Vec<Sparkline>, PageError> {
    read(Role::Viewer, async |context| {
        load_sparks(&context.engine, &queues).await
    })
    .await
}

/// The length of the chart of the overview, and of the sparklines in the list of queues, in minutes.
const OVERVIEW_MINUTES: usize = 60;

const SPARK_MINUTES: usize = 30;

/// Maximum number of queues whose sparklines are read at once.
const SPARK_QUEUES_MAX: usize = 1_000;

/// The length of the period whose failure rate is compared with the hour before, in minutes.
const NOW_MINUTES: usize = 5;

/// Maximum number of queues in the selection.
const QUEUES_OFFERED: usize = 200;

/// Maximum number of queues with a chart of their own.
const QUEUES_DRAWN_MAX: i64 = 12;

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
        is_disk_full: engine.is_disk_full(),
    })
}

/// See [`sparklines`].
async fn load_sparks(engine: &Engine, queues: &[QueueRef]) -> Result<Vec<Sparkline>> {
    let from = minute(engine.now(None)) - SPARK_MINUTES as i64 + 1;
    let known = engine.known_queues();
    let mut ids: Vec<_> = match queues {
        [] => known.unordered().iter().map(|queue| queue.id).collect(),
        some => some
            .iter()
            .filter_map(|it| Some(known.get(&key(it))?.id))
            .collect(),
    };
    ids.sort_unstable();
    ids.dedup();
    ids.truncate(SPARK_QUEUES_MAX);
    let found = engine.throughputs(&ids, from, SPARK_MINUTES).await?;
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
    let before = window.compared(query.compare);
    let known = before.filter(|before| before.is_known(now));
    let queue = queue.as_ref();
    let by_queue = match queue {
        Some(_) => Vec::new(),
        None => by_queue(engine, window).await?,
    };
    let (events, has_more_events) = events::load(engine, queue_ref.as_ref(), window).await?;
    Ok(Some(RangeView {
        queue_ref,
        queues: queues(engine),
        range_error,
        from: window.from.saturating_mul(MINUTE_US),
        to: window.end().saturating_mul(MINUTE_US),
        is_in_progress: window.end().saturating_mul(MINUTE_US) > now.0,
        series: window.read(engine, queue).await?,
        before: match known {
            Some(before) => Some(before.read(engine, queue).await?),
            None => None,
        },
        compared: query.compare,
        is_previous_missing: query.compare != Compare::Nothing && known.is_none(),
        zoom: window.zoom(now),
        by_queue,
        events,
        has_more_events,
    }))
}

/// The busiest queues. Deleted queues are omitted.
async fn by_queue(engine: &Engine, window: Window) -> Result<Vec<QueueActivity>> {
    let count = usize::try_from(window.count).unwrap_or_default();
    let found = engine
        .busiest(window.from, window.width, count, QUEUES_DRAWN_MAX)
        .await?;
    let known = engine.known_queues();
    let activity = |(queue, spans): (_, Vec<crate::engine::Activity>)| {
        Some(QueueActivity {
            queue_ref: queue_ref(&known.by_id(queue)?.key),
            completed: spans.iter().map(|span| span.completed).collect(),
            failed: spans.iter().map(|span| span.failed).collect(),
        })
    };
    Ok(found.into_iter().filter_map(activity).collect())
}

/// The queues in the selection, sorted by name.
fn queues(engine: &Engine) -> Vec<QueueRef> {
    let mut known = engine.known_queues().unordered();
    known.retain(|queue| !queue.forgotten && queue.key.protocol != Protocol::Jobq);
    // Selected before they are copied, because there can be 100,000 queues.
    if known.len() > QUEUES_OFFERED {
        known.select_nth_unstable_by(QUEUES_OFFERED, |a, b| {
            let name = |key| (name_parts(key).flat_map(str::bytes), key.protocol);
            let ((a_name, a), (b_name, b)) = (name(&a.key), name(&b.key));
            a_name.cmp(b_name).then_with(|| a.cmp(&b))
        });
        known.truncate(QUEUES_OFFERED);
    }
    let mut queues: Vec<QueueRef> = known.iter().map(|queue| queue_ref(&queue.key)).collect();
    queues.sort_by_cached_key(|queue| (queue.label(), queue.protocol));
    queues
}

/// The parts of the displayed name.
fn name_parts(key: &QueueKey) -> impl Iterator<Item = &str> {
    let namespace = match key.protocol {
        Protocol::Lmstfy => [key.namespace.as_str(), "/"],
        Protocol::Qless | Protocol::Relay | Protocol::Jobq => ["", ""],
    };
    namespace.into_iter().chain([key.name.as_str()])
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
        waiting: sums.waiting(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::model::queue_ref::QueueRef;
    use crate::ui::urls;

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
