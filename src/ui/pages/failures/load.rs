//! Loads the failure groups.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use leptos::prelude::*;

use crate::auth::Role;
use crate::budget::Budget;
use crate::engine::{
    Allowance, Engine, Evaluated, FailedJob, FailureTimes, Place, Position, QueueId, Result,
    TIMES_MAX, Time, page_of_newest,
};
use crate::search::{Fingerprint, MESSAGE_CHARS_MAX};
use crate::ui::components::basics::number_of;
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::paging::{Neighbors, PagePlace};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::{PAGE_ROWS, job};
use crate::ui::page_request::page_request;
use crate::ui::pages::failures::model::{FailingGroup, FailingView, FailuresView, MessageKind};
use crate::ui::pages::overview::load::load_groups;
use crate::ui::present::job_row;
use crate::ui::present::paging::{neighbors, place};
use crate::ui::present::queue_refs::queue_of;

/// Maximum number of failed jobs of a group that are counted by time.
pub const FAILURES_COUNTED_MAX: i64 = 10_000;

/// Characters of the example of a kind of message.
const EXAMPLE_CHARS: usize = 120;

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
) -> Result<FailingView, PageError> {
    read(Role::Viewer, async |context| {
        load_failure(&context.engine, &group, &range, &fingerprint, place(&page)).await
    })
    .await
}

const HOUR_US: i64 = 3_600_000_000;

/// The texts of the pages name this limit.
const _: () = assert!(TIMES_MAX as i64 == FAILURES_COUNTED_MAX);

/// Maximum number of groups with details, and of jobs per group whose messages are read.
const GROUPS_MAX: usize = 50;

const LISTED_MESSAGES: usize = 200;

/// Maximum number of newest jobs that the page of a group analyzes.
const GROUP_JOBS_MAX: usize = 10_000;

/// Maximum number of characters that a page fingerprints: enough for the messages of all analyzed jobs. Takes up to 1
/// s.
const FINGERPRINT_CHARS_MAX: u64 = (GROUP_JOBS_MAX * MESSAGE_CHARS_MAX) as u64;

/// Maximum size of the names and newest messages of groups that a filter is compared with, in bytes.
const FILTERED_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of kinds of messages, and of queues and workers, on the page of a group.
const KINDS_SHOWN: usize = 20;

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
    let mut rows = load_groups(engine).await?;
    let failed = rows.iter().map(|row| row.count).sum();
    rows.retain(|row| since.is_none_or(|since| row.last >= Some(since.0)));
    let (mut rows, unchecked) = filtered(rows, text, engine.allowance(FILTERED_BYTES_MAX)).await?;
    let more = rows.len().saturating_sub(GROUPS_MAX);
    rows.truncate(GROUPS_MAX);
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
            0 => engine.last_failure().await?.map(|at| at.0),
            _ => None,
        },
    })
}

/// The groups whose name or newest message contains the text, in any case, and how many were not compared with it.
async fn filtered(
    rows: Vec<GroupRow>,
    text: &str,
    mut allowance: Allowance,
) -> Result<(Vec<GroupRow>, usize)> {
    if text.is_empty() {
        return Ok((rows, 0));
    }
    let rows = Arc::new(rows);
    let evaluate = {
        let (rows, text) = (Arc::clone(&rows), text.to_lowercase());
        let holds = move |word: &str| word.to_lowercase().contains(&text);
        move |budget: &mut Budget| {
            let mut matches = Vec::with_capacity(rows.len());
            let mut spent = None;
            for row in rows.iter() {
                let message = row.message.as_deref().unwrap_or_default();
                if let Err(exceeded) = budget.spend(row.group.len() + message.len()) {
                    spent = Some(exceeded);
                    break;
                }
                matches.push(holds(&row.group) || holds(message));
            }
            Evaluated {
                value: matches,
                spent,
            }
        }
    };
    let matches = allowance.run(evaluate).await?.value;
    let unchecked = rows.len() - matches.len();
    let rows = Arc::unwrap_or_clone(rows).into_iter().zip(matches);
    let matching = rows.filter_map(|(row, is_match)| is_match.then_some(row));
    Ok((matching.collect(), unchecked))
}

/// Counts the failures after `seen`.
async fn count_new(engine: &Engine, groups: &mut [FailingGroup], seen: Option<i64>) -> Result<()> {
    let Some(seen) = seen else { return Ok(()) };
    let is_new = |group: &&mut FailingGroup| group.row.last > Some(seen);
    let mut groups: Vec<&mut FailingGroup> = groups.iter_mut().filter(is_new).collect();
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
) -> Result<Vec<FailingGroup>> {
    let names: Vec<&str> = rows.iter().map(|row| row.group.as_str()).collect();
    let from = Time(now.0.div_euclid(HOUR_US) * HOUR_US - 23 * HOUR_US);
    let day = engine.failure_times(&names, from, HOUR_US, 24).await?;
    let counted = match since {
        // One unbounded span.
        Some(since) => engine.failure_times(&names, since, i64::MAX, 1).await?,
        None => Vec::new(),
    };
    let first = since.unwrap_or(Time(i64::MIN));
    let newest = engine.failed_since(&names, first, LISTED_MESSAGES).await?;
    let mut queues = engine.failed_by_queue().await?;
    let mut allowance = engine.allowance(FINGERPRINT_CHARS_MAX);
    let mut groups = Vec::new();
    let mut of_each = day.into_iter().zip(newest).enumerate();
    for row in rows {
        let (index, (day, newest)) = of_each.next().unwrap_or_default();
        let (newest, prints) = fingerprints(newest, &mut allowance).await?;
        let queues = queues.remove(&row.group).unwrap_or_default();
        let in_range = |times: &FailureTimes| times.spans.iter().sum();
        groups.push(FailingGroup {
            count: counted.get(index).map_or(row.count, in_range),
            new: 0,
            day: day.spans,
            queues: named(engine, queues),
            analyzed: number_of(newest.len()),
            top_kind: message_kinds(&newest, &prints).into_iter().next(),
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
    place: Place,
) -> Result<FailingView> {
    let now = engine.now(None);
    let range = Range::named(name, now);
    let known = load_groups(engine).await?;
    let row = known.into_iter().find(|row| row.group == group);
    let times = engine
        .failure_times(&[group], range.from, range.width, range.spans)
        .await?;
    let times = times.into_iter().next().unwrap_or_default();
    let first = range.since().unwrap_or(Time(i64::MIN));
    let newest = engine.failed_since(&[group], first, GROUP_JOBS_MAX).await?;
    let newest = newest.into_iter().next().unwrap_or_default();
    let mut allowance = engine.allowance(FINGERPRINT_CHARS_MAX);
    let (newest, prints) = fingerprints(newest, &mut allowance).await?;
    let mut kinds = message_kinds(&newest, &prints);
    let selected_kind = find_kind(&kinds, fingerprint);
    let matching: Vec<&FailedJob> = newest
        .iter()
        .zip(&prints)
        .filter(|(_, print)| fingerprint.is_empty() || print.hash == fingerprint)
        .map(|(job, _)| job)
        .collect();
    let more_kinds = kinds.len().saturating_sub(KINDS_SHOWN);
    kinds.truncate(KINDS_SHOWN);
    let group = row.unwrap_or_else(|| empty(group));
    let (total, jobs, neighbors) = page(
        engine,
        &group,
        &matching,
        range.since().is_none() && selected_kind.is_none(),
        place,
    )
    .await?;
    let sample = match matching.first() {
        Some(job) => engine.failed_job(job.seq).await?,
        None => None,
    };
    Ok(FailingView {
        range: range.name.to_owned(),
        from: range.from.0,
        width: range.width,
        spans: times.spans,
        is_cut: times.is_cut,
        analyzed: number_of(newest.len()),
        message_kinds: kinds,
        more_kinds,
        selected_kind,
        queues: named(engine, counts(matching.iter().map(|job| job.queue))),
        workers: counts(
            matching
                .iter()
                .map(|job| job.worker.clone())
                .filter(|name| !name.is_empty()),
        )
        .into_iter()
        .take(NAMED_MAX)
        .collect(),
        sample: sample.map(|job| job_row(engine, &job, now)),
        count: total,
        jobs,
        neighbors,
        group,
    })
}

/// The kind of message with this fingerprint, without text if no message has it; `None` if the fingerprint is empty.
fn find_kind(kinds: &[MessageKind], fingerprint: &str) -> Option<MessageKind> {
    if fingerprint.is_empty() {
        return None;
    }
    let found = kinds.iter().find(|kind| kind.hash == fingerprint);
    Some(found.cloned().unwrap_or(MessageKind {
        hash: fingerprint.to_owned(),
        text: String::new(),
        example: String::new(),
        count: 0,
    }))
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
    matching: &[&FailedJob],
    all: bool,
    place: Place,
) -> Result<(i64, Vec<job::JobRow>, Neighbors)> {
    let now = engine.now(None);
    let (total, jobs, next_to) = if all {
        let (total, page) = engine.failed_page(&group.group, place, PAGE_ROWS).await?;
        let next_to = neighbors(&page);
        (total, page.rows, next_to)
    } else {
        let position = |job: &&FailedJob| Position::at(job.at.0, job.seq);
        let page = page_of_newest(matching, place, PAGE_ROWS, position);
        let seqs: Vec<i64> = page.rows.iter().map(|job| job.seq).collect();
        let jobs = engine.failed_jobs(&seqs).await?;
        (number_of(matching.len()), jobs, neighbors(&page))
    };
    let rows = jobs.iter().map(|job| job_row(engine, job, now));
    Ok((total, rows.collect(), next_to))
}

/// The fingerprints of messages, newest job first, until the allowance is used up, and the jobs that they belong to.
async fn fingerprints(
    jobs: Vec<FailedJob>,
    allowance: &mut Allowance,
) -> Result<(Vec<FailedJob>, Vec<Fingerprint>)> {
    let jobs = Arc::new(jobs);
    let evaluate = {
        let jobs = Arc::clone(&jobs);
        move |budget: &mut Budget| {
            let mut prints = Vec::with_capacity(jobs.len());
            for job in jobs.iter() {
                if let Err(spent) = budget.spend(job.message.len().min(MESSAGE_CHARS_MAX)) {
                    return Evaluated {
                        value: prints,
                        spent: Some(spent),
                    };
                }
                prints.push(Fingerprint::of(&job.message));
            }
            Evaluated {
                value: prints,
                spent: None,
            }
        }
    };
    let prints = allowance.run(evaluate).await?.value;
    let mut jobs = Arc::unwrap_or_clone(jobs);
    jobs.truncate(prints.len());
    Ok((jobs, prints))
}

/// The kinds of messages, most frequent first, then newest first.
fn message_kinds(newest: &[FailedJob], prints: &[Fingerprint]) -> Vec<MessageKind> {
    let mut kinds: HashMap<&Fingerprint, (i64, usize)> = HashMap::new();
    for (index, print) in prints.iter().enumerate() {
        let kind = kinds.entry(print).or_insert((0, index));
        kind.0 += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, (count, index))| (Reverse(*count), *index));
    let kind = |(kind, (count, index)): (&Fingerprint, (i64, usize))| MessageKind {
        hash: kind.hash.clone(),
        text: kind.text.clone(),
        example: newest
            .get(index)
            .map(|job| beginning(&job.message))
            .unwrap_or_default(),
        count,
    };
    kinds.into_iter().map(kind).collect()
}

/// The beginning of a message, on one line.
fn beginning(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().take(EXAMPLE_CHARS).collect();
    words.join(" ").chars().take(EXAMPLE_CHARS).collect()
}

/// How often each value occurs, most frequent first.
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
