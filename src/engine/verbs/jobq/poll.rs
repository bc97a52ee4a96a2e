//! Poll: sets the state of the least recently modified record that matches a query.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::budget::Budget;
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey};
use crate::engine::model::queue::Queue;
use crate::engine::model::record::{Record, key};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::jobq::advance::ATTEMPTS_MAX;
use crate::engine::verbs::jobq::candidates::Candidate;
use crate::engine::verbs::jobq::changes::{RecordMemory, has_room, set_state};
use crate::query::Query;
use crate::traces;

/// Candidates that one search returns, for all polls with the same query; fewer if they reach this many bytes.
const CANDIDATES: usize = 200;

const CANDIDATES_BYTES: usize = 4 << 20;

/// Records with full logs that a poll passes over. They were found by a poll with a shorter state.
const FULL_MAX: usize = 10;

impl Engine {
    /// Sets the state of the least recently modified record that matches, if any. Concurrent polls get different
    /// records. A few records whose logs are full are passed over, if there is another one.
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
        let mut full = HashMap::new();
        for attempt in 0..ATTEMPTS_MAX {
            let find = || self.candidates(queue, query, &state);
            // A query that depends on the time may match other records by now. A search would find the full ones again.
            let search_again = full.is_empty()
                && (attempt > 0 || query.used_columns().time || self.poll_candidates().has_undo());
            let Some(guard) = candidates.next(search_again, find).await? else {
                return Ok(None);
            };
            let candidate = guard.candidate;
            if let Some(error) = full.remove(&candidate.seq) {
                return Err(error);
            }
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
            match taken.await {
                Ok(Some((record, trace))) => {
                    traces::claimed(|| [trace.unwrap_or_default()]);
                    return Ok(Some(record));
                }
                Ok(None) => {}
                Err(error @ Error::LogFull { .. }) if full.len() < FULL_MAX => {
                    full.insert(candidate.seq, error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Unavailable)
    }

    /// Records that match and whose logs have room for the state. If there are none, one without room, so that the poll
    /// returns its error.
    async fn candidates(
        &self,
        queue: &Queue,
        query: &Query,
        state: &str,
    ) -> Result<Vec<Candidate>> {
        let (state, full) = (Arc::<str>::from(state), Arc::new(OnceLock::new()));
        let first_full = Arc::clone(&full);
        let keep = move |record: &Record, budget: &mut Budget| {
            let has_room = has_room(record, &state, budget)?;
            if !has_room {
                first_full.get_or_init(|| candidate(record));
            }
            Ok(has_room)
        };
        let found = self.find_records(queue, query, keep, CANDIDATES, CANDIDATES_BYTES);
        let mut found: Vec<Candidate> = found.await?.iter().map(candidate).collect();
        if found.is_empty() {
            found.extend(full.get());
        }
        Ok(found)
    }
}

fn candidate(record: &Record) -> Candidate {
    Candidate {
        seq: record.seq,
        id: record.id,
        modified: record.modified,
        bytes: record.bytes(),
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
