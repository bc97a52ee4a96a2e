//! Recurring jobs: each creates a job, its child, at every interval, or at the times of a cron expression. This file
//! holds the type and its rows.

use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::cron::{CronSchedule, NEVER};
use crate::engine::model::job::{NAME_BYTES_MAX, QueueId};
use crate::engine::model::page::{Direction, OffsetPageStatements, PageStatements};
use crate::store::{Row, Statement, StoreError};

/// The longest ID of a recurring job in bytes. The IDs of its children add a hyphen and a number.
pub const RECURRING_ID_BYTES_MAX: usize = NAME_BYTES_MAX - 20;

/// A recurring job.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurring {
    /// The insertion number.
    pub seq: i64,
    pub id: String,
    pub queue: QueueId,
    /// When the next child is due; never while the recurring job is paused.
    pub next_at: Time,
    /// Microseconds from one child to the next; at least 1. Not used with `cron`.
    pub interval: i64,
    /// Decides when children are due, instead of the interval.
    pub cron: Option<CronSchedule>,
    /// While the recurring job is paused: when the next child would be due.
    pub held_next: Option<Time>,
    /// The number of children so far. The next one's ID is `<id>-<children_count + 1>`.
    pub children_count: i64,
    /// The most missed children that are still created; 0 for all.
    pub backlog: i64,
    /// This and the fields below are the options of the children.
    pub priority: f64,
    pub retries: i64,
    pub klass: Option<String>,
    pub tags: Vec<String>,
    pub body: String,
}

impl Recurring {
    /// Seconds from one child to the next; 0 with a cron expression.
    pub fn interval_s(&self) -> f64 {
        match self.cron {
            Some(_) => 0.0,
            None => Time(self.interval).seconds(),
        }
    }

    /// Whether it creates no children until it is resumed.
    pub fn is_paused(&self) -> bool {
        self.held_next.is_some()
    }

    /// When the child after one that is due at `time` is due.
    pub fn following(&self, time: Time) -> Time {
        following(self.cron.as_ref(), self.interval, time)
    }

    /// Sets when the next child is due, also while the recurring job is paused.
    pub fn set_next(&mut self, next: Time) {
        match &mut self.held_next {
            Some(held) => *held = next,
            None => self.next_at = next,
        }
    }

    /// Pauses it, or resumes it at `now`: runs that it has missed are skipped. Returns whether that changed anything.
    pub fn set_paused(&mut self, paused: bool, now: Time) -> bool {
        match (self.held_next, paused) {
            (None, true) => {
                self.held_next = Some(self.next_at);
                self.next_at = NEVER;
                true
            }
            (Some(held), false) => {
                self.held_next = None;
                self.next_at = self.first_after(held, now);
                true
            }
            (None, false) | (Some(_), true) => false,
        }
    }

    /// The first due time after `now`, if `next` is a due time.
    fn first_after(&self, next: Time, now: Time) -> Time {
        if next > now {
            return next;
        }
        match &self.cron {
            Some(cron) => cron.next(now),
            None => {
                let behind = now.0.saturating_sub(next.0);
                let interval = self.interval.max(1);
                let missed = (behind / interval).saturating_add(1);
                Time(next.0.saturating_add(missed.saturating_mul(interval)))
            }
        }
    }

    /// The due times of the next children, up to `n`.
    pub fn next_runs(&self, n: usize) -> Vec<Time> {
        let parsed = self.cron.as_ref().and_then(CronSchedule::parsed);
        let after = |time: &Time| match (&self.cron, &parsed) {
            (None, _) => Some(Time(time.0.saturating_add(self.interval))),
            (Some(_), parsed) => parsed.as_ref().map(|parsed| parsed.next(*time)),
        };
        let runs = std::iter::successors(Some(self.next_at), after);
        runs.take_while(|time| *time != NEVER).take(n).collect()
    }
}

fn following(cron: Option<&CronSchedule>, interval: i64, time: Time) -> Time {
    match cron {
        Some(cron) => cron.next(time),
        None => Time(time.0.saturating_add(interval)),
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
        children_count: row.int(5)?,
        backlog: row.int(6)?,
        priority: row.real(7)?,
        retries: row.int(8)?,
        klass: row.text_or_null(9)?,
        tags: serde_json::from_str(&row.text(10)?)
            .map_err(|_| StoreError::Corrupt("tags that are no list"))?,
        body: row.text(11)?,
        cron: cron(row, 13)?,
        held_next: row.int_or_null(15)?.map(Time),
    };
    Ok((recurring, row.int(12)?))
}

/// The cron expression in this column, and its time zone in the next one.
fn cron(row: &Row, column: usize) -> Result<Option<CronSchedule>, StoreError> {
    let (expression, zone) = (row.text_or_null(column)?, row.text_or_null(column + 1)?);
    let schedule = expression.map(|expression| CronSchedule {
        expression,
        zone: zone.unwrap_or_default(),
    });
    Ok(schedule)
}

/// A recurring job whose next child is due, without the options of its children.
#[derive(Clone, Debug)]
pub struct Due {
    pub id: String,
    pub queue: QueueId,
    pub next_at: Time,
    /// As in [`Recurring`].
    pub interval: i64,
    /// As in [`Recurring`].
    pub cron: Option<CronSchedule>,
    /// As in [`Recurring`].
    pub children_count: i64,
    /// As in [`Recurring`].
    pub backlog: i64,
    /// The size of the body, the tags and the class of each child.
    pub bytes: usize,
    /// The size of the tags of each child.
    pub tag_bytes: usize,
}

impl Due {
    /// How many children are due at `now`, up to `max`, and the time up to which runs were searched.
    pub fn missed(&self, now: Time, max: usize) -> (usize, Time) {
        let Some(cron) = &self.cron else {
            let first = first_kept(self.next_at, self.interval, self.backlog, now);
            let behind = now.0.saturating_sub(first.0);
            let missed = usize::try_from(behind / self.interval.max(1)).unwrap_or(usize::MAX);
            return (missed.saturating_add(1).min(max), self.next_at);
        };
        let parsed = if max > 1 { cron.parsed() } else { None };
        let Some(parsed) = parsed else {
            return (usize::from(self.next_at <= now).min(max), self.next_at);
        };
        // Each step is a search, so there is none after the last child.
        let (mut missed, mut next_at) = (0, self.next_at);
        while next_at <= now {
            missed += 1;
            if missed == max {
                break;
            }
            next_at = parsed.next(next_at);
        }
        (missed, next_at)
    }
}

/// When the first child is due that is still created if, of the missed ones, all but the last `backlog` are skipped; 0
/// skips none.
pub fn first_kept(next_at: Time, interval: i64, backlog: i64, now: Time) -> Time {
    let (interval, behind) = (interval.max(1), now.0.saturating_sub(next_at.0));
    let kept = backlog.saturating_mul(interval);
    if backlog <= 0 || behind <= kept {
        return next_at;
    }
    let surplus = (behind - kept - 1) / interval + 1;
    Time(next_at.0.saturating_add(surplus.saturating_mul(interval)))
}

/// Reads a row of [`due`].
pub fn read_due(row: &Row) -> Result<Due, StoreError> {
    Ok(Due {
        id: row.text(0)?,
        queue: row.int(1)?,
        next_at: Time(row.int(2)?),
        interval: row.int(3)?,
        children_count: row.int(4)?,
        bytes: usize::try_from(row.int(5)?).unwrap_or_default(),
        tag_bytes: usize::try_from(row.int(6)?).unwrap_or_default(),
        cron: cron(row, 7)?,
        backlog: row.int(9)?,
    })
}

/// Columns of a recurring job. Rows of jobs have more.
pub const COLUMNS: usize = 16;

/// A recurring job as a flat JSON array, with its new version.
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
        row.serialize_element(&recurring.children_count)?; // 5
        row.serialize_element(&recurring.backlog)?;
        row.serialize_element(&recurring.priority)?;
        row.serialize_element(&recurring.retries)?;
        row.serialize_element(&recurring.klass)?;
        let tags = serde_json::to_string(&recurring.tags).unwrap_or_default();
        row.serialize_element(&tags)?; // 10
        row.serialize_element(&recurring.body)?;
        row.serialize_element(version)?;
        let cron = recurring.cron.as_ref();
        row.serialize_element(&cron.map(|cron| &cron.expression))?;
        row.serialize_element(&cron.map(|cron| &cron.zone))?;
        row.serialize_element(&recurring.held_next)?; // 15
        row.end()
    }
}

/// Adds recurring jobs, each with its version.
pub fn add(recurring: &[(&Recurring, i64)]) -> Statement {
    Statement::of_rows(ADD, &values(recurring))
}

/// Changes recurring jobs, each with its new version: one more than as read.
pub fn change(recurring: &[(&Recurring, i64)]) -> Statement {
    Statement::of_rows(CHANGE, &values(recurring))
}

fn values<'a>(recurring: &[(&'a Recurring, i64)]) -> Vec<Values<'a>> {
    let values = |(recurring, version): &(&'a Recurring, i64)| Values(recurring, *version);
    recurring.iter().map(values).collect()
}

/// Deletes recurring jobs, each with the version as read.
pub fn delete(recurring: &[(&String, i64)]) -> Statement {
    Statement::of_rows(DELETE, recurring)
}

/// Reads recurring jobs by ID.
pub fn load(ids: &[&str]) -> Statement {
    Statement::of_rows(LOAD, ids)
}

/// Like [`load`], without bodies and tags, for verbs that replace or delete the recurring jobs.
pub fn load_without_texts(ids: &[&str]) -> Statement {
    Statement::of_rows(LOAD_WITHOUT_TEXTS, ids)
}

/// Reads [`Due`], up to `count` in a queue.
pub fn due(queue: QueueId, now: Time, count: usize) -> Statement {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    Statement::new(DUE, [queue.into(), now.0.into(), count.into()])
}

macro_rules! select {
    ($class:literal, $tags:literal, $body:literal, $rest:literal) => {
        concat!(
            "SELECT r.id, r.seq, r.queue, r.next_at, r.interval, r.made, r.backlog, r.priority, r.retries, ",
            $class,
            ", ",
            $tags,
            ", ",
            $body,
            ", r.version, r.cron, r.zone, r.held_next FROM ",
            $rest
        )
    };
    ($rest:literal) => {
        select!("r.klass", "r.tags", "r.body", $rest)
    };
    // With tags only if they are short, and without bodies.
    (brief: $rest:literal) => {
        select!(
            "substr(r.klass, 1, {class})",
            "CASE WHEN octet_length(r.tags) <= {long} THEN r.tags ELSE '[]' END",
            "''",
            $rest
        )
    };
}

/// A list of recurring jobs, by the time their next child is due. Its size is that of bodies, tags and classes; short
/// tags occupy four times their length.
macro_rules! list {
    ($from:literal) => {
        OffsetPageStatements {
            whole: select!($from),
            ids: concat!("SELECT r.id FROM ", $from),
            bytes: concat!(
                "SELECT CAST(coalesce(sum(s.bytes), 0) AS BIGINT) FROM (
                    SELECT 4 * octet_length(r.tags) + octet_length(r.body) + coalesce(octet_length(r.klass), 0) AS bytes
                    FROM ",
                $from,
                ") AS s"
            ),
        }
    };
}

pub const LOAD: &str = select!("rows($1) AS k CROSS JOIN recurring AS r WHERE r.id = k.item()");

const LOAD_WITHOUT_TEXTS: &str = select!(
    "r.klass",
    "'[]'",
    "''",
    "rows($1) AS k CROSS JOIN recurring AS r WHERE r.id = k.item()"
);

const DUE: &str = "
SELECT r.id, r.queue, r.next_at, r.interval, r.made,
    CAST(octet_length(r.tags) + octet_length(r.body) + coalesce(octet_length(r.klass), 0) AS BIGINT),
    CAST(octet_length(r.tags) AS BIGINT), r.cron, r.zone, r.backlog
FROM recurring AS r WHERE r.queue = $1 AND r.next_at <= $2 ORDER BY r.next_at, r.seq LIMIT $3 + 0";

pub const IN_QUEUE: OffsetPageStatements =
    list!("recurring AS r WHERE r.queue = $3 ORDER BY r.next_at, r.seq LIMIT $1 + 0 OFFSET $2 + 0");

/// The pages by key of the same lists.
pub const IN_QUEUE_PAGES: PageStatements = PageStatements {
    direction: Direction::Ascending,
    forward: select!(
        brief:
            "recurring AS r WHERE r.queue = $6 AND (r.next_at, r.seq) > ($2, $3) AND (r.next_at, r.seq) < ($4, $5)
             ORDER BY r.next_at, r.seq LIMIT $1 + 0"
    ),
    backward: select!(
        brief:
            "recurring AS r WHERE r.queue = $6 AND (r.next_at, r.seq) > ($2, $3) AND (r.next_at, r.seq) < ($4, $5)
             ORDER BY r.next_at DESC, r.seq DESC LIMIT $1 + 0"
    ),
};

pub const ALL_PAGES: PageStatements = PageStatements {
    direction: Direction::Ascending,
    forward: select!(
        brief:
            "recurring AS r WHERE (r.next_at, r.seq) > ($2, $3) AND (r.next_at, r.seq) < ($4, $5)
             ORDER BY r.next_at, r.seq LIMIT $1 + 0"
    ),
    backward: select!(
        brief:
            "recurring AS r WHERE (r.next_at, r.seq) > ($2, $3) AND (r.next_at, r.seq) < ($4, $5)
             ORDER BY r.next_at DESC, r.seq DESC LIMIT $1 + 0"
    ),
};

/// The queues that have recurring jobs. Each step looks up the next queue in an index, so that its cost does not depend
/// on the number of recurring jobs.
pub const QUEUES: &str = "
WITH RECURSIVE found (queue) AS (
    SELECT min(queue) FROM recurring
    UNION ALL
    SELECT (SELECT min(r.queue) FROM recurring AS r WHERE r.queue > found.queue) FROM found
    WHERE found.queue IS NOT NULL)
SELECT queue FROM found WHERE queue IS NOT NULL";

// Another server may have added one with the same ID.
const ADD: &str = "
INSERT INTO recurring (id, seq, queue, next_at, interval, made, backlog, priority, retries, klass, tags,
    body, version, cron, zone, held_next)
SELECT text(0), int(1), int(2), int(3), int(4), int(5), int(6), real(7), int(8),
    text(9), text(10), text(11), int(12), text(13), text(14), int(15)
FROM rows($1) WHERE true
ON CONFLICT (id) DO NOTHING";

const CHANGE: &str = "
UPDATE recurring SET queue = int(2), next_at = int(3), interval = int(4), made = int(5), backlog = int(6),
    priority = real(7), retries = int(8), klass = text(9), tags = text(10), body = text(11), version = int(12),
    cron = text(13), zone = text(14), held_next = int(15)
FROM rows($1) WHERE recurring.id = text(0) AND recurring.version = int(12) - 1";

const DELETE: &str = "
DELETE FROM recurring WHERE (id, version) IN (SELECT text(0), int(1) FROM rows($1))";
