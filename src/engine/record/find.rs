//! Finding records: by number, and by a query. What of a query an index can answer is asked of the database; the
//! rest is decided here, over what that leaves, batch by batch.

use super::{Record, no_such_queue};
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::history::History;
use crate::engine::job::QueueId;
use crate::engine::pace::Pace;
use crate::engine::queues::Queue;
use crate::query::{Budget, Hint, Query};
use crate::store::{Row, Statement, StoreError};

/// Records that one query may look at.
const LOOKED_AT_MAX: usize = 200_000;

/// How much work it may be to see which of them match: steps, and bytes that are looked at. One record may take
/// less, for polls look again while others wait.
pub const WORK_MAX: u64 = 200_000_000;
const WORK_MAX_EACH: u64 = 5_000_000;

/// How much one answer may hold, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A record that was found.
pub struct Found {
    pub seq: i64,
    pub record: Record,
}

/// Where a page of records begins and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// By number.
    pub records: Vec<Record>,
    /// Whether there are more.
    pub more: bool,
}

/// Whether the record matches at this moment, and how much work it was to see that.
///
/// # Errors
/// [`Error::TooMuchWork`] if it is more than `left`, or than one record may take.
pub fn matches(record: &Record, query: &Query, now: Time, left: u64) -> Result<(bool, u64)> {
    let events = if query.needs().events {
        record.events()
    } else {
        String::new()
    };
    let row = crate::query::Record {
        id: record.id,
        payload: &record.payload,
        state: record.state.as_deref(),
        events: &events,
        modified: record.modified.whole_seconds(),
    };
    let given = left.min(WORK_MAX_EACH);
    let mut budget = Budget::new(given);
    let matches = query.matches(&row, now.whole_seconds(), &mut budget);
    let matches = matches.map_err(|_| Error::TooMuchWork { looked_at: 1 })?;
    Ok((matches, given - budget.left()))
}

impl Engine {
    /// Looks whether the queue is there still, and gives its number.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub(super) async fn known(&self, queue: &Queue) -> Result<QueueId> {
        self.freshen().await?;
        let found = self.known_queues().by_id(queue.id);
        let found = found.filter(|queue| !queue.forgotten);
        found
            .map(|queue| queue.id)
            .ok_or_else(|| no_such_queue(queue))
    }

    /// The record of this number.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn record_by_id(&self, queue: &Queue, id: i64) -> Result<Option<Record>> {
        let queue = self.known(queue).await?;
        let rows = self.readers().rows(by_id(queue, id)).await?;
        let found = rows.first().map(found).transpose()?;
        Ok(found.map(|found| found.record))
    }

    /// Up to `limit` records with a number above `after`, by number; fewer if they are large.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn records(&self, queue: &Queue, after: i64, limit: usize) -> Result<Records> {
        let id = self.known(queue).await?;
        let mut records: Vec<Record> = Vec::new();
        let mut pace = Pace::default();
        loop {
            let after = records.last().map_or(after, |record| record.id);
            // One more than is wanted tells whether there are more.
            let batch = pace.next().min(limit + 1 - records.len());
            let args = [id.into(), after.into(), (batch as i64).into()];
            let rows = self.readers().rows(Statement::new(LIST, args)).await?;
            for row in &rows {
                let record = found(row)?.record;
                pace.read(record.bytes());
                records.push(record);
            }
            let more = records.len() > limit;
            if more || rows.len() < batch || pace.bytes >= ANSWER_BYTES_MAX {
                let more = more || rows.len() == batch;
                records.truncate(limit);
                return Ok(Records { records, more });
            }
        }
    }

    /// Up to `limit` records that match, longest untouched first; fewer if they have `enough` bytes.
    pub(in crate::engine) async fn find(
        &self,
        queue: &Queue,
        query: &Query,
        limit: usize,
        enough: usize,
    ) -> Result<Vec<Found>> {
        let id = self.known(queue).await?;
        let (now, hint) = (self.now(None), query.hint());
        let (mut all, mut bytes) = (Vec::new(), 0);
        let (mut pace, mut left) = (Pace::default(), WORK_MAX);
        let mut after = (micros(*hint.modified.start()), -1);
        loop {
            let batch = pace.next();
            let rows = self.readers().rows(next(id, hint, after, batch)).await?;
            for row in &rows {
                let row = found(row)?;
                after = (row.record.modified.0, row.seq);
                pace.read(row.record.bytes());
                let looked = matches(&row.record, query, now, left);
                let (matches, work) = looked.map_err(|_| too_much(pace))?;
                left -= work;
                if matches {
                    bytes += row.record.bytes();
                    all.push(row);
                }
                if all.len() == limit || bytes >= enough {
                    return Ok(all);
                }
            }
            if rows.len() < batch || is_one(hint) {
                return Ok(all);
            }
            if pace.rows >= LOOKED_AT_MAX || bytes >= ANSWER_BYTES_MAX {
                return Err(too_much(pace));
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Record {
    fn bytes(&self) -> usize {
        self.payload.len() + self.state_text().len() + self.history.as_text().len()
    }
}

fn too_much(pace: Pace) -> Error {
    Error::TooMuchWork {
        looked_at: pace.rows,
    }
}

fn micros(seconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000)
}

fn is_one(hint: &Hint) -> bool {
    hint.ids.start() == hint.ids.end()
}

/// The statement that reads the next records that may match.
fn next(queue: QueueId, hint: &Hint, after: (i64, i64), batch: usize) -> Statement {
    let (first, last) = (*hint.ids.start(), *hint.ids.end());
    if is_one(hint) {
        return by_id(queue, first);
    }
    let until = micros(hint.modified.end().saturating_add(1)).saturating_sub(1);
    let args = [
        queue.into(),
        after.0.into(),
        after.1.into(),
        until.into(),
        first.into(),
        last.into(),
        (batch as i64).into(),
    ];
    match crate::query::label_of(hint) {
        Some(label) => Statement::new(NEXT_LABELLED, args).with(label),
        None => Statement::new(NEXT, args),
    }
}

fn by_id(queue: QueueId, id: i64) -> Statement {
    Statement::new(BY_ID, [queue.into(), id.to_string().into()])
}

pub(super) fn found(row: &Row) -> Result<Found, StoreError> {
    let id = row.text(0)?.parse();
    Ok(Found {
        seq: row.int(1)?,
        record: Record {
            id: id.map_err(|_| StoreError::Corrupt("a record without a number"))?,
            payload: row.text(2)?,
            state: row.text_or_null(3)?,
            history: History::from_text(row.text(4)?),
            modified: Time(row.int(5)?),
            created_at: Time(row.int(6)?),
        },
    })
}

macro_rules! records {
    ($rest:literal) => {
        concat!(
            "SELECT id, seq, body, work_state, history, updated_at, created_at FROM jobs WHERE state = 9 AND ",
            $rest
        )
    };
}

pub(super) use records;

const BY_ID: &str = records!("scope = $1 AND id = $2");

const LIST: &str =
    records!("queue = $1 AND CAST(id AS BIGINT) > $2 ORDER BY CAST(id AS BIGINT) LIMIT $3 + 0");

// The sign keeps SQLite from going by number, and sorting.
const NEXT: &str = records!(
    "queue = $1 AND (updated_at, seq) > ($2, $3) AND updated_at <= $4
     AND +CAST(id AS BIGINT) BETWEEN $5 AND $6 ORDER BY updated_at, seq LIMIT $7 + 0"
);

// The sign before the end keeps it by label: of two spans it would take the one without.
const NEXT_LABELLED: &str = records!(
    "queue = $1 AND label = $8 AND (updated_at, seq) > ($2, $3) AND +updated_at <= $4
     AND +CAST(id AS BIGINT) BETWEEN $5 AND $6 ORDER BY updated_at, seq LIMIT $7 + 0"
);
