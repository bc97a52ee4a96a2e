//! The model's verbs of lmstfy, Relay and Jobq.

use switchyard::engine::{Enqueue, Mode, Publish, QueueKey, State, UNLIMITED};

use super::memory::{Key, Model, ModelJob, Outcome, Scope, after};
use super::qless::refuse;
use super::steps::{RecordQueue, RunOf};

/// The limit of a record's log, in bytes. The model counts bytes only approximately. That is enough: at the end of a
/// walk, each log differs from the limit by more than half the size of a large event.
const LOG_BYTES_MAX: usize = 960 << 10;

fn expiry(now: i64, ttl_s: u32) -> Option<i64> {
    (ttl_s > 0).then(|| after(now, f64::from(ttl_s)))
}

impl Model {
    pub fn publish(&mut self, queue: &QueueKey, publish: &Publish) -> String {
        self.enter(queue);
        let name = format!("p{}", self.published);
        self.published += 1;
        let mut job = self.new_job(queue);
        job.retries = i64::from(publish.tries) - 1;
        job.remaining = job.retries;
        job.body.clone_from(&publish.body);
        job.expires_at = expiry(self.now, publish.ttl_s);
        job.set_available(self.now, f64::from(publish.delay_s));
        self.jobs.insert((Scope::Lmstfy, name.clone()), job);
        name
    }

    fn is_in(&self, queue: &QueueKey, key: &Key) -> bool {
        self.jobs.get(key).is_some_and(|job| job.queue == *queue)
    }

    /// Deletes a published job, in any state. Returns whether it was in this queue.
    pub fn acknowledge(&mut self, queue: &QueueKey, key: &Key) -> bool {
        let found = self.is_in(queue, key);
        if found {
            self.remove(key);
        }
        found
    }

    pub fn destroy(&mut self, queue: &QueueKey) -> Outcome {
        let now = self.now;
        let is_ready = |job: &ModelJob| match job.state {
            State::Waiting | State::Scheduled => job.ready_at <= now,
            State::Running => job.has_expired(now) && job.remaining > 0,
            _ => false,
        };
        let ready = self.keys(|_, job| job.queue == *queue && is_ready(job), |job| job.seq);
        for key in &ready {
            self.remove(key);
        }
        ready.len().to_string()
    }

    pub fn delete_dead_letter(&mut self, queue: &QueueKey, count: usize) -> Outcome {
        let mut dead = self.dead(queue);
        dead.truncate(count);
        for key in &dead {
            self.remove(key);
        }
        dead.len().to_string()
    }

    pub fn respawn(&mut self, queue: &QueueKey, count: usize, ttl_s: u32) -> Outcome {
        let mut dead = self.dead(queue);
        dead.truncate(count);
        for key in &dead {
            self.respawn_job(key, ttl_s).ok();
        }
        dead.len().to_string()
    }

    pub fn respawn_job(&mut self, key: &Key, ttl_s: u32) -> Result<String, String> {
        let (now, place) = (self.now, self.tick());
        let Some(job) = self.jobs.get_mut(key) else {
            return refuse("NoSuchJob");
        };
        if job.state != State::Dead {
            return refuse("NotDead");
        }
        job.state = State::Waiting;
        (job.ready_at, job.since) = (place, now);
        (job.retries, job.remaining) = (0, 0);
        job.expires_at = expiry(now, ttl_s);
        Ok("respawned".to_owned())
    }

    /// Ends an expired lease of lmstfy or Relay. Returns whether the job is waiting again.
    pub fn expire(&mut self, key: &Key) -> bool {
        let Some(job) = self.jobs.get_mut(key) else {
            return false;
        };
        let Some(lease) = job.lease.take() else {
            return false;
        };
        if job.has_ended(lease.until) {
            self.remove(key);
            return false;
        }
        if job.remaining != UNLIMITED {
            job.remaining -= 1;
        }
        job.since = lease.until;
        if job.remaining >= 0 {
            job.state = State::Waiting;
            if key.0 == Scope::Lmstfy {
                job.ready_at = lease.until;
            }
            return true;
        }
        job.state = State::Dead;
        job.expires_at = None;
        if key.0 != Scope::Lmstfy
            && let Some(mut job) = self.jobs.remove(key)
        {
            job.seq = self.next_seq();
            let key = (Scope::Dead(job.seq), key.1.clone());
            self.jobs.insert(key, job);
        }
        false
    }

    // ---- Relay ----

    fn relay_key(queue: &QueueKey, id: &str) -> Key {
        (Scope::In(queue.clone()), id.to_owned())
    }

    fn enqueue_one(&mut self, enqueue: &Enqueue, mode: Mode) {
        let (now, key) = (self.now, Model::relay_key(&enqueue.queue, &enqueue.id));
        self.enter(&enqueue.queue);
        if !self.jobs.contains_key(&key) {
            let job = self.new_job(&enqueue.queue);
            self.jobs.insert(key.clone(), job);
        } else if mode == Mode::Ignore {
            return;
        }
        if let Some(job) = self.jobs.get_mut(&key) {
            job.timeout_s = Some(enqueue.timeout_s);
            job.retries = enqueue.max_retries.unwrap_or(UNLIMITED);
            job.remaining = job.retries;
            job.body.clone_from(&enqueue.payload);
            job.work_state.clone_from(&enqueue.state);
            job.updated_at = Some(now);
            job.lease = None;
            job.since = now;
            job.ready_at = enqueue.run_at.map_or(now, |later| now + later.0);
            job.state = if job.ready_at > now {
                State::Scheduled
            } else {
                State::Waiting
            };
        }
    }

    fn check_unique(&self, jobs: &[Enqueue], leaving: Option<&Key>) -> Result<(), String> {
        for (place, job) in jobs.iter().enumerate() {
            let key = Model::relay_key(&job.queue, &job.id);
            let mut before = jobs[..place].iter();
            let is_repeated =
                before.any(|other| (&other.queue, &other.id) == (&job.queue, &job.id));
            if is_repeated || leaving != Some(&key) && self.jobs.contains_key(&key) {
                return refuse("JobExists");
            }
        }
        Ok(())
    }

    pub fn enqueue(&mut self, jobs: &[Enqueue], mode: Mode) -> Result<String, String> {
        if mode == Mode::Unique {
            if jobs.len() > 1_600 {
                return refuse("TooMany");
            }
            self.check_unique(jobs, None)?;
        }
        for job in jobs {
            self.enqueue_one(job, mode);
        }
        Ok("enqueued".to_owned())
    }

    /// The key of the job, if the run is the current one.
    fn current_run(&self, run: &RunOf) -> Option<Key> {
        let number = self.runs.get(&(run.queue.clone(), run.id.clone()))?;
        let key = Model::relay_key(&run.queue, &run.id);
        let lease = self.jobs.get(&key)?.lease.as_ref()?;
        (lease.number == *number && !run.unknown).then_some(key)
    }

    pub fn heartbeat_run(&mut self, run: &RunOf, state: Option<&Option<String>>) -> Outcome {
        let (now, key) = (self.now, self.current_run(run));
        let Some(job) = key.and_then(|key| self.jobs.get_mut(&key)) else {
            return "!NoSuchRun".to_owned();
        };
        let timeout_s = job.timeout_s.unwrap_or_default();
        if let Some(lease) = &mut job.lease {
            lease.until = after(now, timeout_s as f64);
        }
        job.updated_at = Some(now);
        if let Some(state) = state {
            job.work_state.clone_from(state);
        }
        "renewed".to_owned()
    }

    pub fn complete_run(&mut self, run: &RunOf) -> Outcome {
        let key = self.current_run(run);
        key.is_some_and(|key| self.remove(&key).is_some())
            .to_string()
    }

    pub fn requeue_run(
        &mut self,
        run: &RunOf,
        jobs: &[Enqueue],
        mode: Mode,
    ) -> Result<String, String> {
        let Some(key) = self.current_run(run) else {
            return Ok(false.to_string());
        };
        if mode == Mode::Unique {
            self.check_unique(jobs, Some(&key))?;
        }
        self.remove(&key);
        for job in jobs {
            self.enqueue_one(job, mode);
        }
        Ok(true.to_string())
    }

    pub fn delete(&mut self, queue: &QueueKey, ids: &[String]) -> Outcome {
        let keys = ids.iter().map(|id| Model::relay_key(queue, id));
        let gone = keys.filter(|key| self.remove(key).is_some());
        gone.count().to_string()
    }

    /// The keys of the dead jobs in these places of the list, and one for a place without a job.
    pub fn dead_keys(&self, queue: &QueueKey, places: &[usize]) -> Vec<Key> {
        let dead = self.dead(queue);
        let key = |place: &usize| dead.get(*place).cloned();
        let keys = places.iter().map(key);
        keys.map(|key| key.unwrap_or_else(|| (Scope::Dead(-1), "none".to_owned())))
            .collect()
    }

    pub fn requeue_dead(&mut self, queue: &QueueKey, dead: &Key) -> Result<String, String> {
        let Some(job) = self.jobs.get(dead).cloned() else {
            return refuse("NoSuchJob");
        };
        if job.state != State::Dead {
            return refuse("NotDead");
        }
        let again = Enqueue {
            queue: queue.clone(),
            id: dead.1.clone(),
            timeout_s: job.timeout_s.unwrap_or_default(),
            max_retries: (job.retries != UNLIMITED).then_some(job.retries),
            payload: job.body,
            state: job.work_state,
            run_at: None,
        };
        self.enqueue(std::slice::from_ref(&again), Mode::Unique)?;
        self.remove(dead);
        if let Some(new) = self.jobs.get_mut(&Model::relay_key(queue, &dead.1)) {
            new.created_at = job.created_at;
        }
        Ok("enqueued".to_owned())
    }

    pub fn reenqueue_oldest(&mut self, queue: &QueueKey, count: usize) -> Outcome {
        let mut dead = self.dead(queue);
        dead.truncate(count);
        let each = dead.iter().map(|key| self.requeue_dead(queue, key));
        let done = each.filter(Result::is_ok).count();
        format!("{done} {}", dead.len() - done)
    }

    pub fn delete_dead(&mut self, queue: &QueueKey, keys: &[Key]) -> Outcome {
        let mut deleted = 0;
        for key in keys {
            let is_dead = |job: &ModelJob| job.state == State::Dead && job.queue == *queue;
            if self.jobs.get(key).is_some_and(is_dead) {
                self.remove(key);
                deleted += 1;
            }
        }
        deleted.to_string()
    }

    // ---- Jobq ----

    pub fn create_queue(&mut self, name: &str) -> Outcome {
        let queue = QueueKey::jobq(name);
        if self.queues.contains_key(&queue) {
            return "!QueueExists".to_owned();
        }
        self.enter(&queue);
        "created".to_owned()
    }

    /// The existing queue.
    fn record_queue(&self, queue: &RecordQueue) -> Result<QueueKey, String> {
        let key = QueueKey::jobq(&queue.name);
        match self.queues.contains_key(&key) && !queue.deleted {
            true => Ok(key),
            false => refuse("NoSuchQueue"),
        }
    }

    pub fn delete_queue(&mut self, queue: &RecordQueue) -> Result<String, String> {
        let key = self.record_queue(queue)?;
        self.queues.remove(&key);
        self.jobs.retain(|_, job| job.queue != key);
        // An undo does not restore its records in a later queue of the same name.
        let operations = self.operations.iter_mut();
        for (_, job) in operations.flat_map(|operation| &mut operation.removed) {
            if job.queue == key {
                job.queue.namespace = "deleted".to_owned();
            }
        }
        Ok("deleted".to_owned())
    }

    pub fn create_record(
        &mut self,
        queue: &RecordQueue,
        payload: &str,
        state: &str,
    ) -> Result<String, String> {
        let key = self.record_queue(queue)?;
        let Some(known) = self.queues.get_mut(&key) else {
            return refuse("NoSuchQueue");
        };
        known.last_number += 1;
        let id = known.last_number.to_string();
        let (now, mut job) = (self.tick(), self.new_job(&key));
        job.state = State::Record;
        job.body = payload.to_owned();
        job.work_state = (state != "null").then(|| state.to_owned());
        (job.created_at, job.since, job.updated_at) = (now, now, Some(now));
        self.jobs.insert((Scope::In(key), id.clone()), job);
        Ok(format!("{id} {state}"))
    }

    /// Changes a record, and adds a text of this size to its log.
    fn change_record(
        &mut self,
        key: &Key,
        bytes: usize,
        change: impl FnOnce(&mut ModelJob),
    ) -> Result<String, String> {
        let now = self.tick();
        let Some(job) = self.jobs.get_mut(key) else {
            return refuse("NoSuchJob");
        };
        if job.log_bytes + bytes > LOG_BYTES_MAX {
            return refuse("LogFull");
        }
        job.log_bytes += bytes;
        job.updated_at = Some(job.updated_at.map_or(now, |at| now.max(at + 1)));
        change(job);
        Ok(format!(
            "{} {}",
            key.1,
            job.work_state.as_deref().unwrap_or("null")
        ))
    }

    fn set_state(&mut self, key: &Key, state: &str) -> Result<String, String> {
        self.change_record(key, 0, |job| {
            job.work_state = (state != "null").then(|| state.to_owned());
        })
    }

    pub fn advance_record(
        &mut self,
        queue: &RecordQueue,
        id: i64,
        old: &str,
        new: &str,
    ) -> Result<String, String> {
        let key = (Scope::In(self.record_queue(queue)?), id.to_string());
        let Some(job) = self.jobs.get(&key) else {
            return refuse("NoSuchJob");
        };
        let state = job.work_state.clone().unwrap_or_else(|| "null".to_owned());
        if state != old {
            return Ok(format!("differs {id} {state}"));
        }
        self.set_state(&key, new)
    }

    pub fn append(&mut self, queue: &RecordQueue, id: i64, event: &str) -> Result<String, String> {
        let key = (Scope::In(self.record_queue(queue)?), id.to_string());
        self.change_record(&key, event.len(), |_| {})
    }

    pub fn delete_record(&mut self, queue: &RecordQueue, id: i64) -> Result<String, String> {
        let key = (Scope::In(self.record_queue(queue)?), id.to_string());
        Ok(self.remove(&key).is_some().to_string())
    }

    pub fn poll(
        &mut self,
        queue: &RecordQueue,
        query: usize,
        state: &str,
    ) -> Result<String, String> {
        let queue = self.record_queue(queue)?;
        let matches = |job: &ModelJob| match query {
            0 => true,
            1 => job.work_state.as_deref() == Some("\"x\""),
            _ => job.work_state.is_none(),
        };
        let records = self.keys(
            |_, job| job.queue == queue && matches(job),
            |job| (job.updated_at, job.seq),
        );
        match records.first() {
            Some(key) => self.set_state(key, state),
            None => Ok("none".to_owned()),
        }
    }
}
