//! Reads records batch by batch. Records with long texts are read only after memory has been reserved for them.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::body::Body;
use crate::engine::model::history::History;
use crate::engine::model::job::QueueId;
use crate::engine::model::long_bodies::body;
use crate::engine::model::record::Record;
use crate::engine::queries::batch_size::BatchSizer;
use crate::memory::{Reserved, keep_reserved, reserve_with_copy};
use crate::query::Hint;
use crate::store::{Row, Statement, StoreError};

/// Batches of up to this many records are read without long texts, at most 48 KiB for each record, and without reading
/// their sizes first, which would cost as much. Most scans end with such a batch.
const SMALL_BATCH: usize = 64;

/// How many times rows are measured that have become much larger when they are read.
pub const MEASUREMENTS_MAX: usize = 2;

/// Records per window. If a query limits the IDs, the database scans the queue window by window, each in about 30 ms.
pub const WINDOW_RECORDS: i64 = 20_000;

/// A batch of records.
pub struct Batch {
    pub records: Vec<Record>,
    /// Whether there are no more records after these.
    pub is_last: bool,
    /// The memory of long records.
    reserved: Reserved,
}

/// What to read of the records of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The records without texts over 16 KiB, of which only the sizes are read.
    Short,
    Sizes,
    Whole,
}

/// Who reserves the memory for the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    ByCaller,
    PerBatch,
}

impl Batch {
    /// The records. The request keeps their memory until its response has been sent.
    pub fn into_records(self) -> Vec<Record> {
        keep_reserved(self.reserved);
        self.records
    }
}

impl Engine {
    /// Reads a batch of up to `count` records, fewer if they are large together, but at least one. `statement` selects
    /// the given part of the given number of records.
    ///
    /// # Errors
    /// [`Error::Busy`], also if the records have twice become much larger since they were measured.
    pub(super) async fn read_batch(
        &self,
        count: usize,
        reservation: Reservation,
        statement: impl Fn(Part, usize) -> Statement,
    ) -> Result<Batch> {
        for _ in 0..MEASUREMENTS_MAX {
            let read = self.try_read_batch(count, reservation, &statement);
            if let Some(batch) = read.await? {
                return Ok(batch);
            }
        }
        Err(Error::Busy)
    }

    /// `None` if the records have become much larger since they were measured: as soon as one of the first records is
    /// changed, others are the first.
    async fn try_read_batch(
        &self,
        count: usize,
        reservation: Reservation,
        statement: impl Fn(Part, usize) -> Statement,
    ) -> Result<Option<Batch>> {
        let sizes = if count <= SMALL_BATCH {
            let rows = self.readers().rows(statement(Part::Short, count)).await?;
            let records: Vec<Record> = rows.iter().map(record).collect::<Result<_, _>>()?;
            if !records.iter().any(has_omitted_text) {
                return Ok(Some(Batch {
                    is_last: records.len() < count,
                    records,
                    reserved: Reserved::default(),
                }));
            }
            records.iter().map(size).collect()
        } else {
            let rows = self.readers().rows(statement(Part::Sizes, count)).await?;
            let sizes = rows.iter().map(|row| row.int(0));
            sizes.collect::<Result<Vec<i64>, _>>()?
        };
        let (fitting, bytes) = BatchSizer::fitting_bytes(&sizes);
        let reserved = match reservation {
            Reservation::PerBatch => reserve_with_copy(bytes).await?,
            Reservation::ByCaller => Reserved::default(),
        };
        let whole = statement(Part::Whole, fitting).measured(bytes);
        let rows = match self.readers().rows(whole).await {
            Err(StoreError::Grown) => return Ok(None),
            rows => rows?,
        };
        let records = rows.iter().map(record).collect::<Result<_, _>>()?;
        Ok(Some(Batch {
            records,
            // Fewer sizes than requested: the batch is the last, if all of it fits.
            is_last: fitting == sizes.len() && fitting < count,
            reserved,
        }))
    }
}

/// The texts of a record of [`Part::Short`], each with its size if it was left out.
fn texts(record: &Record) -> [(&str, Option<usize>); 3] {
    let omitted = |text: &str| text.strip_prefix('<')?.parse().ok();
    let (state, history) = (record.state.as_deref(), record.history.as_text());
    let state = state.unwrap_or_default();
    [
        (&record.payload, Body::stub_bytes(&record.payload)),
        (state, omitted(state)),
        (history, omitted(history)),
    ]
}

/// Whether a text of the record was left out.
fn has_omitted_text(record: &Record) -> bool {
    texts(record).iter().any(|(_, omitted)| omitted.is_some())
}

/// The size of the record in bytes.
fn size(record: &Record) -> i64 {
    let bytes = texts(record).map(|(text, omitted)| omitted.unwrap_or(text.len()));
    i64::try_from(bytes.iter().sum::<usize>()).unwrap_or(i64::MAX)
}

/// The time of the last change of a record, and its `seq`.
pub type RecordPosition = (i64, i64);

/// The statement that reads the next records that may match a query and are not after `end`.
pub fn next(
    queue: QueueId,
    hint: &Hint,
    after: RecordPosition,
    end: RecordPosition,
    count: usize,
    part: Part,
) -> Statement {
    let (first, last) = (*hint.ids.start(), *hint.ids.end());
    if is_one(hint) {
        return by_id(queue, first, part);
    }
    let args = [
        queue.into(),
        after.0.into(),
        after.1.into(),
        end.0.into(),
        first.into(),
        last.into(),
        (count as i64).into(),
        end.1.into(),
    ];
    match crate::query::label_of(hint) {
        Some(label) => Statement::new(NEXT_LABELED.of(part), args).with(label),
        None => Statement::new(NEXT.of(part), args),
    }
}

/// The position of the last record that may match the query.
pub fn end(hint: &Hint) -> RecordPosition {
    let until = micros(hint.modified.end().saturating_add(1)).saturating_sub(1);
    (until, i64::MAX)
}

/// The statement that finds the last position of the window after `after`, if the window is full and not after `end`.
pub fn window_end(queue: QueueId, after: RecordPosition, end: RecordPosition) -> Statement {
    let args = [queue, after.0, after.1, end.0, WINDOW_RECORDS - 1];
    Statement::new(WINDOW_END, args.map(Into::into))
}

/// The statement that reads the record with this ID.
pub fn by_id(queue: QueueId, id: i64, part: Part) -> Statement {
    Statement::new(BY_ID.of(part), [queue.into(), id.to_string().into()])
}

/// The statement that reads the records with IDs above `after`, by ID.
pub fn list(queue: QueueId, after: i64, count: usize, part: Part) -> Statement {
    let args = [queue.into(), after.into(), (count as i64).into()];
    Statement::new(LIST.of(part), args)
}

/// Whether the query limits the IDs, so that the database looks through records that it does not return.
pub fn limits_ids(hint: &Hint) -> bool {
    !is_one(hint) && (*hint.ids.start() > 1 || *hint.ids.end() < i64::MAX)
}

/// Whether the query can match only one ID.
pub fn is_one(hint: &Hint) -> bool {
    hint.ids.start() == hint.ids.end()
}

pub fn micros(seconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000)
}

/// Reads a record.
pub fn record(row: &Row) -> Result<Record, StoreError> {
    let id = row.text(0)?.parse();
    Ok(Record {
        seq: row.int(1)?,
        id: id.map_err(|_| StoreError::Corrupt("a record without a number"))?,
        payload: row.text(2)?,
        state: row.text_or_null(3)?,
        history: row
            .text_or_null(4)?
            .map_or(History::unread(), History::from_text),
        modified: Time(row.int(5)?),
        created_at: Time(row.int(6)?),
    })
}

macro_rules! records {
    // With shortened payload and state.
    (brief: $rest:literal) => {
        concat!(
            "SELECT id, seq, ", $crate::engine::model::long_bodies::body!(start), ", substr(work_state, 1, 1000),
                CASE WHEN octet_length(history) <= {long} THEN history END, updated_at, created_at
             FROM jobs AS j WHERE state = {record} AND ",
            $rest
        )
    };
    // With the sizes of long texts (`<` and a number, which is not JSON) instead of the texts. `$jobs` begins with the
    // table.
    (short: $jobs:literal, $rest:literal) => {
        concat!(
            "SELECT id, seq, j.body,
                CASE WHEN octet_length(work_state) > {long} THEN '<' || octet_length(work_state) ELSE work_state END,
                CASE WHEN octet_length(history) > {long} THEN '<' || octet_length(history) ELSE history END,
                updated_at, created_at
             FROM ",
            $jobs,
            " WHERE state = {record} AND ",
            $rest
        )
    };
    (whole: $jobs:literal, $rest:literal) => {
        concat!(
            "SELECT id, seq, ", $crate::engine::model::long_bodies::body!(), ", work_state, history, updated_at, created_at
             FROM ",
            $jobs,
            " WHERE state = {record} AND ",
            $rest
        )
    };
}

pub(crate) use records;

/// The statements that read the records of a batch.
struct BatchStatements {
    short: &'static str,
    sizes: &'static str,
    whole: &'static str,
}

impl BatchStatements {
    fn of(&self, part: Part) -> &'static str {
        match part {
            Part::Short => self.short,
            Part::Sizes => self.sizes,
            Part::Whole => self.whole,
        }
    }
}

macro_rules! batch_statements {
    ($rest:literal) => {
        batch_statements!("jobs AS j", $rest)
    };
    ($jobs:literal, $rest:literal) => {
        BatchStatements {
            short: records!(short: $jobs, $rest),
            whole: records!(whole: $jobs, $rest),
            sizes: concat!(
                "SELECT CAST(",
                body!(bytes),
                " + octet_length(history) + coalesce(octet_length(work_state), 0) AS BIGINT)
                 FROM ",
                $jobs,
                " WHERE state = {record} AND ",
                $rest
            ),
        }
    };
}

const BY_ID: BatchStatements = batch_statements!("scope = $1 AND id = $2");

const LIST: BatchStatements = batch_statements!(
    "queue = $1 AND CAST(id AS BIGINT) > $2 ORDER BY CAST(id AS BIGINT) LIMIT $3 + 0"
);

const WINDOW_END: &str = "
SELECT updated_at, seq FROM jobs WHERE queue = $1 AND state = {record} AND (updated_at, seq) > ($2, $3) AND updated_at <= $4
ORDER BY updated_at, seq LIMIT 1 OFFSET $5 + 0";

// The unary plus keeps SQLite from using the index by ID and then sorting.
const NEXT: BatchStatements = batch_statements!(
    "queue = $1 AND (updated_at, seq) > ($2, $3) AND updated_at <= $4 AND (+updated_at, seq) <= ($4, $8)
     AND +CAST(id AS BIGINT) BETWEEN $5 AND $6 ORDER BY updated_at, seq LIMIT $7 + 0"
);

// SQLite would choose the index without the label, and read the records with other labels, too.
const NEXT_LABELED: BatchStatements = batch_statements!(
    "jobs AS j {indexed_by:jobs_labelled}",
    "queue = $1 AND label = $9 AND (updated_at, seq) > ($2, $3) AND updated_at <= $4 AND (+updated_at, seq) <= ($4, $8)
     AND +CAST(id AS BIGINT) BETWEEN $5 AND $6 ORDER BY updated_at, seq LIMIT $7 + 0"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::engine_without_tasks;
    use crate::store::Arg;

    #[tokio::test]
    async fn a_batch_is_one_range_of_an_index() {
        let engine = engine_without_tasks().await;
        let labeled = "jobs_labelled (queue=? AND label=? AND updated_at>? AND updated_at<?)";
        let touched = "jobs_touched (queue=? AND updated_at>? AND updated_at<?)";
        for (batch, args, range) in [(NEXT, 8, touched), (NEXT_LABELED, 9, labeled)] {
            for sql in [batch.short, batch.sizes, batch.whole] {
                let sql = format!("EXPLAIN QUERY PLAN {sql}");
                let args = (0..args).map(|_| Arg::from(1_i64));
                let explain = Statement::new(Box::leak(sql.into_boxed_str()), args);
                let rows = engine.readers().rows(explain).await.unwrap();
                let plan: Vec<_> = rows.iter().map(|row| row.text(3).unwrap()).collect();
                assert!(plan[0].ends_with(range), "{plan:?}");
                assert!(!plan.iter().any(|step| step.contains("B-TREE")), "{plan:?}");
            }
        }
        engine.close().await;
    }
}
