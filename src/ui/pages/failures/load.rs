//! Loads the failure groups.

mod messages;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use leptos::prelude::*;

use crate::auth::Role;
use crate::blocking::block_in_place_if_many;
use crate::budget::Budget;
use crate::engine::{
    Allowance, Engine, Evaluated, FailureGroup, FailureTimes, PageStart, Position, QueueId, Result,
    TIMES_MAX, Time, page_of_newest,
};
use crate::ui::components::basics::number_of;
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::paging::{Neighbors, PagePlace};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::{PAGE_ROWS, job};
use crate::ui::page_request::page_request;
use crate::ui::pages::failures::load::messages::AnalyzedJob;
use crate::ui::pages::failures::model::{FailureGroupRow, FailureGroupView, FailuresView};
use crate::ui::pages::overview::load::with_mutes;
use crate::ui::present::job_row;
use crate::ui::present::paging::{neighbors, place};
use crate::ui::present::queue_refs::queue_of;

/// Maximum number of failed jobs of a group that are counted by time.
pub const FAILURES_COUNTED_MAX: i64 = 10_000;

/// The failure groups whose name or newest message contains `text`, with failures in a range (`1h`, `24h`, `7d`,
/// otherwise all).
#[server]
pub async fn failures(range: String, text: String) -> Result<FailuresView, PageError> {
    read(Role::Viewer, async |context| {
        let seen = page_request().failures_seen;
        load_failures(&context.engine, &range, &text, seen).await
    })
    .await
}

/// One failure group, and a page of its jobs that failed in a range. A non-empty fingerprint selects
/// the jobs with that kind of message.
#[server]
pub async fn failure(
    group: String,
    range: String,
    fingerprint: String,
    #[server(default)] page: PagePlace,
) -> Result<FailureGroupView, PageError> {
    read(Role::Viewer, async |context| {
        load_failure(&context.engine, &group, &range, &fingerprint, place(&page)).await
    })
    .await
}

const HOUR_US: i64 = 3_600_000_000;

/// The texts of the pages name this limit.
const _: () = assert!(TIMES_MAX as i64 == FAILURES_COUNTED_MAX);

/// Maximum number of groups with details.
const GROUPS_MAX: usize = 50;

/// Maximum number of jobs per group whose messages are analyzed for the list of groups.
const ANALYZED_PER_GROUP_MAX: usize = 200;

/// Maximum size of the names and newest messages of groups that a filter is compared with, in bytes.
const FILTERED_BYTES_MAX: u64 = 16 << 20;

/// Groups whose messages are in memory at the same time.
const FILTERED_AT_ONCE: usize = 500;

/// Maximum number of kinds of messages on the page of a group.
const KINDS_SHOWN: usize = 20;

/// Maximum number of queues, and of workers, on the page of a group.
const NAMED_MAX: usize = 10;

/// The name of the range without a start.
pub const ALL: &str = "all";

/// A range: name in addresses, label, hours in the chart, and number of spans in the chart.
type NamedRange = (&'static str, &'static str, i64, usize);

const ALL_RANGE: NamedRange = (ALL, "All", 24 * 30, 30);

/// The ranges that the pages offer.
pub const RANGES: [NamedRange; 4] = [
    ("1h", "1 hour", 1, 60),
    ("24h", "24 hours", 24, 24),
    ("7d", "7 days", 168, 42),
    ALL_RANGE,
];

/// A range that ends now.
struct Range {
    name: &'static str,
    /// The start of the chart.
    from: Time,
    /// The length of a span in microseconds, and the number of spans.
    width: i64,
    spans: usize,
}

impl Range {
    /// The range with this name, otherwise all.
    fn named(name: &str, now: Time) -> Range {
        let found = RANGES.into_iter().find(|(range, ..)| *range == name);
        let (name, _, hours, spans) = found.unwrap_or(ALL_RANGE);
        let width = hours * HOUR_US / spans as i64;
        Range {
            name,
            from: Time(now.0.div_euclid(width) * width - width * (spans as i64 - 1)),
            width,
            spans,
        }
    }

    /// The start of the range; `None` for all.
    fn since(&self) -> Option<Time> {
        (self.name != ALL).then_some(self.from)
    }
}

/// The failure groups whose name or newest message contains a text, and in which a job failed in the range. Failures
/// after `seen` are new.
pub async fn load_failures(
    engine: &Engine,
    name: &str,
    text: &str,
    seen: Option<i64>,
) -> Result<FailuresView> {
    let now = engine.now(None);
    let range = Range::named(name, now);
    let since = range.since();
    let all = engine.failure_groups().await?;
    let failed = all.iter().map(|group| group.count).sum();
    let in_range = block_in_place_if_many(all.len(), || most_failed_since(&all, since));
    let (matching, unchecked) = filtered(engine, &all, in_range, text).await?;
    let more = matching.len().saturating_sub(GROUPS_MAX);
    let shown = matching.iter().take(GROUPS_MAX);
    let mut rows = with_mutes(engine, shown.filter_map(|index| all.get(*index))).await?;
    drop(all);
    let names: Vec<&str> = rows.iter().map(|row| row.group.as_str()).collect();
    let mut messages = engine.newest_messages(&names).await?;
    for row in &mut rows {
        row.message = messages.remove(&row.group);
    }
    let mut groups = load_details(engine, rows, since, now).await?;
    count_new(engine, &mut groups, seen).await?;
    groups.sort_by(|a, b| {
        let order = b.count.cmp(&a.count);
        order.then_with(|| a.row.group.cmp(&b.row.group))
    });
    Ok(FailuresView {
        range: range.name.to_owned(),
        seen,
        new: groups.iter().map(|group| group.new).sum(),
        groups,
        more,
        unchecked,
        failed,
        last: match failed {
            // The page is useful without it.
            0 => engine.last_failure().await.ok().flatten().map(|at| at.0),
            _ => None,
        },
    })
}

/// The indexes of the groups in which a job failed at `since` or later, most jobs first.
fn most_failed_since(groups: &[FailureGroup], since: Option<Time>) -> Vec<usize> {
    let mut all: Vec<_> = groups.iter().enumerate().collect();
    all.retain(|(_, group)| since.is_none_or(|since| group.last >= Some(since)));
    all.sort_by_key(|(_, group)| (Reverse(group.count), &group.group));
    all.into_iter().map(|(index, _)| index).collect()
}

/// Those of the groups with these indexes whose name or newest message contains the text, in any case, and how many were
/// not compared with it.
async fn filtered(
    engine: &Engine,
    groups: &[FailureGroup],
    indexes: Vec<usize>,
    text: &str,
) -> Result<(Vec<usize>, usize)> {
    if text.is_empty() {
        return Ok((indexes, 0));
    }
    let text: Arc<str> = text.to_lowercase().into();
    let mut allowance = engine.allowance(FILTERED_BYTES_MAX);
    let (mut matching, mut compared) = (Vec::new(), 0);
    for some in indexes.chunks(FILTERED_AT_ONCE) {
        let names = some.iter().filter_map(|index| groups.get(*index));
        let names: Vec<&str> = names.map(|group| group.group.as_str()).collect();
        let mut messages = engine.newest_messages(&names).await?;
        let texts = names.iter().map(|name| {
            let message = messages.remove(*name);
            ((*name).to_owned(), message.unwrap_or_default())
        });
        let matches = matches(texts.collect(), &text, &mut allowance).await?;
        compared += matches.len();
        let is_last = matches.len() < some.len();
        let with_result = some.iter().zip(matches);
        matching.extend(with_result.filter_map(|(index, is_match)| is_match.then_some(*index)));
        if is_last {
            break;
        }
    }
    Ok((matching, indexes.len() - compared))
}

/// Whether each of these names or its message contains the text, which is in lower case; fewer results if the allowance
/// is used up.
async fn matches(
    all: Vec<(String, String)>,
    text: &Arc<str>,
    allowance: &mut Allowance,
) -> Result<Vec<bool>> {
    let text = Arc::clone(text);
    let holds = move |word: &str| word.to_lowercase().contains(&*text);
    let evaluate = move |budget: &mut Budget| {
        let mut matches = Vec::with_capacity(all.len());
        let mut exceeded = None;
        for (name, message) in &all {
            if let Err(limit) = budget.spend(name.len() + message.len()) {
                exceeded = Some(limit);
                break;
            }
            matches.push(holds(name) || holds(message));
        }
        Evaluated {
            value: matches,
            exceeded,
        }
    };
    Ok(allowance.run(evaluate).await?.value)
}

/// Counts the failures after `seen`.
async fn count_new(
    engine: &Engine,
    groups: &mut [FailureGroupRow],
    seen: Option<i64>,
) -> Result<()> {
    let Some(seen) = seen else { return Ok(()) };
    let is_new = |group: &&mut FailureGroupRow| group.row.last > Some(seen);
    let mut groups: Vec<&mut FailureGroupRow> = groups.iter_mut().filter(is_new).collect();
    let names: Vec<String> = groups.iter().map(|group| group.row.group.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() {
        return Ok(());
    }
    let from = Time(seen.saturating_add(1));
    let counted = engine.failure_times(&names, from, i64::MAX, 1).await?;
    for (group, times) in groups.iter_mut().zip(counted) {
        group.new = times.spans.iter().sum();
    }
    Ok(())
}

async fn load_details(
    engine: &Engine,
    rows: Vec<GroupRow>,
    since: Option<Time>,
    now: Time,
) -> Result<Vec<FailureGroupRow>> {
    let names: Vec<&str> = rows.iter().map(|row| row.group.as_str()).collect();
    let from = Time(now.0.div_euclid(HOUR_US) * HOUR_US - 23 * HOUR_US);
    let day = engine.failure_times(&names, from, HOUR_US, 24).await?;
    let counted = match since {
        // One unbounded span.
        Some(since) => engine.failure_times(&names, since, i64::MAX, 1).await?,
        None => Vec::new(),
    };
    let first = since.unwrap_or(Time(i64::MIN));
    let mut newest = messages::top_message_kinds(engine, &names, first, ANALYZED_PER_GROUP_MAX)
        .await?
        .into_iter();
    let mut queues = engine.failed_by_queue(&names).await?;
    let mut groups = Vec::new();
    let mut of_each = day.into_iter().enumerate();
    for row in rows {
        let (index, day) = of_each.next().unwrap_or_default();
        let (analyzed, top_kind) = newest.next().unwrap_or_default();
        let queues = queues.remove(&row.group).unwrap_or_default();
        let in_range = |times: &FailureTimes| times.spans.iter().sum();
        groups.push(FailureGroupRow {
            count: counted.get(index).map_or(row.count, in_range),
            new: 0,
            day: day.spans,
            queues: named(engine, queues),
            analyzed: number_of(analyzed),
            top_kind,
            row,
        });
    }
    Ok(groups)
}

/// One failure group, filtered by fingerprint unless it is empty. A group without failed jobs is empty.
pub async fn load_failure(
    engine: &Engine,
    group: &str,
    name: &str,
    fingerprint: &str,
    place: PageStart,
) -> Result<FailureGroupView> {
    let now = engine.now(None);
    let range = Range::named(name, now);
    let known = engine.failure_group(group).await?;
    let row = with_mutes(engine, &known).await?.pop();
    let times = engine
        .failure_times(&[group], range.from, range.width, range.spans)
        .await?;
    let times = times.into_iter().next().unwrap_or_default();
    let first = range.since().unwrap_or(Time(i64::MIN));
    let newest = messages::analyze_group(engine, group, first).await?;
    let kinds = newest.kinds(engine, KINDS_SHOWN, fingerprint).await?;
    let matching = newest.matching(fingerprint);
    let group = row.unwrap_or_else(|| empty(group));
    let (total, jobs, neighbors) = page(
        engine,
        &group,
        &matching,
        range.since().is_none() && kinds.selected.is_none(),
        place,
    )
    .await?;
    let sample = match matching.first() {
        Some(job) => engine.failed_job(job.seq).await?,
        None => None,
    };
    Ok(FailureGroupView {
        range: range.name.to_owned(),
        from: range.from.0,
        width: range.width,
        spans: times.spans,
        is_cut: times.is_cut,
        analyzed: number_of(newest.jobs.len()),
        message_kinds: kinds.listed,
        more_kinds: kinds.others,
        selected_kind: kinds.selected,
        queues: named(engine, counts(matching.iter().map(|job| job.queue))),
        workers: newest.workers(&matching, NAMED_MAX),
        sample: sample.map(|job| job_row(engine, &job, now)),
        count: total,
        jobs,
        neighbors,
        group,
    })
}

/// A group without failed jobs.
fn empty(group: &str) -> GroupRow {
    GroupRow {
        group: group.to_owned(),
        count: 0,
        first: None,
        last: None,
        message: None,
        muted: None,
    }
}

/// The number of matching jobs, a page of them, and its neighbors. Without a filter, the index of the group finds them.
async fn page(
    engine: &Engine,
    group: &GroupRow,
    matching: &[&AnalyzedJob],
    all: bool,
    place: PageStart,
) -> Result<(i64, Vec<job::JobRow>, Neighbors)> {
    let now = engine.now(None);
    let (total, jobs, next_to) = if all {
        let (total, page) = engine.failed_page(&group.group, place, PAGE_ROWS).await?;
        let next_to = neighbors(&page);
        (total, page.rows, next_to)
    } else {
        let position = |job: &&AnalyzedJob| Position::at(job.at.0, job.seq);
        let page = page_of_newest(matching, place, PAGE_ROWS, position);
        let seqs: Vec<i64> = page.rows.iter().map(|job| job.seq).collect();
        let jobs = engine.failed_jobs(&seqs).await?;
        (number_of(matching.len()), jobs, neighbors(&page))
    };
    let rows = jobs.iter().map(|job| job_row(engine, job, now));
    Ok((total, rows.collect(), next_to))
}

/// How many times each value occurs, most frequent first.
fn counts<T: Eq + Hash + Ord + Clone>(all: impl Iterator<Item = T>) -> Vec<(T, i64)> {
    let mut counts: HashMap<T, i64> = HashMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    let mut counts: Vec<(T, i64)> = counts.into_iter().collect();
    counts.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
    counts
}

fn named(engine: &Engine, mut queues: Vec<(QueueId, i64)>) -> Vec<(QueueRef, i64)> {
    queues.sort_by_key(|(_, n)| Reverse(*n));
    let shown = queues.into_iter().take(NAMED_MAX);
    shown
        .map(|(queue, n)| (queue_of(engine, queue), n))
        .collect()
}

#[cfg(test)]
mod tests;
