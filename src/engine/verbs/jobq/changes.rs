//! Shared by the verbs on records: finding a record, and changing it with a log entry.

use crate::budget::{Budget, BudgetExceeded};
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::{EventKind, History};
use crate::engine::model::job::{Job, JobKey};
use crate::engine::model::queue::Queue;
use crate::engine::model::record::{Record, key, state_text, stored_state};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::memory::{self, SMALL_MAX};

/// The limits of a record's log, and the words for each in errors.
pub struct LogLimits {
    bytes: (usize, &'static str),
    events: (usize, &'static str),
}

/// For changes of the state.
const STATE_LIMITS: LogLimits = LogLimits {
    bytes: (1 << 20, "1 MiB"),
    events: (10_000, "10,000 events"),
};

/// For clients' own events, which leave room for changes of the state. Without it, a job could neither be completed nor
/// be retried.
pub const CLIENT_LIMITS: LogLimits = LogLimits {
    bytes: (960 << 10, "960 KiB, and 1 MiB for changes of the state"),
    events: (9_900, "9,900 events, and 10,000 for changes of the state"),
};

impl LogLimits {
    /// The limit that the log exceeds, if any.
    fn exceeded(&self, log: &History) -> Option<&'static str> {
        if log.as_text().len() > self.bytes.0 {
            Some(self.bytes.1)
        } else if log.is_longer_than(self.events.0) {
            Some(self.events.1)
        } else {
            None
        }
    }
}

/// A log of up to this size has fewer events than those of [`CLIENT_LIMITS`].
const SHORT_LOG: usize = 128 << 10;

/// Fails if the queue has been deleted, even if a new queue has its name.
pub fn check_queue(work: &UnitOfWork, queue: &Queue) -> Result<()> {
    match work.queue(&queue.key) {
        Some(found) if found.id == queue.id => Ok(()),
        _ => Err(no_such_queue(queue)),
    }
}

pub fn no_such_queue(queue: &Queue) -> Error {
    let name = queue.key.name.clone();
    Error::NoSuchQueue { name }
}

pub fn find_record<'w>(work: &'w UnitOfWork, queue: &Queue, id: i64) -> Result<(JobKey, &'w Job)> {
    check_queue(work, queue)?;
    let key = key(queue, id);
    match work.job(&key) {
        Some(job) => Ok((key, job)),
        None => Err(Error::NoSuchJob { id: key.id }),
    }
}

pub fn set_state(work: &mut UnitOfWork, key: &JobKey, new: &str) -> Result<Record> {
    change_with_log(work, key, &STATE_LIMITS, |job, now| {
        let old = state_text(job).to_owned();
        job.history
            .push(EventKind::Advanced, now, Some(&old), Some(new));
        job.work_state = stored_state(new);
    })
}

/// Whether the log of a record has room for a change of its state to `new`. Pays for the bytes that it copies.
///
/// # Errors
/// If they exceed the budget.
pub fn has_room(record: &Record, new: &str, budget: &mut Budget) -> Result<bool, BudgetExceeded> {
    let (log, old) = (&record.history, record.state_text());
    // In the log, a text is at least as long, and at most six times as long, because it is escaped.
    let (least, most) = (old.len() + new.len(), 6 * (old.len() + new.len()));
    if log.as_text().len() + most <= SHORT_LOG {
        return Ok(true);
    }
    if log.as_text().len() + least > STATE_LIMITS.bytes.0 {
        return Ok(false);
    }
    budget.spend(log.as_text().len() + most)?;
    let mut log = log.clone();
    log.push(EventKind::Advanced, record.modified, Some(old), Some(new));
    Ok(STATE_LIMITS.exceeded(&log).is_none())
}

/// Changes a record. `change` adds an event to its log, which must not exceed the limits after that.
pub fn change_with_log(
    work: &mut UnitOfWork,
    key: &JobKey,
    limits: &LogLimits,
    change: impl FnOnce(&mut Job, Time),
) -> Result<Record> {
    let id = || key.id.clone();
    let job = work.job(key).ok_or_else(|| Error::NoSuchJob { id: id() })?;
    let mut changed = job.clone();
    // Another server may have modified the record just after this transaction began. Times in a log do not decrease.
    let after_last = changed.updated_at.map(|at| Time(at.0.saturating_add(1)));
    let now = work.next_tick().max(after_last.unwrap_or_default());
    change(&mut changed, now);
    changed.updated_at = Some(now);
    if let Some(max) = limits.exceeded(&changed.history) {
        return Err(Error::LogFull { id: id(), max });
    }
    let record = Record::of(&changed);
    if let Some(job) = work.job_mut(key) {
        *job = changed;
    }
    Ok(record)
}

/// The memory that a request has reserved for the record in its response. Its attempts can find different records.
#[derive(Debug, Default)]
pub struct RecordMemory {
    reserved: usize,
}

impl RecordMemory {
    /// Reserves memory for a record of this size and for the response with it, if that is much more than earlier
    /// attempts have reserved. `is_loaded`: whether the record is in memory already ([`memory::reserve_loaded`]).
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub async fn reserve(&mut self, bytes: usize, is_loaded: bool) -> Result<()> {
        let more = (2 * bytes).saturating_sub(self.reserved);
        if more <= SMALL_MAX {
            return Ok(());
        }
        match is_loaded {
            true => Box::pin(memory::reserve_loaded(more)).await?,
            false => Box::pin(memory::reserve(more)).await?,
        }
        self.reserved += more;
        Ok(())
    }
}

pub fn needs_of_record(queue: &Queue, id: i64, bytes: usize) -> Needs {
    Needs {
        jobs: vec![key(queue, id)],
        bodies: true,
        bytes,
        ..Needs::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::engine_without_tasks;
    use crate::engine::verbs::jobq::advance::CompareAndSet;
    use crate::memory::of_request;
    use crate::query::Query;

    #[tokio::test]
    async fn memory_for_large_records_is_reserved_before_they_are_created_or_polled() {
        let engine = engine_without_tasks().await;
        let id = engine.create_queue("q").await.unwrap();
        let queue = engine.known_queues().by_id(id).unwrap();
        let payload = format!("\"{}\"", "x".repeat(SMALL_MAX));
        let is_reserved = |reserved: memory::Reserved| {
            assert!(memory::reserved() > 2 * SMALL_MAX);
            drop(reserved);
            assert_eq!(memory::reserved(), 0);
        };
        let text = |text: &str| text.to_owned();
        let create = || engine.create_record(&queue, payload.clone(), text("1"));
        let (created, reserved) = of_request(create()).await;
        is_reserved(reserved);
        created.unwrap();
        let query = Query::parse("[]").unwrap();
        let poll = || engine.poll_record(&queue, &query, text("2"));
        let (polled, reserved) = of_request(poll()).await;
        is_reserved(reserved);
        polled.unwrap().unwrap();
        let advance = engine.advance_record(&queue, 1, text("1"), text("3"));
        let (advanced, reserved) = of_request(advance).await;
        is_reserved(reserved);
        assert!(matches!(advanced, Ok(CompareAndSet::Differs(_))));
        // Without memory, nothing has happened.
        let all = memory::reserve_until_dropped(memory::MEMORY_MAX).await;
        let (created, polled) = tokio::join!(of_request(create()), of_request(poll()));
        assert!(matches!(created.0, Err(Error::Busy)));
        assert!(matches!(polled.0, Err(Error::Busy)));
        drop(all);
        let found = engine.query_records(&queue, &query, 10).await.unwrap();
        let states: Vec<_> = found.iter().map(Record::state_text).collect();
        assert_eq!(states, ["2"]);
        engine.close().await;
    }

    #[tokio::test]
    async fn attempts_of_a_request_reserve_memory_only_for_their_largest_record() {
        let reserve = async {
            let mut memory = RecordMemory::default();
            for (bytes, is_loaded) in [(300_000, false), (200_000, true), (400_000, true)] {
                memory.reserve(bytes, is_loaded).await.unwrap();
            }
        };
        let ((), _reserved) = of_request(reserve).await;
        assert_eq!(memory::reserved(), 800_000);
    }

    #[test]
    fn a_log_has_up_to_10000_events() {
        let mut log = History::default();
        for n in 1..=10_001 {
            log.push(EventKind::Event, Time(n), None, Some("1"));
            if n >= 9_999 {
                let expected = (n > 10_000).then_some("10,000 events");
                assert_eq!(STATE_LIMITS.exceeded(&log), expected, "{n} events");
            }
        }
    }

    #[test]
    fn a_log_has_up_to_1_mib() {
        let log = |detail: usize| {
            let mut log = History::default();
            log.push(EventKind::Created, Time(1), None, None);
            log.push(EventKind::Event, Time(2), None, Some(&"x".repeat(detail)));
            log
        };
        let around = log(0).as_text().len();
        for (bytes, expected) in [
            (1_048_575, None),
            (1_048_576, None),
            (1_048_577, Some("1 MiB")),
        ] {
            let log = log(bytes - around);
            assert_eq!(log.as_text().len(), bytes);
            assert_eq!(STATE_LIMITS.exceeded(&log), expected, "{bytes} bytes");
        }
    }
}
