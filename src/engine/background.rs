//! Background tasks. If one ended silently, due jobs would stay scheduled, or alerts unsent, until the next start of the
//! server. So a task that panics is started again.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::sleep;

/// The time between a panic and the next start, so that a task that always panics does not fill the log.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs a task to its end. After a panic, starts it again.
pub async fn keep_running<F: Future<Output = ()>>(name: &'static str, task: impl Fn() -> F) {
    while AssertUnwindSafe(task()).catch_unwind().await.is_err() {
        tracing::error!(task = name, "a background task panicked; it starts again");
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_starts_again_after_a_pause() {
        let (starts, began) = (AtomicUsize::new(0), Instant::now());
        keep_running("test", || async {
            tokio::task::yield_now().await;
            let before = starts.fetch_add(1, Ordering::Relaxed);
            assert!(before == 2, "it panics twice");
        })
        .await;
        assert_eq!(starts.into_inner(), 3);
        assert_eq!(began.elapsed().as_secs(), 2, "it pauses after each panic");
    }
}
