//! Statistics, events and worker activity that are committed in memory and stored a little later.
//!
//! Each of them would add pages to the write-ahead log with every commit group, in addition to those of the jobs. While
//! no other server is known, a server keeps them in memory and stores them together: twice a second, before it reads
//! them, and when it stops. A crash loses what is not stored. The numbers of jobs are never deferred.
//!
//! With client time, or while several servers run, everything is stored with its commit group.
//!
//! Only this is deferred: histograms and summaries of waits and runs, the time series, published events, and when
//! workers were last seen, except when they claimed jobs. What a query compares with rows of jobs is not: the
//! numbers of jobs by state, tag and failure group, and of failures.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::events::{self, DeferredEvents};
use crate::engine::maintenance::fold_series::DELETED_QUEUES;
use crate::engine::maintenance::{SystemTask, tasks};
use crate::engine::metrics::CounterRow;
use crate::engine::model::job::QueueId;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::unit_of_work::counters::{self, Kind, Summary};
use crate::engine::unit_of_work::transaction::Runner;
use crate::store::{Begin, Connection, Statement, StoreError};

/// Maximum number of counters in memory; then the next commit group stores them.
const COUNTERS_MAX: usize = 2_000;

/// Maximum size of the events in memory; then the next commit group stores them.
const EVENT_BYTES_MAX: usize = 256 * 1_024;

/// Seconds after which the next commit group stores what is deferred, if maintenance is late.
const KEPT_MAX_S: f64 = 1.0;

/// How long a reader waits until what is deferred is stored. After that it reads what is there, because reads must not
/// depend on the writer.
const STORE_WAIT_MAX: Duration = Duration::from_millis(500);

/// What the writer shares with the readers.
#[derive(Debug, Default)]
pub struct DeferredState {
    /// Active workers and when they were last seen.
    pub seen: Mutex<HashMap<String, Time>>,
    /// Whether statistics or events are not stored yet.
    has_deferred: AtomicBool,
    /// Whether events are not stored yet.
    has_deferred_events: AtomicBool,
    /// Readers that follow the events as they are published.
    followers: AtomicUsize,
    /// Held while deferred statistics and events are stored for readers; the others wait for the same.
    storing: Arc<tokio::sync::Mutex<()>>,
}

/// What a transaction defers.
#[derive(Debug, Default)]
pub struct Deferral {
    /// Whether it defers statistics.
    pub statistics: bool,
    /// Whether it defers events.
    pub events: bool,
    /// The events, once they are complete.
    pub published: Option<DeferredEvents>,
}

/// The key of a counter: kind, queue, day and slot.
type Key = (u8, QueueId, i64, i64);

/// The sum of the deltas of a counter.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    n: i64,
    summary: Option<Summary>,
}

/// Statistics and events that are not stored yet.
#[derive(Debug, Default)]
pub struct DeferredWrites {
    counters: HashMap<Key, Sum, RandomState>,
    /// In order.
    events: Vec<DeferredEvents>,
    event_bytes: usize,
    /// The time of the oldest of them.
    since: Option<Time>,
}

impl DeferredWrites {
    fn is_empty(&self) -> bool {
        self.counters.is_empty() && self.events.is_empty()
    }

    /// Adds what a committed transaction has deferred.
    fn add(&mut self, counters: &[CounterRow], events: Option<DeferredEvents>, now: Time) {
        if !counters.is_empty() || events.is_some() {
            self.since.get_or_insert(now);
        }
        for (kind, queue, day, slot, n, mean, m2) in counters {
            let key = (*kind, *queue, *day, *slot);
            let sum = self.counters.entry(key).or_default();
            sum.n += n;
            if let (Some(mean), Some(m2)) = (*mean, *m2) {
                let more = Summary { n: *n, mean, m2 };
                sum.summary.get_or_insert_default().merge(more);
            }
        }
        if let Some(events) = events {
            self.event_bytes += events.bytes();
            self.events.push(events);
        }
    }

    /// Moves the time series of a queue to those of deleted queues, and drops its other statistics.
    pub fn delete_queue(&mut self, queue: QueueId) {
        let of_queue = self.counters.extract_if(|key, _| key.1 == queue);
        let of_queue: Vec<_> = of_queue.collect();
        for ((kind, _, day, slot), sum) in of_queue {
            if kind == Kind::Minute as u8 {
                let key = (kind, DELETED_QUEUES, day, slot);
                self.counters.entry(key).or_default().n += sum.n;
            }
        }
    }

    /// The rows of the counters, sorted by their keys.
    fn rows(&self) -> Vec<CounterRow> {
        let row = |(key, sum): (&Key, &Sum)| {
            let (kind, queue, day, slot) = *key;
            let (mean, m2) = sum.summary.map(|it| (it.mean, it.m2)).unzip();
            (kind, queue, day, slot, sum.n, mean, m2)
        };
        let mut rows: Vec<_> = self.counters.iter().map(row).collect();
        rows.sort_unstable_by_key(|(kind, queue, day, slot, ..)| (*kind, *queue, *day, *slot));
        rows
    }
}

impl Runner {
    /// Whether statistics, events and worker activity are stored later than their commit group.
    fn defers(&self) -> bool {
        !self.peers.any() && !self.trust_client_clock
    }

    /// Tells the transaction what it defers.
    pub fn begin_deferring(&self, work: &mut UnitOfWork) {
        work.deferred.statistics = self.defers();
        work.deferred.events = self.defers() && !self.deferred_state.has_followers();
    }

    /// Whether this transaction stores what earlier ones have deferred.
    pub fn stores_deferred(&self, work: &UnitOfWork, system_task: Option<&SystemTask>) -> bool {
        let deferred = &self.deferred;
        system_task.is_some_and(SystemTask::stores_deferred)
            || deferred.counters.len() >= COUNTERS_MAX
            || deferred.event_bytes >= EVENT_BYTES_MAX
            || (deferred.since).is_some_and(|since| work.now.seconds_from(since) >= KEPT_MAX_S)
            // Events are numbered in the order of their commits.
            || !(work.deferred.events || deferred.events.is_empty())
    }

    /// Stores what earlier transactions have deferred, in this one.
    pub async fn store_deferred(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let mut writes = Vec::new();
        if !self.deferred.counters.is_empty() {
            writes.push(counters::add_deltas(
                &self.deferred.rows(),
                self.peers.number(),
            ));
        }
        let seen = self.seen();
        if !seen.is_empty() {
            writes.push(tasks::save_seen(&seen, self.trust_client_clock));
        }
        if !writes.is_empty() {
            connection.run(writes).await?;
        }
        events::store(connection, &self.deferred.events).await
    }

    /// Applies a commit: forgets what it has stored, if `stored`, and keeps what it has deferred.
    pub fn keep_deferred(
        &mut self,
        stored: bool,
        counters: &[CounterRow],
        events: Option<DeferredEvents>,
        now: Time,
    ) {
        if stored {
            self.deferred = DeferredWrites::default();
        }
        self.deferred.add(counters, events, now);
        let has_deferred = !self.deferred.is_empty();
        self.deferred_state
            .has_deferred
            .store(has_deferred, Ordering::Release);
        let has_events = !self.deferred.events.is_empty();
        self.deferred_state
            .has_deferred_events
            .store(has_events, Ordering::Release);
    }

    /// Forgets the statistics and events that are deferred.
    pub fn drop_deferred(&mut self) {
        self.keep_deferred(true, &[], None, Time(0));
    }

    /// Stores everything that is deferred, before the database is closed.
    pub async fn store_last(&mut self, connection: &mut Connection) -> Result<(), StoreError> {
        if self.deferred.is_empty() && self.seen().is_empty() {
            return Ok(());
        }
        connection.begin(Begin::Shared).await?;
        self.store_deferred(connection).await?;
        connection.commit_with(Vec::new()).await?;
        self.deferred = DeferredWrites::default();
        Ok(())
    }

    fn seen(&self) -> HashMap<String, Time> {
        let seen = self.deferred_state.seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The statement that saves the workers' activity with this transaction, unless that is deferred. With claims, it
    /// is not deferred: the consistency check requires that a worker was not last seen before its claims.
    pub fn save_seen(&self, work: &UnitOfWork) -> Option<Statement> {
        let mut deferred = work.counted.deferred.iter();
        if work.deferred.statistics && !deferred.any(|(kind, ..)| *kind == Kind::Wait as u8) {
            return None;
        }
        let mut seen = self.seen();
        note_seen(&mut seen, work);
        (!seen.is_empty()).then(|| tasks::save_seen(&seen, self.trust_client_clock))
    }

    /// Notes the workers of a committed transaction. `saved`: it has saved these and all earlier ones. `stored_deferred`:
    /// it has stored what was deferred, and with it the earlier ones.
    pub fn note_seen(&self, work: &UnitOfWork, saved: bool, stored_deferred: bool) {
        let seen = self.deferred_state.seen.lock();
        let mut seen = seen.unwrap_or_else(PoisonError::into_inner);
        if saved || stored_deferred {
            seen.clear();
        }
        if !saved {
            note_seen(&mut seen, work);
        }
    }
}

/// Adds the workers that the transaction has seen, and removes the workers that it deletes.
fn note_seen(seen: &mut HashMap<String, Time>, work: &UnitOfWork) {
    for worker in work.forgotten_workers() {
        seen.remove(worker);
    }
    for worker in work.seen_workers() {
        match seen.get_mut(worker) {
            Some(last) => *last = work.now,
            None => drop(seen.insert(worker.clone(), work.now)),
        }
    }
}

impl DeferredState {
    fn has_followers(&self) -> bool {
        self.followers.load(Ordering::Acquire) > 0
    }
}

/// While this exists, events are stored with the commit group that publishes them.
pub struct EventsFollowed(Arc<DeferredState>);

impl Drop for EventsFollowed {
    fn drop(&mut self) {
        self.0.followers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Engine {
    /// Stores the statistics and events that are deferred, so that queries find them. If that fails or takes too long,
    /// they find less; the writer has logged the error.
    pub(in crate::engine) async fn store_deferred(&self) {
        if !self.deferred_state().has_deferred.load(Ordering::Acquire) {
            return;
        }
        let engine = self.for_task();
        // In a task of its own: it continues if the reader no longer waits for it.
        let stored = tokio::spawn(async move {
            let storing = engine.deferred_state().storing.lock();
            let Ok(_storing) = tokio::time::timeout(STORE_WAIT_MAX, storing).await else {
                return;
            };
            if engine.deferred_state().has_deferred.load(Ordering::Acquire) {
                drop(engine.run_system_task(SystemTask::StoreDeferred).await);
            }
        });
        drop(tokio::time::timeout(STORE_WAIT_MAX, stored).await);
    }

    /// Like [`Engine::store_deferred`], for a query that reads only events.
    pub(in crate::engine) async fn store_deferred_events(&self) {
        let state = self.deferred_state();
        if state.has_deferred_events.load(Ordering::Acquire) {
            self.store_deferred().await;
        }
    }

    /// For a reader that follows the events as they are published. Without this, it can read them too, but each read
    /// must first have the deferred events written.
    pub fn follow_events(&self) -> EventsFollowed {
        self.deferred_state()
            .followers
            .fetch_add(1, Ordering::AcqRel);
        EventsFollowed(Arc::clone(self.deferred_state()))
    }
}

#[cfg(test)]
mod tests;
