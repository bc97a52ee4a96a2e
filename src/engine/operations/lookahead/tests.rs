//! Batch sizes of bulk operations.

use super::*;

/// The number of jobs in the first batch, for jobs of these sizes.
fn first_batch(sizes: impl IntoIterator<Item = i64>) -> usize {
    let target = |(n, bytes)| FoundJob {
        seq: n,
        bytes,
        key_and_queue: None,
    };
    let targets = (1..).zip(sizes).map(target).collect();
    Lookahead::new(0, targets, None).take(BATCH).len()
}

#[test]
fn a_batch_has_500_jobs() {
    for (jobs, expected) in [(499, 499), (500, 500), (501, 500)] {
        assert_eq!(first_batch(vec![1; jobs]), expected, "{jobs} jobs");
    }
}

#[test]
fn a_batch_has_4_mib_before_its_last_job() {
    for (first, expected) in [(4_194_303, 2), (4_194_304, 1), (4_194_305, 1)] {
        assert_eq!(first_batch([first, 1, 1]), expected, "{first} bytes");
    }
}

#[test]
fn a_batch_that_was_too_large_is_put_back_and_halved() {
    let target = |seq| FoundJob {
        seq,
        bytes: 1,
        key_and_queue: None,
    };
    let mut ahead = Lookahead::new(0, (0..700).map(target).collect(), None);
    for expected in [500, 250, 125, 62, 31, 15, 7, 3, 1, 1] {
        let batch = ahead.take(BATCH);
        let numbers: Vec<i64> = batch.iter().map(|target| target.seq).collect();
        assert_eq!(numbers, (0..expected).collect::<Vec<_>>());
        ahead.put_back(&batch, 0);
    }
    assert_eq!(ahead.targets.len(), 700);
}
