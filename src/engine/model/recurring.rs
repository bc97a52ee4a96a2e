//! Recurring jobs: each makes a job, its child, at every interval. Children are made when somebody asks
//! for work, and only as many as are wanted; what was due earlier is put as of the moment when it was due.

use std::collections::{HashMap, HashSet};

use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::{History, What};
use crate::engine::model::job::{
    Job, JobKey, NAME_BYTES_MAX, QLESS_SCOPE, QueueId, QueueKey, State,
};
use crate::engine::queries::queues::Page;
use crate::engine::unit_of_work::Work;
use crate::engine::verbs::qless::put::made_up_id;
use crate::engine::verbs::qless::tag;
use crate::store::{Row, Statement, StoreError};

/// The longest id of a recurring job in bytes: its children add a hyphen and a number.
pub const RECURRING_ID_BYTES_MAX: usize = NAME_BYTES_MAX - 20;

/// A job that is made again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurring {
    /// Order of insertion.
    pub seq: i64,
    pub id: String,
    pub queue: QueueId,
    /// When the next child is due.
    pub next_at: Time,
    /// Microseconds from one child to the next; at least 1.
    pub interval: i64,
    /// Children so far; the next one is `<id>-<made + 1>`.
    pub made: i64,
    /// How many missed children are made up for after a silence; 0: all.
    pub backlog: i64,
    /// What children get.
    pub priority: f64,
    pub retries: i64,
    pub klass: Option<String>,
    pub tags: Vec<String>,
    pub body: String,
}

impl Recurring {
    /// Seconds from one child to the next.
    pub fn interval_s(&self) -> f64 {
        Time(self.interval).seconds()
    }
}

/// A recurring job to be put; what is `None` has its default.
#[derive(Clone, Debug, Default)]
pub struct Recur {
    /// Made up (32 hex digits) if there is none.
    pub id: Option<String>,
    pub body: String,
    pub klass: Option<String>,
    /// More than 0.
    pub interval_s: f64,
    /// Seconds until the first child.
    pub offset_s: f64,
    pub priority: f64,
    pub tags: Vec<String>,
    pub retries: i64,
    pub backlog: i64,
}

/// What is to become of a recurring job; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub priority: Option<f64>,
    /// The next child is due sooner or later by the difference.
    pub interval_s: Option<f64>,
    pub retries: Option<i64>,
    pub backlog: Option<i64>,
    pub body: Option<String>,
    pub klass: Option<String>,
    pub queue: Option<QueueKey>,
    pub tag: Vec<String>,
    pub untag: Vec<String>,
}

/// Puts a recurring job, or puts it anew; then it goes on to number its children. Returns its id.
pub fn recur(work: &mut Work, queue: &QueueKey, recur: &Recur) -> Result<String> {
    let queue = work.queue_for(queue);
    let id = recur.id.clone().unwrap_or_else(|| made_up_id(work.now));
    let (seq, made) = match work.recurring(&id) {
        Some(old) => (old.seq, old.made),
        None => (work.next_seq(), 0),
    };
    let mut tags = Vec::new();
    tag::add(&mut tags, &recur.tags);
    let recurring = Recurring {
        seq,
        id: id.clone(),
        queue,
        next_at: work.now.plus_seconds(recur.offset_s),
        interval: interval(recur.interval_s),
        made,
        backlog: recur.backlog,
        priority: recur.priority,
        retries: recur.retries,
        klass: recur.klass.clone(),
        tags,
        body: recur.body.clone(),
    };
    work.set_recurring(&id, Some(recurring));
    Ok(id)
}

/// Microseconds, at least one.
fn interval(seconds: f64) -> i64 {
    Time(0).plus_seconds(seconds).0.max(1)
}

/// Changes a recurring job. Returns it.
///
/// # Errors
/// [`Error::NoSuchRecurring`].
pub fn change(work: &mut Work, id: &str, change: &Change) -> Result<Recurring> {
    let found = work.recurring(id).cloned();
    let mut recurring = found.ok_or_else(|| Error::NoSuchRecurring { id: id.to_owned() })?;
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
        recurring.queue = work.queue_for(queue);
    }
    tag::add(&mut recurring.tags, &change.tag);
    tag::remove(&mut recurring.tags, &change.untag);
    work.set_recurring(id, Some(recurring.clone()));
    Ok(recurring)
}

/// Ends a recurring job, there or not; its children stay.
pub fn unrecur(work: &mut Work, id: &str) {
    work.set_recurring(id, None);
}

/// The ids that up to `count` children might get; as many again, for some may be taken.
pub fn ids_of_children(due: &Due) -> impl Iterator<Item = String> {
    let ahead = i64::try_from(due.children)
        .unwrap_or(i64::MAX)
        .saturating_mul(2);
    let recurring = &due.recurring;
    (1..=ahead).map(|n| format!("{}-{}", recurring.id, recurring.made + n))
}

/// A recurring job that is due, and how many children it is to have at most.
#[derive(Clone, Debug)]
pub struct Due {
    pub recurring: Recurring,
    pub children: usize,
}

/// Which of the recurring jobs that are due get how many children when `wanted` jobs are wanted in each queue: in order,
/// no more than are due, and together no more than are wanted.
pub fn planned(wanted: &[(QueueId, usize)], due: Vec<Recurring>, now: Time) -> Vec<Due> {
    let mut left: HashMap<QueueId, usize> = wanted.iter().copied().collect();
    let mut planned = Vec::new();
    for recurring in due {
        let behind = now.0.saturating_sub(recurring.next_at.0);
        let missed = usize::try_from(behind / recurring.interval.max(1)).unwrap_or(usize::MAX);
        let left = left.entry(recurring.queue).or_default();
        let children = missed.saturating_add(1).min(*left);
        *left -= children;
        if children > 0 {
            planned.push(Due {
                recurring,
                children,
            });
        }
    }
    planned
}

/// Makes up to `count` children that are due. `taken` are those of [`ids_of_children`] that some job has: they
/// are passed over.
pub fn spawn(
    work: &mut Work,
    recurring: &mut Recurring,
    taken: &HashSet<String>,
    count: usize,
) -> Vec<Job> {
    let now = work.now;
    skip_missed(recurring, now);
    let mut children = Vec::new();
    let last = recurring.made + i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(2);
    while recurring.next_at <= now && children.len() < count && recurring.made < last {
        recurring.made += 1;
        let id = format!("{}-{}", recurring.id, recurring.made);
        if taken.contains(&id) {
            continue;
        }
        children.push(child(work, recurring, id));
        work.tally.put(recurring.queue, now);
        recurring.next_at = Time(recurring.next_at.0.saturating_add(recurring.interval));
    }
    children
}

/// After a silence: of the children that were missed, only the last `backlog` are made.
fn skip_missed(recurring: &mut Recurring, now: Time) {
    if recurring.backlog <= 0 || recurring.next_at > now {
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

fn child(work: &mut Work, recurring: &Recurring, id: String) -> Job {
    let due = recurring.next_at;
    let mut history = History::default();
    history.push(
        What::Put,
        due,
        Some(&work.queue_name(recurring.queue)),
        None,
    );
    Job {
        seq: work.next_seq(),
        key: JobKey {
            scope: QLESS_SCOPE,
            id,
        },
        queue: recurring.queue,
        state: State::Waiting,
        priority: recurring.priority,
        ready_at: due,
        since: due,
        lease: None,
        retries: recurring.retries,
        remaining: recurring.retries,
        klass: recurring.klass.clone(),
        tags: recurring.tags.clone(),
        history,
        failure: None,
        body: recurring.body.clone(),
        created_at: due,
        spawned_from: Some(recurring.id.clone()),
        expires_at: None,
        attributes: None,
        timeout_s: None,
        work_state: None,
        updated_at: None,
        dependencies: Vec::new(),
        dependents: Vec::new(),
    }
}

impl Engine {
    /// The recurring job; `None` if it is not there.
    pub async fn recurring(&self, id: &str) -> Result<Option<Recurring>> {
        self.freshen().await?;
        let statement = Statement::of_rows(LOAD, &[id]);
        let rows = self.readers().rows(statement).await?;
        rows.first().map(|row| Ok(recurring(row)?.0)).transpose()
    }

    /// Recurring jobs of one queue, or of all, by when their next child is due.
    pub async fn recurring_in(
        &self,
        queue: Option<&QueueKey>,
        page: Page,
    ) -> Result<Vec<Recurring>> {
        self.freshen().await?;
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        let statement = match queue {
            None => Statement::new(ALL, [limit.into(), offset.into()]),
            Some(key) => match self.known_queues().get(key) {
                None => return Ok(Vec::new()),
                Some(queue) => Statement::new(IN, [limit.into(), offset.into(), queue.id.into()]),
            },
        };
        let rows = self.readers().rows(statement).await?;
        rows.iter().map(|row| Ok(recurring(row)?.0)).collect()
    }

    /// Whether a child of the queue is due.
    pub(in crate::engine) async fn child_is_due(
        &self,
        queue: &QueueKey,
        now: Time,
    ) -> Result<bool> {
        self.freshen().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(false);
        };
        let statement = due(queue.id, now, 1);
        Ok(!self.readers().rows(statement).await?.is_empty())
    }
}

/// A recurring job and the version of its row.
pub fn recurring(row: &Row) -> Result<(Recurring, i64), StoreError> {
    let recurring = Recurring {
        id: row.text(0)?,
        seq: row.int(1)?,
        queue: row.int(2)?,
        next_at: Time(row.int(3)?),
        interval: row.int(4)?,
        made: row.int(5)?,
        backlog: row.int(6)?,
        priority: row.real(7)?,
        retries: row.int(8)?,
        klass: row.text_or_null(9)?,
        tags: serde_json::from_str(&row.text(10)?)
            .map_err(|_| StoreError::Corrupt("tags that are no list"))?,
        body: row.text(11)?,
    };
    Ok((recurring, row.int(12)?))
}

/// How many columns a recurring job has; a job has more.
pub const COLUMNS: usize = 13;

/// A recurring job as a flat JSON array, with the version that it is to have.
struct Values<'a>(&'a Recurring, i64);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Values(recurring, version) = self;
        let mut row = serializer.serialize_seq(Some(COLUMNS))?;
        row.serialize_element(&recurring.id)?; // 0
        row.serialize_element(&recurring.seq)?;
        row.serialize_element(&recurring.queue)?;
        row.serialize_element(&recurring.next_at)?;
        row.serialize_element(&recurring.interval)?;
        row.serialize_element(&recurring.made)?; // 5
        row.serialize_element(&recurring.backlog)?;
        row.serialize_element(&recurring.priority)?;
        row.serialize_element(&recurring.retries)?;
        row.serialize_element(&recurring.klass)?;
        let tags = serde_json::to_string(&recurring.tags).unwrap_or_default();
        row.serialize_element(&tags)?; // 10
        row.serialize_element(&recurring.body)?;
        row.serialize_element(version)?;
        row.end()
    }
}

/// Stores recurring jobs, each with the version that it is to have: one more than was read.
pub fn save(recurring: &[(&Recurring, i64)]) -> Statement {
    let rows: Vec<_> = recurring
        .iter()
        .map(|(recurring, version)| Values(recurring, *version))
        .collect();
    Statement::of_rows(SAVE, &rows)
}

/// Deletes recurring jobs, each with the version that was read.
pub fn delete(recurring: &[(&String, i64)]) -> Statement {
    Statement::of_rows(DELETE, recurring)
}

/// Reads recurring jobs by id.
pub fn load(ids: &[&str]) -> Statement {
    Statement::of_rows(LOAD, ids)
}

/// Reads those of a queue whose next child is due.
pub fn due(queue: QueueId, now: Time, count: usize) -> Statement {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    Statement::new(DUE, [queue.into(), now.0.into(), count.into()])
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, r.seq, r.queue, r.next_at, r.interval, r.made, r.backlog, r.priority, r.retries,
             r.klass, r.tags, r.body, r.version FROM ",
            $rest
        )
    };
}

const LOAD: &str = select!("rows($1) AS k CROSS JOIN recurring AS r WHERE r.id = k.item()");

const DUE: &str = select!(
    "recurring AS r WHERE r.queue = $1 AND r.next_at <= $2 ORDER BY r.next_at, r.seq LIMIT $3 + 0"
);

const IN: &str = select!(
    "recurring AS r WHERE r.queue = $3 ORDER BY r.next_at, r.seq LIMIT $1 + 0 OFFSET $2 + 0"
);

const ALL: &str = select!("recurring AS r ORDER BY r.next_at, r.seq LIMIT $1 + 0 OFFSET $2 + 0");

/// The statement that tells in which queues there are any.
pub const QUEUES: &str = "SELECT DISTINCT queue FROM recurring";

const SAVE: &str = "
INSERT INTO recurring (id, seq, queue, next_at, interval, made, backlog, priority, retries, klass, tags,
    body, version)
SELECT text(0), int(1), int(2), int(3), int(4), int(5), int(6), real(7), int(8),
    text(9), text(10), text(11), int(12)
FROM rows($1) WHERE true
ON CONFLICT (id) DO UPDATE SET queue = excluded.queue, next_at = excluded.next_at,
    interval = excluded.interval, made = excluded.made, backlog = excluded.backlog,
    priority = excluded.priority, retries = excluded.retries, klass = excluded.klass,
    tags = excluded.tags, body = excluded.body, version = excluded.version
WHERE recurring.version = excluded.version - 1";

const DELETE: &str = "
DELETE FROM recurring WHERE (id, version) IN (SELECT text(0), int(1) FROM rows($1))";
