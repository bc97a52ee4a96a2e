//! Recurring jobs: each creates a job, its child, at every interval. This file holds the type and its rows.

use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{NAME_BYTES_MAX, QueueId};
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
    /// When the next child is due.
    pub next_at: Time,
    /// Microseconds from one child to the next; at least 1.
    pub interval: i64,
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
    /// Seconds from one child to the next.
    pub fn interval_s(&self) -> f64 {
        Time(self.interval).seconds()
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
    };
    Ok((recurring, row.int(12)?))
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
    pub children_count: i64,
    /// The size of the body and the tags of each child.
    pub bytes: usize,
    /// The size of the tags of each child.
    pub tag_bytes: usize,
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
    })
}

/// Columns of a recurring job. Rows of jobs have more.
pub const COLUMNS: usize = 13;

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
        row.end()
    }
}

/// Stores recurring jobs, each with its new version: one more than as read.
pub fn save(recurring: &[(&Recurring, i64)]) -> Statement {
    let rows: Vec<_> = recurring
        .iter()
        .map(|(recurring, version)| Values(recurring, *version))
        .collect();
    Statement::of_rows(SAVE, &rows)
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
            ", r.version FROM ",
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

/// The statements of a list of recurring jobs, by the time their next child is due.
pub struct List {
    /// The whole recurring jobs.
    pub whole: &'static str,
    /// Without bodies and long tags.
    pub brief: &'static str,
    /// The total size of bodies and tags in bytes.
    pub bytes: &'static str,
}

macro_rules! list {
    ($from:literal) => {
        List {
            whole: select!($from),
            brief: select!(brief: $from),
            bytes: concat!(
                "SELECT CAST(coalesce(sum(s.bytes), 0) AS BIGINT) FROM (
                    SELECT octet_length(r.tags) + octet_length(r.body) + coalesce(octet_length(r.klass), 0) AS bytes
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
    CAST(octet_length(r.tags) AS BIGINT)
FROM recurring AS r WHERE r.queue = $1 AND r.next_at <= $2 ORDER BY r.next_at, r.seq LIMIT $3 + 0";

pub const IN_QUEUE: List =
    list!("recurring AS r WHERE r.queue = $3 ORDER BY r.next_at, r.seq LIMIT $1 + 0 OFFSET $2 + 0");

pub const ALL: List = list!("recurring AS r ORDER BY r.next_at, r.seq LIMIT $1 + 0 OFFSET $2 + 0");

/// The queues that have recurring jobs.
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
