//! Subscriptions: long polls that wait for jobs in queues. Thousands may wait at once, and an idle one costs nothing.
//!
//! A poll subscribes to its queues before it checks them, so it cannot miss a job. A commit wakes as many subscribers
//! of a queue as jobs became available there. One timer for all queues wakes polls for jobs that become available
//! because time passes: due jobs, expired leases, children of recurring jobs, and jobs of queues whose pause ends
//! (`subscriptions/timer.rs`).

pub mod timer;

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::engine::clock::Time;
use crate::engine::model::job::QueueKey;

/// Maximum number of subscribed queues, summed over all polls. Each occupies about half a kilobyte. One with a long name
/// counts several times.
const SUBSCRIBED_MAX: usize = 400_000;

/// A subscribed queue counts once more for each [`NAME_BYTES`] bytes of its name and namespace, because a poll has
/// several copies of them.
const NAME_BYTES: usize = 64;

/// Queues to which a poll can subscribe even beyond [`SUBSCRIBED_MAX`]. The limits on connections bound their number.
const ALWAYS_SUBSCRIBED: usize = 10;

/// The subscriptions of all polls on this server.
#[derive(Debug, Default)]
pub struct Subscriptions {
    known: Mutex<SubscribedQueues>,
    /// The [`weight`] of all subscribed queues, summed over all polls.
    count: AtomicUsize,
    /// Notified when the timer must fire earlier than planned.
    timer_moved: Notify,
}

/// The queues with subscribers.
#[derive(Debug, Default)]
struct SubscribedQueues {
    queues: HashMap<QueueKey, QueueSubscribers>,
    /// [`QueueSubscribers::next_available`] of all queues, in order.
    timers: BTreeSet<(Time, QueueKey)>,
    /// The queues whose timers are to be set, and the earliest time at which one of their polls began its claim.
    requested: BTreeSet<QueueKey>,
    requested_since: Option<Time>,
    /// Whether a task sets the requested timers.
    sets_timers: bool,
}

/// The subscribers of one queue.
#[derive(Debug, Default)]
struct QueueSubscribers {
    notifier: Arc<Notify>,
    count: usize,
    /// When the next job becomes available without a commit.
    next_available: Option<Time>,
    /// Whether `next_available` was requested.
    is_timer_known: bool,
}

impl Subscriptions {
    /// Whether any poll waits.
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Subscribes to each of the queues; `None` if all polls together would be subscribed to too many.
    pub fn subscribe(self: &Arc<Self>, queues: &[QueueKey]) -> Option<Subscription> {
        let mut known = self.lock();
        let weight = weight(queues);
        let all = self.count.load(Ordering::Acquire) + weight;
        if queues.len() > ALWAYS_SUBSCRIBED && all > SUBSCRIBED_MAX {
            return None;
        }
        let notifiers = queues.iter().map(|queue| {
            let subscribers = known.queues.entry(queue.clone()).or_default();
            subscribers.count += 1;
            Arc::clone(&subscribers.notifier)
        });
        let notifiers: Vec<_> = notifiers.collect();
        self.count.fetch_add(weight, Ordering::AcqRel);
        Some(Subscription {
            subscriptions: Arc::clone(self),
            queues: queues.to_vec(),
            notifiers,
        })
    }

    /// Wakes up to `n` subscribers of the queue, usually because as many jobs became available there.
    pub fn wake(&self, queue: &QueueKey, n: usize) {
        if let Some(subscribers) = self.lock().queues.get(queue) {
            (0..n.min(subscribers.count)).for_each(|_| subscribers.notifier.notify_one());
        }
    }

    /// Wakes every subscriber.
    pub fn wake_all(&self) {
        for subscribers in self.lock().queues.values() {
            (0..subscribers.count).for_each(|_| subscribers.notifier.notify_one());
        }
    }

    /// A job becomes available in the queue at this time: the timer fires then, or earlier.
    pub fn available_at(&self, queue: &QueueKey, at: Time) {
        let mut known = self.lock();
        let SubscribedQueues { queues, timers, .. } = &mut *known;
        let Some(subscribers) = queues.get_mut(queue) else {
            return;
        };
        if subscribers.next_available.is_some_and(|next| next <= at) {
            return;
        }
        if let Some(later) = subscribers.next_available.replace(at) {
            timers.remove(&(later, queue.clone()));
        }
        timers.insert((at, queue.clone()));
        // Only the first timer sets the time of the sleep.
        if timers.first().is_some_and(|(first, _)| *first == at) {
            self.timer_moved.notify_one();
        }
    }

    /// Requests the timers of those of the queues for which nothing has requested them. `checked_at`: when the poll
    /// began its claim. Returns whether the caller must start the task that sets them.
    pub fn request_timers(&self, queues: &[QueueKey], checked_at: Time) -> bool {
        let mut known = self.lock();
        let SubscribedQueues {
            queues: subscribed,
            requested,
            requested_since,
            sets_timers,
            ..
        } = &mut *known;
        for queue in queues {
            if let Some(subscribers) = subscribed.get_mut(queue)
                && !std::mem::replace(&mut subscribers.is_timer_known, true)
            {
                requested.insert(queue.clone());
                let since = requested_since.get_or_insert(checked_at);
                *since = checked_at.min(*since);
            }
        }
        !requested.is_empty() && !std::mem::replace(sets_timers, true)
    }

    /// The queues whose timers are to be set, and since when jobs may have become available. `None` ends the task.
    pub fn take_requested_timers(&self) -> Option<(Vec<QueueKey>, Time)> {
        let mut known = self.lock();
        let since = known.requested_since.take();
        known.sets_timers = since.is_some();
        let queues = std::mem::take(&mut known.requested);
        Some((queues.into_iter().collect(), since?))
    }

    /// Whether the queue has subscribers.
    pub fn has_subscribers(&self, queue: &QueueKey) -> bool {
        self.lock().queues.contains_key(queue)
    }

    /// The queues with subscribers.
    pub fn queues(&self) -> Vec<QueueKey> {
        self.lock().queues.keys().cloned().collect()
    }

    /// When the timer fires next.
    pub fn next_available(&self) -> Option<Time> {
        self.lock().timers.first().map(|(next, _)| *next)
    }

    /// Takes the queues for which the timer fires at `now`. Each must be checked again.
    fn take_due(&self, now: Time) -> Vec<QueueKey> {
        let mut known = self.lock();
        let SubscribedQueues { queues, timers, .. } = &mut *known;
        let mut due = Vec::new();
        while timers.first().is_some_and(|(next, _)| *next <= now) {
            let Some((_, queue)) = timers.pop_first() else {
                break;
            };
            if let Some(subscribers) = queues.get_mut(&queue) {
                subscribers.next_available = None;
            }
            due.push(queue);
        }
        due
    }

    fn lock(&self) -> MutexGuard<'_, SubscribedQueues> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The subscription of one poll. Dropping it unsubscribes.
pub struct Subscription {
    subscriptions: Arc<Subscriptions>,
    pub queues: Vec<QueueKey>,
    notifiers: Vec<Arc<Notify>>,
}

impl Subscription {
    /// Starts to wait: a wake-up from now on is not missed.
    pub fn next_wake_up(&self) -> NextWakeUp {
        let mut notified: Vec<_> = self
            .notifiers
            .iter()
            .map(|notifier| Box::pin(Arc::clone(notifier).notified_owned()))
            .collect();
        for each in &mut notified {
            each.as_mut().enable();
        }
        NextWakeUp(notified)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut known = self.subscriptions.lock();
        for queue in &self.queues {
            let Some(subscribers) = known.queues.get_mut(queue) else {
                continue;
            };
            subscribers.count -= 1;
            if subscribers.count > 0 {
                continue;
            }
            let gone = known.queues.remove(queue);
            known.requested.remove(queue);
            if let Some(next) = gone.and_then(|gone| gone.next_available) {
                known.timers.remove(&(next, queue.clone()));
            }
        }
        drop(known);
        self.subscriptions
            .count
            .fetch_sub(weight(&self.queues), Ordering::AcqRel);
    }
}

/// What these queues count toward [`SUBSCRIBED_MAX`].
fn weight(queues: &[QueueKey]) -> usize {
    let weight = |queue: &QueueKey| 1 + (queue.namespace.len() + queue.name.len()) / NAME_BYTES;
    queues.iter().map(weight).sum()
}

/// Resolves to the index of the first queue with a wake-up. A wake-up that arrived but was not polled passes to the
/// next subscriber when this is dropped.
pub struct NextWakeUp(Vec<Pin<Box<OwnedNotified>>>);

impl Future for NextWakeUp {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        let ready = self
            .0
            .iter_mut()
            .position(|notified| notified.as_mut().poll(context).is_ready());
        ready.map_or(Poll::Pending, Poll::Ready)
    }
}

/// A wake-up that has not led to a claim yet. If the client disconnects or its claim fails, the next subscriber of the
/// queue gets the wake-up, because the job is still available.
pub struct PendingWakeUp<'a> {
    pub subscription: &'a Subscription,
    /// The index of the queue in the subscription, while the wake-up is unused.
    pub queue: Option<usize>,
}

impl PendingWakeUp<'_> {
    /// Marks the wake-up as used, and returns its queue.
    pub fn take(&mut self) -> Option<&QueueKey> {
        let queue = self.queue.take()?;
        self.subscription.queues.get(queue)
    }
}

impl Drop for PendingWakeUp<'_> {
    fn drop(&mut self) {
        let subscription = self.subscription;
        if let Some(queue) = self.take() {
            subscription.subscriptions.wake(queue, 1);
        }
    }
}
