//! Durations of recent commits.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of commits that are remembered.
const COMMITS_MAX: usize = 512;

/// How long a commit counts.
const WINDOW: Duration = Duration::from_secs(60);

/// Minimum number of commits for which a percentile is reported.
const COMMITS_MIN: usize = 5;

#[derive(Debug, Default)]
pub struct CommitTimes(Mutex<VecDeque<(Instant, Duration)>>);

impl CommitTimes {
    /// Records a commit that began at `began` and ended now. Returns how long it took.
    pub fn record(&self, began: Instant) -> Duration {
        let now = Instant::now();
        let took = now - began;
        self.add(now, took);
        took
    }

    fn add(&self, now: Instant, took: Duration) {
        let mut commits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if commits.len() >= COMMITS_MAX {
            commits.pop_front();
        }
        commits.push_back((now, took));
    }

    /// The 95th percentile of commit durations in the last minute; `None` with fewer than 5 commits.
    pub fn p95(&self) -> Option<Duration> {
        let commits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = commits.iter().filter(|(at, _)| at.elapsed() < WINDOW);
        let mut took: Vec<Duration> = recent.map(|(_, took)| *took).collect();
        took.sort_unstable();
        if took.len() < COMMITS_MIN {
            return None;
        }
        took.get((took.len() * 95).div_ceil(100) - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p95_needs_5_commits_and_covers_the_last_512() {
        let commits = CommitTimes::default();
        let now = Instant::now();
        for ms in 1..=100 {
            assert_eq!(commits.p95().is_some(), ms > COMMITS_MIN as u64);
            commits.add(now, Duration::from_millis(10 * ms));
        }
        assert_eq!(commits.p95(), Some(Duration::from_millis(950)));
        (0..2 * COMMITS_MAX).for_each(|_| commits.add(now, Duration::from_millis(1)));
        assert_eq!(commits.p95(), Some(Duration::from_millis(1)));
    }
}
