//! Durations of recent commits.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Commits that are remembered, how long they count, and the fewest for which a percentile is reported.
const KEPT_MAX: usize = 512;
const KEPT: Duration = Duration::from_secs(60);
const TOLD_MIN: usize = 5;

#[derive(Debug, Default)]
pub struct CommitTimes(Mutex<VecDeque<(Instant, Duration)>>);

impl CommitTimes {
    /// Records a commit that began at `began` and ended now.
    pub fn record(&self, began: Instant) {
        let now = Instant::now();
        self.ended(now, now - began);
    }

    fn ended(&self, now: Instant, took: Duration) {
        let mut commits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if commits.len() >= KEPT_MAX {
            commits.pop_front();
        }
        commits.push_back((now, took));
    }

    /// The 95th percentile of commit durations in the last minute; `None` with fewer than 5 commits.
    pub fn p95(&self) -> Option<Duration> {
        let commits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = commits.iter().filter(|(at, _)| at.elapsed() < KEPT);
        let mut took: Vec<Duration> = recent.map(|(_, took)| *took).collect();
        took.sort_unstable();
        if took.len() < TOLD_MIN {
            return None;
        }
        took.get((took.len() * 95).div_ceil(100) - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nineteen_of_twenty_commits_are_told_of() {
        let commits = CommitTimes::default();
        let now = Instant::now();
        for ms in 1..=100 {
            assert_eq!(commits.p95().is_some(), ms > TOLD_MIN as u64);
            commits.ended(now, Duration::from_millis(10 * ms));
        }
        assert_eq!(commits.p95(), Some(Duration::from_millis(950)));
        (0..2 * KEPT_MAX).for_each(|_| commits.ended(now, Duration::from_millis(1)));
        assert_eq!(commits.p95(), Some(Duration::from_millis(1)));
    }
}
