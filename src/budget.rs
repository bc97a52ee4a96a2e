//! Limits on the work and memory of a request. Every evaluator takes a [`Budget`] and pays for each step and each byte
//! before it processes it, so that no input can keep it busy for long.
//!
//! [`Budget`]: crate::budget::Budget

use std::fmt;
use std::marker::PhantomData;
use std::time::Instant;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, SeqAccess, Unexpected, Visitor};

/// Work between two reads of the clock: about 50 µs.
const CLOCK_EVERY: u64 = 4 * 1024;

/// The remaining work, in steps and bytes, and the deadline.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    remaining: u64,
    deadline: Option<Instant>,
    /// Work since the clock was read last.
    since_clock: u64,
}

/// Why an evaluation ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BudgetExceeded {
    /// The remaining work is exceeded.
    #[error("the work limit was reached")]
    Work,
    /// The deadline has passed.
    #[error("the time limit was reached")]
    Time,
    /// An expression produces a text that is longer than its language allows.
    #[error("a string it creates is too long")]
    Text,
}

impl Budget {
    /// `work` steps and bytes, without a deadline.
    pub fn new(work: u64) -> Budget {
        Budget {
            remaining: work,
            deadline: None,
            since_clock: 0,
        }
    }

    /// No limit, for input whose size is limited elsewhere.
    pub fn unlimited() -> Budget {
        Budget::new(u64::MAX)
    }

    /// Adds a deadline.
    pub fn with_deadline(self, deadline: Instant) -> Budget {
        Budget {
            deadline: Some(deadline),
            since_clock: CLOCK_EVERY,
            ..self
        }
    }

    /// The remaining steps and bytes.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Pays for steps or bytes.
    ///
    /// # Errors
    /// If `work` exceeds the remaining work or the deadline has passed.
    pub fn spend(&mut self, work: usize) -> Result<(), BudgetExceeded> {
        let work = work as u64;
        let remaining = self.remaining.checked_sub(work);
        self.remaining = remaining.unwrap_or_default();
        if remaining.is_none() {
            return Err(BudgetExceeded::Work);
        }
        self.since_clock = self.since_clock.saturating_add(work);
        if self.since_clock >= CLOCK_EVERY {
            self.since_clock = 0;
            if self.deadline.is_some_and(|at| Instant::now() >= at) {
                return Err(BudgetExceeded::Time);
            }
        }
        Ok(())
    }

    /// Calls `run` with at most `most` of the remaining work.
    pub fn with_part<T>(&mut self, most: u64, run: impl FnOnce(&mut Budget) -> T) -> T {
        let given = self.remaining.min(most);
        let mut part = Budget {
            remaining: given,
            ..*self
        };
        let result = run(&mut part);
        self.remaining -= given - part.remaining;
        self.since_clock = part.since_clock;
        result
    }
}

/// The elements of a JSON array, but at most one more than `MAX`: enough to see that there are too many, without the
/// memory for millions of them.
pub struct UpTo<const MAX: usize, T>(pub Vec<T>);

impl<'de, const MAX: usize, T: Deserialize<'de>> Deserialize<'de> for UpTo<MAX, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array<const MAX: usize, T>(PhantomData<T>);
        impl<'de, const MAX: usize, T: Deserialize<'de>> Visitor<'de> for Array<MAX, T> {
            type Value = UpTo<MAX, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while elements.len() <= MAX {
                    match array.next_element()? {
                        Some(element) => elements.push(element),
                        None => return Ok(UpTo(elements)),
                    }
                }
                while array.next_element::<IgnoredAny>()?.is_some() {}
                Ok(UpTo(elements))
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
                Err(wrong_text(&self))
            }
        }
        deserializer.deserialize_any(Array(PhantomData))
    }
}

/// The error of a visitor for a text of the wrong type. The usual one would repeat the text, however long.
pub fn wrong_text<E: de::Error>(expected: &dyn de::Expected) -> E {
    E::invalid_type(Unexpected::Other("string"), expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_with_its_work() {
        let mut budget = Budget::new(10);
        assert_eq!(budget.spend(10), Ok(()));
        assert_eq!(budget.spend(0), Ok(()));
        assert_eq!(budget.spend(1), Err(BudgetExceeded::Work));
        assert_eq!(budget.remaining(), 0);
    }

    #[test]
    fn a_budget_ends_at_its_deadline() {
        let mut budget = Budget::unlimited().with_deadline(Instant::now());
        assert_eq!(budget.spend(1), Err(BudgetExceeded::Time));
        assert_eq!(budget.spend(1), Ok(()), "the clock is read now and then");
        assert_eq!(budget.spend(4 * 1024), Err(BudgetExceeded::Time));
    }

    #[test]
    fn a_partial_budget_is_deducted_from_the_whole() {
        let mut budget = Budget::new(10);
        assert_eq!(
            budget.with_part(4, |part| part.spend(5)),
            Err(BudgetExceeded::Work)
        );
        assert_eq!(budget.remaining(), 6);
        assert_eq!(budget.with_part(9, |part| part.spend(6)), Ok(()));
        assert_eq!(budget.remaining(), 0);
    }

    #[test]
    fn of_too_many_elements_one_more_than_the_limit_is_kept() {
        for (text, kept) in [
            ("[]", 0),
            ("[1, 2]", 2),
            ("[1, 2, 3]", 3),
            ("[1,2,3,4,5]", 3),
        ] {
            let read: UpTo<2, i64> = serde_json::from_str(text).unwrap();
            assert_eq!(read.0.len(), kept, "{text}");
        }
        for text in ["[1, 2, 3, 4", "[1, 2, 3, x]", "[1, \"2\"]", "{}"] {
            let read = serde_json::from_str::<UpTo<2, i64>>(text);
            assert!(read.is_err(), "{text}");
        }
    }
}
