//! Finds records by ID and by query. The database evaluates the parts of a query that an index covers; the rest is
//! evaluated here, batch by batch.

use std::sync::Arc;

use crate::budget::{Budget, BudgetExceeded};
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, RESPONSE_BYTES_MAX, Result};
use crate::engine::model::history::History;
use crate::engine::model::job::QueueId;
use crate::engine::model::long_bodies::body;
use crate::engine::model::queue::Queue;
use crate::engine::model::record::Record;
use crate::engine::queries::batch_size::BatchSizer;
use crate::engine::queries::evaluate::{Allowance, Evaluated};
use crate::engine::verbs::jobq::changes::no_such_queue;
use crate::memory::{SMALL_MAX, reserve};
use crate::query::{Hint, Query};
use crate::store::{Row, Statement, StoreError};

/// Records that one query may read.
const SCANNED_MAX: usize = 200_000;

/// The work, in steps and bytes, that one query may spend in total, and on one record.
const WORK_MAX: u64 = 200_000_000;
const WORK_MAX_EACH: u64 = 5_000_000;

/// A batch of up to this many records is read without checking their sizes. Each is at most as large as a request.
const UNCHECKED_BATCH: usize = 64;

#[derive(Clone)]
pub struct Found {
    pub seq: i64,
    pub record: Record,
}

/// A page of records.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// By ID.
    pub records: Vec<Record>,
    /// Whether there are more.
    pub more: bool,
}

fn matches(
    record: &Record,
    query: &Query,
    now: Time,
    budget: &mut Budget,
) -> Result<bool, BudgetExceeded> {
    let events = if query.used_columns().events {
        // The events are parsed and serialized.
        budget.spend(2 * record.history.as_text().len())?;
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
    budget.with_part(WORK_MAX_EACH, |budget| {
        query.matches(&row, now.whole_seconds(), budget)
    })
}

/// What a query still needs.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    records: usize,
    /// Stops once the records found reach this many bytes.
    bytes: usize,
}

/// The indexes of the first matching records, up to the limits.
fn matching(
    records: &[Found],
    query: &Query,
    now: Time,
    mut wanted: Wanted,
    budget: &mut Budget,
) -> Evaluated<Vec<usize>> {
    let mut found = Vec::new();
    for (index, row) in records.iter().enumerate() {
        match matches(&row.record, query, now, budget) {
            Err(spent) => {
                return Evaluated {
                    value: found,
                    spent: Some(spent),
                };
            }
            Ok(false) => continue,
            Ok(true) => found.push(index),
        }
        wanted.bytes = wanted.bytes.saturating_sub(row.record.bytes());
        if found.len() == wanted.records || wanted.bytes == 0 {
            break;
        }
    }
    Evaluated {
        value: found,
        spent: None,
    }
}

impl Engine {
    /// Up to `limit` matching records, least recently modified first.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `TooMuchWork`](Error).
    pub async fn query_records(
        &self,
        queue: &Queue,
        query: &Query,
        limit: usize,
    ) -> Result<Vec<Record>> {
        let found = self.find_records(queue, query, limit, usize::MAX).await?;
        Ok(found.into_iter().map(|found| found.record).collect())
    }

    /// Returns the queue's ID, if it still exists.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub(in crate::engine) async fn existing_queue_id(&self, queue: &Queue) -> Result<QueueId> {
        self.refresh_cache().await?;
        let found = self.known_queues().by_id(queue.id);
        let found = found.filter(|queue| !queue.forgotten);
        found
            .map(|queue| queue.id)
            .ok_or_else(|| no_such_queue(queue))
    }

    /// The record with this ID.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn record_by_id(&self, queue: &Queue, id: i64) -> Result<Option<Record>> {
        let queue = self.existing_queue_id(queue).await?;
        let rows = self.readers().rows(by_id(queue, id)).await?;
        let found = rows.first().map(found).transpose()?;
        Ok(found.map(|found| found.record))
    }

    /// Up to `limit` records with IDs above `after`, by ID; fewer if they are large.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn records(&self, queue: &Queue, after: i64, limit: usize) -> Result<Records> {
        let id = self.existing_queue_id(queue).await?;
        let mut records: Vec<Record> = Vec::new();
        let mut sizer = BatchSizer::default();
        loop {
            let after = records.last().map_or(after, |record| record.id);
            // One more than requested, to see whether there are more.
            let batch = sizer.next().min(limit + 1 - records.len());
            let args = |batch: usize| [id.into(), after.into(), (batch as i64).into()];
            let sizes = |batch| Statement::new(LIST.sizes, args(batch));
            let batch = self.fitting(batch, sizes).await?;
            let statement = Statement::new(LIST.records, args(batch));
            let rows = self.readers().rows(statement).await?;
            let before = sizer.bytes;
            for row in &rows {
                let record = found(row)?.record;
                sizer.count_row(record.bytes());
                records.push(record);
            }
            make_room(before, sizer.bytes).await?;
            let more = records.len() > limit;
            if more || rows.len() < batch || sizer.bytes >= RESPONSE_BYTES_MAX {
                let more = more || rows.len() == batch;
                records.truncate(limit);
                return Ok(Records { records, more });
            }
        }
    }

    /// Reduces a batch to as many records as are not too large together, at least one. `sizes` reads their sizes. Small
    /// batches are not checked: most scans end with the first one, and reading the sizes costs as much as reading the
    /// records.
    async fn fitting(&self, batch: usize, sizes: impl FnOnce(usize) -> Statement) -> Result<usize> {
        if batch <= UNCHECKED_BATCH {
            return Ok(batch);
        }
        let rows = self.readers().rows(sizes(batch)).await?;
        let sizes: Vec<i64> = rows
            .iter()
            .map(|row| row.int(0))
            .collect::<Result<_, _>>()?;
        let fitting = BatchSizer::fitting(&sizes);
        // Fewer sizes than requested: the batch is the last.
        Ok(if fitting == sizes.len() {
            batch
        } else {
            fitting
        })
    }

    /// Up to `limit` matching records, least recently modified first; fewer once they reach `bytes_max` bytes.
    pub(in crate::engine) async fn find_records(
        &self,
        queue: &Queue,
        query: &Query,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Found>> {
        let id = self.existing_queue_id(queue).await?;
        let (now, hint) = (self.now(None), query.hint());
        let (mut all, mut bytes) = (Vec::new(), 0);
        let (mut sizer, mut allowance) = (BatchSizer::default(), Allowance::new(WORK_MAX));
        let mut after = (micros(*hint.modified.start()), -1);
        loop {
            let batch = sizer.next();
            let sizes = |batch| next(id, hint, after, batch, |walk| walk.sizes);
            let batch = self.fitting(batch, sizes).await?;
            let statement = next(id, hint, after, batch, |walk| walk.records);
            let rows = self.readers().rows(statement).await?;
            let is_all = rows.len() < batch || is_one(hint);
            let rows: Vec<Found> = rows.iter().map(found).collect::<Result<_, _>>()?;
            for row in &rows {
                after = (row.record.modified.0, row.seq);
                sizer.count_row(row.record.bytes());
            }
            let wanted = Wanted {
                records: limit - all.len(),
                bytes: bytes_max.min(RESPONSE_BYTES_MAX + 1) - bytes,
            };
            let (rows, query) = (Arc::new(rows), query.clone());
            let evaluated = Arc::clone(&rows);
            let matching = allowance
                .run(move |budget| matching(&evaluated, &query, now, wanted, budget))
                .await;
            if matching.spent.is_some() {
                return Err(too_much(sizer));
            }
            let mut matching = matching.value.into_iter().peekable();
            let rows = Arc::unwrap_or_clone(rows).into_iter().enumerate();
            let before = bytes;
            for (_, row) in rows.filter(|(index, _)| matching.next_if_eq(index).is_some()) {
                bytes += row.record.bytes();
                all.push(row);
            }
            if bytes > RESPONSE_BYTES_MAX {
                return Err(Error::ResponseTooLarge);
            }
            make_room(before, bytes).await?;
            if all.len() == limit || bytes >= bytes_max || is_all {
                return Ok(all);
            }
            if sizer.rows >= SCANNED_MAX {
                return Err(too_much(sizer));
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Reserves memory for records that were `before` bytes and are now `bytes`, and for the response with them.
///
/// # Errors
/// [`Error::Busy`].
async fn make_room(before: usize, bytes: usize) -> Result<()> {
    if bytes > SMALL_MAX {
        reserve(2 * (bytes - before)).await?;
    }
    Ok(())
}

impl Record {
    fn bytes(&self) -> usize {
        self.payload.len() + self.state_text().len() + self.history.as_text().len()
    }
}

fn too_much(sizer: BatchSizer) -> Error {
    Error::TooMuchWork {
        scanned: sizer.rows,
    }
}

fn micros(seconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000)
}

fn is_one(hint: &Hint) -> bool {
    hint.ids.start() == hint.ids.end()
}

/// The statement that reads the next records that may match, or their sizes.
fn next(
    queue: QueueId,
    hint: &Hint,
    after: (i64, i64),
    batch: usize,
    what: fn(&Walk) -> &'static str,
) -> Statement {
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
        Some(label) => Statement::new(what(&NEXT_LABELLED), args).with(label),
        None => Statement::new(what(&NEXT), args),
    }
}

fn by_id(queue: QueueId, id: i64) -> Statement {
    Statement::new(BY_ID, [queue.into(), id.to_string().into()])
}

pub fn found(row: &Row) -> Result<Found, StoreError> {
    let id = row.text(0)?.parse();
    Ok(Found {
        seq: row.int(1)?,
        record: Record {
            seq: row.int(1)?,
            id: id.map_err(|_| StoreError::Corrupt("a record without a number"))?,
            payload: row.text(2)?,
            state: row.text_or_null(3)?,
            history: row
                .text_or_null(4)?
                .map_or(History::unread(), History::from_text),
            modified: Time(row.int(5)?),
            created_at: Time(row.int(6)?),
        },
    })
}

macro_rules! records {
    // With shortened payload and state.
    (brief: $rest:literal) => {
        concat!(
            "SELECT id, seq, ", $crate::engine::model::long_bodies::body!(start), ", substr(work_state, 1, 1000),
                CASE WHEN octet_length(history) <= 16384 THEN history END, updated_at, created_at
             FROM jobs AS j WHERE state = {record} AND ",
            $rest
        )
    };
    ($rest:literal) => {
        concat!(
            "SELECT id, seq, ", $crate::engine::model::long_bodies::body!(), ", work_state, history, updated_at, created_at
             FROM jobs AS j WHERE state = {record} AND ",
            $rest
        )
    };
}

pub(crate) use records;

/// The statements that read the next records, or only their sizes.
struct Walk {
    records: &'static str,
    sizes: &'static str,
}

macro_rules! walk {
    ($rest:literal) => {
        Walk {
            records: records!($rest),
            sizes: concat!(
                "SELECT CAST(",
                body!(bytes),
                " + octet_length(history) + coalesce(octet_length(work_state), 0) AS BIGINT)
                 FROM jobs AS j WHERE state = {record} AND ",
                $rest
            ),
        }
    };
}

const BY_ID: &str = records!("scope = $1 AND id = $2");

const LIST: Walk =
    walk!("queue = $1 AND CAST(id AS BIGINT) > $2 ORDER BY CAST(id AS BIGINT) LIMIT $3 + 0");

// The unary plus keeps SQLite from using the index by ID and then sorting.
const NEXT: Walk = walk!(
    "queue = $1 AND (updated_at, seq) > ($2, $3) AND updated_at <= $4
     AND +CAST(id AS BIGINT) BETWEEN $5 AND $6 ORDER BY updated_at, seq LIMIT $7 + 0"
);

// The plus before `updated_at` keeps SQLite on the index by label: with a range on both sides it would choose the index
// without label.
const NEXT_LABELLED: Walk = walk!(
    "queue = $1 AND label = $8 AND (updated_at, seq) > ($2, $3) AND +updated_at <= $4
     AND +CAST(id AS BIGINT) BETWEEN $5 AND $6 ORDER BY updated_at, seq LIMIT $7 + 0"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn record(payload: usize) -> Record {
        Record {
            seq: 1,
            id: 1,
            payload: format!("\"{}\"", "x".repeat(payload - 2)),
            state: None,
            history: History::default(),
            modified: Time(0),
            created_at: Time(0),
        }
    }

    #[test]
    fn a_query_spends_up_to_5_million_on_a_record() {
        let query = Query::parse(r#"[["=", "length(payload)", 1]]"#).unwrap();
        let work = |payload: usize| {
            let mut budget = Budget::unlimited();
            let before = budget.remaining();
            let done = matches(&record(payload), &query, Time(0), &mut budget);
            done.map(|_| before - budget.remaining())
        };
        let around = work(1_000).unwrap() - 1_000;
        let payload = |work: u64| usize::try_from(work - around).unwrap();
        for spent in [4_999_999, 5_000_000] {
            assert_eq!(work(payload(spent)), Ok(spent));
        }
        assert_eq!(work(payload(5_000_001)), Err(BudgetExceeded::Work));
    }
}
