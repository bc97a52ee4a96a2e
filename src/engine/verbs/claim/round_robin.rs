//! Round robin: the queue at which a worker's next claim starts.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::engine::model::job::QueueKey;
use crate::engine::verbs::claim::{Claim, Order};

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
    fn next_queues(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        let next_queues = self.next_queues.lock();
        next_queues.unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of the queue at which the worker's next claim starts.
    fn next(&self, worker_and_queues: u64) -> usize {
        let next = self.next_queues().get(&worker_and_queues).copied();
        next.unwrap_or_default()
    }

    /// Sets the index of that queue.
    fn set(&self, worker_and_queues: u64, next: usize) {
        let mut next_queues = self.next_queues();
        if next_queues.len() >= ENTRIES_MAX {
            next_queues.clear();
        }
        next_queues.insert(worker_and_queues, next);
    }
}

/// The turns of one round-robin claim.
pub struct Turns<'a> {
    of: &'a RoundRobin,
    /// A hash of the worker and its queues.
    worker_and_queues: u64,
    queues: Vec<QueueKey>,
}

impl Turns<'_> {
    /// Moves the queue whose turn it is to the beginning of the claim's queues. `None` for another order.
    pub fn begin<'a>(of: &'a RoundRobin, claim: &mut Claim) -> Option<Turns<'a>> {
        if claim.order != Order::RoundRobin || claim.queues.is_empty() {
            return None;
        }
        let worker_and_queues = of.hashes.hash_one((&claim.worker, &claim.queues));
        let turns = Turns {
            of,
            worker_and_queues,
            queues: claim.queues.clone(),
        };
        let next = of.next(worker_and_queues) % claim.queues.len();
        claim.queues.rotate_left(next);
        Some(turns)
    }

    /// Has the worker's next claim start after the queue of the last job.
    pub fn set_last(&self, last: Option<&QueueKey>) {
        let of_last = |last: &QueueKey| self.queues.iter().position(|queue| queue == last);
        if let Some(last) = last.and_then(of_last) {
            let next = (last + 1) % self.queues.len();
            self.of.set(self.worker_and_queues, next);
        }
    }
}
