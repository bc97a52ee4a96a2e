//! One group at work: the jobs it needs are read at once, the verbs run on them in memory, one after
//! the other, and what they changed is written at once.
//!
//! A verb is an ordinary function on [`Work`]. It first checks, then changes; when it refuses it has
//! changed nothing. It never touches the database, so a group costs a handful of calls whatever the
//! number of jobs in it. Counts follow from comparing each job before and after; no verb keeps them.

mod load;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::clock::Time;
use super::config::{self, Config};
use super::job::{Job, JobKey, QueueId, QueueKey, State};
use super::queues::{Queue, Queues};
use super::rows;
use super::tally::Tally;
use crate::store::Statement;
pub(super) use load::LOAD_JOBS;

/// What a verb wants to find in [`Work`].
#[derive(Debug, Default)]
pub struct Needs {
    /// Jobs by identity, with all that depend on them or that they depend on.
    pub jobs: Vec<JobKey>,
    /// Ids from which on all edges of the dependency graph are wanted, to look for cycles.
    pub reach: Vec<String>,
    /// The next so many jobs of a queue.
    pub claim: Option<(QueueKey, usize)>,
    /// The oldest so many failures of a group.
    pub failures: Option<(String, usize)>,
}

/// A job under work.
struct Slot {
    job: Job,
    /// The version in the database; `None` for a job that is not there yet.
    version: Option<i64>,
    /// As it was read, if it has been changed since.
    before: Option<Job>,
}

/// Jobs that a claim may take, in the order in which it takes them.
#[derive(Default)]
struct Candidates {
    lost: VecDeque<JobKey>,
    ready: VecDeque<JobKey>,
}

/// The jobs under work, and what is to be written besides.
pub struct Work {
    /// The moment at which all of the group happens.
    pub now: Time,
    pub tally: Tally,
    /// The options in force; changes of this group come after it.
    pub config: Arc<Config>,
    /// Whether a job was completed for good.
    pub completed: bool,
    queues: Arc<Queues>,
    new_queues: Vec<Queue>,
    slots: HashMap<JobKey, Slot>,
    removed: Vec<(Job, i64)>,
    /// Edges `(job, needs)` to be added (true) or removed.
    edges: HashMap<(i64, i64), bool>,
    /// Dependencies of jobs that are not loaded, for the search of cycles.
    reach: HashMap<String, Vec<String>>,
    candidates: HashMap<QueueId, Candidates>,
    failing: Vec<JobKey>,
    seen: HashSet<String>,
    settings: Vec<(String, Option<String>)>,
    /// Running jobs and their versions, as they will be once the group is committed.
    held: Vec<(Job, i64)>,
    next_seq: i64,
}

impl Work {
    pub fn new(now: Time, queues: Arc<Queues>, config: Arc<Config>, next_seq: i64) -> Work {
        Work {
            now,
            tally: Tally::default(),
            config,
            completed: false,
            queues,
            new_queues: Vec::new(),
            slots: HashMap::new(),
            removed: Vec::new(),
            edges: HashMap::new(),
            reach: HashMap::new(),
            candidates: HashMap::new(),
            failing: Vec::new(),
            seen: HashSet::new(),
            settings: Vec::new(),
            held: Vec::new(),
            next_seq,
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
        self.next_seq += 1;
        self.next_seq
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

    /// The number of a queue that is known.
    pub fn queue(&self, key: &QueueKey) -> Option<QueueId> {
        self.queues.get(key).map(|queue| queue.id).or_else(|| {
            self.new_queues
                .iter()
                .find(|queue| queue.key == *key)
                .map(|queue| queue.id)
        })
    }

    /// The number of a queue, which becomes known by this.
    pub fn queue_for(&mut self, key: &QueueKey) -> QueueId {
        if let Some(id) = self.queue(key) {
            return id;
        }
        let last = self.new_queues.last().map(|queue| queue.id + 1);
        let id = last.unwrap_or_else(|| self.queues.next_id());
        self.new_queues.push(Queue {
            id,
            key: key.clone(),
            first_seen: self.now,
        });
        id
    }

    /// The name of a queue that is known.
    pub fn queue_name(&self, id: QueueId) -> String {
        self.new_queues
            .iter()
            .find(|queue| queue.id == id)
            .map(|queue| queue.key.name.clone())
            .unwrap_or_else(|| self.queues.name(id))
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

    // ---- what the group uses ----

    /// `n` due jobs of the queue were found waiting instead of scheduled.
    pub fn promoted(&mut self, queue: QueueId, n: u64) {
        let n = n as i64;
        if n > 0 {
            self.tally.count(queue, State::Scheduled, -n);
            self.tally.count(queue, State::Waiting, n);
        }
    }

    /// What the verbs have changed in jobs and edges. Afterwards nothing is under work any more.
    pub fn job_writes(&mut self) -> Vec<Statement> {
        let slots: Vec<Slot> = self.slots.drain().map(|(_, slot)| slot).collect();
        let removed = std::mem::take(&mut self.removed);
        let (mut new, mut moved, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for slot in &slots {
            match (&slot.before, slot.version) {
                (_, None) => new.push((&slot.job, 1)),
                (Some(before), Some(version)) if rows::settings_differ(before, &slot.job) => {
                    changed.push((&slot.job, version));
                }
                (Some(_), Some(version)) => moved.push((&slot.job, version)),
                (None, Some(_)) => continue,
            }
            self.tally.recount(slot.before.as_ref(), Some(&slot.job));
        }
        let mut gone = Vec::new();
        for (job, version) in &removed {
            gone.push((job.seq, *version));
            self.tally.recount(Some(job), None);
        }
        new.sort_by_key(|(job, _)| job.seq);
        let (added, cut) = self.edges.drain().partition::<Vec<_>, _>(|(_, add)| *add);
        let edges = |edges: Vec<((i64, i64), bool)>| {
            edges.into_iter().map(|(edge, _)| edge).collect::<Vec<_>>()
        };
        let (added, cut) = (edges(added), edges(cut));
        let mut writes = Vec::new();
        if !gone.is_empty() {
            writes.push(rows::delete(&gone).exactly(gone.len()));
        }
        if !new.is_empty() {
            writes.push(rows::insert(&new).exactly(new.len()));
        }
        if !moved.is_empty() {
            writes.push(rows::update_progress(&moved).exactly(moved.len()));
        }
        if !changed.is_empty() {
            writes.push(rows::update(&changed).exactly(changed.len()));
        }
        if !cut.is_empty() {
            writes.push(rows::remove_dependencies(&cut));
        }
        if !added.is_empty() {
            writes.push(rows::add_dependencies(&added));
        }
        self.held.extend(
            slots
                .into_iter()
                .filter(|slot| slot.job.state == State::Running)
                .map(|slot| {
                    let version =
                        slot.version.unwrap_or_default() + i64::from(slot.before.is_some());
                    (slot.job, version)
                }),
        );
        writes
    }

    /// What is to be written when the group ends: queues, options, counts and statistics.
    pub fn closing_writes(&mut self, server: i64) -> Vec<Statement> {
        let mut writes = Vec::new();
        if !self.new_queues.is_empty() {
            let rows: Vec<_> = (self.new_queues.iter())
                .map(|queue| {
                    let key = &queue.key;
                    (
                        queue.id,
                        key.protocol.as_str(),
                        &key.namespace,
                        &key.name,
                        queue.first_seen,
                    )
                })
                .collect();
            writes.push(Statement::of_rows(ADD_QUEUES, &rows));
        }
        let save =
            |(option, value): &(String, Option<String>)| config::save(option, value.as_deref());
        writes.extend(self.settings.iter().map(save));
        let tally = std::mem::take(&mut self.tally);
        writes.extend(tally.into_statements(server));
        writes
    }

    /// What the group leaves behind once it has been committed.
    pub fn finish(self) -> Finished {
        Finished {
            new_queues: self.new_queues,
            held: self.held,
            settings: self.settings,
            next_seq: self.next_seq,
        }
    }

    /// Workers that showed themselves.
    pub fn seen(&self) -> &HashSet<String> {
        &self.seen
    }
}

/// See [`Work::finish`].
pub struct Finished {
    pub new_queues: Vec<Queue>,
    pub held: Vec<(Job, i64)>,
    pub settings: Vec<(String, Option<String>)>,
    pub next_seq: i64,
}

const ADD_QUEUES: &str = "
INSERT INTO queues (id, protocol, namespace, name, first_seen)
SELECT value->>0, value->>1, value->>2, value->>3, value->>4 FROM jsonb_each($1)";
