//! Many jobs in several transactions.

/// Up to so many jobs, a batch at a time, until a batch finds fewer than it might.
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

    /// How many the next batch is to take.
    pub fn next(&self) -> Option<usize> {
        (self.left > 0).then(|| self.left.min(self.max))
    }

    pub fn found(&mut self, found: usize) {
        let all = self.next().is_some_and(|batch| found >= batch);
        self.left = if all { self.left - found } else { 0 };
        self.done += found;
    }
}
