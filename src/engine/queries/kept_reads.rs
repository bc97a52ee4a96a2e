//! Long reads whose results requests share for some time. Of each kind, one read runs at a time.
//!
//! It runs in a task of its own (see `shared_read`), and not with the reads for guests, because others wait for it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::queries::LongReads;
use crate::store::StoreError;

/// Results of reads with different arguments that are kept; the others are read again by each request.
const KEPT_MAX: usize = 64;

/// How long results are kept: ten times as long as the read took, within limits.
pub struct Keeping {
    /// Results of shorter reads are not kept.
    pub above: Duration,
    pub least: Duration,
    pub most: Duration,
    /// How long a request waits until those of others have ended.
    pub wait_max: Duration,
}

impl Keeping {
    fn time(&self, took: Duration) -> Option<Duration> {
        (took >= self.above).then(|| (10 * took).clamp(self.least, self.most))
    }
}

/// The results of reads with arguments `K`.
#[derive(Debug)]
pub struct KeptReads<K, T> {
    /// Held by the request that reads. Others, also with other arguments, wait.
    turn: AsyncMutex<()>,
    /// The results, each with the time until which it is kept.
    kept: Mutex<HashMap<K, (Instant, T)>>,
}

impl<K, T> Default for KeptReads<K, T> {
    fn default() -> Self {
        KeptReads {
            turn: AsyncMutex::default(),
            kept: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash, T: Clone> KeptReads<K, T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, (Instant, T)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, arguments: &K, now: Instant) -> Option<T> {
        let kept = self.lock();
        let (until, result) = kept.get(arguments)?;
        (now < *until).then(|| result.clone())
    }

    fn keep(&self, arguments: K, result: &T, now: Instant, time: Duration) {
        let mut kept = self.lock();
        kept.retain(|_, (until, _)| now < *until);
        if kept.len() < KEPT_MAX {
            kept.insert(arguments, (now + time, result.clone()));
        }
    }

    #[cfg(test)]
    pub(super) fn clear(&self) {
        self.lock().clear();
    }
}

impl Engine {
    /// A kept result for these arguments, or that of `read`, which gets an engine that reads for all clients.
    ///
    /// # Errors
    /// An outage, if other reads of the kind take too long; those of `read`.
    pub(super) async fn keep<K, T, R>(
        &self,
        of: fn(&LongReads) -> &KeptReads<K, T>,
        keeping: &'static Keeping,
        arguments: K,
        read: R,
    ) -> Result<T>
    where
        K: Eq + Hash + Send + Sync + 'static,
        T: Clone + Send + 'static,
        R: FnOnce(Engine) -> BoxFuture<'static, Result<T>> + Send + 'static,
    {
        let engine = self.for_task();
        let read = tokio::spawn(async move {
            let reads = of(&engine.0.long_reads);
            if let Some(kept) = reads.get(&arguments, Instant::now()) {
                return Ok(kept);
            }
            let turn = timeout(keeping.wait_max, reads.turn.lock()).await;
            let _turn = turn.map_err(|_| StoreError::Timeout)?;
            let began = Instant::now();
            if let Some(kept) = reads.get(&arguments, began) {
                return Ok(kept);
            }
            let result = read(engine.clone()).await?;
            if let Some(time) = keeping.time(began.elapsed()) {
                reads.keep(arguments, &result, Instant::now(), time);
            }
            Ok(result)
        });
        read.await.map_err(|_| StoreError::Stopped)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_kept_ten_times_as_long_as_the_read_took_within_limits() {
        let ms = Duration::from_millis;
        let keeping = Keeping {
            above: ms(50),
            least: ms(1_000),
            most: ms(9_000),
            wait_max: ms(1),
        };
        for (took, expected) in [
            (49, None),
            (50, Some(1_000)),
            (101, Some(1_010)),
            (899, Some(8_990)),
            (901, Some(9_000)),
        ] {
            assert_eq!(keeping.time(ms(took)), expected.map(ms), "{took} ms");
        }
    }

    #[test]
    fn up_to_64_results_are_kept_until_their_time_is_over() {
        let (reads, now) = (KeptReads::default(), Instant::now());
        let second = Duration::from_secs(1);
        for n in 0..=64 {
            reads.keep(n, &n, now, second);
        }
        let kept = |at: Instant| (0..=64).filter(|n| reads.get(n, at) == Some(*n)).count();
        assert_eq!(kept(now + second - Duration::from_nanos(1)), 64);
        assert_eq!(kept(now + second), 0);
        reads.keep(64, &64, now + second, second);
        assert_eq!(kept(now + second), 1);
    }
}
