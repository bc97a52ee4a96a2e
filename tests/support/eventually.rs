//! Waiting for a condition.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A guard against a condition that never becomes true; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How often a condition is checked again.
const INTERVAL: Duration = Duration::from_millis(20);

/// Waits until the condition is true. Panics after a timeout.
pub async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < WAIT_MAX, "not in time: {what}");
        sleep(INTERVAL).await;
    }
}
