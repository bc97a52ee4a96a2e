//! One group at work: the jobs it needs are read at once, the verbs run on them in memory, one after
//! the other, and what they changed is written at once.
//!
//! A verb is an ordinary function on [`UnitOfWork`]. It first checks, then changes; when it refuses it has
//! changed nothing. It never touches the database, so a group costs a handful of calls whatever the
//! number of jobs in it. Counts follow from comparing each job before and after; no verb keeps them.

pub mod audited;
pub mod bodies;
pub mod commit_times;
pub mod counters;
pub mod cycles;
pub mod dependencies;
pub mod job_cache;
pub mod load;
pub mod needs;
pub mod record_sizes;
pub mod save;
pub mod spawn;
pub mod time_series;
pub mod transaction;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use foldhash::fast::RandomState;

use crate::engine::clock::Time;
use crate::engine::events::Events;
use crate::engine::model::config::Config;
use crate::engine::model::job::{Job, JobKey, QLESS_SCOPE, QueueId, QueueKey};
use crate::engine::model::queue::{Queue, Queues};
use crate::engine::model::recurring::Recurring;
use crate::engine::model::tracked::Tracked;
use crate::engine::operations::OperationChanges;
use crate::engine::tokens::{TokenChanges, Tokens};
use crate::engine::unit_of_work::counters::Counters;
use crate::store::Statement;
pub use audited::Audit;
pub use needs::{Needs, Oldest, Wanted};
use record_sizes::RecordSizes;
pub use save::REVISE;

/// A job under work.
struct Slot {
    job: Job,
    /// The version in the database; `None` for a job that is not there yet.
    version: Option<i64>,
    /// As it was read, if it has been changed since.
    before: Option<Job>,
    /// Its lists of dependencies and dependents are not whole (see `neighbor_statement`).
    is_partial: bool,
}

/// A recurring job under work; `None` if it is to be there no longer.
struct RecurringSlot {
    recurring: Option<Recurring>,
    /// The version in the database; 0 for one that is not there yet.
    version: i64,
    changed: bool,
}

/// Jobs that a claim may take, in the order in which it takes them.
#[derive(Default)]
struct Candidates {
    expired: VecDeque<JobKey>,
    ready: VecDeque<JobKey>,
    /// How many more may run, where the queue has a limit.
    free_slots: Option<usize>,
    /// More were found than the transaction has memory for.
    is_cut: bool,
}

/// What all groups of a server share.
#[derive(Clone, Default)]
pub struct Shared {
    pub queues: Arc<Queues>,
    pub config: Arc<Config>,
    pub tracked: Arc<Tracked>,
    pub tokens: Arc<Tokens>,
    pub record_sizes: Arc<RecordSizes>,
    /// The copies of the database above are as of this revision, or later.
    pub revision: Arc<Mutex<i64>>,
}

/// The jobs under work, and what is to be written besides.
pub struct UnitOfWork {
    /// The moment at which all of the group happens.
    pub now: Time,
    pub counters: Counters,
    pub events: Events,
    /// The options in force; changes of this group come after it.
    pub config: Arc<Config>,
    /// How many events a job's history keeps.
    pub history_max: usize,
    /// Whether a job was completed for good.
    pub completed: bool,
    /// How many moments have been given out, a microsecond each.
    pub ticks: i64,
    /// How many jobs a chore has changed or dropped.
    pub affected: usize,
    /// Whether anybody waits for jobs, and wants to know which queues got some.
    pub has_subscribers: bool,
    /// Where servers share a database, its revision when the group began.
    pub revision: Option<i64>,
    /// What is noted of the group, if it is an actor's.
    pub audit: Option<Box<Audit>>,
    /// What else is to be written.
    extra_statements: Vec<Statement>,
    queues: Arc<Queues>,
    /// Queues that are new, or otherwise than before; and by which keys they are found.
    changed_queues: BTreeMap<QueueId, Queue>,
    changed_keys: HashMap<QueueKey, QueueId>,
    /// Queues that are to be there no longer.
    deleted_queues: Vec<QueueId>,
    pub tokens: TokenChanges,
    pub operations: OperationChanges,
    tracked: Arc<Tracked>,
    /// Ids tracked since when, or no longer, by this group.
    tracking: HashMap<String, Option<Time>>,
    slots: HashMap<JobKey, Slot, RandomState>,
    removed: Vec<(Job, i64)>,
    /// Edges `(job, needs)` to be added (true) or removed.
    edges: HashMap<(i64, i64), bool>,
    /// Dependents of jobs that are not loaded whole, to look for cycles.
    dependents: HashMap<String, Vec<String>>,
    /// There are more than it was allowed to read.
    pub is_walk_cut: bool,
    candidates: HashMap<QueueId, Candidates>,
    oldest: Vec<JobKey>,
    recurring: HashMap<String, RecurringSlot>,
    /// Numbers for new records.
    numbers: HashMap<QueueId, VecDeque<i64>>,
    /// Queues in which a recurring job was put.
    recurring_in: HashSet<QueueId>,
    /// How many subscriptions of a queue to wake: one for each job that became available there.
    wake_ups: HashMap<QueueId, usize>,
    /// When something will become available in a queue.
    next_available: HashMap<QueueId, Time>,
    seen_workers: HashSet<String>,
    forgotten_workers: Vec<String>,
    settings: Vec<(String, Option<String>)>,
    /// Jobs that run, with their versions, and jobs that do not run any more (`None`), in the order in which the
    /// phases of the group left them: what one phase only looked at another may end.
    cache_updates: Vec<(JobKey, Option<(Job, i64)>)>,
    seqs: Seqs,
}

/// Where the order of insertion goes on.
#[derive(Clone, Copy, Debug)]
pub struct Seqs {
    pub last: i64,
    /// From one number to the next; the numbers between belong to other servers.
    pub step: i64,
}

impl UnitOfWork {
    pub fn new(now: Time, shared: &Shared, has_subscribers: bool, seqs: Seqs) -> UnitOfWork {
        UnitOfWork {
            now,
            counters: Counters::default(),
            events: Events::default(),
            config: Arc::clone(&shared.config),
            history_max: shared.config.whole_number("max-job-history"),
            completed: false,
            ticks: 0,
            affected: 0,
            has_subscribers,
            revision: None,
            audit: None,
            extra_statements: Vec::new(),
            queues: Arc::clone(&shared.queues),
            changed_queues: BTreeMap::new(),
            changed_keys: HashMap::new(),
            deleted_queues: Vec::new(),
            tokens: TokenChanges::new(&shared.tokens),
            operations: OperationChanges::default(),
            tracked: Arc::clone(&shared.tracked),
            tracking: HashMap::new(),
            slots: HashMap::default(),
            removed: Vec::new(),
            edges: HashMap::new(),
            dependents: HashMap::new(),
            is_walk_cut: false,
            candidates: HashMap::new(),
            oldest: Vec::new(),
            recurring: HashMap::new(),
            numbers: HashMap::new(),
            recurring_in: HashSet::new(),
            wake_ups: HashMap::new(),
            next_available: HashMap::new(),
            seen_workers: HashSet::new(),
            forgotten_workers: Vec::new(),
            settings: Vec::new(),
            cache_updates: Vec::new(),
            seqs,
        }
    }

    // ---- what verbs use ----

    pub fn job(&self, key: &JobKey) -> Option<&Job> {
        self.slots.get(key).map(|slot| &slot.job)
    }

    /// The job, to be changed.
    pub fn job_mut(&mut self, key: &JobKey) -> Option<&mut Job> {
        let slot = self.slots.get_mut(key)?;
        if slot.version.is_some() && slot.before.is_none() {
            slot.before = Some(slot.job.clone());
        }
        Some(&mut slot.job)
    }

    /// The job does not run, or is there no longer.
    pub fn forget_cached(&mut self, key: JobKey) {
        self.cache_updates.push((key, None));
    }

    /// A moment after all that this gave before, for what is to be in order though it happens at once.
    pub fn next_tick(&mut self) -> Time {
        let moment = Time(self.now.0.saturating_add(self.ticks));
        self.ticks += 1;
        moment
    }

    /// A new job's place in the order of insertion.
    pub fn next_seq(&mut self) -> i64 {
        self.seqs.last += self.seqs.step;
        self.seqs.last
    }

    /// Adds a job whose identity is free.
    pub fn insert(&mut self, job: Job) {
        self.slots.insert(
            job.key.clone(),
            Slot {
                job,
                version: None,
                before: None,
                is_partial: false,
            },
        );
    }

    /// Puts a job under work as it stands in the database.
    pub fn add_loaded(&mut self, job: Job, version: i64) {
        let slot = Slot {
            job,
            version: Some(version),
            before: None,
            is_partial: false,
        };
        self.slots.insert(slot.job.key.clone(), slot);
    }

    /// The number of a new record in the queue, if one was needed.
    pub fn next_number(&mut self, queue: QueueId) -> Option<i64> {
        self.numbers.get_mut(&queue)?.pop_front()
    }

    /// How many more jobs of the queue may run, where that is limited.
    pub fn free_slots(&self, queue: QueueId) -> usize {
        let candidates = self.candidates.get(&queue);
        candidates
            .and_then(|candidates| candidates.free_slots)
            .unwrap_or(usize::MAX)
    }

    /// Whether jobs of the queue were left out because their bodies are too long for one transaction.
    pub fn is_cut(&self, queue: QueueId) -> bool {
        let candidates = self.candidates.get(&queue);
        candidates.is_some_and(|candidates| candidates.is_cut)
    }

    /// One more job of the queue runs.
    pub fn use_slot(&mut self, queue: QueueId) {
        if let Some(room) = self
            .candidates
            .get_mut(&queue)
            .and_then(|it| it.free_slots.as_mut())
        {
            *room = room.saturating_sub(1);
        }
    }

    /// The next job of the queue whose lease is lost.
    pub fn next_expired(&mut self, queue: QueueId) -> Option<JobKey> {
        self.candidates.get_mut(&queue)?.expired.pop_front()
    }

    /// The next job of the queue that waits.
    pub fn next_ready(&mut self, queue: QueueId) -> Option<JobKey> {
        self.candidates.get_mut(&queue)?.ready.pop_front()
    }

    /// The oldest jobs that were needed, in order.
    pub fn take_oldest(&mut self) -> Vec<JobKey> {
        std::mem::take(&mut self.oldest)
    }

    /// The queue as this group leaves it.
    pub fn queue(&self, key: &QueueKey) -> Option<Arc<Queue>> {
        if let Some(id) = self.changed_keys.get(key) {
            return self.changed_queues.get(id).cloned().map(Arc::new);
        }
        let is_as_before = |queue: &Arc<Queue>| !self.changed_queues.contains_key(&queue.id);
        self.queues.get(key).filter(is_as_before)
    }

    /// The key of a job of this queue, if the queue is known.
    pub fn key_in(&self, queue: &QueueKey, id: &str) -> Option<JobKey> {
        let scope = self.queue(queue)?.id;
        let id = id.to_owned();
        Some(JobKey { scope, id })
    }

    /// The number of a queue, which becomes known by this.
    pub fn queue_for(&mut self, key: &QueueKey) -> QueueId {
        if let Some(queue) = self.queue(key) {
            if queue.forgotten {
                self.change_queue(Queue {
                    forgotten: false,
                    first_seen: self.now,
                    ..(*queue).clone()
                });
            }
            return queue.id;
        }
        let last = self.changed_queues.last_key_value().map(|(id, _)| id + 1);
        let id = last.unwrap_or_default().max(self.queues.next_id());
        self.change_queue(Queue {
            id,
            key: key.clone(),
            first_seen: self.now,
            paused: false,
            forgotten: false,
        });
        id
    }

    /// Takes over a queue that is otherwise than before.
    pub fn change_queue(&mut self, queue: Queue) {
        let (id, key) = (queue.id, queue.key.clone());
        let before = self.changed_queues.insert(id, queue);
        if let Some(before) = before.filter(|before| before.key != key) {
            self.changed_keys.remove(&before.key);
        }
        self.changed_keys.insert(key, id);
    }

    /// The queue of this number, as it was before the group.
    pub fn queue_by_id(&self, id: QueueId) -> Option<Arc<Queue>> {
        self.queues.by_id(id)
    }

    /// Takes a queue away in which there is nothing.
    pub fn drop_queue(&mut self, id: QueueId) {
        self.deleted_queues.push(id);
    }

    /// The name of a queue that is known.
    pub fn queue_name(&self, id: QueueId) -> String {
        self.queue_key(id).map(|key| key.name).unwrap_or_default()
    }

    /// The full name of a queue that is known.
    pub fn queue_key(&self, id: QueueId) -> Option<QueueKey> {
        match self.changed_queues.get(&id) {
            Some(queue) => Some(queue.key.clone()),
            None => self.queues.by_id(id).map(|queue| queue.key.clone()),
        }
    }

    /// Wakes all subscriptions of the queue.
    pub fn wake_all(&mut self, queue: QueueId) {
        self.wake(queue, usize::MAX);
    }

    /// Wakes `n` subscriptions of the queue.
    pub fn wake(&mut self, queue: QueueId, n: usize) {
        let wake_ups = self.wake_ups.entry(queue).or_default();
        *wake_ups = wake_ups.saturating_add(n);
    }

    /// The last UTC day that is not kept any more by an option that counts days, today being the first.
    pub fn last_expired_day(&self, option: &str) -> i64 {
        let days = i64::try_from(self.config.whole_number(option)).unwrap_or(i64::MAX);
        self.now.day().saturating_sub(days)
    }

    // ---- tracked and recurring jobs ----

    pub fn is_tracked(&self, id: &str) -> bool {
        match self.tracking.get(id) {
            Some(since) => since.is_some(),
            None => self.tracked.contains(id),
        }
    }

    /// How many jobs are tracked, about: those of this group are added, whatever they replace.
    pub fn tracked_count(&self) -> usize {
        self.tracked.count() + self.tracking.len()
    }

    pub fn set_tracked(&mut self, id: &str, since: Option<Time>) {
        self.tracking.insert(id.to_owned(), since);
    }

    /// Says on its channel what happened to a job, if it is tracked.
    pub fn publish_tracked(&mut self, channel: &str, key: &JobKey) {
        if key.scope == QLESS_SCOPE && self.is_tracked(&key.id) {
            self.events.tracked(channel, &key.id);
        }
    }

    pub fn recurring(&self, id: &str) -> Option<&Recurring> {
        self.recurring.get(id)?.recurring.as_ref()
    }

    /// Sets a recurring job, or removes it.
    pub fn set_recurring(&mut self, id: &str, recurring: Option<Recurring>) {
        if let Some(recurring) = &recurring {
            self.recurring_in.insert(recurring.queue);
            self.available_at(recurring.queue, recurring.next_at);
        }
        let slot = self
            .recurring
            .entry(id.to_owned())
            .or_insert(RecurringSlot {
                recurring: None,
                version: 0,
                changed: false,
            });
        slot.recurring = recurring;
        slot.changed = true;
    }

    /// Something will become available in the queue.
    fn available_at(&mut self, queue: QueueId, at: Time) {
        let first = self.next_available.entry(queue).or_insert(at);
        *first = at.min(*first);
    }

    /// Sets an option, or forgets it.
    pub fn configure(&mut self, option: &str, value: Option<String>) {
        self.settings.push((option.to_owned(), value));
    }

    /// These statements are written, too; no verb and no copy in memory knows of what they change.
    pub fn add_statements(&mut self, statements: impl IntoIterator<Item = Statement>) {
        self.extra_statements.extend(statements);
    }

    /// The worker showed itself.
    pub fn worker_seen(&mut self, worker: &str) {
        if !self.seen_workers.contains(worker) {
            self.seen_workers.insert(worker.to_owned());
        }
    }

    /// The worker is forgotten until it shows itself again.
    pub fn forget_worker(&mut self, worker: &str) {
        self.seen_workers.remove(worker);
        self.forgotten_workers.push(worker.to_owned());
    }

    /// See [`UnitOfWork::forget_worker`].
    pub fn forgotten_workers(&self) -> &[String] {
        &self.forgotten_workers
    }

    /// Workers that showed themselves.
    pub fn seen_workers(&self) -> &HashSet<String> {
        &self.seen_workers
    }
}
