//! Pauses between attempts.

use std::time::Duration;

use crate::client::Error;

/// The first pause.
const FIRST: Duration = Duration::from_millis(250);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(15);

/// Pauses that double, each shortened by a random part, so that the workers of a server that was away do not return at
/// the same moment.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    pub fn new() -> Backoff {
        Backoff { next: FIRST }
    }

    /// Waits before the next attempt, at least as long as the server asked for, up to 15 s.
    pub async fn pause(&mut self, error: &Error) {
        tokio::time::sleep(self.next(error.retry_after())).await;
    }

    fn next(&mut self, asked: Option<Duration>) -> Duration {
        let longest = self.next;
        self.next = (longest * 2).min(LONGEST);
        let half = longest / 2;
        let pause = half + half.mul_f64(random());
        pause.max(asked.unwrap_or_default().min(LONGEST))
    }
}

/// A random number from 0 to 1.
fn random() -> f64 {
    let mut byte = [0; 1];
    // Without random numbers, the pauses are just less spread.
    getrandom::fill(&mut byte).ok();
    f64::from(byte[0]) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_respect_the_server() {
        let mut backoff = Backoff::new();
        let mut longest = FIRST;
        for _ in 0..10 {
            let pause = backoff.next(None);
            assert!((longest / 2..=longest).contains(&pause), "{pause:?}");
            longest = (longest * 2).min(LONGEST);
        }
        assert_eq!(longest, LONGEST);
        assert!(Backoff::new().next(Some(Duration::from_secs(2))) == Duration::from_secs(2));
        assert!(Backoff::new().next(Some(Duration::from_secs(3600))) == LONGEST);
    }
}
