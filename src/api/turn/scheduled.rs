//! What is to be done later, whatever its queue.

use super::super::read::PAGE_JOBS;
use super::super::views::ScheduledView;
use super::{rows, there};
use crate::engine::{EffectiveState, Engine, Page, Result};

/// The scheduled jobs that are due next, from `offset` on.
pub async fn scheduled(engine: &Engine, offset: usize) -> Result<ScheduledView> {
    let page = Page {
        offset,
        limit: PAGE_JOBS,
    };
    let (queues, due, jobs) = futures::try_join!(
        there(engine),
        engine.count_due_by_hour(None),
        engine.list_jobs(EffectiveState::Scheduled, None, page, None)
    )?;
    Ok(ScheduledView {
        total: queues.iter().map(|queue| queue.counts.scheduled).sum(),
        by_hour: due.by_hour.to_vec(),
        until: due.until.map(|time| time.0),
        jobs: rows(engine, &jobs),
    })
}
