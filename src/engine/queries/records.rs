//! Finds records by ID and by query. The database evaluates the parts of a query that an index covers; the rest is
//! evaluated here, batch by batch.

use std::sync::Arc;

use crate::budget::{Budget, BudgetExceeded};
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, RESPONSE_BYTES_MAX, Result};
use crate::engine::model::job::QueueId;
use crate::engine::model::queue::Queue;
use crate::engine::model::record::Record;
use crate::engine::queries::batch_size::BatchSizer;
use crate::engine::queries::evaluate::Evaluated;
use crate::engine::queries::record_batches::{
    Part, RecordPosition, Reservation, by_id, end, is_one, limits_ids, list, micros, next,
    window_end,
};
use crate::engine::verbs::jobq::changes::no_such_queue;
use crate::memory::{SMALL_MAX, reserve, reserve_loaded};
use crate::query::{Hint, Query};
use crate::store::{Row, StoreError, grown_max};

/// Records that one query may read.
const SCANNED_MAX: usize = 200_000;

/// Windows that one query may scan.
const WINDOWS_MAX: usize = 50;

/// The work, in steps and bytes, that one query may spend in total, and on one record.
const WORK_MAX: u64 = 200_000_000;
const WORK_MAX_EACH: u64 = 5_000_000;

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
struct Remaining {
    records: usize,
    /// Stops once the records found reach this many bytes.
    bytes: usize,
}

/// The indexes of the first matching records that are to be kept, up to the limits.
fn matching(
    records: &[Record],
    query: &Query,
    keep: &impl Fn(&Record, &mut Budget) -> Result<bool, BudgetExceeded>,
    now: Time,
    mut remaining: Remaining,
    budget: &mut Budget,
) -> Evaluated<Vec<usize>> {
    let mut found = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let is_match = matches(record, query, now, budget);
        let kept = is_match.and_then(|is_match| Ok(is_match && keep(record, budget)?));
        match kept {
            Err(exceeded) => {
                return Evaluated {
                    value: found,
                    exceeded: Some(exceeded),
                };
            }
            Ok(false) => continue,
            Ok(true) => found.push(index),
        }
        remaining.bytes = remaining.bytes.saturating_sub(record.bytes());
        if found.len() == remaining.records || remaining.bytes == 0 {
            break;
        }
    }
    Evaluated {
        value: found,
        exceeded: None,
    }
}

impl Engine {
    /// Up to `limit` matching records, least recently modified first.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `TooMuchWork`, `ResponseTooLarge`, `Busy`](Error).
    pub async fn query_records(
        &self,
        queue: &Queue,
        query: &Query,
        limit: usize,
    ) -> Result<Vec<Record>> {
        let all = |_: &Record, _: &mut Budget| Ok(true);
        self.find_records(queue, query, all, limit, usize::MAX)
            .await
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
    /// [`Error::NoSuchQueue`], [`Error::Busy`].
    pub async fn record_by_id(&self, queue: &Queue, id: i64) -> Result<Option<Record>> {
        let queue = self.existing_queue_id(queue).await?;
        let by_id = |part, _| by_id(queue, id, part);
        let batch = self.read_batch(1, Reservation::PerBatch, by_id).await?;
        // As much is reserved as the record and its response need.
        Ok(batch.into_records().pop())
    }

    /// Up to `limit` records with IDs above `after`, by ID; fewer if they are large.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`], [`Error::Busy`].
    pub async fn records(&self, queue: &Queue, after: i64, limit: usize) -> Result<Records> {
        let id = self.existing_queue_id(queue).await?;
        let mut records: Vec<Record> = Vec::new();
        let mut sizer = BatchSizer::default();
        // For all records at once: requests that wait for each other's memory in the middle would all fail.
        let reserved = self.reserve_for_list(id, after, limit).await?;
        loop {
            let after = records.last().map_or(after, |record| record.id);
            // One more than requested, to see whether there are more.
            let count = sizer.next().min(limit + 1 - records.len());
            let list = |part, count| list(id, after, count, part);
            let batch = self.read_batch(count, Reservation::ByCaller, list).await?;
            for record in batch.records {
                sizer.count_row(record.bytes());
                records.push(record);
            }
            if sizer.bytes > grown_max(reserved) {
                return Err(Error::Busy);
            }
            let more = records.len() > limit;
            if more || batch.is_last || sizer.bytes >= RESPONSE_BYTES_MAX {
                let more = more || !batch.is_last;
                records.truncate(limit);
                return Ok(Records { records, more });
            }
        }
    }

    /// Reserves memory for the records that [`Engine::records`] is going to read. Returns their size.
    async fn reserve_for_list(&self, queue: QueueId, after: i64, limit: usize) -> Result<usize> {
        let sizes = list(queue, after, limit + 1, Part::Sizes);
        let mut bytes = 0;
        for row in self.readers().rows(sizes).await? {
            bytes += usize::try_from(row.int(0)?).unwrap_or_default();
            if bytes >= RESPONSE_BYTES_MAX {
                break;
            }
        }
        if bytes > SMALL_MAX {
            reserve(2 * bytes).await?;
        }
        Ok(bytes)
    }

    /// Up to `limit` matching records for which `keep` returns true, least recently modified first; fewer once they
    /// reach `bytes_max` bytes.
    pub(in crate::engine) async fn find_records(
        &self,
        queue: &Queue,
        query: &Query,
        keep: impl Fn(&Record, &mut Budget) -> Result<bool, BudgetExceeded> + Clone + Send + 'static,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Record>> {
        let id = self.existing_queue_id(queue).await?;
        let (now, hint) = (self.now(None), query.hint());
        let (mut all, mut bytes) = (Vec::new(), 0);
        let (mut sizer, mut allowance) = (BatchSizer::default(), self.allowance(WORK_MAX));
        if hint.ids.is_empty() || hint.modified.is_empty() {
            return Ok(all);
        }
        let mut after = (micros(*hint.modified.start()), -1);
        let (mut window, mut windows) = (self.window(id, hint, after).await?, 1);
        loop {
            let until = window.unwrap_or(end(hint));
            let next = |part, count| next(id, hint, after, until, count, part);
            // Its memory stays reserved until the records that do not match have been dropped.
            let batch = self
                .read_batch(sizer.next(), Reservation::PerBatch, next)
                .await?;
            let is_all = batch.is_last && window.is_none() || is_one(hint);
            let ends_window = batch.is_last;
            let records = batch.records;
            for record in &records {
                after = (record.modified.0, record.seq);
                sizer.count_row(record.bytes());
            }
            let remaining = Remaining {
                records: limit - all.len(),
                bytes: bytes_max.min(RESPONSE_BYTES_MAX + 1) - bytes,
            };
            let (records, query) = (Arc::new(records), query.clone());
            let (evaluated, keep) = (Arc::clone(&records), keep.clone());
            let matching = allowance
                .run(move |budget| matching(&evaluated, &query, &keep, now, remaining, budget))
                .await?;
            if matching.exceeded.is_some() {
                return Err(too_much(sizer));
            }
            let mut matching = matching.value.into_iter().peekable();
            let records = Arc::unwrap_or_clone(records).into_iter().enumerate();
            let before = bytes;
            for (_, record) in records.filter(|(index, _)| matching.next_if_eq(index).is_some()) {
                bytes += record.bytes();
                all.push(record);
            }
            if bytes > RESPONSE_BYTES_MAX {
                return Err(Error::ResponseTooLarge);
            }
            reserve_for_records(before, bytes).await?;
            if all.len() == limit || bytes >= bytes_max || is_all {
                return Ok(all);
            }
            if sizer.rows >= SCANNED_MAX || windows >= WINDOWS_MAX {
                return Err(too_much(sizer));
            }
            if ends_window {
                after = until;
                (window, windows) = (self.window(id, hint, after).await?, windows + 1);
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Engine {
    /// Where the part of the queue ends in which the database looks for the next batch. `None`: where the queue ends.
    async fn window(
        &self,
        queue: QueueId,
        hint: &Hint,
        after: RecordPosition,
    ) -> Result<Option<RecordPosition>> {
        if !limits_ids(hint) {
            return Ok(None);
        }
        let rows = self.readers().rows(window_end(queue, after, end(hint)));
        let rows = rows.await?;
        let position = |row: &Row| Ok::<_, StoreError>((row.int(0)?, row.int(1)?));
        Ok(rows.first().map(position).transpose()?)
    }
}

/// Reserves memory for records that have been read, which were `before` bytes and are now `bytes`, and for the response
/// with them.
///
/// # Errors
/// [`Error::Busy`].
async fn reserve_for_records(before: usize, bytes: usize) -> Result<()> {
    if bytes > SMALL_MAX {
        reserve_loaded(2 * (bytes - before)).await?;
    }
    Ok(())
}

fn too_much(sizer: BatchSizer) -> Error {
    Error::TooMuchWork {
        scanned: sizer.rows,
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;
    use crate::engine::engine_without_tasks;
    use crate::engine::model::history::History;
    use crate::engine::queries::record_batches::WINDOW_RECORDS;
    use crate::memory::of_request;

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

    #[tokio::test]
    async fn the_memory_of_a_large_record_stays_reserved_until_the_response_is_sent() {
        let engine = engine_without_tasks().await;
        let id = engine.create_queue("q").await.unwrap();
        let queue = engine.known_queues().by_id(id).unwrap();
        for (id, bytes, expected) in [(1, 10_000, 0), (2, 100_000, 200_000)] {
            let payload = format!("\"{}\"", "x".repeat(bytes - 2));
            let created = engine.create_record(&queue, payload, "null".to_owned());
            created.await.unwrap();
            let (found, reserved) = of_request(engine.record_by_id(&queue, id)).await;
            assert_eq!(found.unwrap().unwrap().payload.len(), bytes);
            let rest = reserved.bytes().checked_sub(expected);
            assert!(rest.is_some_and(|rest| rest < 1_000), "{rest:?}");
        }
        engine.close().await;
    }

    #[tokio::test]
    async fn the_database_looks_through_20_000_records_at_once_for_ids() {
        let engine = engine_without_tasks().await;
        let id = engine.create_queue("q").await.unwrap();
        let queue = engine.known_queues().by_id(id).unwrap();
        let create = async |count: usize| {
            let more = (0..count).map(|_| {
                let (payload, state) = ("1".to_owned(), "null".to_owned());
                engine.create_record(&queue, payload, state)
            });
            for created in join_all(more).await {
                created.unwrap();
            }
        };
        let find = async |query: &str| {
            let query = Query::parse(query).unwrap();
            let window = engine.window(id, query.hint(), (0, -1)).await.unwrap();
            let found = engine.query_records(&queue, &query, 10).await.unwrap();
            let ids: Vec<i64> = found.iter().map(|record| record.id).collect();
            (window.is_some(), ids)
        };
        let most = usize::try_from(WINDOW_RECORDS).unwrap();
        create(most - 1).await;
        let last = format!(r#"[[">", "id", {}]]"#, most - 2);
        assert_eq!(find(&last).await, (false, vec![19_999]));
        create(2).await;
        assert_eq!(find(&last).await, (true, vec![19_999, 20_000, 20_001]));
        let most = format!(r#"[[">", "id", {most}]]"#);
        assert_eq!(find(&most).await, (true, vec![20_001]));
        let nowhere = r#"[["<", "id", 2], [">", "id", 2]]"#;
        assert!(find(nowhere).await.1.is_empty());
        assert_eq!(find("[]").await.1.len(), 10);
        engine.close().await;
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
