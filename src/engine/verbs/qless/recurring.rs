//! Recurring jobs: create, change, delete.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::cron::CronSchedule;
use crate::engine::model::job::{JobKey, QueueKey};
use crate::engine::model::recurring::Recurring;
use crate::engine::unit_of_work::spawn::run_now;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::lifecycle::generated_id;
use crate::engine::verbs::qless::tag;

/// The longest body of a recurring job in bytes. Each child copies it, in one transaction with others.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A recurring job to put.
#[derive(Clone, Debug, Default)]
pub struct Recur {
    /// Generated (32 hex digits) if `None`.
    pub id: Option<String>,
    pub body: String,
    pub klass: Option<String>,
    /// Must be positive. Not used with `cron`.
    pub interval_s: f64,
    /// Decides when children are due, instead of the interval.
    pub cron: Option<CronSchedule>,
    /// Seconds until the first child; with `cron`, until the time after which it runs.
    pub offset_s: f64,
    pub priority: f64,
    pub tags: Vec<String>,
    pub retries: i64,
    pub backlog: i64,
}

/// Changes to a recurring job. `None` leaves a field as it is.
#[derive(Clone, Debug, Default)]
pub struct RecurringChange {
    pub priority: Option<f64>,
    /// Also shifts the next child by the difference. Replaces a cron expression.
    pub interval_s: Option<f64>,
    /// Replaces the interval.
    pub cron: Option<CronSchedule>,
    pub retries: Option<i64>,
    pub backlog: Option<i64>,
    pub body: Option<String>,
    /// Empty for none.
    pub klass: Option<String>,
    pub queue: Option<QueueKey>,
    pub tag: Vec<String>,
    pub untag: Vec<String>,
}

/// The weight of a change, which returns the recurring job with a payload of up to 1 MiB.
const CHANGE_WEIGHT: usize = 128;

impl Engine {
    /// Puts recurring jobs into `queue`. Returns each job's ID.
    ///
    /// # Errors
    /// [`Error::TooMany`] queues.
    pub async fn recur(
        &self,
        queue: QueueKey,
        jobs: Vec<Recur>,
        now: Option<Time>,
    ) -> ItemResults<String> {
        let room = self.reserve_room([&queue])?;
        let need = |needs: &mut Needs, job: &Recur| {
            needs.recurring.extend(job.id.clone());
            needs.tags(&job.tags);
            needs.bytes += job.body.len();
            needs.searches += usize::from(job.cron.is_some());
            needs.adds_jobs = true;
        };
        let verb = move |work: &mut UnitOfWork, job: &Recur| recur(work, &queue, job);
        let writes = || self.apply_in_batches(jobs, now, need, verb);
        room.hold(writes).await
    }

    /// Changes a recurring job and returns it.
    pub async fn change_recurring(
        &self,
        id: &str,
        change: RecurringChange,
        now: Option<Time>,
    ) -> Result<Recurring> {
        let room = self.reserve_room(&change.queue)?;
        let id = id.to_owned();
        let mut needs = needs_of_recurring(&id);
        needs.bodies = true;
        needs.bytes = change.body.as_ref().map_or(0, String::len);
        needs.tags(&change.tag);
        needs.tags(&change.untag);
        let write = || {
            self.write(needs, now, CHANGE_WEIGHT, move |work| {
                change_recurring(work, &id, &change)
            })
        };
        room.hold(write).await
    }

    /// Pauses a recurring job, so that it creates no children, or resumes it without the runs that it has missed.
    /// Returns whether that changed anything.
    ///
    /// # Errors
    /// [`Error::NoSuchRecurring`].
    pub async fn pause_recurring(&self, id: &str, paused: bool) -> Result<bool> {
        let id = id.to_owned();
        let mut needs = needs_of_recurring(&id);
        needs.bodies = true;
        needs.searches = 1;
        self.write(needs, None, 1, move |work| {
            let mut recurring = find(work, &id)?;
            let is_changed = recurring.set_paused(paused, work.now);
            if is_changed {
                work.set_recurring(&id, Some(recurring));
            }
            Ok(is_changed)
        })
        .await
    }

    /// Creates a child of a recurring job now, in addition to those of its schedule. Returns the ID of the child.
    ///
    /// # Errors
    /// [`Error::NoSuchRecurring`]; [`Error::Busy`] if the IDs of the next children are in use.
    pub async fn run_recurring(&self, id: &str) -> Result<String> {
        let found = self.recurring(id).await?;
        let found = found.ok_or_else(|| Error::NoSuchRecurring { id: id.to_owned() })?;
        let mut needs = needs_of_recurring(id);
        needs.bodies = true;
        needs.adds_jobs = true;
        needs.bytes = found.body.len();
        needs.tags(&found.tags);
        let first = found.children_count + 1;
        let last = first.saturating_add(RUN_NOW_IDS);
        (first..=last).for_each(|n| needs.job(&JobKey::qless(format!("{id}-{n}"))));
        let id = id.to_owned();
        self.write(needs, None, 1, move |work| {
            let mut recurring = find(work, &id)?;
            let mut numbers = recurring.children_count + 1..=last;
            let is_free = |n: &i64| work.job(&JobKey::qless(format!("{id}-{n}"))).is_none();
            let number = numbers.find(is_free).ok_or(Error::Busy)?;
            let child = run_now(work, &mut recurring, number);
            let key = child.key.clone();
            work.insert(child);
            work.set_recurring(&id, Some(recurring));
            Ok(key.id)
        })
        .await
    }

    /// Deletes a recurring job, if it exists. Its children remain.
    pub async fn unrecur(&self, id: &str, now: Option<Time>) -> Result<()> {
        let id = id.to_owned();
        self.write(needs_of_recurring(&id), now, 1, move |work| {
            unrecur(work, &id);
            Ok(())
        })
        .await
    }
}

/// The largest offset of a recurring job with a cron expression: 100 years. A search for a run steps through the months in
/// between.
const CRON_OFFSET_MAX_S: f64 = 3_155_760_000.0;

/// The largest one back: 366 days. All runs since then are due.
const CRON_OFFSET_MIN_S: f64 = -31_622_400.0;

/// IDs of children that [`Engine::run_recurring`] loads in addition to the first one, because some may be in use.
const RUN_NOW_IDS: i64 = 20;

fn find(work: &UnitOfWork, id: &str) -> Result<Recurring> {
    let found = work.recurring(id).cloned();
    found.ok_or_else(|| Error::NoSuchRecurring { id: id.to_owned() })
}

fn needs_of_recurring(id: &str) -> Needs {
    Needs {
        recurring: vec![id.to_owned()],
        ..Needs::default()
    }
}

/// Creates or replaces a recurring job and returns its ID. A replaced one continues its numbering of children.
///
/// # Errors
/// [`Error::TooMany`] tags or bytes.
pub fn recur(work: &mut UnitOfWork, queue: &QueueKey, recur: &Recur) -> Result<String> {
    check_body(&recur.body)?;
    let tags = tag::of_new_job(&recur.tags)?;
    let queue = work.get_or_create_queue(queue);
    let id = recur.id.clone().unwrap_or_else(|| generated_id(work.now));
    let (seq, children_count, was_paused) = match work.recurring(&id) {
        Some(old) => (old.seq, old.children_count, old.is_paused()),
        None => (work.next_seq(), 0, false),
    };
    let first_at = match &recur.cron {
        Some(cron) => {
            let offset_s = recur.offset_s.clamp(CRON_OFFSET_MIN_S, CRON_OFFSET_MAX_S);
            cron.next(work.now.plus_seconds(offset_s))
        }
        None => work.now.plus_seconds(recur.offset_s),
    };
    let mut recurring = Recurring {
        seq,
        id: id.clone(),
        queue,
        next_at: first_at,
        interval: interval(recur.interval_s),
        cron: recur.cron.clone(),
        held_next: None,
        children_count,
        backlog: recur.backlog,
        priority: recur.priority,
        retries: recur.retries,
        klass: recur.klass.clone(),
        tags,
        body: recur.body.as_str().into(),
    };
    // Clients put their recurring jobs again when they start; that does not resume one that an operator has paused.
    recurring.set_paused(was_paused, work.now);
    work.set_recurring(&id, Some(recurring));
    Ok(id)
}

/// Checks the length of the children's payload.
///
/// # Errors
/// [`Error::TooMany`] bytes.
pub fn check_body(body: &str) -> Result<()> {
    match body.len() {
        0..=BODY_BYTES_MAX => Ok(()),
        _ => Err(Error::TooMany {
            what: "bytes of data in a recurring job",
            max: BODY_BYTES_MAX,
        }),
    }
}

/// Microseconds, at least one.
fn interval(seconds: f64) -> i64 {
    Time(0).plus_seconds(seconds).0.max(1)
}

/// Changes a recurring job and returns it.
///
/// # Errors
/// [`Error::NoSuchRecurring`]; [`Error::TooMany`] tags or bytes.
pub fn change_recurring(
    work: &mut UnitOfWork,
    id: &str,
    change: &RecurringChange,
) -> Result<Recurring> {
    let mut recurring = find(work, id)?;
    change.body.as_deref().map_or(Ok(()), check_body)?;
    let tags = tag::changed(&recurring.tags, &change.tag, &change.untag)?;
    recurring.priority = change.priority.unwrap_or(recurring.priority);
    recurring.retries = change.retries.unwrap_or(recurring.retries);
    recurring.backlog = change.backlog.unwrap_or(recurring.backlog);
    if let Some(body) = &change.body {
        recurring.body.clone_from(body);
    }
    if let Some(klass) = &change.klass {
        recurring.klass = Some(klass.clone()).filter(|klass| !klass.is_empty());
    }
    change_schedule(&mut recurring, change, work.now);
    if let Some(queue) = &change.queue {
        recurring.queue = work.get_or_create_queue(queue);
    }
    recurring.tags = tags;
    work.set_recurring(id, Some(recurring.clone()));
    Ok(recurring)
}

/// Changes the interval or the cron expression.
fn change_schedule(recurring: &mut Recurring, change: &RecurringChange, now: Time) {
    if let Some(cron) = &change.cron {
        if recurring.cron.as_ref() != Some(cron) {
            recurring.cron = Some(cron.clone());
            recurring.set_next(cron.next(now));
        }
    } else if let Some(seconds) = change.interval_s {
        let interval = interval(seconds);
        let next = recurring.held_next.unwrap_or(recurring.next_at);
        let shifted = match recurring.cron.take() {
            Some(_) => now.0.saturating_add(interval),
            None => next.0.saturating_add(interval - recurring.interval),
        };
        recurring.set_next(Time(shifted));
        recurring.interval = interval;
    }
}

/// Deletes a recurring job, if it exists. Its children remain.
pub fn unrecur(work: &mut UnitOfWork, id: &str) {
    work.set_recurring(id, None);
}
