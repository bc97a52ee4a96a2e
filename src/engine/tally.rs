//! Counts and statistics: gathered as deltas while a group runs, folded in by a handful of statements
//! when it commits. Nobody ever counts the job table.

use std::collections::HashMap;

use super::clock::Time;
use super::job::{Job, QueueId, State};
use crate::store::Statement;

/// Slots of a histogram: 60 seconds, 59 minutes (from 1), 23 hours (from 1), 6 days (from 1; the last
/// one holds all that is longer). qless-core, "Stats", as its code has it.
pub const SLOTS: usize = 148;

/// Which duration is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// From put to claim.
    Wait = 0,
    /// From claim to completion.
    Run = 1,
}

/// Count, mean and sum of squared distances of some numbers (Welford), without the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub n: i64,
    pub mean: f64,
    pub m2: f64,
}

impl Moments {
    /// Takes one more number in.
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        let distance = value - self.mean;
        self.mean += distance / self.n as f64;
        self.m2 += distance * (value - self.mean);
    }
}

/// The slot of a duration in seconds; what is negative belongs to the first.
pub fn slot(seconds: f64) -> usize {
    let seconds = if seconds > 0.0 { seconds as u64 } else { 0 };
    let slot = match seconds {
        0..60 => seconds,
        60..3_600 => 59 + seconds / 60,
        3_600..86_400 => 118 + seconds / 3_600,
        _ => (141 + seconds / 86_400).min(SLOTS as u64 - 1),
    };
    slot as usize
}

/// What changed on one day in one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcomes {
    failures: i64,
    failed: i64,
    retries: i64,
}

/// The deltas of one group.
#[derive(Debug, Default)]
pub struct Tally {
    counts: HashMap<(QueueId, State), i64>,
    failures: HashMap<(String, QueueId), i64>,
    durations: HashMap<(QueueId, i64, Kind), Moments>,
    slots: HashMap<(QueueId, i64, Kind, usize), i64>,
    outcomes: HashMap<(QueueId, i64), Outcomes>,
}

impl Tally {
    /// `n` more (or fewer) jobs of `queue` are in `state`.
    pub fn count(&mut self, queue: QueueId, state: State, n: i64) {
        *self.counts.entry((queue, state)).or_default() += n;
    }

    /// A job was this before the group, and is that after it.
    pub fn recount(&mut self, before: Option<&Job>, after: Option<&Job>) {
        for (job, n) in [(before, -1), (after, 1)] {
            let Some(job) = job else { continue };
            self.count(job.queue, job.state, n);
            if let (State::Failed, Some(failure)) = (job.state, &job.failure) {
                *self
                    .failures
                    .entry((failure.group.clone(), job.queue))
                    .or_default() += n;
            }
        }
    }

    /// A job waited or ran for `seconds`, and ceased to do so at `now`.
    pub fn duration(&mut self, queue: QueueId, kind: Kind, seconds: f64, now: Time) {
        let day = now.day();
        self.durations
            .entry((queue, day, kind))
            .or_default()
            .add(seconds);
        *self
            .slots
            .entry((queue, day, kind, slot(seconds)))
            .or_default() += 1;
    }

    /// A job failed at `now`.
    pub fn failure(&mut self, queue: QueueId, now: Time) {
        let outcomes = self.outcomes.entry((queue, now.day())).or_default();
        outcomes.failures += 1;
        outcomes.failed += 1;
    }

    /// A job that failed at `failed_at` is failed no longer.
    pub fn failure_undone(&mut self, queue: QueueId, failed_at: Time) {
        self.outcomes
            .entry((queue, failed_at.day()))
            .or_default()
            .failed -= 1;
    }

    /// A lost lease was handed on, or ended the job, at `now`.
    pub fn lost(&mut self, queue: QueueId, now: Time) {
        self.outcomes.entry((queue, now.day())).or_default().retries += 1;
    }

    /// The statements that fold everything into the rows of `server`.
    pub fn into_statements(self, server: i64) -> Vec<Statement> {
        let counts: Vec<_> = (self.counts.iter())
            .filter(|(_, n)| **n != 0)
            .map(|((queue, state), n)| (queue, state.code(), n))
            .collect();
        let failures: Vec<_> = (self.failures.iter())
            .filter(|(_, n)| **n != 0)
            .map(|((group, queue), n)| (group, queue, n))
            .collect();
        let durations: Vec<_> = (self.durations.iter())
            .map(|((queue, day, kind), moments)| {
                (queue, day, *kind as u8, moments.n, moments.mean, moments.m2)
            })
            .collect();
        let slots: Vec<_> = (self.slots.iter())
            .map(|((queue, day, kind, slot), n)| (queue, day, *kind as u8, slot, n))
            .collect();
        let outcomes: Vec<_> = (self.outcomes.iter())
            .map(|((queue, day), sums)| (queue, day, sums.failures, sums.failed, sums.retries))
            .collect();
        let mut statements = Vec::new();
        let mut fold = |empty: bool, statement: Statement| {
            if !empty {
                statements.push(statement.with(server));
            }
        };
        fold(counts.is_empty(), Statement::of_rows(FOLD_COUNTS, &counts));
        fold(
            failures.is_empty(),
            Statement::of_rows(FOLD_FAILURES, &failures),
        );
        fold(
            durations.is_empty(),
            Statement::of_rows(FOLD_DURATIONS, &durations),
        );
        fold(
            slots.is_empty(),
            Statement::of_rows(FOLD_HISTOGRAMS, &slots),
        );
        fold(
            outcomes.is_empty(),
            Statement::of_rows(FOLD_OUTCOMES, &outcomes),
        );
        statements
    }
}

// `WHERE true` keeps SQLite from reading ON CONFLICT as the condition of a join.

const FOLD_COUNTS: &str = "
INSERT INTO counts (queue, state, server, n)
SELECT value->>0, value->>1, $2, value->>2 FROM json_each($1) WHERE true
ON CONFLICT (queue, state, server) DO UPDATE SET n = counts.n + excluded.n";

const FOLD_FAILURES: &str = "
INSERT INTO failure_counts (failure_group, queue, server, n)
SELECT value->>0, value->>1, $2, value->>2 FROM json_each($1) WHERE true
ON CONFLICT (failure_group, queue, server) DO UPDATE SET n = failure_counts.n + excluded.n";

// Two sets of numbers become one by Chan's formula for the sum of squared distances.
const FOLD_DURATIONS: &str = "
INSERT INTO durations (queue, day, kind, server, n, mean, m2)
SELECT value->>0, value->>1, value->>2, $2, value->>3, value->>4, value->>5
FROM json_each($1) WHERE true
ON CONFLICT (queue, day, kind, server) DO UPDATE SET
    n    = durations.n + excluded.n,
    mean = durations.mean
         + (excluded.mean - durations.mean) * excluded.n / (durations.n + excluded.n),
    m2   = durations.m2 + excluded.m2
         + (excluded.mean - durations.mean) * (excluded.mean - durations.mean)
         * durations.n * excluded.n / (durations.n + excluded.n)";

const FOLD_HISTOGRAMS: &str = "
INSERT INTO histograms (queue, day, kind, slot, server, n)
SELECT value->>0, value->>1, value->>2, value->>3, $2, value->>4 FROM json_each($1) WHERE true
ON CONFLICT (queue, day, kind, slot, server) DO UPDATE SET n = histograms.n + excluded.n";

const FOLD_OUTCOMES: &str = "
INSERT INTO outcomes (queue, day, server, failures, failed, retries)
SELECT value->>0, value->>1, $2, value->>2, value->>3, value->>4 FROM json_each($1) WHERE true
ON CONFLICT (queue, day, server) DO UPDATE SET
    failures = outcomes.failures + excluded.failures,
    failed   = outcomes.failed + excluded.failed,
    retries  = outcomes.retries + excluded.retries";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_seconds_minutes_hours_and_days() {
        assert_eq!(slot(-5.0), 0);
        assert_eq!(slot(0.9), 0);
        assert_eq!(slot(59.9), 59);
        assert_eq!(slot(60.0), 60);
        assert_eq!(slot(3_599.0), 118);
        assert_eq!(slot(3_600.0), 119);
        assert_eq!(slot(86_399.0), 141);
        assert_eq!(slot(86_400.0), 142);
        assert_eq!(slot(6.0 * 86_400.0), 147);
        assert_eq!(slot(1e12), SLOTS - 1);
    }

    #[test]
    fn moments_are_those_of_the_textbook() {
        let mut moments = Moments::default();
        (0..20).for_each(|value| moments.add(f64::from(value)));
        assert_eq!(moments.n, 20);
        assert!((moments.mean - 9.5).abs() < 1e-9);
        assert!(((moments.m2 / 19.0).sqrt() - 5.916_079_783).abs() < 1e-6);
    }
}
