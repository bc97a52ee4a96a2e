//! Candidates for polls. Concurrent polls with the same query would all find the same records, and all but one would
//! lose the race. So one of them searches for all, and each tries a different candidate.
//!
//! Candidates are tried in the order found: a record that matches later has just been modified, and is therefore behind
//! them. Only an undo restores records that were modified earlier; meanwhile, each poll searches. The transaction that
//! takes one checks that it is unmodified, so it still matches.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio::sync;
use tokio::time::timeout;

use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::QueueId;

/// Combinations of queue and query whose candidates are remembered.
const REMEMBERED_MAX: usize = 1_000;

/// How long candidates are used: over time, other records may match.
const FRESH: Duration = Duration::from_millis(500);

/// How long a poll waits for the searches of equal polls, one of which runs at a time.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A record that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    pub seq: i64,
    pub id: i64,
    /// When it was last modified.
    pub modified: Time,
    /// The size of its texts in bytes.
    pub bytes: usize,
}

/// The hash of a query's text, which may be long.
type QueryHash = [u8; 32];

/// The candidates of all queries, by queue and query.
#[derive(Debug, Default)]
pub struct PollCandidates {
    queries: Mutex<HashMap<(QueueId, QueryHash), Arc<QueryCandidates>>>,
    /// The undos that are restoring records.
    undos: AtomicUsize,
}

/// While this exists, polls search for themselves. Dropping it forgets what they found.
#[derive(Debug)]
pub struct UndoGuard<'a>(&'a PollCandidates);

impl Drop for UndoGuard<'_> {
    fn drop(&mut self) {
        self.0.queries().clear();
        self.0.undos.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The candidates of one query.
#[derive(Debug, Default)]
pub struct QueryCandidates {
    untried: sync::Mutex<UntriedCandidates>,
    /// Candidates that polls are trying now.
    tried: Mutex<HashSet<Candidate>>,
}

/// Candidates that no poll has tried yet.
#[derive(Debug, Default)]
struct UntriedCandidates {
    /// When the last search began, and whether it found nothing.
    searched: Option<(Instant, bool)>,
    found: VecDeque<Candidate>,
}

/// A candidate that one poll is trying, until this is dropped.
#[derive(Debug)]
pub struct CandidateGuard {
    pub candidate: Candidate,
    candidates: Arc<QueryCandidates>,
}

impl Drop for CandidateGuard {
    fn drop(&mut self) {
        self.candidates.tried().remove(&self.candidate);
    }
}

impl PollCandidates {
    pub fn of(&self, queue: QueueId, query: &str) -> Arc<QueryCandidates> {
        let hash = Sha256::digest(query).into();
        let mut candidates = self.queries();
        if candidates.len() >= REMEMBERED_MAX {
            candidates.clear();
        }
        let candidates = candidates.entry((queue, hash)).or_default();
        Arc::clone(candidates)
    }

    /// Begins to restore records.
    pub fn begin_undo(&self) -> UndoGuard<'_> {
        self.undos.fetch_add(1, Ordering::SeqCst);
        UndoGuard(self)
    }

    /// Whether records are being restored.
    pub fn has_undo(&self) -> bool {
        self.undos.load(Ordering::SeqCst) > 0
    }

    fn queries(&self) -> MutexGuard<'_, HashMap<(QueueId, QueryHash), Arc<QueryCandidates>>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueryCandidates {
    /// The next candidate, from those left or else from a new search (`find`); `None` if there is none. A poll whose
    /// last candidate was taken by another client asks for a new search (`search_again`).
    ///
    /// # Errors
    /// [`Error::Busy`], and those of the search.
    pub async fn next<F>(
        self: &Arc<Self>,
        search_again: bool,
        find: impl FnOnce() -> F,
    ) -> Result<Option<CandidateGuard>>
    where
        F: Future<Output = Result<Vec<Candidate>>>,
    {
        let arrived = Instant::now();
        let untried = timeout(WAIT_MAX, self.untried.lock()).await;
        let mut untried = untried.map_err(|_| Error::Busy)?;
        // A search that began after this poll arrived counts as its own.
        let (is_shared_search, found_nothing) = match untried.searched {
            Some((searched, found_nothing)) => (searched >= arrived, found_nothing),
            None => (false, false),
        };
        if is_shared_search && found_nothing {
            return Ok(None);
        }
        let is_fresh = untried
            .searched
            .is_some_and(|(searched, _)| searched.elapsed() < FRESH);
        if !is_fresh || search_again && !is_shared_search {
            untried.found.clear();
        }
        if untried.found.is_empty() {
            let searched = Instant::now();
            let found = find().await?;
            untried.searched = Some((searched, found.is_empty()));
            untried.found = self.without_tried(found);
        }
        let candidate = untried.found.pop_front();
        Ok(candidate.map(|candidate| {
            self.tried().insert(candidate);
            let candidates = Arc::clone(self);
            CandidateGuard {
                candidate,
                candidates,
            }
        }))
    }

    /// The candidates that no poll is trying. If polls are trying all of them, returns all, because those polls may
    /// disconnect.
    fn without_tried(&self, found: Vec<Candidate>) -> VecDeque<Candidate> {
        let tried = self.tried();
        let is_free = |candidate: &&Candidate| !tried.contains(*candidate);
        let free: VecDeque<_> = found.iter().filter(is_free).copied().collect();
        if free.is_empty() { found.into() } else { free }
    }

    fn tried(&self) -> MutexGuard<'_, HashSet<Candidate>> {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
