//! How much work a request may do. Every evaluator takes a [`Budget`] and pays for each step and each byte before it
//! looks at it, so that no input can make it run for long.

use std::time::Instant;

/// Work between two looks at the clock: well under a millisecond.
const CLOCK_EVERY: u64 = 64 * 1024;

/// How much work may still be done: steps and bytes, and until when.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    left: u64,
    deadline: Option<Instant>,
    /// Work since the clock was read last.
    since_clock: u64,
}

/// The budget is used up, and the evaluation is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// More steps and bytes than the budget has.
    #[error("the work limit was reached")]
    Work,
    /// The deadline has passed.
    #[error("the time limit was reached")]
    Time,
    /// An expression makes a text that is longer than its language allows.
    #[error("a string it creates is too long")]
    Text,
}

impl Budget {
    /// So many steps and bytes, however long they take.
    pub fn new(work: u64) -> Budget {
        Budget {
            left: work,
            deadline: None,
            since_clock: 0,
        }
    }

    /// For what has a bound of its own.
    pub fn unlimited() -> Budget {
        Budget::new(u64::MAX)
    }

    /// The same until a moment.
    pub fn until(self, deadline: Instant) -> Budget {
        Budget {
            deadline: Some(deadline),
            since_clock: CLOCK_EVERY,
            ..self
        }
    }

    /// Steps and bytes that are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Pays for steps or bytes.
    ///
    /// # Errors
    /// [`Spent`], if that is more than is left or the deadline has passed.
    pub fn spend(&mut self, work: usize) -> Result<(), Spent> {
        let work = work as u64;
        let left = self.left.checked_sub(work);
        self.left = left.unwrap_or_default();
        if left.is_none() {
            return Err(Spent::Work);
        }
        self.since_clock = self.since_clock.saturating_add(work);
        if self.since_clock >= CLOCK_EVERY {
            self.since_clock = 0;
            if self.deadline.is_some_and(|at| Instant::now() >= at) {
                return Err(Spent::Time);
            }
        }
        Ok(())
    }

    /// Runs something that may use at most a part of the budget.
    pub fn part<T>(&mut self, most: u64, run: impl FnOnce(&mut Budget) -> T) -> T {
        let given = self.left.min(most);
        let mut part = Budget {
            left: given,
            ..*self
        };
        let result = run(&mut part);
        self.left -= given - part.left;
        self.since_clock = part.since_clock;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_with_its_work() {
        let mut budget = Budget::new(10);
        assert_eq!(budget.spend(10), Ok(()));
        assert_eq!(budget.spend(0), Ok(()));
        assert_eq!(budget.spend(1), Err(Spent::Work));
        assert_eq!(budget.left(), 0);
    }

    #[test]
    fn a_budget_ends_at_its_deadline() {
        let mut budget = Budget::unlimited().until(Instant::now());
        assert_eq!(budget.spend(1), Err(Spent::Time));
        assert_eq!(budget.spend(1), Ok(()), "the clock is read now and then");
        assert_eq!(budget.spend(64 * 1024), Err(Spent::Time));
    }

    #[test]
    fn a_part_is_taken_from_the_whole() {
        let mut budget = Budget::new(10);
        assert_eq!(budget.part(4, |part| part.spend(5)), Err(Spent::Work));
        assert_eq!(budget.left(), 6);
        assert_eq!(budget.part(9, |part| part.spend(6)), Ok(()));
        assert_eq!(budget.left(), 0);
    }
}
