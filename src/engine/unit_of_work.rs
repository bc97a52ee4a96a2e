//! The unit of work of one transaction: the jobs it needs are read at once, the verbs run on them in memory, one after
//! the other, and all changes are written at once.
//!
//! A verb is a function on [`UnitOfWork`]. It checks first and changes afterwards, so a verb that fails has changed
//! nothing. Verbs do not access the database, so a transaction takes a handful of statements for any number of jobs.
//! Counters are derived by comparing each job before and after; no verb updates them.

pub mod audited;
pub mod candidates;
pub mod commit_times;
pub mod counters;
pub mod cycles;
pub mod deferred;
pub mod dependencies;
pub mod job_cache;
pub mod load;
pub mod long_parts;
pub mod needs;
mod queues;
pub mod relations;
pub mod releases;
pub mod save;
pub mod spawn;
pub mod time_series;
pub mod transaction;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::engine::cache::Caches;
use crate::engine::clock::Time;
use crate::engine::events::Events;
use crate::engine::maintenance::tasks::{BATCH, MaintenanceTask};
use crate::engine::metrics::CountedEvents;
use crate::engine::model::config::Config;
use crate::engine::model::job::{Job, JobKey, QLESS_SCOPE, QueueId, QueueKey};
use crate::engine::model::job_rows::{self, Omitted};
use crate::engine::model::queue::{Queue, Queues};
use crate::engine::model::recurring::Recurring;
use crate::engine::model::tracked::Tracked;
use crate::engine::operations::OperationChanges;
use crate::engine::tokens::TokenChanges;
use crate::engine::unit_of_work::candidates::Candidates;
use crate::engine::unit_of_work::counters::Counters;
use crate::engine::unit_of_work::deferred::Deferral;
use crate::store::{Row, Statement, StoreError};
use crate::traces::Trace;
pub use audited::Audit;
pub use needs::{Needs, NextJobs, Oldest};

/// The version of a row that has just been inserted.
const NEW: i64 = 1;

/// A loaded job.
struct LoadedJob {
    job: Job,
    /// The version in the database; `None` for a new job.
    version: Option<i64>,
    /// The version that a new job gets.
    first_version: i64,
    /// The job as loaded, if it has been changed since. In a box, because most of many loaded jobs do not change.
    before: Option<Box<Job>>,
    extent: Extent,
    /// What else has not been loaded, apart from the body.
    omitted: Omitted,
    /// This transaction makes another job depend on it.
    has_new_dependent: bool,
    /// It comes from the [`JobCache`](job_cache::JobCache), so another server may have changed it.
    is_cached: bool,
}

/// What is loaded of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// All of it, except for what [`LoadedJob::omitted`] names.
    Whole,
    /// What changes when a job that it depends on is completed, and the number of its dependencies.
    Dependent,
    /// The state, for a job that is only depended on or checked, and the number of its dependents.
    Checked,
}

/// A loaded recurring job; `None` if it is to be deleted.
struct LoadedRecurring {
    recurring: Option<Recurring>,
    /// The version in the database; 0 for a new one.
    version: i64,
    changed: bool,
}

/// The jobs of a queue that the claims of a transaction request.
pub struct WantedJobs {
    pub queue: QueueId,
    pub count: usize,
    /// The limit on running jobs of the queue, if any, when the claims began. It is kept because it decides how many
    /// statements there are: if another server changed [`UnitOfWork::config`] meanwhile, results would be assigned to the
    /// wrong statements.
    pub limit: Option<usize>,
}

/// The loaded jobs, and everything else that the transaction writes.
pub struct UnitOfWork {
    /// The time of the transaction.
    pub now: Time,
    pub counters: Counters,
    pub events: Events,
    /// The options, without the changes of this transaction.
    pub config: Arc<Config>,
    /// Events that a job's history keeps.
    pub history_max: usize,
    /// Whether a job was completed without moving on to another queue.
    pub has_final_completion: bool,
    /// Ticks used so far, 1 µs each; see [`UnitOfWork::next_tick`].
    pub ticks: i64,
    /// How many rows a system task has changed or deleted.
    pub affected_rows: usize,
    /// The bytes of tags in the results of the verbs (`verbs/qless/tag.rs`).
    pub returned_bytes: usize,
    /// The maintenance task of this transaction, and the maximum number of jobs in its batch.
    pub maintenance: Option<(MaintenanceTask, i64)>,
    /// Whether a maintenance task has left work to its next transaction, because of the size of the jobs, or because it
    /// has not checked all queues or workers yet.
    pub has_more_work: bool,
    /// Whether a flush deletes everything that is cached, except for tokens.
    pub flushes: bool,
    /// Whether any poll waits, so that wake-ups must be collected.
    pub has_subscribers: bool,
    /// Whether the disk is full, so that no jobs are added.
    pub is_disk_full: bool,
    /// What is stored later.
    pub deferred: Deferral,
    /// On a shared database, its revision when the transaction began.
    pub revision: Option<i64>,
    /// The audit entry, if the transaction belongs to an actor.
    pub audit: Option<Box<Audit>>,
    /// The trace of the request whose verbs run.
    pub trace: Trace,
    extra_statements: Vec<Statement>,
    queues: Arc<Queues>,
    /// New and changed queues, and their IDs by key.
    changed_queues: BTreeMap<QueueId, Queue>,
    changed_keys: HashMap<QueueKey, QueueId>,
    /// Queues to delete.
    deleted_queues: Vec<QueueId>,
    pub tokens: TokenChanges,
    pub operations: OperationChanges,
    tracked: Arc<Tracked>,
    /// Jobs tracked (with the time) or untracked (`None`) in this transaction.
    tracking: HashMap<String, Option<Time>>,
    jobs: HashMap<JobKey, LoadedJob, RandomState>,
    /// The size in bytes of the texts of the jobs as they were loaded.
    loaded_bytes: usize,
    removed: Vec<(Job, i64)>,
    /// Dependencies `(job, dependency)` to add (true) or remove.
    changed_dependencies: HashMap<(i64, i64), bool, RandomState>,
    /// What else is removed, before dependencies are added.
    removed_dependencies: dependencies::RemovedDependencies,
    /// Completed jobs whose dependents are released in later transactions.
    pub releases: releases::Releases,
    /// Dependents of jobs that are not fully loaded, for cycle detection.
    dependents: HashMap<String, Vec<String>>,
    /// The read limit that cycle detection reached, if any.
    pub cycle_search_limit: Option<cycles::SearchLimit>,
    /// Up to this number, the dependents of each job that others are going to depend on have been counted.
    pub dependents_counted: usize,
    candidates: HashMap<QueueId, Candidates, RandomState>,
    oldest: Vec<JobKey>,
    recurring: HashMap<String, LoadedRecurring>,
    /// Reserved IDs for new records.
    reserved_record_ids: HashMap<QueueId, VecDeque<i64>, RandomState>,
    /// Queues to which a recurring job was added or moved.
    recurring_in: HashSet<QueueId>,
    /// What metrics count after the commit; known once the writes have been made.
    counted: CountedEvents,
    /// Subscribers to wake per queue: one for each job that became available.
    wake_ups: HashMap<QueueId, usize, RandomState>,
    /// When the next job becomes available in a queue.
    next_available: HashMap<QueueId, Time, RandomState>,
    seen_workers: HashSet<String>,
    forgotten_workers: Vec<String>,
    /// The changed options with their new values; `None` resets one to its default.
    changed_options: Vec<(String, Option<String>)>,
    /// Running jobs with their versions, and jobs that no longer run (`None`), in the order in which the phases of the
    /// transaction left them: a later phase may end a job that an earlier one only read.
    cache_updates: Vec<(JobKey, Option<(Job, i64)>)>,
    insertion_numbers: InsertionNumbers,
}

/// Servers whose insertion numbers do not collide.
const SERVERS_MAX: i64 = 1_024;

/// The sequence of insertion numbers.
#[derive(Clone, Copy, Debug)]
pub struct InsertionNumbers {
    pub last: i64,
    /// The distance between two numbers; those between belong to other servers.
    pub step: i64,
}

impl InsertionNumbers {
    /// The sequence of one of several servers: after `last`, which can be the number of another one, and after this time
    /// of the database, in microseconds.
    pub fn of_server(server: i64, last: i64, now: i64) -> InsertionNumbers {
        let last = last.max(now.saturating_mul(SERVERS_MAX));
        InsertionNumbers {
            last: last + (server - last).rem_euclid(SERVERS_MAX),
            step: SERVERS_MAX,
        }
    }
}

impl UnitOfWork {
    pub fn new(
        now: Time,
        caches: &Caches,
        has_subscribers: bool,
        insertion_numbers: InsertionNumbers,
    ) -> UnitOfWork {
        UnitOfWork {
            now,
            counters: Counters::default(),
            events: Events::default(),
            config: Arc::clone(&caches.config),
            history_max: caches.config.whole_number("max-job-history"),
            has_final_completion: false,
            ticks: 0,
            affected_rows: 0,
            returned_bytes: 0,
            maintenance: None,
            has_more_work: false,
            flushes: false,
            has_subscribers,
            is_disk_full: false,
            deferred: Deferral::default(),
            revision: None,
            audit: None,
            trace: Trace::NONE,
            extra_statements: Vec::new(),
            queues: Arc::clone(&caches.queues),
            changed_queues: BTreeMap::new(),
            changed_keys: HashMap::new(),
            deleted_queues: Vec::new(),
            tokens: TokenChanges::new(&caches.tokens),
            operations: OperationChanges::default(),
            tracked: Arc::clone(&caches.tracked),
            tracking: HashMap::new(),
            jobs: HashMap::default(),
            loaded_bytes: 0,
            removed: Vec::new(),
            changed_dependencies: HashMap::default(),
            removed_dependencies: dependencies::RemovedDependencies::default(),
            releases: releases::Releases::new(caches.released_bytes_max),
            dependents: HashMap::new(),
            cycle_search_limit: None,
            dependents_counted: usize::MAX,
            candidates: HashMap::default(),
            oldest: Vec::new(),
            recurring: HashMap::new(),
            reserved_record_ids: HashMap::default(),
            recurring_in: HashSet::new(),
            counted: CountedEvents::default(),
            wake_ups: HashMap::default(),
            next_available: HashMap::default(),
            seen_workers: HashSet::new(),
            forgotten_workers: Vec::new(),
            changed_options: Vec::new(),
            cache_updates: Vec::new(),
            insertion_numbers,
        }
    }

    pub fn job(&self, key: &JobKey) -> Option<&Job> {
        self.jobs.get(key).map(|loaded| &loaded.job)
    }

    /// The job, for changing.
    pub fn job_mut(&mut self, key: &JobKey) -> Option<&mut Job> {
        let loaded = self.jobs.get_mut(key)?;
        if loaded.extent == Extent::Checked {
            debug_assert!(false, "too little is loaded to write it");
            return None;
        }
        if loaded.version.is_some() && loaded.before.is_none() {
            loaded.before = Some(Box::new(loaded.job.clone()));
        }
        Some(&mut loaded.job)
    }

    /// Removes a job from the cache, because it no longer runs or exists.
    pub fn forget_cached(&mut self, key: JobKey) {
        self.cache_updates.push((key, None));
    }

    /// A time later than all that this returned before, for events within a transaction that must be ordered.
    pub fn next_tick(&mut self) -> Time {
        let time = Time(self.now.0.saturating_add(self.ticks));
        self.ticks += 1;
        time
    }

    /// The insertion number of a new job.
    pub fn next_seq(&mut self) -> i64 {
        self.insertion_numbers.last += self.insertion_numbers.step;
        self.insertion_numbers.last
    }

    /// Adds a job. Its key must be unused.
    pub fn insert(&mut self, job: Job) {
        let loaded = LoadedJob::new(job, None, Omitted::default(), Extent::Whole);
        self.jobs.insert(loaded.job.key.clone(), loaded);
    }

    /// Adds a deleted job again, with its insertion number. Its version is one that it has not had, because another
    /// server may still keep it.
    pub fn insert_again(&mut self, job: Job) {
        let mut loaded = LoadedJob::new(job, None, Omitted::default(), Extent::Whole);
        loaded.first_version = self.now.0.max(NEW);
        self.jobs.insert(loaded.job.key.clone(), loaded);
    }

    /// Adds a job from the [`JobCache`](job_cache::JobCache).
    pub fn add_cached(&mut self, job: Job, version: i64) {
        let key = job.key.clone();
        self.add_loaded_job(job, version, Omitted::default(), Extent::Whole);
        if let Some(loaded) = self.jobs.get_mut(&key) {
            loaded.is_cached = true;
        }
    }

    /// Adds a job as loaded by a statement with `job_columns!(short)`.
    pub fn add_row(&mut self, row: &Row) -> Result<JobKey, StoreError> {
        let (job, version, omitted) = job_rows::short_job(row)?;
        let key = job.key.clone();
        if !self.jobs.contains_key(&key) {
            self.add_loaded_job(job, version, omitted, Extent::Whole);
        }
        Ok(key)
    }

    fn add_loaded_job(&mut self, job: Job, version: i64, omitted: Omitted, extent: Extent) {
        self.loaded_bytes += job.loaded_bytes();
        let loaded = LoadedJob::new(job, Some(version), omitted, extent);
        self.jobs.insert(loaded.job.key.clone(), loaded);
    }

    /// The ID for a new record in the queue, if one was reserved.
    pub fn next_record_id(&mut self, queue: QueueId) -> Option<i64> {
        self.reserved_record_ids.get_mut(&queue)?.pop_front()
    }

    /// The oldest jobs that were requested, in order.
    pub fn take_oldest(&mut self) -> Vec<JobKey> {
        std::mem::take(&mut self.oldest)
    }

    /// Wakes all subscribers of the queue.
    pub fn wake_all(&mut self, queue: QueueId) {
        self.wake(queue, usize::MAX);
    }

    /// Wakes `n` subscribers of the queue.
    pub fn wake(&mut self, queue: QueueId, n: usize) {
        let wake_ups = self.wake_ups.entry(queue).or_default();
        *wake_ups = wake_ups.saturating_add(n);
    }

    /// The last UTC day that an option in days no longer retains; today counts as the first day.
    pub fn last_expired_day(&self, option: &str) -> i64 {
        let days = i64::try_from(self.config.whole_number(option)).unwrap_or(i64::MAX);
        self.now.day().saturating_sub(days)
    }

    pub fn is_tracked(&self, id: &str) -> bool {
        match self.tracking.get(id) {
            Some(since) => since.is_some(),
            None => self.tracked.contains(id),
        }
    }

    /// The number of tracked jobs; an upper bound, because untracked ones in this transaction are counted too.
    pub fn tracked_count(&self) -> usize {
        self.tracked.count() + self.tracking.len()
    }

    pub fn set_tracked(&mut self, id: &str, since: Option<Time>) {
        self.tracking.insert(id.to_owned(), since);
    }

    /// Publishes the job's ID on the channel of a kind of event, if the job is tracked.
    pub fn publish_tracked(&mut self, channel: &str, key: &JobKey) {
        if key.scope == QLESS_SCOPE && self.is_tracked(&key.id) {
            self.events.tracked(channel, &key.id);
        }
    }

    pub fn recurring(&self, id: &str) -> Option<&Recurring> {
        self.recurring.get(id)?.recurring.as_ref()
    }

    /// Sets or deletes a recurring job.
    pub fn set_recurring(&mut self, id: &str, recurring: Option<Recurring>) {
        if let Some(recurring) = &recurring {
            // A queue with a stored recurring job is known to all servers. They look for others in changed queues.
            let before = self.recurring(id).map(|before| before.queue);
            if before != Some(recurring.queue) && self.recurring_in.insert(recurring.queue) {
                self.touch_queue(recurring.queue);
            }
            self.available_at(recurring.queue, recurring.next_at);
        }
        let loaded = self
            .recurring
            .entry(id.to_owned())
            .or_insert(LoadedRecurring {
                recurring: None,
                version: 0,
                changed: false,
            });
        loaded.recurring = recurring;
        loaded.changed = true;
    }

    /// Notes that a job becomes available in the queue at this time.
    pub fn available_at(&mut self, queue: QueueId, at: Time) {
        let first = self.next_available.entry(queue).or_insert(at);
        *first = at.min(*first);
    }

    /// The maximum number of jobs in the batch of a maintenance task.
    pub fn batch_max(&self) -> i64 {
        self.maintenance.map_or(BATCH, |(_, max)| max)
    }

    /// Sets an option, or resets it to its default (`None`).
    pub fn configure(&mut self, option: &str, value: Option<String>) {
        self.changed_options.push((option.to_owned(), value));
    }

    /// Adds statements to the commit. Neither verbs nor caches see what they change.
    pub fn add_statements(&mut self, statements: impl IntoIterator<Item = Statement>) {
        self.extra_statements.extend(statements);
    }

    /// Notes that the worker was active.
    pub fn worker_seen(&mut self, worker: &str) {
        if !self.seen_workers.contains(worker) {
            self.seen_workers.insert(worker.to_owned());
        }
    }

    /// Hides the worker until it is active again.
    pub fn forget_worker(&mut self, worker: &str) {
        self.seen_workers.remove(worker);
        self.forgotten_workers.push(worker.to_owned());
    }

    /// Workers to hide; see [`UnitOfWork::forget_worker`].
    pub fn forgotten_workers(&self) -> &[String] {
        &self.forgotten_workers
    }

    /// Workers that were active.
    pub fn seen_workers(&self) -> &HashSet<String> {
        &self.seen_workers
    }
}
