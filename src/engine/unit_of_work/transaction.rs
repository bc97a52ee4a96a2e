//! Runs the verbs of a transaction: load, run, write, commit, respond.

pub mod claims;
mod named;
pub mod request;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::engine::cache::{CacheChanges, Caches};
use crate::engine::clock::{Clock, Time};
use crate::engine::error::{Error, Result};
use crate::engine::events::{self, OldEvents};
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::cursors::Cursors;
use crate::engine::maintenance::empty_queues::EmptyQueues;
use crate::engine::maintenance::prune::{self, Progress};
use crate::engine::maintenance::{deletions, fold_series};
use crate::engine::metrics::Metrics;
use crate::engine::model::job::{JobKey, QueueKey};
use crate::engine::peers::Peers;
use crate::engine::subscriptions::Subscriptions;
use crate::engine::unit_of_work::commit_times::CommitTimes;
use crate::engine::unit_of_work::deferred::{DeferredState, DeferredWrites};
use crate::engine::unit_of_work::job_cache::{self, JobCache};
use crate::engine::unit_of_work::time_series;
use crate::engine::unit_of_work::transaction::claims::run_claims;
use crate::engine::unit_of_work::transaction::named::run_named;
use crate::engine::unit_of_work::{Audit, InsertionNumbers, UnitOfWork};
use crate::store::{Begin, Connection, GroupRunner, Sharing, Statement, StoreError};
use crate::traces::Trace;
pub use request::{Task, Verb, WriteRequest, too_large};

/// The engine's part of group commit.
pub struct Runner {
    pub caches: Caches,
    pub clock: Arc<Clock>,
    pub deferred_state: Arc<DeferredState>,
    pub deferred: DeferredWrites,
    pub subscriptions: Arc<Subscriptions>,
    pub changes: watch::Sender<u64>,
    pub commits: Arc<CommitTimes>,
    pub metrics: Arc<Metrics>,
    pub trust_client_clock: bool,
    /// The other servers on the database.
    pub peers: Arc<Peers>,
    /// Whether this server leads maintenance.
    pub is_leader: Arc<AtomicBool>,
    pub last_seq: i64,
    /// Whether the revision has been reported since the start.
    pub has_reported_revision: bool,
    pub old_events: OldEvents,
    pub statistics_cleanup: StatisticsCleanup,
    pub job_cache: JobCache,
    pub cursors: Cursors,
    pub empty_queues: EmptyQueues,
}

/// When old statistics were last processed.
#[derive(Clone, Debug, Default)]
pub struct StatisticsCleanup {
    /// The UTC day of the last deletion of old statistics, and how far it has come.
    pruned: Option<(i64, Progress)>,
    /// The hour of the last aggregation of minutes into hours, and how far it has come.
    folded: Option<(i64, fold_series::Progress)>,
}

impl GroupRunner for Runner {
    type Request = WriteRequest;

    fn weight(request: &WriteRequest) -> usize {
        request.weight
    }

    fn loaded_weight(request: &WriteRequest) -> usize {
        request.loaded_weight
    }

    fn sharing(request: &WriteRequest) -> Sharing {
        let system_task = request.task.system_task();
        if request.actor.is_some() || system_task.as_ref().is_some_and(|it| !it.is_for_request()) {
            Sharing::System
        } else if request.now.is_some() || request.needs.oldest.is_some() || system_task.is_some() {
            Sharing::Exclusive
        } else {
            Sharing::Shared
        }
    }

    fn adds_jobs(request: &WriteRequest) -> bool {
        request.needs.adds_jobs
    }

    fn trace(request: &WriteRequest) -> &Trace {
        &request.trace
    }

    fn is_abandoned(request: &WriteRequest) -> bool {
        request.task.is_abandoned()
    }

    async fn run(
        &mut self,
        connection: &mut Connection,
        requests: &mut [WriteRequest],
        locks_first: bool,
    ) -> Result<(), StoreError> {
        let begin = self.begin_of(requests, locks_first);
        let insertion_numbers = self.begin(connection, begin).await?;
        let now = self.time_of(requests);
        let has_subscribers = self.subscriptions.any() || self.peers.any();
        let mut work = UnitOfWork::new(now, &self.caches, has_subscribers, insertion_numbers);
        work.is_disk_full = connection.is_disk_full();
        work.audit = Audit::of_first(requests);
        work.revision = self.peers.is_shared().then(|| self.caches.revision());
        let system_task = requests.iter().find_map(|it| it.task.system_task());
        self.begin_deferring(&mut work);
        let stores_deferred = self.stores_deferred(&work, system_task.as_ref());
        if stores_deferred {
            self.store_deferred(connection).await?;
        }
        let mut writes = match &system_task {
            Some(system_task) => {
                let writes = self
                    .run_system_task(system_task, connection, &mut work)
                    .await?;
                requests.iter_mut().for_each(|it| it.run(&mut work));
                writes
            }
            None => {
                self.run_verbs(connection, &mut work, requests, locks_first)
                    .await?
            }
        };
        // With client time, maintenance does not touch qless data. As in qless-core, a completion deletes old jobs.
        let deletes_complete = work.has_final_completion && self.trust_client_clock;
        if deletes_complete {
            connection.run(std::mem::take(&mut writes)).await?;
            deletions::delete_complete(connection, &mut work).await?;
        }
        let cleans_up = system_task.as_ref().map(SystemTask::cleans_up_statistics);
        let statistics_cleanup = match deletes_complete || cleans_up.unwrap_or_default() {
            true => Some(self.clean_up_statistics(connection, &mut work).await?),
            false => None,
        };
        if self.old_events.is_deletion_due(system_task.is_some()) {
            let deleted = connection.run(vec![events::delete_old()]).await?;
            self.old_events.deleted(&deleted)?;
        }
        let flush = matches!(system_task, Some(SystemTask::Flush));
        writes.extend(work.final_writes(self.peers.number()));
        let written = !writes.is_empty() || work.has_deferred_events();
        let save_seen = match written || system_task.is_some() {
            true if !flush => self.save_seen(&work),
            _ => None,
        };
        let saves_seen = flush || save_seen.is_some();
        writes.extend(save_seen);
        let began = Instant::now();
        connection.commit_with(writes).await?;
        if written {
            self.metrics
                .committed(self.commits.record(began), requests.len());
        }
        if let Some(system_task) = &system_task {
            self.after_system_task(system_task, connection).await?;
        }
        if let Some(cleanup) = statistics_cleanup {
            self.statistics_cleanup = cleanup;
        }
        self.old_events.note_transaction();
        self.note_seen(&work, saves_seen, stores_deferred);
        self.apply_committed(work, stores_deferred, written);
        Ok(())
    }

    /// Without other servers, claims run after the others: then the writes of both are one statement each, and need no
    /// transaction around them.
    fn divide(&self, requests: Vec<WriteRequest>) -> Vec<Vec<WriteRequest>> {
        if !self.peers.is_shared() || self.peers.any() {
            return vec![requests];
        }
        let claims = |request: &WriteRequest| !request.needs.claim.is_empty();
        let (claims, others): (Vec<_>, Vec<_>) = requests.into_iter().partition(claims);
        let mut groups = vec![others, claims];
        groups.retain(|group| !group.is_empty());
        groups
    }

    fn respond(&mut self, requests: Vec<WriteRequest>, outcome: Result<(), StoreError>) {
        if let Err(error) = &outcome
            && !matches!(error, StoreError::Busy)
        {
            self.job_cache.clear();
            if matches!(error, StoreError::InDoubt) {
                self.peers.poll_after_uncertain_commit();
                // The commit may have stored it, and it must not be counted twice.
                self.drop_deferred();
            }
            if !matches!(error, StoreError::Full | StoreError::TransactionTooLarge) {
                self.metrics.transaction_failed();
            }
        }
        let outcome = outcome.map_err(Error::from);
        for WriteRequest { task, held, .. } in requests {
            // Dropped before the response: the request may end at once, and gets its memory only if no write holds it.
            drop(held);
            task.respond(outcome.clone());
        }
    }

    fn writer_occupied(&mut self, took: Duration) {
        self.metrics.writer_occupied(took);
    }

    async fn finish(&mut self, connection: &mut Connection) -> Result<(), StoreError> {
        self.store_last(connection).await
    }
}

impl Runner {
    /// The time of the transaction: the client's, if a request has one, otherwise the server's.
    fn time_of(&self, requests: &[WriteRequest]) -> Time {
        let now = requests.iter().find_map(|request| request.now);
        now.unwrap_or_else(|| self.clock.now())
    }

    /// Runs the verbs of the requests. Returns the statements to write with the commit.
    async fn run_verbs(
        &mut self,
        connection: &mut Connection,
        work: &mut UnitOfWork,
        requests: &mut [WriteRequest],
        locks_first: bool,
    ) -> Result<Vec<Statement>, StoreError> {
        let lock = || work.lock_statement(requests.iter().map(|request| &request.needs));
        if let Some(lock) = locks_first.then(lock).flatten() {
            connection.run(vec![lock]).await?;
        }
        let (shared, recurring_in) = (self.peers.is_shared(), self.caches.recurring_in());
        // After they are locked, jobs that another server may have changed are read again.
        if !(locks_first && shared) {
            self.load_cached_jobs(work, requests);
        }
        let writes = run_named(connection, work, requests).await?;
        run_claims(connection, work, requests, writes, &recurring_in, shared).await
    }

    /// How a group of these requests begins.
    fn begin_of(&self, requests: &[WriteRequest], locks_first: bool) -> Begin {
        // Two servers that add dependencies at the same time could complete a cycle of which each sees a half.
        if requests.iter().any(|it| !it.needs.dependencies.is_empty()) {
            Begin::Exclusive
        } else if locks_first || self.peers.any() || !all_shared(requests) {
            Begin::Shared
        } else {
            Begin::Late
        }
    }

    /// Begins a transaction and applies what other servers have changed in cached data. Returns the sequence of
    /// insertion numbers: with several servers, derived from the clock and the server's number.
    async fn begin(
        &mut self,
        connection: &mut Connection,
        begin: Begin,
    ) -> Result<InsertionNumbers, StoreError> {
        let begun = connection.begin(begin).await;
        if connection.take_reopened() {
            self.job_cache.clear();
        }
        let Some(fresh) = begun? else {
            let (last, step) = (self.last_seq, 1);
            return Ok(InsertionNumbers { last, step });
        };
        self.clock.synchronize(fresh.now);
        self.catch_up(connection, fresh.revision).await?;
        let number = self.peers.number();
        Ok(InsertionNumbers::of_server(
            number,
            self.last_seq,
            fresh.now,
        ))
    }

    /// Deletes what `maintenance/prune.rs` deletes once per day, and aggregates old minutes into hours once per hour.
    /// Processes a bounded batch of each, and continues in the next transaction while there is more.
    async fn clean_up_statistics(
        &self,
        connection: &mut Connection,
        work: &mut UnitOfWork,
    ) -> Result<StatisticsCleanup, StoreError> {
        let mut cleanup = self.statistics_cleanup.clone();
        let hour = time_series::minute(work.now).div_euclid(time_series::HOUR);
        let progress = match cleanup.folded {
            Some((of, progress)) if of == hour => progress,
            _ => fold_series::Progress::BEGIN,
        };
        let progress = fold_series::fold(connection, work, progress).await?;
        cleanup.folded = Some((hour, progress));
        let day = work.now.day();
        let progress = match cleanup.pruned {
            Some((on, progress)) if on == day => progress,
            _ => Progress::BEGIN,
        };
        let progress = prune::prune(connection, work, self.trust_client_clock, progress).await?;
        cleanup.pruned = Some((day, progress));
        Ok(cleanup)
    }

    /// Adds the cached ones among the named jobs.
    fn load_cached_jobs(&mut self, work: &mut UnitOfWork, requests: &[WriteRequest]) {
        for request in requests {
            let keys: Vec<_> = work.keys_of(&request.needs).collect();
            for (scope, id) in keys {
                let id = id.to_owned();
                if let Some((job, version)) = self.job_cache.take(&JobKey { scope, id }) {
                    work.add_cached(job, version);
                }
            }
        }
    }

    fn apply_to_caches(&mut self, changes: CacheChanges, began_with: Option<i64>) {
        let mut changed = changes.changed_options.iter();
        if changed.any(|(option, _)| prune::OPTIONS.contains(&option.as_str())) {
            self.statistics_cleanup.pruned = None;
        }
        for id in &changes.deleted_queues {
            self.deferred.delete_queue(*id);
        }
        let has_revoked = changes.tokens.iter().any(|token| token.created.is_none());
        for queue in self.caches.apply(changes, began_with) {
            self.subscriptions.wake(&QueueKey::qless(queue), usize::MAX);
        }
        if has_revoked {
            self.subscriptions.wake_all();
        }
    }

    /// Applies a committed transaction to the caches, wakes polls, and signals the change.
    fn apply_committed(&mut self, mut work: UnitOfWork, stored_deferred: bool, written: bool) {
        if work.ticks > 0 {
            self.clock.advance_to(work.next_tick());
        }
        if let Some((task, _)) = work.maintenance {
            self.cursors.end_batch(task);
        }
        let (now, began_with, revised) = (work.now, work.revision, work.changes_cache());
        let had_subscribers = work.has_subscribers;
        let finished = work.into_committed();
        self.last_seq = finished.last_seq;
        let deferred = &finished.counted.deferred;
        self.keep_deferred(stored_deferred, deferred, finished.events, now);
        let is_shared = self.peers.is_shared();
        for (key, job) in finished.cache_updates {
            match job {
                Some((job, version)) if !is_shared || job_cache::can_share(&job) => {
                    self.job_cache.insert(job, version);
                }
                _ => drop(self.job_cache.take(&key)),
            }
        }
        if revised {
            self.apply_to_caches(finished.caches, began_with);
        }
        let queue = |id| self.caches.queues.by_id(id);
        for (queue, n) in finished
            .wake_ups
            .iter()
            .filter_map(|(id, n)| Some((queue(*id)?, *n)))
        {
            self.subscriptions.wake(&queue.key, n);
        }
        for (queue, at) in finished
            .next_available
            .iter()
            .filter_map(|(id, at)| Some((queue(*id)?, *at)))
        {
            self.subscriptions.available_at(&queue.key, at);
        }
        self.metrics.count(&finished.counted);
        if written && !had_subscribers && self.subscriptions.any() {
            // These polls subscribed during the transaction, which has not collected its wake-ups, and may have looked
            // for jobs before its commit.
            self.subscriptions.wake_all();
        }
        if written {
            let affected = finished
                .wake_ups
                .keys()
                .chain(finished.next_available.keys());
            self.peers.announce(affected.copied());
            self.changes.send_modify(|changes| *changes += 1);
        }
    }
}

/// Whether all requests share their transaction. The others write several statements.
fn all_shared(requests: &[WriteRequest]) -> bool {
    (requests.iter()).all(|it| Runner::sharing(it) == Sharing::Shared)
}

#[cfg(test)]
mod tests;
