//! What polls choose from. Those who poll at the same time with the same query would all find the same records, and
//! all but one come too late; so one of them looks for all, and each tries another of what was found.
//!
//! What was found stays in order: a record that comes to match later has just been touched, and is behind it. The group
//! that takes one checks that it is untouched: then it still matches.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio::sync;

use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::QueueId;

/// Queues and queries of which is remembered what was found.
const REMEMBERED_MAX: usize = 1_000;

/// For how long: with time, what matches may change by itself.
const FRESH: Duration = Duration::from_millis(500);

/// A record that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    pub seq: i64,
    pub id: i64,
    /// When it had been touched last.
    pub modified: Time,
}

/// The hash of a query's text, which may be long.
type QueryHash = [u8; 32];

/// All choices, by queue and query.
#[derive(Debug, Default)]
pub struct PollCandidates(Mutex<HashMap<(QueueId, QueryHash), Arc<QueryCandidates>>>);

/// What was found for a query.
#[derive(Debug, Default)]
pub struct QueryCandidates {
    untried: sync::Mutex<Untried>,
    /// What somebody tries at the moment.
    tried: Mutex<HashSet<Candidate>>,
}

/// What nobody has tried yet.
#[derive(Debug, Default)]
struct Untried {
    /// When somebody began to look, and whether there was nothing at all.
    looked: Option<(Instant, bool)>,
    found: VecDeque<Candidate>,
}

/// A record that one poll tries.
#[derive(Debug)]
pub struct CandidateGuard {
    pub candidate: Candidate,
    choice: Arc<QueryCandidates>,
}

impl Drop for CandidateGuard {
    fn drop(&mut self) {
        self.choice.tried().remove(&self.candidate);
    }
}

impl PollCandidates {
    pub fn of(&self, queue: QueueId, query: &str) -> Arc<QueryCandidates> {
        let hash = Sha256::digest(query).into();
        let mut choices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if choices.len() >= REMEMBERED_MAX {
            choices.clear();
        }
        let choice = choices.entry((queue, hash)).or_default();
        Arc::clone(choice)
    }
}

impl QueryCandidates {
    /// The next record to try, of those that are left or else of those that `find` finds; `None` if there is none.
    /// Who came too late for what was found wants it `anew`.
    pub async fn next<F>(
        self: &Arc<Self>,
        anew: bool,
        find: impl FnOnce() -> F,
    ) -> Result<Option<CandidateGuard>>
    where
        F: Future<Output = Result<Vec<Candidate>>>,
    {
        let came = Instant::now();
        let mut left = self.untried.lock().await;
        // Whoever began to look while we stood in line looked for us, too.
        let (for_us, nothing) = match left.looked {
            Some((looked, nothing)) => (looked >= came, nothing),
            None => (false, false),
        };
        if for_us && nothing {
            return Ok(None);
        }
        let is_fresh = left
            .looked
            .is_some_and(|(looked, _)| looked.elapsed() < FRESH);
        if !is_fresh || anew && !for_us {
            left.found.clear();
        }
        if left.found.is_empty() {
            let looked = Instant::now();
            let found = find().await?;
            left.looked = Some((looked, found.is_empty()));
            left.found = self.without_tried(found);
        }
        let candidate = left.found.pop_front();
        Ok(candidate.map(|candidate| {
            self.tried().insert(candidate);
            let choice = Arc::clone(self);
            CandidateGuard { candidate, choice }
        }))
    }

    /// Those of them that nobody tries; or if somebody tries each of them, all, for who tries may hang up.
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
