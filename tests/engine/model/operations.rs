//! The model's bulk operations and maintenance.

use std::collections::BTreeSet;

use switchyard::engine::{JobAction, Protocol, QueueKey, State};

use super::memory::{Key, Model, ModelJob, Outcome, SECOND, Scope, qless};
use super::steps::{Pick, Ref};

/// How long an operation can be undone.
const UNDO: i64 = 30 * SECOND;

/// How long dead Relay jobs are kept.
const DEAD_KEPT: i64 = 30 * 86_400 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Running,
    Done,
    Stopped,
    Undoing,
    Undone,
}

#[derive(Clone, Debug)]
pub struct ModelOperation {
    /// A number from the sequence of the jobs, taken at the start. Jobs with a higher number are not affected.
    pub seq: i64,
    pub action: JobAction,
    /// The qless queue, if a search selects the jobs.
    pub queue: Option<String>,
    /// The numbers of the jobs, if they are listed.
    pub seqs: BTreeSet<i64>,
    pub stage: Stage,
    pub done: i64,
    pub skipped: i64,
    pub restored: i64,
    pub not_restored: i64,
    pub removed: Vec<(Key, ModelJob)>,
    undo_until: Option<i64>,
}

impl ModelOperation {
    fn end(&mut self, stage: Stage, now: i64) {
        self.stage = stage;
        self.undo_until = (!self.removed.is_empty()).then_some(now + UNDO);
    }

    fn is_active(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Undoing)
    }
}

impl Model {
    /// The key of the job, which may not exist.
    pub fn key_of(&self, job: &Ref) -> Key {
        match job {
            Ref::Qless(id) => qless(id),
            Ref::Lmstfy(nth) => self.published_key(*nth),
            Ref::Relay(queue, id) => (Scope::In(queue.clone()), id.clone()),
            Ref::Dead(queue, place) => self.dead_keys(queue, &[*place]).remove(0),
            Ref::Record(name, id) => (Scope::In(QueueKey::jobq(name)), id.to_string()),
        }
    }

    pub fn start_operation(&mut self, action: &JobAction, pick: &Pick) -> Outcome {
        let (mut queue, mut seqs) = (None, BTreeSet::new());
        match pick {
            Pick::TooLong => return "!TooManyJobs".to_owned(),
            Pick::Invalid => return "!InvalidSearch".to_owned(),
            Pick::Queue(name) => queue = Some(name.clone()),
            Pick::Jobs(jobs) => {
                let keys = jobs.iter().map(|job| self.key_of(job));
                seqs = keys
                    .filter_map(|key| Some(self.jobs.get(&key)?.seq))
                    .collect();
                if seqs.is_empty() {
                    return "!NoJobs".to_owned();
                }
            }
        }
        let seq = self.next_seq();
        self.operations.push(ModelOperation {
            seq,
            action: action.clone(),
            queue,
            seqs,
            stage: Stage::Running,
            done: 0,
            skipped: 0,
            restored: 0,
            not_restored: 0,
            removed: Vec::new(),
            undo_until: None,
        });
        "started".to_owned()
    }

    pub fn cancel_with_undo(&mut self, id: &str) -> Result<String, String> {
        let key = qless(id);
        let Some(job) = self.jobs.get(&key).cloned() else {
            return Err("!NoSuchJob".to_owned());
        };
        self.cancel(&[id.to_owned()])?;
        let now = self.now;
        self.start_operation(&JobAction::Cancel, &Pick::Queue(String::new()));
        if let Some(operation) = self.operations.last_mut() {
            (operation.done, operation.removed) = (1, vec![(key, job)]);
            operation.end(Stage::Done, now);
        }
        Ok("canceled".to_owned())
    }

    /// The operation, counted from the last one.
    fn operation(&mut self, nth: usize) -> Option<&mut ModelOperation> {
        let place = self.operations.len().checked_sub(nth + 1)?;
        self.operations.get_mut(place)
    }

    pub fn stop_operation(&mut self, nth: usize) -> Outcome {
        let now = self.now;
        let Some(operation) = self.operation(nth) else {
            return "!Missing".to_owned();
        };
        if operation.stage != Stage::Running {
            return "!Ended".to_owned();
        }
        operation.end(Stage::Stopped, now);
        "stopped".to_owned()
    }

    pub fn undo_operation(&mut self, nth: usize) -> Outcome {
        let now = self.now;
        let Some(operation) = self.operation(nth) else {
            return "!Missing".to_owned();
        };
        let is_over = !operation.is_active() && operation.stage != Stage::Undone;
        if !is_over || operation.undo_until.is_none_or(|until| until <= now) {
            return "!TooLate".to_owned();
        }
        operation.stage = Stage::Undoing;
        "undoing".to_owned()
    }

    /// Maintenance, then the operations.
    pub fn maintain(&mut self) {
        let now = self.now;
        let expired = self.keys(
            |key, job| key.0 != Scope::Qless && job.state == State::Running && job.has_expired(now),
            |job| (job.lease.as_ref().map(|lease| lease.until), job.seq),
        );
        for key in expired {
            self.expire(&key);
        }
        let is_old_dead = |job: &ModelJob| {
            job.state == State::Dead
                && job.queue.protocol == Protocol::Relay
                && job.since <= now - DEAD_KEPT
        };
        let over = self.keys(
            |_, job| job.has_ended(now) || is_old_dead(job),
            |job| job.seq,
        );
        for key in over {
            self.remove(&key);
        }
        self.prune();
        while let Some(place) = self.operations.iter().position(ModelOperation::is_active) {
            let mut operation = self.operations[place].clone();
            match operation.stage {
                Stage::Undoing => self.undo(&mut operation),
                _ => self.run(&mut operation),
            }
            self.operations[place] = operation;
            // The next transaction begins after all times that this one has given.
            self.now += std::mem::take(&mut self.ticks);
        }
    }

    /// Deletes old complete jobs, and those above the number to keep.
    #[expect(clippy::cast_possible_truncation, reason = "a count")]
    #[expect(clippy::cast_sign_loss, reason = "a count")]
    fn prune(&mut self) {
        let age = self.option("jobs-history").unwrap_or(604_800.0);
        let oldest = super::memory::after(self.now, -age);
        let kept = self
            .option("jobs-history-count")
            .unwrap_or(50_000.0)
            .max(0.0) as usize;
        let complete = self.keys(
            |_, job| job.state == State::Complete,
            |job| (job.since, job.seq),
        );
        let surplus = complete.len().saturating_sub(kept);
        for (place, key) in complete.iter().enumerate() {
            if place < surplus || self.jobs[key].since <= oldest {
                self.remove(key);
            }
        }
    }

    fn run(&mut self, operation: &mut ModelOperation) {
        let is_meant = |job: &ModelJob| match &operation.queue {
            Some(name) => job.queue == QueueKey::qless(name) && job.seq < operation.seq,
            None => operation.seqs.contains(&job.seq),
        };
        let mut open = self.keys(|_, job| is_meant(job), |job| -job.seq);
        if operation.queue.is_none() {
            operation.skipped += (operation.seqs.len() - open.len()) as i64;
        }
        let removes = operation.action == JobAction::Cancel;
        while !open.is_empty() {
            let has_dependents =
                |key: &Key| key.0 == Scope::Qless && !self.dependents(&key.1).is_empty();
            let (later, first): (Vec<Key>, Vec<Key>) = open
                .iter()
                .cloned()
                .partition(|key| removes && has_dependents(key));
            let is_stuck = first.is_empty();
            for key in if is_stuck { &later } else { &first } {
                let job = self.jobs.get(key).cloned();
                if self.apply_action(&operation.action, key) {
                    operation.done += 1;
                    operation
                        .removed
                        .extend(job.filter(|_| removes).map(|job| (key.clone(), job)));
                } else {
                    operation.skipped += 1;
                }
            }
            open = if is_stuck { Vec::new() } else { later };
        }
        operation.end(Stage::Done, self.now);
    }

    /// Applies the action to a job. Returns whether that was possible.
    fn apply_action(&mut self, action: &JobAction, key: &Key) -> bool {
        let Some(job) = self.jobs.get(key) else {
            return false;
        };
        let (id, queue, state) = (key.1.clone(), job.queue.clone(), job.state);
        if job.has_ended(self.now) {
            return false;
        }
        match (action, queue.protocol) {
            (JobAction::Cancel, Protocol::Qless) => self.cancel(&[id]).is_ok(),
            (JobAction::Cancel, _) => self.remove(key).is_some(),
            (JobAction::Retry, Protocol::Qless) => self.retry_failed(&id).is_ok(),
            (JobAction::Retry, Protocol::Lmstfy) => self.respawn_job(key, 0).is_ok(),
            (JobAction::Retry, Protocol::Relay) => {
                state == State::Dead && self.requeue_dead(&queue, key).is_ok()
            }
            (JobAction::Retry, Protocol::Jobq) => false,
            (_, Protocol::Lmstfy | Protocol::Relay | Protocol::Jobq) => false,
            (JobAction::Move { queue }, _) => self.relocate(&id, &QueueKey::qless(queue)).is_ok(),
            (JobAction::Priority { priority }, _) => {
                self.change(&id, |job| job.priority = *priority).is_ok()
            }
            (JobAction::Tag { tag }, _) => self.tag(&id, std::slice::from_ref(tag)).is_ok(),
            (JobAction::Untag { tag }, _) => self.untag(&id, std::slice::from_ref(tag)).is_ok(),
            (JobAction::Track, _) => self.track(&id, &[]).is_ok(),
            (JobAction::RenameTag { from, to }, _) => self.rename_tag(&id, from, to),
            (JobAction::TimeOut, _) => self.time_out(&id).is_ok(),
            // Actions on single jobs, which are not bulk operations.
            (JobAction::EditAndRetry | JobAction::Complete, _) => false,
            (JobAction::Untrack, _) => {
                self.tracked.remove(&id);
                true
            }
        }
    }

    fn undo(&mut self, operation: &mut ModelOperation) {
        while let Some((key, job)) = operation.removed.pop() {
            if self.restore(&key, job) {
                operation.restored += 1;
            } else {
                operation.not_restored += 1;
            }
        }
        operation.stage = Stage::Undone;
        operation.undo_until = None;
    }

    /// Restores a removed job. Returns whether that was possible.
    fn restore(&mut self, key: &Key, mut job: ModelJob) -> bool {
        let now = self.now;
        let is_of_deleted_queue =
            job.queue.protocol == Protocol::Jobq && !self.queues.contains_key(&job.queue);
        if job.has_ended(now) || is_of_deleted_queue || self.jobs.contains_key(key) {
            return false;
        }
        self.enter(&job.queue);
        let needs: Vec<String> = job.needs.iter().cloned().collect();
        if key.0 == Scope::Qless {
            match self.unmet(&key.1, &needs) {
                Ok(unmet) => job.needs = unmet,
                Err(_) => return false,
            }
        }
        if job.state == State::Depends && job.needs.is_empty() {
            job.ready_at = job.ready_at.max(now);
            job.state = if job.ready_at > now {
                State::Scheduled
            } else {
                State::Waiting
            };
        }
        self.jobs.insert(key.clone(), job);
        true
    }
}
