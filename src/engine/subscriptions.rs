//! Subscriptions: long polls that wait for jobs in queues. Thousands may wait at once, and an idle one costs nothing.
//!
//! A poll subscribes to its queues before it checks them, so it cannot miss a job. A commit wakes as many subscribers of
//! a queue as jobs became available there. One timer for all queues covers what becomes available over time: due jobs,
//! expired leases, children of recurring jobs (`subscriptions/timer.rs`).

pub mod timer;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::engine::clock::Time;
use crate::engine::model::job::QueueKey;

/// Those who wait.
#[derive(Debug, Default)]
pub struct Subscriptions {
    queues: Mutex<HashMap<QueueKey, QueueSubscribers>>,
    /// How many seats are taken, in all queues.
    seated: AtomicUsize,
    /// Told when the alarm has to ring earlier.
    earlier: Notify,
}

/// Those who wait at one queue.
#[derive(Debug, Default)]
struct QueueSubscribers {
    bell: Arc<Notify>,
    seated: usize,
    /// When something will become available by itself.
    ahead: Option<Time>,
    /// Whether somebody looks when that is, or has looked.
    looked: bool,
}

impl Subscriptions {
    /// Whether anybody waits.
    pub fn any(&self) -> bool {
        self.seated.load(Ordering::Acquire) > 0
    }

    /// Takes a seat at each of the queues.
    pub fn sit(self: &Arc<Self>, queues: &[QueueKey]) -> Subscription {
        let mut benches = self.benches();
        let bells = queues.iter().map(|queue| {
            let bench = benches.entry(queue.clone()).or_default();
            bench.seated += 1;
            Arc::clone(&bench.bell)
        });
        let bells: Vec<_> = bells.collect();
        self.seated.fetch_add(queues.len(), Ordering::AcqRel);
        Subscription {
            waiters: Arc::clone(self),
            queues: queues.to_vec(),
            bells,
        }
    }

    /// Wakes `n` waiters of the queue, usually because as many jobs became available there.
    pub fn wake(&self, queue: &QueueKey, n: usize) {
        if let Some(bench) = self.benches().get(queue) {
            (0..n.min(bench.seated)).for_each(|_| bench.bell.notify_one());
        }
    }

    /// Everybody should look.
    pub fn wake_all(&self) {
        for bench in self.benches().values() {
            (0..bench.seated).for_each(|_| bench.bell.notify_one());
        }
    }

    /// Something will become available in the queue.
    pub fn will_be(&self, queue: &QueueKey, at: Time) {
        if let Some(bench) = self.benches().get_mut(queue)
            && bench.ahead.is_none_or(|ahead| at < ahead)
        {
            bench.ahead = Some(at);
            self.earlier.notify_one();
        }
    }

    /// Those of the queues for which no waiter has read yet when something becomes available there. The caller
    /// must read it; if it is dropped first, the next waiter does.
    pub(in crate::engine) fn unlooked(&self, queues: &[QueueKey]) -> TimerUpdate<'_> {
        let mut benches = self.benches();
        let mut unlooked = Vec::new();
        for queue in queues {
            if let Some(bench) = benches.get_mut(queue)
                && !std::mem::replace(&mut bench.looked, true)
            {
                unlooked.push(queue.clone());
            }
        }
        TimerUpdate {
            waiters: self,
            queues: unlooked,
        }
    }

    /// The queues at which somebody waits.
    pub fn queues(&self) -> Vec<QueueKey> {
        self.benches().keys().cloned().collect()
    }

    /// When the alarm has to ring next.
    pub(in crate::engine) fn next(&self) -> Option<Time> {
        self.benches()
            .values()
            .filter_map(|bench| bench.ahead)
            .min()
    }

    /// The queues for which the alarm rings at `now`; each has to be looked at again.
    fn ringing(&self, now: Time) -> Vec<QueueKey> {
        let mut benches = self.benches();
        let due = benches
            .iter_mut()
            .filter(|(_, bench)| bench.ahead.is_some_and(|ahead| ahead <= now));
        due.map(|(queue, bench)| {
            bench.ahead = None;
            queue.clone()
        })
        .collect()
    }

    fn benches(&self) -> MutexGuard<'_, HashMap<QueueKey, QueueSubscribers>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among those who wait, given up when it is dropped.
pub struct Subscription {
    waiters: Arc<Subscriptions>,
    pub queues: Vec<QueueKey>,
    bells: Vec<Arc<Notify>>,
}

impl Subscription {
    /// Begins to listen: whatever happens from now on will be heard.
    pub(in crate::engine) fn listen(&self) -> NextWakeUp {
        let mut rings: Vec<_> = self
            .bells
            .iter()
            .map(|bell| Box::pin(Arc::clone(bell).notified_owned()))
            .collect();
        for ring in &mut rings {
            ring.as_mut().enable();
        }
        NextWakeUp(rings)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut benches = self.waiters.benches();
        for queue in &self.queues {
            if let Some(bench) = benches.get_mut(queue) {
                bench.seated -= 1;
                if bench.seated == 0 {
                    benches.remove(queue);
                }
            }
        }
        drop(benches);
        self.waiters
            .seated
            .fetch_sub(self.queues.len(), Ordering::AcqRel);
    }
}

/// Ends with the number of the first queue whose bell rings. A bell that rang for us unheard rings for the
/// next one.
pub struct NextWakeUp(Vec<Pin<Box<OwnedNotified>>>);

impl Future for NextWakeUp {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        let rung = self
            .0
            .iter_mut()
            .position(|ring| ring.as_mut().poll(context).is_ready());
        rung.map_or(Poll::Pending, Poll::Ready)
    }
}

/// Queues whose alarm one waiter is about to set for all of them. Other waiters rely on it, so if this is dropped
/// before [`TimerUpdate::done`], because the caller hung up, one of them takes over.
pub struct TimerUpdate<'a> {
    waiters: &'a Subscriptions,
    pub queues: Vec<QueueKey>,
}

impl TimerUpdate<'_> {
    /// The alarm is set.
    pub(in crate::engine) fn done(mut self) {
        self.queues.clear();
    }
}

impl Drop for TimerUpdate<'_> {
    fn drop(&mut self) {
        for queue in &self.queues {
            if let Some(bench) = self.waiters.benches().get_mut(queue) {
                bench.looked = false;
            }
            self.waiters.wake(queue, 1);
        }
    }
}

/// A wake-up that has not led to a claim yet. If the caller hangs up or its claim fails, the next waiter of the
/// queue gets it: the job is still there.
pub struct PendingWakeUp<'a> {
    pub seat: &'a Subscription,
    /// The number of the queue among those of the seat, while the wake-up is unused.
    pub queue: Option<usize>,
}

impl PendingWakeUp<'_> {
    /// The queue of the wake-up, which the caller has used.
    pub(in crate::engine) fn used(&mut self) -> Option<&QueueKey> {
        let queue = self.queue.take()?;
        self.seat.queues.get(queue)
    }
}

impl Drop for PendingWakeUp<'_> {
    fn drop(&mut self) {
        let seat = self.seat;
        if let Some(queue) = self.used() {
            seat.waiters.wake(queue, 1);
        }
    }
}
