//! One group at work: the jobs it needs are read at once, the verbs run on them in memory, one after
//! the other, and what they changed is written at once.
//!
//! A verb is an ordinary function on [`Work`]. It first checks, then changes; when it refuses it has
//! changed nothing. It never touches the database, so a group costs a handful of calls whatever the
//! number of jobs in it. Counts follow from comparing each job before and after; no verb keeps them.

mod load;
mod save;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use super::clock::Time;
use super::config::Config;
use super::events::Events;
use super::job::{Job, JobKey, QLESS_SCOPE, QueueId, QueueKey};
use super::queues::{Queue, Queues};
use super::recur::Recurring;
use super::tally::Tally;
use super::track::Tracked;
pub(super) use load::LOAD_JOBS;
pub(super) use save::REVISE;

/// What a verb wants to find in [`Work`].
#[derive(Debug, Default)]
pub struct Needs {
    /// Jobs by identity, with all that depend on them or that they depend on.
    pub jobs: Vec<JobKey>,
    /// Ids from which on all edges of the dependency graph are wanted, to look for cycles.
    pub reach: Vec<String>,
    /// The next so many jobs of each of these queues.
    pub claim: Vec<Wanted>,
    /// Recurring jobs.
    pub recurring: Vec<String>,
    /// The oldest so many failures of a group.
    pub failures: Option<(String, usize)>,
}

impl Needs {
    /// Some job is to wait for these.
    pub fn depends(&mut self, ids: &[String]) {
        self.jobs.extend(ids.iter().map(JobKey::qless));
        self.reach.extend(ids.iter().cloned());
    }
}

/// The next `count` jobs of a queue, its due recurring jobs made into jobs.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub queue: QueueKey,
    pub count: usize,
    /// Also if the queue is paused.
    pub paused_too: bool,
}

/// A job under work.
struct Slot {
    job: Job,
    /// The version in the database; `None` for a job that is not there yet.
    version: Option<i64>,
    /// As it was read, if it has been changed since.
    before: Option<Job>,
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
    lost: VecDeque<JobKey>,
    ready: VecDeque<JobKey>,
    /// How many more may run, where the queue has a limit.
    room: Option<usize>,
}

/// What all groups of a server share.
#[derive(Clone, Default)]
pub struct Shared {
    pub queues: Arc<Queues>,
    pub config: Arc<Config>,
    pub tracked: Arc<Tracked>,
    /// All three are as of this revision of the database, or later.
    pub revision: Arc<Mutex<i64>>,
}

/// The jobs under work, and what is to be written besides.
pub struct Work {
    /// The moment at which all of the group happens.
    pub now: Time,
    pub tally: Tally,
    pub events: Events,
    /// The options in force; changes of this group come after it.
    pub config: Arc<Config>,
    /// How many events a job's history keeps.
    pub history_max: usize,
    /// Whether a job was completed for good.
    pub completed: bool,
    /// Whether anybody waits for jobs, and wants to know which queues got some.
    pub watched: bool,
    /// Where servers share a database, its revision when the group began.
    pub revision: Option<i64>,
    queues: Arc<Queues>,
    /// Queues that are new, or otherwise than before.
    changed_queues: Vec<Queue>,
    tracked: Arc<Tracked>,
    /// Ids tracked since when, or no longer, by this group.
    tracking: HashMap<String, Option<Time>>,
    slots: HashMap<JobKey, Slot>,
    removed: Vec<(Job, i64)>,
    /// Edges `(job, needs)` to be added (true) or removed.
    edges: HashMap<(i64, i64), bool>,
    /// Dependencies of jobs that are not loaded, for the search of cycles.
    reach: HashMap<String, Vec<String>>,
    candidates: HashMap<QueueId, Candidates>,
    failing: Vec<JobKey>,
    recurring: HashMap<String, RecurringSlot>,
    /// Queues in which a recurring job was put.
    recurring_in: HashSet<QueueId>,
    /// How many jobs became available in a queue; 0 if something else concerns who waits there.
    woken: HashMap<QueueId, usize>,
    /// When something will become available in a queue.
    ahead: HashMap<QueueId, Time>,
    seen: HashSet<String>,
    forgotten_workers: Vec<String>,
    settings: Vec<(String, Option<String>)>,
    /// Running jobs and their versions, as they will be once the group is committed.
    held: Vec<(Job, i64)>,
    seqs: Seqs,
}

/// Where the order of insertion goes on.
#[derive(Clone, Copy, Debug)]
pub struct Seqs {
    pub last: i64,
    /// From one number to the next; the numbers between belong to other servers.
    pub step: i64,
}

impl Work {
    pub fn new(now: Time, shared: &Shared, watched: bool, seqs: Seqs) -> Work {
        Work {
            now,
            tally: Tally::default(),
            events: Events::default(),
            config: Arc::clone(&shared.config),
            history_max: shared.config.count("max-job-history"),
            completed: false,
            watched,
            revision: None,
            queues: Arc::clone(&shared.queues),
            changed_queues: Vec::new(),
            tracked: Arc::clone(&shared.tracked),
            tracking: HashMap::new(),
            slots: HashMap::new(),
            removed: Vec::new(),
            edges: HashMap::new(),
            reach: HashMap::new(),
            candidates: HashMap::new(),
            failing: Vec::new(),
            recurring: HashMap::new(),
            recurring_in: HashSet::new(),
            woken: HashMap::new(),
            ahead: HashMap::new(),
            seen: HashSet::new(),
            forgotten_workers: Vec::new(),
            settings: Vec::new(),
            held: Vec::new(),
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
            },
        );
    }

    /// Removes a job and its edges.
    pub fn remove(&mut self, key: &JobKey) {
        self.set_dependencies(key, Vec::new());
        let dependents = self
            .job(key)
            .map(|job| job.dependents.clone())
            .unwrap_or_default();
        for dependent in dependents {
            self.unlink(
                &JobKey {
                    scope: key.scope,
                    id: dependent,
                },
                key,
            );
        }
        let Some(slot) = self.slots.remove(key) else {
            return;
        };
        if let Some(version) = slot.version {
            self.removed
                .push((slot.before.unwrap_or(slot.job), version));
        }
    }

    /// Lets the job wait for just these others, which are all under work.
    pub fn set_dependencies(&mut self, key: &JobKey, needs: Vec<String>) {
        let Some(job) = self.job(key) else { return };
        if job.dependencies.is_empty() && needs.is_empty() {
            return;
        }
        let (seq, scope) = (job.seq, key.scope);
        let gone: Vec<_> = job
            .dependencies
            .iter()
            .filter(|id| !needs.contains(id))
            .cloned()
            .collect();
        for id in gone {
            self.unlink(key, &JobKey { scope, id });
        }
        for id in &needs {
            let need = JobKey {
                scope,
                id: id.clone(),
            };
            if self
                .job(&need)
                .is_none_or(|other| other.dependents.contains(&key.id))
            {
                continue;
            }
            // The other end is written too: its version guards against a completion elsewhere that has
            // not seen this edge.
            if let Some(other) = self.job_mut(&need) {
                other.dependents.push(key.id.clone());
                let edge = (seq, other.seq);
                self.edges.insert(edge, true);
            }
        }
        if let Some(job) = self.job_mut(key) {
            job.dependencies = needs;
        }
    }

    /// Takes one edge away. The other end keeps its version: only its list of dependents is shorter.
    pub fn unlink(&mut self, key: &JobKey, need: &JobKey) {
        let Some(seq) = self.job_mut(key).map(|job| {
            job.dependencies.retain(|id| *id != need.id);
            job.seq
        }) else {
            return;
        };
        if let Some(other) = self.slots.get_mut(need) {
            other.job.dependents.retain(|id| *id != key.id);
            self.edges.insert((seq, other.job.seq), false);
        }
    }

    /// Whether `id` would, directly or not, wait for itself if it waited for `needs`.
    pub fn would_wait_for_itself(&self, key: &JobKey, needs: &[String]) -> bool {
        let mut open: Vec<&str> = needs.iter().map(String::as_str).collect();
        let mut visited = HashSet::new();
        while let Some(id) = open.pop() {
            if id == key.id {
                return true;
            }
            if !visited.insert(id) {
                continue;
            }
            match self.job(&JobKey {
                scope: key.scope,
                id: id.to_owned(),
            }) {
                Some(job) => open.extend(job.dependencies.iter().map(String::as_str)),
                None => open.extend(self.reach.get(id).into_iter().flatten().map(String::as_str)),
            }
        }
        false
    }

    /// How many more jobs of the queue may run, where that is limited.
    pub fn room(&self, queue: QueueId) -> usize {
        let candidates = self.candidates.get(&queue);
        candidates
            .and_then(|candidates| candidates.room)
            .unwrap_or(usize::MAX)
    }

    /// One more job of the queue runs.
    pub fn take_room(&mut self, queue: QueueId) {
        if let Some(room) = self
            .candidates
            .get_mut(&queue)
            .and_then(|it| it.room.as_mut())
        {
            *room = room.saturating_sub(1);
        }
    }

    /// The next job of the queue whose lease is lost.
    pub fn next_lost(&mut self, queue: QueueId) -> Option<JobKey> {
        self.candidates.get_mut(&queue)?.lost.pop_front()
    }

    /// The next job of the queue that waits.
    pub fn next_ready(&mut self, queue: QueueId) -> Option<JobKey> {
        self.candidates.get_mut(&queue)?.ready.pop_front()
    }

    /// The failures that were needed, oldest first.
    pub fn take_failures(&mut self) -> Vec<JobKey> {
        std::mem::take(&mut self.failing)
    }

    /// The queue as this group leaves it.
    pub fn queue(&self, key: &QueueKey) -> Option<Arc<Queue>> {
        let changed = self.changed_queues.iter().find(|queue| queue.key == *key);
        changed
            .map(|queue| Arc::new(queue.clone()))
            .or_else(|| self.queues.get(key))
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
        let last = self.changed_queues.iter().map(|queue| queue.id + 1).max();
        let id = last.unwrap_or_default().max(self.queues.next_id());
        self.changed_queues.push(Queue {
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
        self.changed_queues.retain(|other| other.id != queue.id);
        self.changed_queues.push(queue);
    }

    /// The name of a queue that is known.
    pub fn queue_name(&self, id: QueueId) -> String {
        self.changed_queues
            .iter()
            .find(|queue| queue.id == id)
            .map(|queue| queue.key.name.clone())
            .unwrap_or_else(|| self.queues.name(id))
    }

    /// Whoever waits for jobs of the queue should look again.
    pub fn rouse(&mut self, queue: QueueId) {
        self.woken.entry(queue).or_default();
    }

    /// The last UTC day that is not kept any more by an option that counts days, today being the first.
    pub fn past_keeping(&self, option: &str) -> i64 {
        let days = i64::try_from(self.config.count(option)).unwrap_or(i64::MAX);
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
    pub fn tell(&mut self, channel: &str, key: &JobKey) {
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
            self.will_be(recurring.queue, recurring.next_at);
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
    fn will_be(&mut self, queue: QueueId, at: Time) {
        let first = self.ahead.entry(queue).or_insert(at);
        *first = at.min(*first);
    }

    /// Sets an option, or forgets it.
    pub fn configure(&mut self, option: &str, value: Option<String>) {
        self.settings.push((option.to_owned(), value));
    }

    /// The worker showed itself.
    pub fn saw(&mut self, worker: &str) {
        if !self.seen.contains(worker) {
            self.seen.insert(worker.to_owned());
        }
    }

    /// The worker is forgotten until it shows itself again.
    pub fn forget_worker(&mut self, worker: &str) {
        self.seen.remove(worker);
        self.forgotten_workers.push(worker.to_owned());
    }

    /// See [`Work::forget_worker`].
    pub fn forgotten_workers(&self) -> &[String] {
        &self.forgotten_workers
    }

    /// Workers that showed themselves.
    pub fn seen(&self) -> &HashSet<String> {
        &self.seen
    }
}
