//! Reads that count all jobs, workers or failures, so that their cost grows with what is stored. One fast and one slow
//! read run at a time. Requests that wait for the same one share its result.
//!
//! Such a read runs in a task of its own, not in the future of a request. A page polls its parts one after the other,
//! and continues with a part only when those before it are complete, so the read of one part could wait forever for that
//! of another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{Instant, timeout};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::page::LISTED_MAX;
use crate::engine::queries::failures::{FailureGroup, FailureTotals};
use crate::engine::queries::queues::QueueCounts;
use crate::engine::queries::search::plan::CountedJobs;
use crate::engine::queries::workers::WorkerCounts;
use crate::store::StoreError;

/// Reads with different arguments that wait for their turn. With the clocks of clients, each request can name another
/// time.
const WAITING_MAX: usize = 8;

/// How long a request waits for the result.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A large result of a slow read ([`SharedRead::slow`]) that took longer than this is kept for ten times as long as it
/// took.
const KEPT_ABOVE: Duration = Duration::from_millis(100);

/// The longest time for which a result is kept.
const KEPT_MAX: Duration = Duration::from_secs(10);

/// The result of a slow read that took longer than this is kept even if it is not large.
const ALWAYS_KEPT_ABOVE: Duration = Duration::from_secs(1);

/// Failure groups from which on a result is large.
const GROUPS_LARGE: i64 = 100_000;

/// The shared reads.
#[derive(Debug)]
pub struct SharedReads {
    /// Held by the one that runs.
    turn: Arc<AsyncMutex<()>>,
    /// Held by the slow one that runs.
    slow_turn: Arc<AsyncMutex<()>>,
    pub queues: SharedRead<Option<Time>, Vec<QueueCounts>>,
    pub counted_jobs: SharedRead<(), Vec<CountedJobs>>,
    pub workers: SharedRead<Option<Time>, Vec<WorkerCounts>>,
    pub failure_groups: SharedRead<(), Vec<FailureGroup>>,
    pub failure_counts: SharedRead<(), Vec<(String, i64)>>,
    pub largest_failure_groups: SharedRead<usize, (Vec<FailureGroup>, FailureTotals)>,
}

impl Default for SharedReads {
    fn default() -> Self {
        SharedReads {
            turn: Arc::default(),
            slow_turn: Arc::default(),
            queues: SharedRead::default(),
            counted_jobs: SharedRead::default(),
            workers: SharedRead::slow(|workers| workers.len() >= LISTED_MAX),
            failure_groups: SharedRead::default(),
            failure_counts: SharedRead::default(),
            largest_failure_groups: SharedRead::slow(|(_, totals)| totals.groups >= GROUPS_LARGE),
        }
    }
}

/// A read with arguments `K` and the result `T`.
#[derive(Debug)]
pub struct SharedRead<K, T> {
    /// The reads that wait for their turn, by arguments.
    waiting: Mutex<Vec<(K, SharedResult<T>)>>,
    /// Of a slow read: whether a result is large.
    is_large: Option<fn(&T) -> bool>,
    /// The last result of a slow read, and until when it is kept.
    kept: Mutex<Option<(K, Instant, Arc<T>)>>,
}

/// `None` until the read has ended.
type SharedResult<T> = watch::Receiver<Option<Result<Arc<T>>>>;

impl<K, T> Default for SharedRead<K, T> {
    fn default() -> Self {
        SharedRead {
            waiting: Mutex::default(),
            is_large: None,
            kept: Mutex::default(),
        }
    }
}

impl<K, T> SharedRead<K, T> {
    /// A read whose cost has no bound, so that it can take seconds: the others do not wait for it.
    fn slow(is_large: fn(&T) -> bool) -> Self {
        SharedRead {
            is_large: Some(is_large),
            ..SharedRead::default()
        }
    }

    fn lock_kept(&self) -> MutexGuard<'_, Option<(K, Instant, Arc<T>)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(K, SharedResult<T>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// The result of `read`, which counts something, or of the same read for another request. The latter begins after
    /// this call, so its result contains all that was committed before, unless it is a kept one. `read` gets an engine
    /// that reads for all clients: guests wait as users do, and share their results.
    ///
    /// # Errors
    /// [`Error::Busy`], if it takes longer than 5 s, or if reads with 8 other arguments wait; those of `read`.
    pub(super) async fn share<K, T, R>(
        &self,
        of: fn(&SharedReads) -> &SharedRead<K, T>,
        arguments: K,
        read: R,
    ) -> Result<Arc<T>>
    where
        K: PartialEq + Clone + Send + 'static,
        T: Send + Sync + 'static,
        R: FnOnce(Engine) -> BoxFuture<'static, Result<T>> + Send + 'static,
    {
        let mut result = self.join(of, arguments, read).ok_or(Error::Busy)?;
        let ended = timeout(WAIT_MAX, result.wait_for(Option::is_some)).await;
        match ended.map_err(|_| Error::Busy)? {
            Ok(result) => (*result).clone().ok_or(Error::Busy)?,
            Err(_) => Err(StoreError::Stopped.into()),
        }
    }

    /// The result of a read that has not begun; `None` if too many wait.
    fn join<K, T, R>(
        &self,
        of: fn(&SharedReads) -> &SharedRead<K, T>,
        arguments: K,
        read: R,
    ) -> Option<SharedResult<T>>
    where
        K: PartialEq + Clone + Send + 'static,
        T: Send + Sync + 'static,
        R: FnOnce(Engine) -> BoxFuture<'static, Result<T>> + Send + 'static,
    {
        let read_of = of(&self.0.long_reads.shared);
        let kept = read_of.lock_kept().clone();
        if let Some((_, _, kept)) =
            kept.filter(|(its, until, _)| *its == arguments && *until > Instant::now())
        {
            return Some(watch::channel(Some(Ok(kept))).1);
        }
        let mut waiting = read_of.lock();
        if let Some((_, result)) = waiting.iter().find(|(its, _)| *its == arguments) {
            return Some(result.clone());
        }
        if waiting.len() >= WAITING_MAX {
            return None;
        }
        let (sender, result) = watch::channel(None);
        waiting.push((arguments.clone(), result.clone()));
        drop(waiting);
        let engine = self.for_task();
        tokio::spawn(async move {
            let reads = &engine.0.long_reads.shared;
            let is_large = of(reads).is_large;
            let turn = match is_large {
                Some(_) => &reads.slow_turn,
                None => &reads.turn,
            };
            let _turn = Arc::clone(turn).lock_owned().await;
            of(reads).lock().retain(|(its, _)| *its != arguments);
            // Without a receiver, all requests have gone.
            if sender.receiver_count() > 0 {
                let began = Instant::now();
                let result = read(engine.clone()).await.map(Arc::new);
                if let (Some(is_large), Ok(kept)) = (is_large, &result)
                    && (is_large(kept) && began.elapsed() > KEPT_ABOVE
                        || began.elapsed() > ALWAYS_KEPT_ABOVE)
                {
                    let until = Instant::now() + (10 * began.elapsed()).min(KEPT_MAX);
                    *of(reads).lock_kept() = Some((arguments, until, Arc::clone(kept)));
                }
                sender.send_replace(Some(result));
            }
        });
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use tokio::sync::Notify;

    use super::*;
    use crate::engine::engine_without_tasks;

    type Queues = Arc<Vec<QueueCounts>>;

    /// Reads that wait to be ended.
    #[derive(Clone, Default)]
    struct Reads {
        begun: Arc<AtomicUsize>,
        end: Arc<Notify>,
    }

    impl Reads {
        async fn read(&self, engine: &Engine, time: i64) -> Result<Queues> {
            let reads = self.clone();
            let read = move |_| {
                let read = async move {
                    reads.begun.fetch_add(1, Ordering::AcqRel);
                    reads.end.notified().await;
                    Ok(Vec::new())
                };
                read.boxed()
            };
            engine.share(|it| &it.queues, Some(Time(time)), read).await
        }

        async fn have_begun(&self, count: usize) {
            while self.begun.load(Ordering::Acquire) < count {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn requests_that_wait_for_the_same_read_share_the_next_one() {
        let engine = engine_without_tasks().await;
        let reads = Reads::default();
        let read = async |time| reads.read(&engine, time).await.unwrap();
        // The first one has begun before the others come, which share the second; but not with other arguments.
        let others = async {
            reads.have_begun(1).await;
            let ends = async {
                for begun in [2, 3, 3] {
                    reads.end.notify_one();
                    reads.have_begun(begun).await;
                }
            };
            tokio::join!(read(1), read(1), read(2), ends)
        };
        let (first, (second, third, of_two, ())) = tokio::join!(read(1), others);
        assert_eq!(reads.begun.load(Ordering::Acquire), 3);
        assert!(Arc::ptr_eq(&second, &third));
        assert!(!Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&third, &of_two));
        engine.close().await;
    }

    #[tokio::test]
    async fn a_request_that_does_not_continue_delays_no_other_and_one_that_is_gone_reads_nothing() {
        let engine = engine_without_tasks().await;
        let reads = Reads::default();
        reads.end.notify_one();
        let mut idle = Box::pin(reads.read(&engine, 1));
        assert!(idle.as_mut().now_or_never().is_none());
        reads.have_begun(1).await;
        assert!(reads.read(&engine, 2).now_or_never().is_none());
        reads.end.notify_one();
        assert!(reads.read(&engine, 3).await.is_ok());
        assert_eq!(reads.begun.load(Ordering::Acquire), 2);
        assert!(idle.await.is_ok());
        engine.close().await;
    }

    #[tokio::test]
    async fn a_large_result_of_a_slow_read_is_kept_for_ten_times_as_long_as_it_took() {
        let engine = engine_without_tasks().await;
        let begun = Arc::new(AtomicUsize::new(0));
        let read = async |takes: Duration, groups: i64| {
            let begun = Arc::clone(&begun);
            let read = move |_| {
                let read = async move {
                    begun.fetch_add(1, Ordering::AcqRel);
                    tokio::time::sleep(takes).await;
                    let totals = FailureTotals {
                        groups,
                        ..FailureTotals::default()
                    };
                    Ok((Vec::new(), totals))
                };
                read.boxed()
            };
            let found = engine.share(|it| &it.largest_failure_groups, 9, read).await;
            assert!(found.is_ok());
        };
        tokio::time::pause();
        for (takes, groups, pauses, reads) in [
            (KEPT_ABOVE / 2, GROUPS_LARGE, 0, 1),
            (KEPT_ABOVE * 2, GROUPS_LARGE - 1, 0, 2),
            (KEPT_ABOVE * 2, GROUPS_LARGE, 0, 3),
            (KEPT_ABOVE * 2, GROUPS_LARGE, 19, 3),
            (KEPT_ABOVE * 2, GROUPS_LARGE, 3, 4),
        ] {
            tokio::time::sleep(KEPT_ABOVE * pauses).await;
            read(takes, groups).await;
            assert_eq!(
                begun.load(Ordering::Acquire),
                reads,
                "{takes:?} {groups} {pauses}"
            );
        }
        tokio::time::resume();
        engine.close().await;
    }

    #[tokio::test]
    async fn a_request_waits_for_5_seconds() {
        let engine = engine_without_tasks().await;
        let reads = Reads::default();
        tokio::time::pause();
        let began = Instant::now();
        let (one, two) = tokio::join!(reads.read(&engine, 1), reads.read(&engine, 2));
        assert_eq!(
            (one.err(), two.err()),
            (Some(Error::Busy), Some(Error::Busy))
        );
        assert!(began.elapsed() >= WAIT_MAX);
        assert_eq!(reads.begun.load(Ordering::Acquire), 1, "one at a time");
        tokio::time::resume();
        engine.close().await;
    }
}
