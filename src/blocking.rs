//! Work that takes milliseconds, because a request or a response is large, without delaying other requests.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::ready;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task_local;
use tokio_util::sync::PollSemaphore;

/// Number of entries above which processing them takes a millisecond or more.
const MANY_ENTRIES: usize = 2_000;

/// Steps of [`poll_blocking`] that run at the same time.
const STEPS_AT_ONCE: usize = 2;
static STEPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(STEPS_AT_ONCE)));

task_local! {
    /// Set within [`poll_blocking`].
    static BLOCKING: ();
}

/// Runs work that takes milliseconds because a request or a response is large. The runtime moves the other tasks of this
/// thread to another thread.
pub fn block_in_place<T>(run: impl FnOnce() -> T) -> T {
    // It panics on a runtime with a single thread.
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(run),
        _ => run(),
    }
}

/// Runs work on `entries` entries, such as rows or queues: [blocking](block_in_place) if they are thousands.
pub fn block_in_place_if_many<T>(entries: usize, run: impl FnOnce() -> T) -> T {
    match entries > MANY_ENTRIES {
        true => block_in_place(run),
        false => run(),
    }
}

/// Polls a future [blocking](block_in_place), because each of its steps can take milliseconds. Few such steps run at the
/// same time, so that they leave the processors to the writer and to other requests.
pub async fn poll_blocking<F: Future>(future: F) -> F::Output {
    // A step within another one must not wait for its permit.
    if BLOCKING.try_with(|()| ()).is_ok() {
        return future.await;
    }
    let mut future = pin!(BLOCKING.scope((), future));
    let mut steps = PollSemaphore::new(Arc::clone(&STEPS));
    poll_fn(|context| {
        let _permit = ready!(steps.poll_acquire(context));
        block_in_place(|| future.as_mut().poll(context))
    })
    .await
}

/// Like [`poll_blocking`], if there are thousands of entries; otherwise the steps are short.
pub async fn poll_blocking_if_many<F: Future>(entries: usize, future: F) -> F::Output {
    match entries > MANY_ENTRIES {
        true => poll_blocking(future).await,
        false => future.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each waits for the other between its steps, and contains another one.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_futures_are_polled_while_they_wait_for_each_other() {
        let all = Arc::new(tokio::sync::Barrier::new(9));
        let polled = (0..9).map(|_| {
            let all = Arc::clone(&all);
            tokio::spawn(poll_blocking(poll_blocking(async move {
                all.wait().await;
            })))
        });
        for done in polled.collect::<Vec<_>>() {
            done.await.unwrap();
        }
        assert_eq!(STEPS.available_permits(), STEPS_AT_ONCE);
    }
}
