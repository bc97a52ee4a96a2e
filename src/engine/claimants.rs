//! The workers that last asked for jobs of each queue. Kept in memory, by each server for its own clients, so that
//! polling an empty queue writes nothing.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::model::job::QueueId;
use crate::engine::verbs::claim::Claim;

/// The workers that are remembered per queue.
const WORKERS_MAX: usize = 5;

/// The queues that are remembered. Beyond that, all are forgotten.
const QUEUES_MAX: usize = 10_000;

/// The last claims of each queue.
#[derive(Debug, Default)]
pub struct LastClaimsByQueue(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queues: HashMap<QueueId, LastClaims>,
    /// When queues were forgotten.
    forgotten_at: Option<Time>,
}

/// The last claims of a queue, whether or not they got jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastClaims {
    /// The last claim; if none is known, when the server started or forgot it.
    pub last: Time,
    /// Worker and time of its last claim, latest first; at most 5. Without workers that have no names.
    pub workers: Vec<(String, Time)>,
}

impl LastClaims {
    fn add(&mut self, worker: &str, now: Time) {
        self.last = self.last.max(now);
        if let Some(first) = self.workers.first_mut().filter(|(name, _)| name == worker) {
            first.1 = now;
            return;
        }
        if worker.is_empty() {
            return;
        }
        self.workers.retain(|(name, _)| name != worker);
        self.workers.truncate(WORKERS_MAX - 1);
        self.workers.insert(0, (worker.to_owned(), now));
    }
}

impl Engine {
    /// Notes that a worker asks for jobs.
    pub(in crate::engine) fn note_claim(&self, claim: &Claim, now: Option<Time>) {
        let now = self.now(now);
        let known = self.known_queues();
        let queues = claim.queues.iter().filter_map(|key| known.get(key));
        let ids: Vec<QueueId> = queues.map(|queue| queue.id).collect();
        let claims = &self.0.claimants.0;
        let mut claims = claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.queues.len() >= QUEUES_MAX {
            claims.queues.clear();
            claims.forgotten_at = Some(now);
        }
        for id in ids {
            let of_queue = claims.queues.entry(id).or_default();
            of_queue.add(&claim.worker, now);
        }
    }

    /// The queues whose jobs the worker has asked for, and when; only those of which it is one of the last five.
    pub(in crate::engine) fn claims_by(&self, worker: &str) -> HashMap<QueueId, Time> {
        let claims = &self.0.claimants.0;
        let claims = claims.lock().unwrap_or_else(PoisonError::into_inner);
        let of_worker = claims.queues.iter().filter_map(|(queue, last)| {
            let (_, at) = last.workers.iter().find(|(name, _)| name == worker)?;
            Some((*queue, *at))
        });
        of_worker.collect()
    }

    /// The last claims of a queue; `None` if other servers may have had claims.
    pub(in crate::engine) fn last_claims(&self, queue: QueueId) -> Option<LastClaims> {
        if self.peers().any() {
            return None;
        }
        let claims = &self.0.claimants.0;
        let claims = claims.lock().unwrap_or_else(PoisonError::into_inner);
        let found = claims.queues.get(&queue).cloned();
        Some(found.unwrap_or_else(|| LastClaims {
            last: claims.forgotten_at.unwrap_or(self.0.opened.at),
            workers: Vec::new(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_workers_that_asked_last_are_remembered() {
        let mut claims = LastClaims::default();
        for n in 0..7 {
            claims.add(&format!("w{n}"), Time(n));
        }
        claims.add("", Time(8));
        claims.add("w4", Time(9));
        claims.add("w4", Time(10));
        let found: Vec<_> = (claims.workers.iter())
            .map(|(name, at)| (name.as_str(), at.0))
            .collect();
        assert_eq!(
            found,
            [("w4", 10), ("w6", 6), ("w5", 5), ("w3", 3), ("w2", 2)]
        );
        assert_eq!(claims.last, Time(10));
    }
}
