//! Reads that count all jobs, workers or failures, so that their cost grows with what is stored. One of them runs at a
//! time, and requests that wait for the same one share its result.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::queries::failures::{FailureGroup, FailureTotals};
use crate::engine::queries::queues::QueueCounts;
use crate::engine::queries::search::plan::CountedJobs;
use crate::engine::queries::workers::WorkerCounts;
use crate::memory::holding;

/// How long a request waits for the reads of others.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The shared reads.
#[derive(Debug, Default)]
pub struct SharedReads {
    /// Held by the one that runs.
    turn: Arc<AsyncMutex<()>>,
    pub queues: SharedRead<Option<Time>, Vec<QueueCounts>>,
    pub counted_jobs: SharedRead<(), Vec<CountedJobs>>,
    pub workers: SharedRead<Option<Time>, Vec<WorkerCounts>>,
    pub failures: SharedRead<(), Vec<FailureGroup>>,
    pub failure_counts: SharedRead<(), Vec<(String, i64)>>,
    pub largest_failures: SharedRead<usize, (Vec<FailureGroup>, FailureTotals)>,
}

/// A read with arguments `K` and the result `T`.
#[derive(Debug)]
pub struct SharedRead<K, T> {
    /// How many have begun.
    begun: AtomicU64,
    /// Requests that wait for a result. Without any, none is kept.
    waiting: AtomicUsize,
    last: Mutex<Option<SharedResult<K, T>>>,
}

#[derive(Debug)]
struct SharedResult<K, T> {
    /// The value of [`SharedRead::begun`] when its read began.
    number: u64,
    arguments: K,
    result: Arc<T>,
}

impl<K, T> Default for SharedRead<K, T> {
    fn default() -> Self {
        SharedRead {
            begun: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            last: Mutex::new(None),
        }
    }
}

impl<K: PartialEq, T> SharedRead<K, T> {
    fn lock(&self) -> MutexGuard<'_, Option<SharedResult<K, T>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result of the last read, if it had these arguments and began after so many others.
    fn begun_after(&self, number: u64, arguments: &K) -> Option<Arc<T>> {
        let last = self.lock();
        let last = (last.as_ref()).filter(|it| it.number > number && it.arguments == *arguments);
        last.map(|it| Arc::clone(&it.result))
    }
}

/// Counts a request that waits.
struct Waiting<'a, K: PartialEq, T>(&'a SharedRead<K, T>);

impl<'a, K: PartialEq, T> Waiting<'a, K, T> {
    fn begin(shared: &'a SharedRead<K, T>) -> Self {
        shared.waiting.fetch_add(1, Ordering::AcqRel);
        Waiting(shared)
    }
}

impl<K: PartialEq, T> Drop for Waiting<'_, K, T> {
    fn drop(&mut self) {
        let mut last = self.0.lock();
        if self.0.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            *last = None;
        }
    }
}

impl Engine {
    /// The result of `read`, which counts something, or of the same read for another request. The latter has begun after
    /// this call, so that its result contains all that was committed before.
    ///
    /// Guests wait as all others do, and share their results: so `read` must not use the readers for guests.
    ///
    /// # Errors
    /// [`Error::Busy`], if reads of others take too long; those of `read`.
    pub(super) async fn share<K: PartialEq, T>(
        &self,
        of: impl FnOnce(&SharedReads) -> &SharedRead<K, T>,
        arguments: K,
        read: BoxFuture<'_, Result<T>>,
    ) -> Result<Arc<T>> {
        let reads = &self.0.long_reads.shared;
        let shared = of(reads);
        let _waiting = Waiting::begin(shared);
        let before = shared.begun.load(Ordering::Acquire);
        let turn = timeout(WAIT_MAX, Arc::clone(&reads.turn).lock_owned()).await;
        let turn = turn.map_err(|_| Error::Busy)?;
        if let Some(result) = shared.begun_after(before, &arguments) {
            return Ok(result);
        }
        let number = shared.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let read = async {
            let result = Arc::new(read.await?);
            // While the turn is held: the next request looks for it.
            *shared.lock() = Some(SharedResult {
                number,
                arguments,
                result: Arc::clone(&result),
            });
            Ok(result)
        };
        holding(turn, read).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::{Barrier, Notify};

    use super::*;
    use crate::engine::engine_without_tasks;

    #[tokio::test]
    async fn requests_that_wait_for_the_same_read_share_the_next_one() {
        let engine = engine_without_tasks().await;
        let (reads, go) = (AtomicUsize::new(0), Notify::new());
        let read = async |limit: usize| {
            let count = async {
                reads.fetch_add(1, Ordering::AcqRel);
                go.notified().await;
                Ok((Vec::new(), FailureTotals::default()))
            };
            let shared = engine.share(|it| &it.largest_failures, limit, Box::pin(count));
            shared.await.unwrap()
        };
        let running = || &engine.0.long_reads.shared.largest_failures;
        // The first one has begun before the others come, which share the second; but not with other arguments.
        let others = async {
            while reads.load(Ordering::Acquire) == 0 {
                tokio::task::yield_now().await;
            }
            let all = futures::future::join3(read(1), read(1), read(2));
            let ends = async {
                for _ in 0..3 {
                    go.notify_one();
                    tokio::task::yield_now().await;
                }
            };
            tokio::join!(all, ends).0
        };
        let (first, (second, third, of_two)) = tokio::join!(read(1), others);
        assert_eq!(reads.load(Ordering::Acquire), 3);
        assert!(Arc::ptr_eq(&second, &third));
        assert!(!Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&third, &of_two));
        assert!(running().lock().is_none(), "nothing is kept");
        engine.close().await;
    }

    #[tokio::test]
    async fn one_shared_read_runs_at_a_time_and_others_wait_for_5_seconds() {
        let engine = engine_without_tasks().await;
        tokio::time::pause();
        let begun = Barrier::new(2);
        let count = async {
            begun.wait().await;
            std::future::pending::<Result<Vec<FailureGroup>>>().await
        };
        let endless = engine.share(|it| &it.failures, (), Box::pin(count));
        let none = || Box::pin(async { Ok(Vec::new()) });
        let waits = async {
            begun.wait().await;
            let began = tokio::time::Instant::now();
            let other = engine.share(|it| &it.failure_counts, (), none());
            assert_eq!(other.await.err(), Some(Error::Busy));
            began.elapsed()
        };
        tokio::select! {
            _ = endless => unreachable!("it is endless"),
            waited = waits => assert!(waited >= WAIT_MAX),
        }
        // The endless one was dropped.
        let other = engine.share(|it| &it.failure_counts, (), none());
        assert!(other.await.unwrap().is_empty());
        tokio::time::resume();
        engine.close().await;
    }
}
