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

/// The children that a transaction created in a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spawned {
    pub count: usize,
    /// The size of their bodies.
    pub bytes: usize,
    /// Whether others are due, which another transaction must create.
    pub has_more: bool,
}

/// A due recurring job, and the most children to create.
#[derive(Clone, Debug)]
pub struct Planned {
    pub due: Due,
    pub children: usize,
}

/// The IDs that the children might get.
fn ids_of_children(planned: &Planned) -> impl Iterator<Item = String> {
    let due = &planned.due;
    (1..=ids_tried(planned.children))
        .map(|n| format!("{}-{}", due.id, due.children_count.saturating_add(n)))
}

/// How many IDs to try for this many children, because some may be in use: by the children of an earlier recurring job
/// with the same ID, or by jobs of a client.
fn ids_tried(children: usize) -> i64 {
    let children = i64::try_from(children).unwrap_or(i64::MAX);
    children.saturating_mul(2).saturating_add(8)
}

/// Children that a transaction creates.
const CHILDREN_MAX: usize = 250;

/// Bytes of the children's bodies, tags and classes that a transaction creates; one child may exceed it.
const CHILDREN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of the children's tags, each of which is a row of its own; one child may exceed it.
const CHILDREN_TAG_BYTES_MAX: usize = 16 * 1024;

/// The largest catch-up limit of a recurring job with a cron expression; a larger one counts as this.
const CRON_BACKLOG_MAX: i64 = 1_000;

/// Searches for runs of cron expressions in a transaction; those of one recurring job may exceed it.
const SEARCHES_MAX: usize = 500;

/// Stepping through this time once, in microseconds, counts as one search: 10 days. Where the clocks change, the steps
/// can be seconds.
const DAYS_OF_SEARCH: i64 = 10 * 86_400 * 1_000_000;

/// The size of an empty list of tags.
const NO_TAGS_BYTES: usize = "[]".len();

/// Distributes the `wanted` jobs of each queue over its due recurring jobs, in the order in which they are due. None
/// gets more children than are due. Also returns the queues with more due children than one transaction creates.
/// `firsts`: the first queue of each claim.
pub fn planned(
    wanted: &[WantedJobs],
    firsts: &[QueueId],
    all: Vec<Due>,
    now: Time,
) -> (Vec<Planned>, Vec<QueueId>) {
    let mut left: HashMap<QueueId, usize> = wanted.iter().map(|it| (it.queue, it.count)).collect();
    let (mut planned, mut cut) = (Vec::new(), Vec::new());
    let (mut bytes_left, mut tag_bytes_left) = (CHILDREN_BYTES_MAX, CHILDREN_TAG_BYTES_MAX);
    let (mut children_left, mut searches_left) = (CHILDREN_MAX, SEARCHES_MAX);
    for due in in_turn(wanted, firsts, all, now) {
        // Its children are created in the order in which they are due.
        if cut.last() == Some(&due.queue) {
            continue;
        }
        let left = left.entry(due.queue).or_default();
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
        let fitting = fitting.min(children_left);
        // One more than fits shows that there are more.
        let max = (*left).min(fitting.saturating_add(1));
        if max == 0 {
            continue;
        }
        // Counting one more shows whether runs were missed that are not counted.
        let counted = match searches_left == 0 && due.cron.is_some() {
            true => 1,
            false => max.saturating_add(1),
        };
        let (missed, searched) = due.missed(now, counted);
        let searched = searched.max(now);
        let (wanted, searches) = (missed.min(max), searches(&due, missed, counted, searched));
        // The others will be skipped.
        let wanted = match (&due.cron, due.backlog) {
            (Some(_), 1..) => wanted.min(kept_runs(due.backlog)),
            _ => wanted,
        };
        let children = match searches_left > 0 || searches == 0 {
            true => wanted.min(fitting),
            false => 0,
        };
        children_left = children_left.saturating_sub(children);
        searches_left = searches_left.saturating_sub(searches);
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

/// The recurring jobs in the order in which they share what a transaction may search and create; the order within a
/// queue stays. If there are cron expressions and several claims, transactions at an odd time (in µs) start with the
/// first queue of one claim, which the time selects, and the others with the queues that need the fewest searches. So
/// no claim starves, and cheap queues do not wait for expensive ones.
fn in_turn(wanted: &[WantedJobs], firsts: &[QueueId], mut all: Vec<Due>, now: Time) -> Vec<Due> {
    if firsts.len() < 2 || all.iter().all(|due| due.cron.is_none()) {
        return all;
    }
    let turn = usize::try_from(now.0).unwrap_or_default();
    if turn % 2 == 1 {
        let first = firsts.get(turn / 2 % firsts.len().max(1));
        let place = all.iter().position(|due| Some(&due.queue) == first);
        all.rotate_left(place.unwrap_or_default());
        return all;
    }
    let costs = wanted.iter().map(|it| (it.queue, it.count));
    let mut costs: HashMap<QueueId, usize> = costs.collect();
    for due in &all {
        if let Some(cost) = costs.get_mut(&due.queue) {
            *cost = cost.saturating_add(searches(due, 1, 1, due.next_at));
        }
    }
    all.sort_by_key(|due| costs.get(&due.queue).copied());
    all
}

/// An upper bound of the cron searches needed to create `missed` children (counted up to `max`): two for each child,
/// one for each run kept by the catch-up limit ([`skip_missed`]), and three for every 10 days until `searched`, because
/// a search steps through the days, first to count the runs, then to skip missed ones, then to create the children.
fn searches(due: &Due, missed: usize, max: usize, searched: Time) -> usize {
    if due.cron.is_none() {
        return 0;
    }
    let kept = kept_runs(due.backlog);
    // If there are fewer than `max`, no more were missed.
    let skipped = if missed < max { kept.min(missed) } else { kept };
    let days = searched.0.saturating_sub(due.next_at.0) / DAYS_OF_SEARCH;
    let days = usize::try_from(days).unwrap_or_default();
    let passes = days.saturating_mul(3).saturating_add(2 * missed);
    passes.saturating_add(skipped)
}

/// How many missed runs of a cron expression are not skipped.
fn kept_runs(backlog: i64) -> usize {
    usize::try_from(backlog.min(CRON_BACKLOG_MAX)).unwrap_or_default()
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
    let last = recurring.children_count.saturating_add(ids_tried(count));
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
    let (interval, backlog) = (recurring.interval, recurring.backlog);
    recurring.next_at = recurring::first_kept(recurring.next_at, interval, backlog, now);
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

    /// How many children the claims want of each queue: expired leases come first.
    pub fn wanted_children(&self, wanted: &[WantedJobs]) -> Vec<WantedJobs> {
        let of_queue = |wanted: &WantedJobs| {
            let expired = self.expired_leases(wanted.queue);
            let free = self.free_capacity(wanted.queue);
            WantedJobs {
                count: wanted.count.min(free).saturating_sub(expired),
                ..*wanted
            }
        };
        wanted.iter().map(of_queue).collect()
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
        let mut left: HashMap<QueueId, usize> =
            wanted.iter().map(|it| (it.queue, it.count)).collect();
        for Planned { due, children } in planned {
            let Some(left) = left.get_mut(&due.queue) else {
                continue;
            };
            let count = (*children).min(*left);
            if count == 0 {
                continue;
            }
            let loaded = self.recurring.get_mut(&due.id);
            let Some(mut recurring) = loaded.and_then(|loaded| loaded.recurring.take()) else {
                continue;
            };
            let children = spawn(self, &mut recurring, &taken, count);
            *left -= children.len();
            if children.len() < count && recurring.next_at <= self.now {
                // All IDs that were tried are in use. The next transaction tries others, before children due later.
                self.note_more_children(recurring.queue);
                *left = 0;
            }
            self.note_spawned(recurring.queue, children.len(), recurring.body.len());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::model::cron::CronSchedule;

    fn due(id: &str, bytes: usize, cron: bool) -> Due {
        let every_second = 1_000_000;
        Due {
            backlog: 0,
            id: id.to_owned(),
            queue: 1,
            next_at: Time(60_000_000),
            interval: every_second,
            children_count: 0,
            bytes,
            tag_bytes: NO_TAGS_BYTES,
            cron: cron.then(|| CronSchedule {
                expression: "* * * * *".to_owned(),
                zone: "UTC".to_owned(),
            }),
        }
    }

    #[test]
    fn children_are_counted_up_to_the_number_wanted() {
        let at = |seconds: i64| Time(seconds * 1_000_000);
        for (cron, now, max, expected) in [
            (true, at(59), 0, 0),
            (true, at(59), 9, 0),
            (true, at(60), 0, 0),
            (true, at(60), 1, 1),
            (true, at(60), 9, 1),
            (true, at(179), 9, 2),
            (true, at(180), 2, 2),
            (true, at(180), 9, 3),
            (false, at(60), 0, 0),
            (false, at(62), 2, 2),
            (false, at(62), 9, 3),
        ] {
            let (missed, _) = due("r", 1, cron).missed(now, max);
            assert_eq!(missed, expected, "{cron} {now:?} {max}");
        }
        let unknown = Due {
            cron: Some(CronSchedule {
                expression: "of a newer version".to_owned(),
                zone: String::new(),
            }),
            ..due("r", 1, true)
        };
        assert_eq!(unknown.missed(at(600), 9).0, 1);
    }

    /// The IDs and numbers of children planned, and the queues that have more, if each queue wants `count`.
    fn plan(queues: i64, count: usize, all: Vec<Due>, now: Time) -> (Vec<String>, Vec<QueueId>) {
        let wanted = (1..=queues).map(|queue| WantedJobs {
            queue,
            count,
            limit: None,
        });
        let firsts: Vec<QueueId> = (1..=queues).collect();
        let (planned, cut) = planned(&wanted.collect::<Vec<_>>(), &firsts, all, now);
        let name = |it: &Planned| format!("{} {}", it.due.id, it.children);
        (planned.iter().map(name).collect(), cut)
    }

    #[test]
    fn planned_children_have_4_mib_and_the_others_come_later() {
        let all = vec![
            due("a", 1 << 20, true),
            due("b", 1 << 20, true),
            due("c", 1, true),
        ];
        // Ten children of each are due.
        let (planned, cut) = plan(1, 100, all, Time(600_000_000));
        assert_eq!(planned, ["a 4"]);
        assert_eq!(cut, [1]);
    }

    #[test]
    fn the_queues_of_a_transaction_share_250_children() {
        let other = Due {
            queue: 2,
            ..due("b", 1, false)
        };
        let all = vec![due("a", 1, false), other];
        let (planned, cut) = plan(2, 200, all, Time(1_000_000_000));
        assert_eq!((planned, cut), (names(&["a 200", "b 50"]), vec![2]));
    }

    /// To skip missed runs, each of the last 1,000 is searched.
    #[test]
    fn a_transaction_searches_500_runs_of_cron_expressions() {
        let skipping = |id: &str, queue: QueueId| Due {
            queue,
            backlog: 5_000,
            ..due(id, 1, true)
        };
        let other = |id: &str, queue: QueueId, cron: bool| Due {
            queue,
            ..due(id, 1, cron)
        };
        let all = || {
            vec![
                skipping("a", 1),
                other("b", 2, false),
                skipping("c", 3),
                other("d", 4, true),
            ]
        };
        // First those with few searches. Of a, 1,002 runs are searched.
        let (planned, cut) = plan(4, 1, all(), Time(1_000_000_000_000));
        assert_eq!((planned, cut), (names(&["b 1", "d 1", "a 1"]), vec![3]));
        // Other transactions begin with any queue: here with the third.
        let (planned, cut) = plan(4, 1, all(), Time(1_000_000_000_005));
        assert_eq!((planned, cut), (names(&["c 1", "b 1"]), vec![4, 1]));
        // Three runs were missed.
        let (planned, cut) = plan(4, 10, all(), Time(180_000_000));
        let each = names(&["b 10", "d 3", "a 3", "c 3"]);
        assert_eq!((planned, cut), (each, vec![]));
        // A search steps through the days between two runs.
        let rare = |id: &str| Due {
            next_at: Time(-140 * 365 * 86_400_000_000),
            ..due(id, 1, true)
        };
        let all = || vec![rare("a"), other("b", 2, true)];
        let (planned, cut) = plan(2, 1, all(), Time(1_000_000_000_001));
        assert_eq!((planned, cut), (names(&["a 1"]), vec![2]));
        // One recurring job may need more.
        let (planned, cut) = plan(1, 5_000, vec![skipping("a", 1)], Time(1_000_000_000_000));
        assert_eq!((planned, cut), (names(&["a 250"]), vec![1]));
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }
}
