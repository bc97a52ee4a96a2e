//! Round robin: the queue at which a worker's next claim starts.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use crate::engine::verbs::claim::Claim;

/// Combinations of worker and queues that are remembered.
const ENTRIES_MAX: usize = 10_000;

/// The next queue of each round-robin worker, by a hash of the worker and its queues, which may be long. Kept in
/// memory: after a restart, or when there are too many entries, workers start at their first queue again.
#[derive(Debug, Default)]
pub struct RoundRobin {
    hashes: RandomState,
    next_queues: Mutex<HashMap<u64, usize>>,
}

impl RoundRobin {
    /// The index of the queue at which the worker's next claim starts.
    pub fn next(&self, claim: &Claim) -> usize {
        let next_queues = self
            .next_queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        next_queues
            .get(&self.hash(claim))
            .copied()
            .unwrap_or_default()
    }

    /// Sets the index of that queue.
    pub fn set(&self, claim: &Claim, next: usize) {
        let mut next_queues = self
            .next_queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if next_queues.len() >= ENTRIES_MAX {
            next_queues.clear();
        }
        next_queues.insert(self.hash(claim), next);
    }

    fn hash(&self, claim: &Claim) -> u64 {
        self.hashes.hash_one((&claim.worker, &claim.queues))
    }
}
