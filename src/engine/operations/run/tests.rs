//! Batch sizes of bulk operations.

use super::*;

/// The number of jobs in the first batch, for jobs of these sizes.
fn first_batch(sizes: impl IntoIterator<Item = i64>) -> usize {
    let target = |(n, bytes)| Target {
        seq: n,
        bytes,
        key_and_queue: None,
    };
    let mut ahead = Lookahead {
        from: 0,
        targets: (1..).zip(sizes).map(target).collect(),
        next: None,
    };
    ahead.take().len()
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
