//! Expected sizes of Jobq records. A request of few bytes may change a record of megabytes, so transactions are bounded
//! by what they load. That size is known only for queues whose records were loaded before.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::engine::model::job::QueueId;

/// Records smaller than this count as one item.
const SMALL: usize = 64 * 1024;

/// Queues that are remembered.
const QUEUES_MAX: usize = 10_000;

/// Recent sizes of large records, by queue.
#[derive(Debug, Default)]
pub struct RecordSizes(Mutex<HashMap<QueueId, usize>>);

impl RecordSizes {
    /// The expected size in bytes of a record of the queue: that of recent ones, or 0 if they were small.
    pub fn expected(&self, queue: QueueId) -> usize {
        let sizes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.get(&queue).copied().unwrap_or_default()
    }

    /// Updates the expectation from loaded records. It decays slowly after a large one.
    pub fn note(&self, records: impl Iterator<Item = (QueueId, usize)>) {
        let mut records = records.peekable();
        if records.peek().is_none() {
            return;
        }
        let mut sizes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (queue, bytes) in records {
            let before = sizes.get(&queue).copied().unwrap_or_default();
            let expected = bytes.max(before - before / 8);
            if expected < SMALL {
                sizes.remove(&queue);
            } else if before > 0 || sizes.len() < QUEUES_MAX {
                sizes.insert(queue, expected);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_record_is_expected_until_several_small_ones_were_loaded() {
        let sizes = RecordSizes::default();
        let note = |bytes| sizes.note([(1, bytes)].into_iter());
        note(100);
        assert_eq!(sizes.expected(1), 0);
        note(1 << 20);
        note(100);
        assert_eq!((sizes.expected(1), sizes.expected(2)), (7 << 17, 0));
        (0..20).for_each(|_| note(100));
        assert_eq!(sizes.expected(1), 0);
    }
}
