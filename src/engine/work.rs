//! One group at work: the jobs it needs are read at once, the verbs run on them in memory, one after
//! the other, and what they changed is written at once.
//!
//! A verb is an ordinary function on [`Work`]. It first checks, then changes; when it refuses it has
//! changed nothing. It never touches the database, so a group costs a handful of calls whatever the
//! number of jobs in it. Counts follow from comparing each job before and after; no verb keeps them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::clock::Time;
use super::error::Result;
use super::job::{Job, JobKey, QueueId, QueueKey, State};
use super::queues::{Queue, Queues};
use super::rows::{self, job_columns};
use super::tally::Tally;
use crate::store::{Answer, Row, Statement, StoreError};

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
    next_seq: i64,
}

impl Work {
    pub fn new(now: Time, queues: Arc<Queues>, next_seq: i64) -> Work {
        Work {
            now,
            tally: Tally::default(),
            queues,
            new_queues: Vec::new(),
            slots: HashMap::new(),
            removed: Vec::new(),
            edges: HashMap::new(),
            reach: HashMap::new(),
            candidates: HashMap::new(),
            failing: Vec::new(),
            seen: HashSet::new(),
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
            if let Some(other) = self.slots.get_mut(&JobKey {
                scope,
                id: id.clone(),
            }) {
                if !other.job.dependents.contains(&key.id) {
                    other.job.dependents.push(key.id.clone());
                }
                self.edges.insert((seq, other.job.seq), true);
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

    /// The worker showed itself.
    pub fn saw(&mut self, worker: &str) {
        if !self.seen.contains(worker) {
            self.seen.insert(worker.to_owned());
        }
    }

    // ---- what the group uses ----

    /// Statements that read what the verbs need, except for claims.
    pub fn loading<'a>(&self, needs: impl Iterator<Item = &'a Needs>) -> Vec<Statement> {
        let mut keys = HashSet::new();
        let mut reach: Vec<&str> = Vec::new();
        let mut batch = Vec::new();
        for need in needs {
            keys.extend(need.jobs.iter().map(|key| (key.scope, key.id.as_str())));
            reach.extend(need.reach.iter().map(String::as_str));
            if let Some((group, count)) = &need.failures {
                batch.push(Statement::new(
                    LOAD_FAILURES,
                    [group.as_str().into(), (*count as i64).into()],
                ));
            }
        }
        if !keys.is_empty() {
            batch.push(Statement::of_rows(
                LOAD_JOBS,
                &keys.into_iter().collect::<Vec<_>>(),
            ));
        }
        if !reach.is_empty() {
            batch.push(Statement::of_rows(LOAD_REACH, &reach));
        }
        batch
    }

    /// The statement that reads the neighbours of the loaded jobs, if any are missing.
    pub fn loading_neighbours(&self) -> Option<Statement> {
        let mut missing = HashSet::new();
        for (key, slot) in &self.slots {
            for id in slot.job.dependencies.iter().chain(&slot.job.dependents) {
                if !self.slots.contains_key(&JobKey {
                    scope: key.scope,
                    id: id.clone(),
                }) {
                    missing.insert((key.scope, id.as_str()));
                }
            }
        }
        (!missing.is_empty())
            .then(|| Statement::of_rows(LOAD_JOBS, &missing.into_iter().collect::<Vec<_>>()))
    }

    /// Takes in what [`Work::loading`] has read. Failures come first in the batch, then jobs, then edges.
    pub fn loaded(&mut self, answers: Vec<Answer>, failures: bool) -> Result<(), StoreError> {
        for (index, answer) in answers.into_iter().enumerate() {
            for row in answer.rows {
                if row.columns() == REACH_COLUMNS {
                    self.reach
                        .entry(row.text(0)?)
                        .or_default()
                        .push(row.text(1)?);
                } else {
                    let key = self.load(&row)?;
                    if failures && index == 0 {
                        self.failing.push(key);
                    }
                }
            }
        }
        Ok(())
    }

    fn load(&mut self, row: &Row) -> Result<JobKey, StoreError> {
        let (job, version) = rows::job(row)?;
        let key = job.key.clone();
        self.slots.entry(key.clone()).or_insert(Slot {
            job,
            version: Some(version),
            before: None,
        });
        Ok(key)
    }

    /// Statements that read the next jobs of each queue: three a queue, see [`Work::candidates_loaded`].
    pub fn loading_candidates(&self, wanted: &[(QueueId, usize)]) -> Vec<Statement> {
        let now = self.now.0;
        wanted
            .iter()
            .flat_map(|(queue, count)| {
                let count = *count as i64;
                [
                    Statement::new(PROMOTE_QUEUE, [(*queue).into(), now.into()]),
                    Statement::new(NEXT_LOST, [(*queue).into(), now.into(), count.into()]),
                    Statement::new(NEXT_READY, [(*queue).into(), count.into()]),
                ]
            })
            .collect()
    }

    /// Takes in what [`Work::loading_candidates`] has read.
    pub fn candidates_loaded(
        &mut self,
        wanted: &[(QueueId, usize)],
        answers: impl Iterator<Item = Answer>,
    ) -> Result<(), StoreError> {
        self.slots.clear();
        let mut answers = answers;
        for (queue, _) in wanted {
            let promoted = answers.next().unwrap_or_default();
            self.promoted(*queue, promoted.affected);
            let mut candidates = Candidates::default();
            for row in answers.next().unwrap_or_default().rows {
                candidates.lost.push_back(self.load(&row)?);
            }
            for row in answers.next().unwrap_or_default().rows {
                candidates.ready.push_back(self.load(&row)?);
            }
            self.candidates.insert(*queue, candidates);
        }
        Ok(())
    }

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
        writes
    }

    /// What is to be written when the group ends: queues, counts and statistics.
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
        let tally = std::mem::take(&mut self.tally);
        writes.extend(tally.into_statements(server));
        writes
    }

    /// What the group leaves behind once it has been committed.
    pub fn finish(self) -> Finished {
        Finished {
            new_queues: self.new_queues,
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
    pub next_seq: i64,
}

/// Columns of an answer to [`LOAD_REACH`]; a job has many more.
const REACH_COLUMNS: usize = 2;

/// Due jobs that one claim makes waiting at the most, so that no claim takes long. In the rare moment
/// when more fall due at once, the next claim goes on with them.
macro_rules! promoted_max {
    () => {
        "10000"
    };
}

// CROSS JOIN keeps SQLite from walking through the jobs and looking each up in the list.
const LOAD_JOBS: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM json_each($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.value->>0 AND j.id = k.value->>1"
);

const LOAD_FAILURES: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.state = 5 AND j.failure_group = $1 ORDER BY j.since, j.seq LIMIT $2"
);

/// All edges that can be reached from some qless ids, as pairs of ids.
const LOAD_REACH: &str = "
WITH RECURSIVE reached (seq) AS (
    SELECT j.seq FROM json_each($1) AS k CROSS JOIN jobs AS j WHERE j.scope = 0 AND j.id = k.value
    UNION
    SELECT d.needs FROM reached AS r JOIN dependencies AS d ON d.job = r.seq
)
SELECT a.id, b.id FROM reached AS r JOIN dependencies AS d ON d.job = r.seq
JOIN jobs AS a ON a.seq = d.job JOIN jobs AS b ON b.seq = d.needs";

const PROMOTE_QUEUE: &str = concat!(
    "UPDATE jobs SET state = 1, version = version + 1 WHERE seq IN (
        SELECT seq FROM jobs WHERE queue = $1 AND state = 2 AND ready_at <= $2
        ORDER BY ready_at, seq LIMIT ",
    promoted_max!(),
    ")"
);

const NEXT_LOST: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.queue = $1 AND j.state = 4 AND j.lease_until <= $2
      ORDER BY j.lease_until, j.seq LIMIT $3"
);

const NEXT_READY: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.queue = $1 AND j.state = 1 ORDER BY j.priority, j.ready_at, j.seq LIMIT $2"
);

const ADD_QUEUES: &str = "
INSERT INTO queues (id, protocol, namespace, name, first_seen)
SELECT value->>0, value->>1, value->>2, value->>3, value->>4 FROM json_each($1)";
