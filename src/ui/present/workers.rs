//! View models of the workers of a queue and the queues of a worker, and of the trend of a queue.

use crate::engine::{Counts, Engine, QueueKey, Result, RunCounts, WorkerResults};
use crate::ui::components::basics::number_of;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::queue_trend::QueueTrend;
use crate::ui::model::worker::{ActivityList, ActivityRow, RunResults, run_bars};
use crate::ui::present::queue_refs::queue_ref;

/// The workers of a queue, and its trend: `None` if it has no waiting jobs or is paused.
pub async fn activity(
    engine: &Engine,
    key: &QueueKey,
    queue: &QueueRow,
) -> Result<(ActivityList<String>, Option<QueueTrend>)> {
    let Some(found) = engine.queue_activity(key).await? else {
        return Ok((ActivityList::default(), None));
    };
    let Counts {
        waiting,
        running,
        stalled,
        ..
    } = queue.counts;
    let trend = (!queue.paused && waiting > 0).then(|| QueueTrend {
        unfinished: waiting + running + stalled,
        put: found.rates.put,
        ended: found.rates.ended,
    });
    Ok((present(found.workers, |name| name), trend))
}

/// The queues of a worker, its results in all of them, and the bars of its run times.
pub async fn queues_of_worker(
    engine: &Engine,
    worker: &str,
) -> Result<(ActivityList<QueueRef>, RunResults, Vec<i64>)> {
    let found = engine.queues_of_worker(worker).await?;
    let mut all = WorkerResults::default();
    for row in &found.listed {
        all.counts = add(all.counts, row.results.counts);
        all.runs.extend(&row.results.runs);
    }
    all.runs.sort_by(f32::total_cmp);
    let queues = present(found, |queue| queue_ref(&queue.key));
    Ok((queues, results(&all), run_bars(&all.runs)))
}

fn present<T, U>(found: crate::engine::ActivityList<T>, of: impl Fn(T) -> U) -> ActivityList<U> {
    let rows = found.listed.into_iter().map(|row| ActivityRow {
        of: of(row.subject),
        last_seen: row.last_seen.map(|at| at.0),
        running: row.running,
        stalled: row.stalled,
        results: results(&row.results),
    });
    ActivityList {
        listed: rows.collect(),
        more: number_of(found.more),
        since: found.since.0,
        is_partial: found.is_partial,
    }
}

fn add(a: RunCounts, b: RunCounts) -> RunCounts {
    RunCounts {
        completed: a.completed + b.completed,
        failed: a.failed + b.failed,
        retried: a.retried + b.retried,
        lost: a.lost + b.lost,
    }
}

fn results(found: &WorkerResults) -> RunResults {
    let counts = found.counts;
    // The shortest run time that this many percent of the runs do not exceed.
    let quantile = |percent: usize| {
        let rank = (found.runs.len() * percent).div_ceil(100).saturating_sub(1);
        found.runs.get(rank).copied().map(f64::from)
    };
    RunResults {
        completed: counts.completed,
        failed: counts.failed,
        retried: counts.retried,
        lost: counts.lost,
        run_p50: quantile(50),
        run_p95: quantile(95),
        run_longest: quantile(100),
    }
}
