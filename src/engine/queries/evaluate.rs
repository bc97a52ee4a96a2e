//! Evaluates queries and searches: small amounts of work inline, large ones on a blocking thread, so that they do not
//! delay other requests.

use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::budget::{Budget, BudgetExceeded};
use crate::engine::Engine;
use crate::engine::error::{Error, Result};

/// Work that runs inline, which takes well under 1 ms. A batch that exceeds it starts again on a blocking thread.
const INLINE_WORK: u64 = 100_000;

/// The total evaluation time of one request, and the longest wait for a blocking thread.
pub const TIME_MAX: Duration = Duration::from_secs(2);

/// Evaluations on blocking threads at once; others wait.
const AT_ONCE: usize = 2;
static RUNNING: Semaphore = Semaphore::const_new(AT_ONCE);

/// Guests occupy at most one of the threads.
static RUNNING_FOR_GUESTS: Semaphore = Semaphore::const_new(1);

/// Waits for the permit to run large work on a blocking thread. `None` if that takes too long.
pub async fn blocking_permit() -> Option<SemaphorePermit<'static>> {
    permit(&RUNNING).await
}

async fn permit(running: &'static Semaphore) -> Option<SemaphorePermit<'static>> {
    timeout(TIME_MAX, running.acquire()).await.ok()?.ok()
}

/// The result of an evaluation that may have run out of budget.
#[derive(Debug)]
pub struct Evaluated<T> {
    /// The result so far.
    pub value: T,
    /// The limit that ended the evaluation early, if any.
    pub exceeded: Option<BudgetExceeded>,
}

/// The work and time that one request has left.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    work: u64,
    time: Duration,
    is_for_guests: bool,
}

impl Engine {
    /// The allowance of a request: `work` steps and bytes, and [`TIME_MAX`].
    pub fn allowance(&self, work: u64) -> Allowance {
        Allowance {
            is_for_guests: self.is_for_guests(),
            ..Allowance::new(work)
        }
    }
}

impl Allowance {
    /// `work` is the number of steps and bytes. The time is [`TIME_MAX`].
    pub fn new(work: u64) -> Allowance {
        Allowance {
            work,
            time: TIME_MAX,
            is_for_guests: false,
        }
    }

    /// Evaluates within the remaining allowance, and subtracts what was used. May call `evaluate` twice. Time spent on
    /// the database between two calls does not count.
    ///
    /// # Errors
    /// [`Error::Busy`], if other evaluations occupy the blocking threads for too long. Nothing has been evaluated then,
    /// so the caller must not mistake it for a limit of its own.
    pub async fn run<T, F>(&mut self, evaluate: F) -> Result<Evaluated<T>>
    where
        T: Default + Send + 'static,
        F: Fn(&mut Budget) -> Evaluated<T> + Send + 'static,
    {
        let given_up = || Evaluated {
            value: T::default(),
            exceeded: Some(BudgetExceeded::Time),
        };
        if self.time.is_zero() {
            return Ok(given_up());
        }
        let begun = Instant::now();
        let mut small = Budget::new(self.work.min(INLINE_WORK));
        let before = small.remaining();
        let here = evaluate(&mut small);
        if here.exceeded.is_none() || self.work <= INLINE_WORK {
            self.take(before - small.remaining(), begun);
            return Ok(here);
        }
        let of_guests = match self.is_for_guests {
            true => Some(permit(&RUNNING_FOR_GUESTS).await.ok_or(Error::Busy)?),
            false => None,
        };
        let permit = (of_guests, blocking_permit().await.ok_or(Error::Busy)?);
        let (begun, work) = (Instant::now(), self.work);
        let mut budget = Budget::new(work).with_deadline(begun + self.time);
        let run = move || {
            // Held until the end even if the client disconnects.
            let _permit = permit;
            let result = evaluate(&mut budget);
            (result, budget.remaining())
        };
        let Ok((result, left)) = tokio::task::spawn_blocking(run).await else {
            return Ok(given_up());
        };
        self.take(work - left, begun);
        Ok(result)
    }

    fn take(&mut self, work: u64, begun: Instant) {
        self.work -= work;
        self.time = self.time.saturating_sub(begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use tokio::task::JoinSet;

    use super::*;
    use crate::engine::engine_without_tasks;

    fn spending(work: usize) -> impl Fn(&mut Budget) -> Evaluated<()> + Send + 'static {
        move |budget| Evaluated {
            value: (),
            exceeded: budget.spend(work).err(),
        }
    }

    #[tokio::test]
    async fn small_work_runs_inline_and_large_work_on_a_blocking_thread() {
        let here = std::thread::current().id();
        for (work, is_here) in [(100_000, true), (100_001, false)] {
            let mut allowance = Allowance::new(1_000_000);
            let done = allowance.run(move |budget| Evaluated {
                exceeded: budget.spend(work).err(),
                value: Some(std::thread::current().id()),
            });
            let done = done.await.unwrap();
            assert_eq!(done.exceeded, None);
            assert_eq!(done.value == Some(here), is_here, "{work}");
            assert_eq!(allowance.work, 1_000_000 - work as u64);
        }
    }

    /// The third evaluation waits, because no permit is left.
    #[tokio::test]
    async fn two_large_evaluations_run_at_once() {
        assert_eq!(RUNNING.available_permits(), 2);
        let is_over = Arc::new(AtomicBool::new(false));
        let running = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for (permits, expected) in [(1, 1), (0, 2), (0, 2)] {
            let (is_over, counted) = (Arc::clone(&is_over), Arc::clone(&running));
            tasks.spawn(async move {
                let evaluate = move |budget: &mut Budget| {
                    let exceeded = budget.spend(100_001).err();
                    if exceeded.is_none() {
                        counted.fetch_add(1, Ordering::SeqCst);
                        while !is_over.load(Ordering::SeqCst) {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                    Evaluated {
                        value: (),
                        exceeded,
                    }
                };
                Allowance::new(1_000_000).run(evaluate).await.map(drop)
            });
            while RUNNING.available_permits() > permits || running.load(Ordering::SeqCst) < expected
            {
                tokio::task::yield_now().await;
            }
            assert_eq!(running.load(Ordering::SeqCst), expected);
        }
        is_over.store(true, Ordering::SeqCst);
        for done in tasks.join_all().await {
            done.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_free_thread_nothing_is_evaluated() {
        let _all = RUNNING.acquire_many(2).await.unwrap();
        let mut allowance = Allowance::new(1_000_000);
        // Small work needs no thread.
        let done = allowance.run(spending(100_000)).await.unwrap();
        assert_eq!(done.exceeded, None);
        let refused = allowance
            .run(spending(100_001))
            .await
            .map(|done| done.exceeded);
        assert_eq!(refused, Err(Error::Busy));
        assert_eq!(allowance.work, 900_000);
    }

    #[tokio::test]
    async fn an_allowance_ends_with_its_work_and_its_time() {
        let mut allowance = Allowance::new(300_000);
        let done = allowance.run(spending(200_000)).await.unwrap();
        assert_eq!(done.exceeded, None);
        let done = allowance.run(spending(200_000)).await.unwrap();
        assert_eq!(done.exceeded, Some(BudgetExceeded::Work));
        let mut late = Allowance {
            is_for_guests: false,
            work: 300_000,
            time: Duration::ZERO,
        };
        for work in [1, 200_000] {
            let done = late.run(spending(work)).await.unwrap();
            assert_eq!(done.exceeded, Some(BudgetExceeded::Time), "{work}");
        }
    }

    #[tokio::test]
    async fn guests_occupy_one_thread() {
        let engine = engine_without_tasks().await;
        let guest = engine.for_guests();
        let _permit = RUNNING_FOR_GUESTS.acquire().await.unwrap();
        tokio::time::pause();
        let of_guest = guest.allowance(1_000_000).run(spending(200_000)).await;
        assert_eq!(of_guest.err(), Some(Error::Busy));
        tokio::time::resume();
        let of_user = engine.allowance(1_000_000).run(spending(200_000)).await;
        assert_eq!(of_user.unwrap().exceeded, None);
        engine.close().await;
    }
}
