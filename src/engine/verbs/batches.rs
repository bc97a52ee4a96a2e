//! Splits many jobs over several transactions.

use std::ops::Range;

use crate::engine::unit_of_work::Needs;

/// Jobs moved out of a list per transaction.
pub const MOVE_BATCH: usize = 250;

/// Bytes of the rows of jobs that a transaction moves out of a list or to another state, not counting the last job:
/// SQLite writes the whole row of a job with each change.
pub const MOVED_BYTES_MAX: usize = 4 << 20;

/// Items of one request per transaction. Writing that many takes about 10 ms.
pub const EACH_MAX: usize = 250;

/// Limits per transaction on the bytes of the items' bodies, and on their tags and dependencies. One item may exceed
/// them.
const EACH_BYTES_MAX: usize = 2 << 20;
const EACH_RELATIONS_MAX: usize = 1_000;

/// Limit per transaction on the searches for runs of cron expressions.
const EACH_SEARCHES_MAX: usize = 10;

/// What the next items need, from the place `done` on: as many as fit into a transaction, at most `max`. Also returns
/// their places.
pub fn next_needs<I>(
    items: &[I],
    done: usize,
    max: usize,
    need: impl Fn(&mut Needs, &I),
) -> (Needs, Range<usize>) {
    let (mut needs, mut next) = (Needs::default(), done);
    while let Some(item) = items.get(next)
        && next - done < max
        && has_room(&needs)
    {
        need(&mut needs, item);
        next += 1;
    }
    needs.divisible = next - done > 1;
    (needs, done..next)
}

/// Whether another item fits into a transaction with these needs.
fn has_room(needs: &Needs) -> bool {
    needs.bytes < EACH_BYTES_MAX
        && needs.relations < EACH_RELATIONS_MAX
        && needs.searches < EACH_SEARCHES_MAX
}

/// Up to `count` jobs in batches of up to `max`. A batch that is not full is the last.
pub struct Batches {
    left: usize,
    max: usize,
    pub done: usize,
}

impl Batches {
    pub fn of(count: usize, max: usize) -> Batches {
        Batches {
            left: count,
            max,
            done: 0,
        }
    }

    /// The size of the next batch; `None` at the end.
    pub fn next(&self) -> Option<usize> {
        (self.left > 0).then(|| self.left.min(self.max))
    }

    /// Records how many jobs of a batch were found that [`MOVED_BYTES_MAX`] limits. Unless there were none, there may be
    /// more.
    pub fn found_within_bytes(&mut self, found: usize) {
        self.left = match found {
            0 => 0,
            _ => self.left.saturating_sub(found),
        };
        self.done += found;
    }

    /// Records how many jobs of the batch were found. If the batch was not full, it was the last.
    pub fn found(&mut self, found: usize) {
        let all = self.next().is_some_and(|batch| found >= batch);
        self.left = if all { self.left - found } else { 0 };
        self.done += found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Put;
    use crate::engine::verbs::qless::put::need_of_put;

    #[test]
    fn payloads_of_2_mib_fill_a_transaction() {
        for (bytes, expected) in [(2_097_151, true), (2_097_152, false), (2_097_153, false)] {
            let needs = Needs {
                bytes,
                ..Needs::default()
            };
            assert_eq!(has_room(&needs), expected, "{bytes} bytes");
        }
    }

    #[test]
    fn a_batch_is_full_or_the_last() {
        for (count, expected) in [
            (0, vec![]),
            (249, vec![249]),
            (250, vec![250]),
            (251, vec![250, 1]),
        ] {
            let (mut batches, mut all) = (Batches::of(count, MOVE_BATCH), Vec::new());
            while let Some(batch) = batches.next() {
                batches.found(batch);
                all.push(batch);
            }
            assert_eq!((all, batches.done), (expected, count));
        }
        // A batch that is not full is the last.
        let mut batches = Batches::of(1_000, MOVE_BATCH);
        batches.found(249);
        assert_eq!((batches.next(), batches.done), (None, 249));
        // Unless the bytes of its jobs are limited.
        let mut batches = Batches::of(260, MOVE_BATCH);
        batches.found_within_bytes(5);
        assert_eq!((batches.next(), batches.done), (Some(250), 5));
        batches.found_within_bytes(0);
        assert_eq!((batches.next(), batches.done), (None, 5));
    }

    #[test]
    fn tags_and_dependencies_fill_a_transaction_as_jobs_do() {
        let put = |tags: usize, depends: usize| Put {
            tags: Some(vec!["a".to_owned(); tags].into_iter().collect()),
            depends: Some(vec!["a".to_owned(); depends]),
            ..Put::default()
        };
        let has_room = |put: Put| {
            let mut needs = Needs::default();
            need_of_put(&mut needs, &put);
            has_room(&needs)
        };
        assert!(has_room(put(999, 0)) && has_room(put(0, 999)) && has_room(put(499, 500)));
        assert!(!has_room(put(1_000, 0)) && !has_room(put(0, 1_000)) && !has_room(put(500, 500)));
    }
}
