//! Runs the verbs of a transaction: load, run, write, commit, respond.

pub mod claims;
pub mod request;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::engine::BYTES_PER_WEIGHT;
use crate::engine::cache::{CacheChanges, Caches};
use crate::engine::clock::{Clock, Time};
use crate::engine::error::{Error, Result};
use crate::engine::events;
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
use crate::engine::unit_of_work::cycles::{CycleSearch, STEPS_MAX};
use crate::engine::unit_of_work::deferred::{DeferredState, DeferredWrites};
use crate::engine::unit_of_work::job_cache::{self, JobCache};
use crate::engine::unit_of_work::long_parts::LONG_PARTS_MAX;
use crate::engine::unit_of_work::relations::RELATIONS_MAX;
use crate::engine::unit_of_work::releases;
use crate::engine::unit_of_work::time_series;
use crate::engine::unit_of_work::transaction::claims::run_claims;
use crate::engine::unit_of_work::{Audit, InsertionNumbers, UnitOfWork};
use crate::store::{Connection, GroupRunner, Sharing, Statement, StoreError, WEIGHT_MAX, Waiting};
use crate::traces::Trace;
pub use request::{Task, Verb, WriteRequest, too_large};

/// The weight of a request whose cycle check reached its read limit, or whose dependencies have too many dependents.
/// More than half of the maximum of a commit group, so two such requests never share a transaction.
const CYCLE_SEARCH_WEIGHT: usize = 1_100;

/// Transactions between two deletions of old events. A transaction adds at most one row of them.
const DROP_EVENTS_EVERY: u64 = 16;

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
    /// The number of committed transactions.
    pub transactions: u64,
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

    fn load(request: &WriteRequest) -> usize {
        request.load
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
        waiting: &Waiting,
    ) -> Result<(), StoreError> {
        // Two servers that add dependencies at the same time could complete a cycle of which each sees a half.
        let strict = requests.iter().any(|it| !it.needs.dependencies.is_empty());
        let insertion_numbers = self.begin(connection, strict).await?;
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
        if self.transactions.is_multiple_of(DROP_EVENTS_EVERY) && system_task.is_none() {
            writes.push(events::delete_old());
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
        let waiting = Some(waiting).filter(|_| !self.peers.any() && all_shared(requests));
        connection.commit_with(writes, waiting).await?;
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
        self.transactions += 1;
        self.note_seen(&work, saves_seen, stores_deferred);
        self.apply_committed(work, stores_deferred, written);
        Ok(())
    }

    fn respond(&mut self, requests: Vec<WriteRequest>, outcome: Result<(), StoreError>) {
        if let Err(error) = &outcome
            && !matches!(error, StoreError::Busy)
        {
            self.job_cache.clear();
            if matches!(error, StoreError::InDoubt) {
                self.peers.note_doubt();
            }
            if !matches!(error, StoreError::Full | StoreError::TransactionTooLarge) {
                self.metrics.transaction_failed();
            }
        }
        let outcome = outcome.map_err(Error::from);
        for request in requests {
            request.task.respond(outcome.clone());
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

    /// Begins a transaction and applies what other servers have changed in cached data. Returns the sequence of
    /// insertion numbers: with several servers, derived from the clock and the server's number.
    async fn begin(
        &mut self,
        connection: &mut Connection,
        strict: bool,
    ) -> Result<InsertionNumbers, StoreError> {
        let begun = connection.begin(strict).await;
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
        if !changes.changed_options.is_empty() {
            // Retention options may have changed.
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

/// Whether all requests share their transaction. If so, the next group can begin with its commit. Others often begin
/// differently, and a system task still needs the connection. While other servers run, later requests must see their
/// changes.
fn all_shared(requests: &[WriteRequest]) -> bool {
    (requests.iter()).all(|it| Runner::sharing(it) == Sharing::Shared)
}

/// Loads the named jobs and runs the verbs on them. Returns the statements to write.
async fn run_named(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    requests: &mut [WriteRequest],
) -> Result<Vec<Statement>, StoreError> {
    let needs = requests.iter().map(|request| &request.needs);
    let wanted = UnitOfWork::record_ids_needed(needs);
    if !wanted.is_empty() {
        let answers = connection
            .run(vec![UnitOfWork::reserve_record_ids(&wanted)])
            .await?;
        work.take_record_ids(&wanted, answers)?;
    }
    let oldest = requests
        .iter()
        .any(|request| request.needs.oldest.is_some());
    let load = work.load_statements(requests.iter().map(|request| &request.needs));
    if !load.is_empty() {
        let answers = connection.read(load).await?;
        work.take_loaded(answers, oldest)?;
    }
    let divisible = requests.len() > 1 || requests.iter().any(|it| it.needs.divisible);
    if divisible {
        count_relations(connection, work, requests).await?;
    }
    let long = work.long_parts(requests.iter().map(|request| &request.needs));
    let relations = work.relations(requests.iter().map(|request| &request.needs));
    let is_large = long.bytes > LONG_PARTS_MAX || relations > RELATIONS_MAX || work.has_uncounted();
    if is_large && divisible {
        return Err(too_large(requests, |request| weight_of(work, request)));
    }
    let long = long.statements();
    if !long.is_empty() {
        let answers = connection.read(long).await?;
        work.take_long_parts(answers)?;
    }
    releases::load_dependents(connection, work, requests, divisible).await?;
    let mut search = CycleSearch::from(work, requests.iter().map(|request| &request.needs));
    while let Some(level) = search.next_level() {
        let answers = connection.read(vec![level]).await?;
        search.loaded(work, &answers)?;
    }
    let searches = |request: &&WriteRequest| !request.needs.dependencies.is_empty();
    if search.reached_limit().is_some() && requests.iter().filter(searches).count() > 1 {
        return Err(too_large(requests, cycle_search_weight));
    }
    if divisible {
        let steps = requests.iter().map(|it| search.steps(work, &it.needs));
        let steps: Vec<usize> = steps.collect();
        if steps.iter().sum::<usize>() > STEPS_MAX {
            let mut weights = steps
                .into_iter()
                .map(|steps| steps * WEIGHT_MAX / STEPS_MAX);
            return Err(too_large(requests, |_| weights.next().unwrap_or_default()));
        }
    }
    work.cycle_search_limit = search.reached_limit();
    work.begin_audit();
    for request in requests
        .iter_mut()
        .filter(|request| request.needs.claim.is_empty())
    {
        request.run(work);
    }
    Ok(work.job_writes())
}

/// Counts the dependencies that the verbs remove and the dependents that they release, if they were not loaded, so that
/// a transaction is not cut into smaller ones than necessary.
async fn count_relations(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    requests: &mut [WriteRequest],
) -> Result<(), StoreError> {
    let needs = requests.iter().map(|request| &request.needs);
    if let Some(count) = work.count_relations_statement(needs) {
        let answers = connection.read(vec![count]).await?;
        work.take_relations_counted(&answers)?;
    }
    Ok(())
}

/// The weight of what the request loads.
fn weight_of(work: &UnitOfWork, request: &WriteRequest) -> usize {
    let needs = || std::iter::once(&request.needs);
    let (long, relations) = (work.counted_parts(needs()), work.relations(needs()));
    let uncounted = match work.has_uncounted() {
        true => cycle_search_weight(request),
        false => 0,
    };
    (long.bytes / BYTES_PER_WEIGHT)
        .max(relations)
        .max(uncounted)
}

/// The weight of the request's search for cycles, if that reaches its limit.
fn cycle_search_weight(request: &WriteRequest) -> usize {
    match request.needs.dependencies.is_empty() {
        true => 0,
        false => CYCLE_SEARCH_WEIGHT,
    }
}

#[cfg(test)]
mod tests;
