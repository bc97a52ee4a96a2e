//! Poll: sets the state of the least recently modified record that matches a query.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey};
use crate::engine::model::queue::Queue;
use crate::engine::model::record::{Record, key};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::jobq::advance::ATTEMPTS_MAX;
use crate::engine::verbs::jobq::candidates::Candidate;
use crate::engine::verbs::jobq::changes::{RecordMemory, set_state};
use crate::query::Query;
use crate::traces;

/// Candidates that one search returns, for all polls with the same query; fewer if they reach this many bytes.
const CANDIDATES: usize = 200;

const CANDIDATES_BYTES: usize = 4 << 20;

impl Engine {
    /// Sets the state of the least recently modified record that matches, if any. Concurrent polls get different
    /// records.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `LogFull`, `TooMuchWork`, `Busy`](Error), and [`Unavailable`](Error::Unavailable) if other
    /// clients always take the candidate first.
    pub async fn poll_record(
        &self,
        queue: &Queue,
        query: &Query,
        state: String,
    ) -> Result<Option<Record>> {
        let candidates = self.poll_candidates().of(queue.id, query.text());
        let mut memory = RecordMemory::default();
        for attempt in 0..ATTEMPTS_MAX {
            let find = || self.candidates(queue, query);
            // A query that depends on the time may match other records by now.
            let search_again =
                attempt > 0 || query.used_columns().time || self.poll_candidates().has_undo();
            let Some(guard) = candidates.next(search_again, find).await? else {
                return Ok(None);
            };
            let candidate = guard.candidate;
            let needs = Needs {
                poll_candidates: vec![candidate.seq],
                bytes: state.len(),
                ..Needs::default()
            };
            // Before the transaction, because nothing returns a record whose poll gets no response. The old state
            // moves to the log, and the new one is stored there, too.
            let bytes = candidate.bytes + 2 * state.len();
            memory.reserve(bytes, false).await?;
            let key = key(queue, candidate.id);
            let state = state.clone();
            let taken = self.write(needs, None, 1, move |work| {
                let polled = poll(work, &key, candidate.modified, &state)?;
                let job = work.job(&key).filter(|_| work.trace.is_some());
                let trace = job.and_then(|job| job.history.traceparent());
                Ok(polled.map(|record| (record, trace)))
            });
            if let Some((record, trace)) = taken.await? {
                traces::claimed(|| [trace.unwrap_or_default()]);
                return Ok(Some(record));
            }
        }
        Err(Error::Unavailable)
    }

    async fn candidates(&self, queue: &Queue, query: &Query) -> Result<Vec<Candidate>> {
        let found = self.find_records(queue, query, CANDIDATES, CANDIDATES_BYTES);
        let candidate = |record: Record| Candidate {
            seq: record.seq,
            id: record.id,
            modified: record.modified,
            bytes: record.bytes(),
        };
        Ok(found.await?.into_iter().map(candidate).collect())
    }
}

/// Sets the state of a record if its last change is still that at `since`; otherwise returns `None`. The record matched
/// when `since` was read, and each change changes that time, so the query need not be evaluated in the transaction.
///
/// # Errors
/// [`Error::LogFull`].
pub fn poll(
    work: &mut UnitOfWork,
    key: &JobKey,
    since: Time,
    state: &str,
) -> Result<Option<Record>> {
    let modified = |job: &Job| job.updated_at.unwrap_or(job.created_at);
    match work.job(key).map(modified) {
        Some(at) if at == since => set_state(work, key, state).map(Some),
        _ => Ok(None),
    }
}
