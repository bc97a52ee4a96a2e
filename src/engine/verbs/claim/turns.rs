//! Round robin: the queue at which a worker's next claim starts.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use crate::engine::verbs::claim::Claim;

/// Combinations of worker and queues that are remembered.
const TURNS_MAX: usize = 10_000;

/// The next queue of each round-robin worker, by a hash of the worker and its queues, which may be long. Kept in
/// memory: after a restart, or when there are too many entries, workers start at their first queue again.
#[derive(Debug, Default)]
pub struct Turns {
    hashes: RandomState,
    turns: Mutex<HashMap<u64, usize>>,
}

impl Turns {
    /// The index of the queue at which the worker's next claim starts.
    pub fn next(&self, claim: &Claim) -> usize {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.get(&self.hash(claim)).copied().unwrap_or_default()
    }

    /// Sets the index of that queue.
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
