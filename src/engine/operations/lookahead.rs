//! The jobs found for a bulk operation, and how many of them a transaction processes.

use std::collections::VecDeque;

use crate::engine::model::job::{JobKey, QueueKey};
use crate::engine::operations::Skip;

/// Jobs per batch, and the limit on the size of their texts in bytes.
pub const BATCH: usize = 500;
pub const BATCH_BYTES: i64 = 4 << 20;

/// How many times a job may change between the match of its payload and the transaction.
const CHANGES_MAX: usize = 10;

/// A job found for an operation.
#[derive(Clone)]
pub struct FoundJob {
    pub seq: i64,
    pub bytes: i64,
    /// Its key and queue; `None` if it does not exist.
    pub key_and_queue: Option<(JobKey, QueueKey)>,
}

impl FoundJob {
    pub fn skip(&self, reason: String) -> Skip {
        let queue_and_id = |(key, queue): &(JobKey, QueueKey)| (queue.clone(), key.id.clone());
        Skip {
            job: self.seq,
            queue_and_id: self.key_and_queue.as_ref().map(queue_and_id),
            reason,
        }
    }
}

/// Jobs found for an operation, newest first.
pub struct Lookahead {
    /// The operation's `processed_down_to` for which this is valid.
    pub from: i64,
    pub targets: VecDeque<FoundJob>,
    /// Where the search continues, if there may be more.
    pub next: Option<i64>,
    /// The most jobs of a batch.
    batch_max: usize,
    /// How many times the first job has changed since its payload was matched.
    changes: usize,
}

impl Lookahead {
    pub fn new(from: i64, targets: VecDeque<FoundJob>, next: Option<i64>) -> Lookahead {
        Lookahead {
            from,
            targets,
            next,
            batch_max: BATCH,
            changes: 0,
        }
    }

    /// Takes the next batch, of up to `max` jobs.
    pub fn take(&mut self, max: usize) -> Vec<FoundJob> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < self.batch_max.min(max) && (bytes < BATCH_BYTES || batch.is_empty()) {
            let Some(target) = self.targets.pop_front() else {
                break;
            };
            bytes += target.bytes;
            batch.push(target);
        }
        batch
    }

    /// Puts back a batch whose jobs were too large for one transaction, so that smaller ones follow. `from` is the
    /// operation's `processed_down_to`.
    pub fn put_back(&mut self, batch: &[FoundJob], from: i64) {
        self.batch_max = (batch.len() / 2).max(1);
        self.return_all(batch, from);
    }

    /// Puts back the jobs of a batch after the first `processed` ones, to match their payloads again. `from` is the
    /// operation's `processed_down_to` before the batch.
    pub fn look_again(&mut self, batch: &[FoundJob], processed: usize, from: i64) {
        let (done, rest) = batch.split_at(processed.min(batch.len()));
        self.changes = match done {
            [] => self.changes + 1,
            _ => 0,
        };
        self.return_all(rest, done.last().map_or(from, |target| target.seq));
    }

    /// Whether the first job has changed too often.
    pub fn gives_up(&self) -> bool {
        self.changes >= CHANGES_MAX
    }

    fn return_all(&mut self, targets: &[FoundJob], from: i64) {
        self.from = from;
        for target in targets.iter().rev() {
            self.targets.push_front(target.clone());
        }
    }
}

#[cfg(test)]
mod tests;
