//! Round robin: which queue a worker claims from next.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use crate::engine::verbs::claim::Claim;

/// Workers and lists of queues of which is remembered whose turn it is.
const TURNS_MAX: usize = 10_000;

/// Whose turn it is where workers take from several queues in turn, by a hash of the worker and the queues, which may
/// be long. Kept in memory: after a restart, or when there are too many to remember, the first queue is the first
/// again.
#[derive(Debug, Default)]
pub struct Turns {
    hashes: RandomState,
    turns: Mutex<HashMap<u64, usize>>,
}

impl Turns {
    /// The number of the queue that the worker's next claim begins with.
    pub fn next(&self, claim: &Claim) -> usize {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.get(&self.hash(claim)).copied().unwrap_or_default()
    }

    /// Remembers it.
    pub fn set(&self, claim: &Claim, next: usize) {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= TURNS_MAX {
            turns.clear();
        }
        turns.insert(self.hash(claim), next);
    }

    fn hash(&self, claim: &Claim) -> u64 {
        self.hashes.hash_one((&claim.worker, &claim.queues))
    }
}
