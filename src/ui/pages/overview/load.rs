//! Loads the overview.

use std::collections::HashMap;

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{self, Engine, FailureGroup, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::failure::{GroupRow, MutedFailures};
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::Counts;
use crate::ui::pages::dead_letters::load;
use crate::ui::pages::overview::model::{FailureTotals, OverviewView};
use crate::ui::pages::statistics::load::load_recent;
use crate::ui::pages::workers::load::load_workers;
use crate::ui::present::queue_refs::queue_ref;
use crate::ui::present::{ListedQueues, group_row, listed_queues, queue_row, without_forgotten};

/// Maximum number of failure groups that the overview loads, and that alerts report.
const GROUPS_MAX: usize = 1_000;

/// Maximum number of queues with dead jobs on the overview.
const DEAD_NAMED: usize = 3;

pub async fn load_overview(engine: &Engine) -> Result<OverviewView> {
    let (queues, (groups, failures), workers, recent) = futures::try_join!(
        listed_queues(engine),
        load_largest_groups(engine),
        load_workers(engine),
        load_recent(engine)
    )?;
    let dead_queues = queues.iter().filter(|queue| queue.counts.dead > 0);
    let dead_queues: Vec<_> = dead_queues.collect();
    Ok(OverviewView {
        totals: totals(&queues),
        queues: without_forgotten(queues.iter().map(queue_row)),
        groups,
        failures: Some(FailureTotals {
            groups: failures.groups,
            unmuted_groups: failures.unmuted_groups,
            unmuted_jobs: failures.unmuted_jobs,
        }),
        workers,
        dead_letters: dead_queues.len(),
        dead: load::rows(engine, dead_queues, 0, DEAD_NAMED).await?,
        recent,
    })
}

/// The counts of each protocol that has queues.
fn totals(queues: &ListedQueues) -> Vec<(Protocol, Counts)> {
    let total = |protocol: Protocol| {
        let mut of_protocol = queues
            .iter()
            .filter(|queue| queue_ref(&queue.queue.key).protocol == protocol)
            .peekable();
        of_protocol.peek()?;
        Some((
            protocol,
            of_protocol
                .map(|queue| queue.counts)
                .fold(Counts::default(), Counts::plus),
        ))
    };
    Protocol::ALL.into_iter().filter_map(total).collect()
}

/// The failure groups with the most failed jobs, and their mutes, and the totals of all groups. Muted groups only where
/// the others leave room: they raise no alerts.
async fn load_largest_groups(engine: &Engine) -> Result<(Vec<GroupRow>, engine::FailureTotals)> {
    let found = engine.largest_failure_groups(GROUPS_MAX).await?;
    let (groups, totals) = &*found;
    Ok((with_mutes(engine, groups).await?, *totals))
}

/// These failure groups with their mutes.
pub async fn with_mutes(
    engine: &Engine,
    groups: impl IntoIterator<Item = &FailureGroup>,
) -> Result<Vec<GroupRow>> {
    let mut groups: Vec<GroupRow> = groups.into_iter().map(group_row).collect();
    let mutes = match groups.is_empty() {
        true => Vec::new(),
        false => engine.mutes().await?,
    };
    let mut by_name: HashMap<String, &mut GroupRow> = match mutes.is_empty() {
        true => HashMap::new(),
        false => groups.iter_mut().map(|it| (it.group.clone(), it)).collect(),
    };
    for mute in mutes {
        if let Some(group) = by_name.get_mut(&mute.group) {
            group.muted = Some(MutedFailures {
                reason: mute.reason,
                who: mute.who,
                until: mute.until.0,
            });
        }
    }
    Ok(groups)
}

/// The overview.
#[server]
pub async fn overview() -> Result<OverviewView, PageError> {
    read(Role::Viewer, async |context| {
        load_overview(&context.engine).await
    })
    .await
}
