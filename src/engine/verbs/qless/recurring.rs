//! Recurring jobs: create, change, delete.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::QueueKey;
use crate::engine::model::recurring::Recurring;
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
    /// Must be positive.
    pub interval_s: f64,
    /// Seconds until the first child.
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
    /// Also shifts the next child by the difference.
    pub interval_s: Option<f64>,
    pub retries: Option<i64>,
    pub backlog: Option<i64>,
    pub body: Option<String>,
    pub klass: Option<String>,
    pub queue: Option<QueueKey>,
    pub tag: Vec<String>,
    pub untag: Vec<String>,
}

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
        self.check_room([&queue])?;
        let need = |needs: &mut Needs, job: &Recur| {
            needs.recurring.extend(job.id.clone());
            needs.tags(&job.tags);
            needs.bytes += job.body.len();
            needs.adds_jobs = true;
        };
        self.each(jobs, now, need, move |work, job| recur(work, &queue, job))
            .await
    }

    /// Changes a recurring job and returns it.
    pub async fn change_recurring(
        &self,
        id: &str,
        change: RecurringChange,
        now: Option<Time>,
    ) -> Result<Recurring> {
        self.check_room(&change.queue)?;
        let id = id.to_owned();
        let mut needs = recurring(&id);
        needs.bodies = true;
        needs.bytes = change.body.as_ref().map_or(0, String::len);
        needs.tags(&change.tag);
        needs.tags(&change.untag);
        self.write(needs, now, 1, move |work| {
            change_recurring(work, &id, &change)
        })
        .await
    }

    /// Deletes a recurring job, if it exists. Its children remain.
    pub async fn unrecur(&self, id: &str, now: Option<Time>) -> Result<()> {
        let id = id.to_owned();
        self.write(recurring(&id), now, 1, move |work| {
            unrecur(work, &id);
            Ok(())
        })
        .await
    }
}

fn recurring(id: &str) -> Needs {
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
    let (seq, children_count) = match work.recurring(&id) {
        Some(old) => (old.seq, old.children_count),
        None => (work.next_seq(), 0),
    };
    let recurring = Recurring {
        seq,
        id: id.clone(),
        queue,
        next_at: work.now.plus_seconds(recur.offset_s),
        interval: interval(recur.interval_s),
        children_count,
        backlog: recur.backlog,
        priority: recur.priority,
        retries: recur.retries,
        klass: recur.klass.clone(),
        tags,
        body: recur.body.as_str().into(),
    };
    work.set_recurring(&id, Some(recurring));
    Ok(id)
}

fn check_body(body: &str) -> Result<()> {
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
    let found = work.recurring(id).cloned();
    let mut recurring = found.ok_or_else(|| Error::NoSuchRecurring { id: id.to_owned() })?;
    change.body.as_deref().map_or(Ok(()), check_body)?;
    let tags = tag::changed(&recurring.tags, &change.tag, &change.untag)?;
    recurring.priority = change.priority.unwrap_or(recurring.priority);
    recurring.retries = change.retries.unwrap_or(recurring.retries);
    recurring.backlog = change.backlog.unwrap_or(recurring.backlog);
    if let Some(body) = &change.body {
        recurring.body.clone_from(body);
    }
    if change.klass.is_some() {
        recurring.klass.clone_from(&change.klass);
    }
    if let Some(seconds) = change.interval_s {
        let interval = interval(seconds);
        let shifted = recurring
            .next_at
            .0
            .saturating_add(interval - recurring.interval);
        recurring.next_at = Time(shifted);
        recurring.interval = interval;
    }
    if let Some(queue) = &change.queue {
        recurring.queue = work.get_or_create_queue(queue);
    }
    recurring.tags = tags;
    work.set_recurring(id, Some(recurring.clone()));
    Ok(recurring)
}

/// Deletes a recurring job, if it exists. Its children remain.
pub fn unrecur(work: &mut UnitOfWork, id: &str) {
    work.set_recurring(id, None);
}
