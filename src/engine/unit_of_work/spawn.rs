//! Children of recurring jobs. They are created when a client claims or peeks, only as many as it requests, and as of
//! the time at which each was due.

use std::collections::{HashMap, HashSet};

use crate::engine::clock::Time;
use crate::engine::model::cron::ParsedCron;
use crate::engine::model::history::{EventKind, History};
use crate::engine::model::job::{Job, JobKey, QLESS_SCOPE, QueueId};
use crate::engine::model::recurring::{self, Due, Recurring};
use crate::engine::unit_of_work::load::qless_keys;
use crate::engine::unit_of_work::{UnitOfWork, WantedJobs};
use crate::store::{Statement, StatementResult, StoreError};

/// Children that a transaction created, and the bytes of their bodies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spawned {
    pub count: usize,
    pub bytes: usize,
}

/// A due recurring job, and the most children to create.
#[derive(Clone, Debug)]
pub struct Planned {
    pub due: Due,
    pub children: usize,
}

/// The IDs that the children might get: twice as many as children, because some may be in use.
fn ids_of_children(planned: &Planned) -> impl Iterator<Item = String> {
    let ids = i64::try_from(planned.children)
        .unwrap_or(i64::MAX)
        .saturating_mul(2);
    let due = &planned.due;
    (1..=ids).map(|n| format!("{}-{}", due.id, due.children_count.saturating_add(n)))
}

/// Bytes of the children's bodies, tags and classes that a transaction creates; one child may exceed it.
const CHILDREN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of the children's tags, each of which is a row of its own; one child may exceed it.
const CHILDREN_TAG_BYTES_MAX: usize = 16 * 1024;

/// The largest catch-up limit of a recurring job with a cron expression; a larger one counts as this.
const CRON_BACKLOG_MAX: i64 = 1_000;

/// The size of an empty list of tags.
const NO_TAGS_BYTES: usize = "[]".len();

/// Distributes the `wanted` jobs of each queue over its due recurring jobs, in order. None gets more children than are
/// due. Also returns the queues with more due children than one transaction creates.
pub fn planned(wanted: &[WantedJobs], all: Vec<Due>, now: Time) -> (Vec<Planned>, Vec<QueueId>) {
    let mut left: HashMap<QueueId, usize> = wanted.iter().map(|it| (it.queue, it.count)).collect();
    let (mut planned, mut cut) = (Vec::new(), Vec::new());
    let (mut bytes_left, mut tag_bytes_left) = (CHILDREN_BYTES_MAX, CHILDREN_TAG_BYTES_MAX);
    for due in all {
        let left = left.entry(due.queue).or_default();
        let wanted = due.missed(now, *left);
        let (bytes, tag_bytes) = (
            due.bytes.max(1),
            due.tag_bytes.saturating_sub(NO_TAGS_BYTES),
        );
        let fitting = match tag_bytes {
            0 => bytes_left.div_ceil(bytes),
            _ => bytes_left
                .div_ceil(bytes)
                .min(tag_bytes_left.div_ceil(tag_bytes)),
        };
        let children = wanted.min(fitting);
        bytes_left = bytes_left.saturating_sub(children.saturating_mul(bytes));
        tag_bytes_left = tag_bytes_left.saturating_sub(children.saturating_mul(tag_bytes));
        if children < wanted {
            cut.push(due.queue);
        }
        *left -= children;
        if children > 0 {
            planned.push(Planned { due, children });
        }
    }
    (planned, cut)
}

/// Creates up to `count` due children. Skips the IDs in `taken`, those of [`ids_of_children`] that are in use.
pub fn spawn(
    work: &mut UnitOfWork,
    recurring: &mut Recurring,
    taken: &HashSet<String>,
    count: usize,
) -> Vec<Job> {
    let now = work.now;
    skip_missed(recurring, now);
    let mut children = Vec::new();
    let ids = i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(2);
    let last = recurring.children_count.saturating_add(ids);
    while recurring.next_at <= now && children.len() < count && recurring.children_count < last {
        recurring.children_count += 1;
        let id = format!("{}-{}", recurring.id, recurring.children_count);
        if taken.contains(&id) {
            continue;
        }
        children.push(child(work, recurring, id));
        work.counters.put(recurring.queue, now);
        recurring.next_at = recurring.following(recurring.next_at);
    }
    children
}

/// If children were missed, skips all but the last `backlog`; 0 skips none.
fn skip_missed(recurring: &mut Recurring, now: Time) {
    if recurring.backlog <= 0 || recurring.next_at > now {
        return;
    }
    if let Some(cron) = &recurring.cron {
        let kept = cron
            .parsed()
            .and_then(|cron| kept_run(&cron, recurring, now));
        recurring.next_at = kept.unwrap_or_default().max(recurring.next_at);
        return;
    }
    let behind = now.0.saturating_sub(recurring.next_at.0);
    let backlog = recurring.backlog.saturating_mul(recurring.interval);
    if behind > backlog {
        let surplus = (behind - backlog + recurring.interval - 1) / recurring.interval;
        let skipped = surplus.saturating_mul(recurring.interval);
        recurring.next_at = Time(recurring.next_at.0.saturating_add(skipped));
    }
}

/// The first of the last `backlog` runs at or before `now`. If fewer runs were missed, the result is at or before
/// `next_at`. Each step back is a search that can take long, so the loop ends there.
fn kept_run(cron: &ParsedCron, recurring: &Recurring, now: Time) -> Option<Time> {
    let mut run = cron.last(now)?;
    for _ in 1..recurring.backlog.min(CRON_BACKLOG_MAX) {
        if run <= recurring.next_at {
            break;
        }
        run = cron.last(Time(run.0.saturating_sub(1)))?;
    }
    Some(run)
}

/// Creates a child that is due now, in addition to those of the schedule, with this number.
pub fn run_now(work: &mut UnitOfWork, recurring: &mut Recurring, number: i64) -> Job {
    recurring.children_count = number;
    let id = format!("{}-{number}", recurring.id);
    let due_now = Recurring {
        next_at: work.now,
        ..recurring.clone()
    };
    work.counters.put(recurring.queue, work.now);
    child(work, &due_now, id)
}

fn child(work: &mut UnitOfWork, recurring: &Recurring, id: String) -> Job {
    let due = recurring.next_at;
    let mut history = History::default();
    history.push(
        EventKind::Put,
        due,
        Some(&work.queue_name(recurring.queue)),
        None,
    );
    let key = JobKey {
        scope: QLESS_SCOPE,
        id,
    };
    Job {
        seq: work.next_seq(),
        queue: recurring.queue,
        priority: recurring.priority,
        retries: recurring.retries,
        remaining: recurring.retries,
        klass: recurring.klass.clone(),
        tags: recurring.tags.clone(),
        history,
        body: recurring.body.as_str().into(),
        spawned_from: Some(recurring.id.clone()),
        ..Job::new(key, due)
    }
}

impl UnitOfWork {
    /// The statements that read the planned recurring jobs, and which of their children's possible IDs are in use.
    pub fn spawn_statements(planned: &[Planned]) -> Vec<Statement> {
        let ids: Vec<_> = planned.iter().flat_map(ids_of_children).collect();
        let recurring: Vec<_> = planned.iter().map(|it| it.due.id.as_str()).collect();
        vec![
            recurring::load(&recurring),
            Statement::of_rows(IDS_IN_USE, &qless_keys(&ids)),
        ]
    }

    /// Takes the results of [`UnitOfWork::spawn_statements`]. Creates up to `wanted` due children in each queue, and
    /// adds them to the candidates.
    pub fn spawn(
        &mut self,
        wanted: &[WantedJobs],
        planned: &[Planned],
        answers: &[StatementResult],
    ) -> Result<(), StoreError> {
        let mut taken = HashSet::new();
        for row in answers.iter().flat_map(|answer| &answer.rows) {
            match row.columns() {
                recurring::COLUMNS => self.load_recurring(row)?,
                _ => drop(taken.insert(row.text(0)?)),
            }
        }
        let left = |WantedJobs { queue, count, .. }: &WantedJobs| {
            let expired = self.candidates.get(queue).map_or(0, |it| it.expired.len());
            let free = self.free_capacity(*queue);
            (*queue, (*count).min(free).saturating_sub(expired))
        };
        let mut left: HashMap<QueueId, usize> = wanted.iter().map(left).collect();
        for Planned { due, children } in planned {
            let Some(left) = left.get_mut(&due.queue) else {
                continue;
            };
            let loaded = self.recurring.get_mut(&due.id);
            let Some(mut recurring) = loaded.and_then(|loaded| loaded.recurring.take()) else {
                continue;
            };
            let children = spawn(self, &mut recurring, &taken, (*children).min(*left));
            *left -= children.len();
            self.spawned.count += children.len();
            self.spawned.bytes += children.len() * recurring.body.len();
            let keys: Vec<_> = children.iter().map(|child| child.key.clone()).collect();
            children.into_iter().for_each(|child| self.insert(child));
            self.add_waiting(recurring.queue, keys);
            self.children_created(recurring);
        }
        Ok(())
    }

    /// Stores a recurring job after it had children. Its queue is known to have recurring jobs already.
    fn children_created(&mut self, recurring: Recurring) {
        self.available_at(recurring.queue, recurring.next_at);
        if let Some(loaded) = self.recurring.get_mut(&recurring.id) {
            loaded.recurring = Some(recurring);
            loaded.changed = true;
        }
    }
}

/// The IDs that are in use, of these pairs of scope and ID.
const IDS_IN_USE: &str = "
SELECT j.id FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.int(0) AND j.id = k.text(1)";
