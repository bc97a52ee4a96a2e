//! The model's verbs of qless.

use std::collections::BTreeSet;

use switchyard::engine::{
    Depend, Fail, LeaseHolder, NextQueue, Put, QueueKey, Recur, RecurringChange, Retry, State,
};

use super::memory::{Key, Model, ModelJob, ModelRecurring, Outcome, SECOND, after, qless};

/// Maximum number of tags, and of dependencies, of one job.
const RELATIONS_MAX: usize = 2_000;

/// The outcome of a verb that is refused with this error.
pub fn refuse<T>(name: &str) -> Result<T, String> {
    Err(format!("!{name}"))
}

fn distinct(texts: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let new = texts.iter().filter(|text| seen.insert(*text));
    new.cloned().collect()
}

impl Model {
    /// The job that this worker has leased.
    pub fn leased(&self, key: &Key, holder: &LeaseHolder) -> Result<&ModelJob, String> {
        let Some(job) = self.jobs.get(key) else {
            return refuse("NoSuchJob");
        };
        let (Some(lease), State::Running) = (&job.lease, job.state) else {
            return refuse("NotRunning");
        };
        if lease.worker != holder.worker {
            return refuse("WrongWorker");
        }
        match &holder.queue {
            Some(queue) if *queue != job.queue.name => refuse("WrongQueue"),
            _ => Ok(job),
        }
    }

    /// Those of the IDs whose jobs exist and are not complete.
    pub fn unmet(&self, id: &str, needs: &[String]) -> Result<BTreeSet<String>, String> {
        if needs.iter().collect::<BTreeSet<_>>().len() > RELATIONS_MAX {
            return refuse("TooMany");
        }
        let (mut open, mut seen) = (vec![id.to_owned()], BTreeSet::new());
        while let Some(id) = open.pop() {
            if needs.contains(&id) {
                return refuse("DependencyCycle");
            }
            if seen.insert(id.clone()) {
                open.extend(self.dependents(&id));
            }
        }
        let is_unmet = |id: &&String| {
            let job = self.jobs.get(&qless(id));
            job.is_some_and(|job| job.state != State::Complete)
        };
        Ok(needs.iter().filter(is_unmet).cloned().collect())
    }

    /// Puts the job into its queue.
    fn enter_queue(&mut self, key: &Key, delay: f64) {
        let now = self.now;
        if let Some(job) = self.jobs.get_mut(key) {
            job.remaining = job.retries;
            job.set_available(now, delay);
        }
    }

    pub fn put(&mut self, queue: &QueueKey, put: &Put, requeue: bool) -> Result<String, String> {
        let id = put.id.clone().unwrap_or_default();
        let key = qless(&id);
        if requeue && !self.jobs.contains_key(&key) {
            return refuse("NoSuchJob");
        }
        let tags = distinct(put.tags.as_deref().unwrap_or_default());
        if tags.len() > RELATIONS_MAX {
            return refuse("TooMany");
        }
        let needs = match &put.depends {
            Some(ids) => Some(self.unmet(&id, ids)?),
            None => None,
        };
        self.enter(queue);
        if !self.jobs.contains_key(&key) {
            let job = self.new_job(queue);
            self.jobs.insert(key.clone(), job);
        }
        if let Some(job) = self.jobs.get_mut(&key) {
            job.lease = None;
            job.body.clone_from(&put.body);
            if put.klass.is_some() {
                job.klass.clone_from(&put.klass);
            }
            job.priority = put.priority.unwrap_or(job.priority);
            job.retries = put.retries.unwrap_or(job.retries);
            if put.tags.is_some() {
                job.tags = tags;
            }
            job.queue = queue.clone();
            if let Some(needs) = needs {
                job.needs = needs;
            }
        }
        self.enter_queue(&key, put.delay.unwrap_or(0.0));
        Ok(id)
    }

    pub fn complete(
        &mut self,
        key: &Key,
        body: &str,
        holder: &LeaseHolder,
        next: Option<&NextQueue>,
    ) -> Result<String, String> {
        self.leased(key, holder)?;
        let needs = match next {
            Some(next) => self.unmet(&key.1, &next.depends)?,
            None => BTreeSet::new(),
        };
        let now = self.now;
        if let Some(job) = self.jobs.get_mut(key) {
            job.body = body.to_owned();
            job.failure = None;
            job.lease = None;
            job.remaining = job.retries;
            job.since = now;
            job.state = State::Complete;
        }
        let Some(next) = next else {
            for id in self.dependents(&key.1) {
                if let Some(job) = self.jobs.get_mut(&qless(&id)) {
                    job.needs.remove(&key.1);
                }
                self.release(&qless(&id));
            }
            return Ok(State::Complete.as_str().to_owned());
        };
        self.enter(&next.queue);
        if let Some(job) = self.jobs.get_mut(key) {
            job.needs = needs;
            job.queue = next.queue.clone();
        }
        self.enter_queue(key, next.delay);
        Ok(self.jobs[key].state.as_str().to_owned())
    }

    /// Makes a job available after its last dependency is gone.
    fn release(&mut self, key: &Key) {
        let now = self.now;
        if let Some(job) = self.jobs.get_mut(key)
            && job.state == State::Depends
            && job.needs.is_empty()
        {
            job.state = if job.ready_at > now {
                State::Scheduled
            } else {
                State::Waiting
            };
            job.ready_at = job.ready_at.max(now);
        }
    }

    pub fn fail(&mut self, fail: &Fail, holder: &LeaseHolder) -> Result<String, String> {
        let key = qless(&fail.key.id);
        self.leased(&key, holder)?;
        let now = self.now;
        if let Some(job) = self.jobs.get_mut(&key) {
            if let Some(body) = &fail.body {
                job.body.clone_from(body);
            }
            let (group, message) = (fail.group.clone(), fail.message.clone());
            job.fail((group, message, holder.worker.clone(), now));
        }
        Ok("failed".to_owned())
    }

    pub fn retry(&mut self, retry: &Retry, holder: &LeaseHolder) -> Result<String, String> {
        let key = qless(&retry.key.id);
        let queue = self.leased(&key, holder)?.queue.name.clone();
        let (now, worker) = (self.now, holder.worker.clone());
        let reason = retry.reason.clone();
        let Some(job) = self.jobs.get_mut(&key) else {
            return refuse("NoSuchJob");
        };
        job.remaining -= 1;
        let failure = reason.map(|(group, message)| (group, message, worker.clone(), now));
        if job.remaining >= 0 {
            if failure.is_some() {
                job.failure = failure;
            }
            job.set_available(now, retry.delay);
        } else {
            job.fail(failure.unwrap_or_else(|| exhausted(&queue, worker, now)));
        }
        Ok(job.remaining.to_string())
    }

    pub fn heartbeat(
        &mut self,
        key: &Key,
        body: Option<&String>,
        holder: &LeaseHolder,
    ) -> Result<String, String> {
        let job = self.leased(key, holder)?;
        let (queue, since) = (job.queue.name.clone(), job.since);
        let next = after(self.now, self.heartbeat_s(&queue));
        let cutoff = self.cutoff_s(&queue);
        let until = cutoff.map_or(next, |cutoff| next.min(after(since, cutoff)));
        let now = self.now;
        if let Some(job) = self.jobs.get_mut(key) {
            if let Some(lease) = &mut job.lease {
                (lease.until, lease.in_grace_period) = (until, false);
            }
            if let Some(body) = body {
                job.body.clone_from(body);
            }
        }
        Ok(format!("{:.6}", (until - now) as f64 / SECOND as f64))
    }

    pub fn cancel(&mut self, ids: &[String]) -> Result<String, String> {
        for id in ids {
            let Some(job) = self.jobs.get(&qless(id)) else {
                continue;
            };
            if job.state == State::Complete {
                return refuse("AlreadyComplete");
            }
            if self.dependents(id).iter().any(|other| !ids.contains(other)) {
                return refuse("HasDependents");
            }
        }
        for id in ids {
            self.remove(&qless(id));
        }
        Ok("canceled".to_owned())
    }

    pub fn depend(&mut self, id: &str, change: &Depend) -> Result<String, String> {
        let key = qless(id);
        let Some(job) = self.jobs.get(&key) else {
            return refuse("NoSuchJob");
        };
        if job.state != State::Depends {
            return refuse("NotDepending");
        }
        let mut needs = job.needs.clone();
        match change {
            Depend::On(ids) => {
                needs.extend(self.unmet(id, ids)?);
                if needs.len() > RELATIONS_MAX {
                    return refuse("TooMany");
                }
            }
            Depend::Off(ids) => needs.retain(|id| !ids.contains(id)),
            Depend::OffAll => needs.clear(),
        }
        if let Some(job) = self.jobs.get_mut(&key) {
            job.needs = needs;
        }
        self.release(&key);
        Ok("done".to_owned())
    }

    /// Changes a job that must exist.
    pub fn change(&mut self, id: &str, change: impl FnOnce(&mut ModelJob)) -> Result<(), String> {
        match self.jobs.get_mut(&qless(id)) {
            Some(job) => {
                change(job);
                Ok(())
            }
            None => refuse("NoSuchJob"),
        }
    }

    pub fn tag(&mut self, id: &str, tags: &[String]) -> Result<String, String> {
        let Some(job) = self.jobs.get(&qless(id)) else {
            return refuse("NoSuchJob");
        };
        let new = distinct(tags).into_iter();
        let new: Vec<String> = new.filter(|tag| !job.tags.contains(tag)).collect();
        if !new.is_empty() && job.tags.len() + new.len() > RELATIONS_MAX {
            return refuse("TooMany");
        }
        self.change(id, |job| job.tags.extend(new))?;
        Ok(self.jobs[&qless(id)].tags.join(" "))
    }

    pub fn untag(&mut self, id: &str, tags: &[String]) -> Result<String, String> {
        self.change(id, |job| job.tags.retain(|tag| !tags.contains(tag)))?;
        Ok(self.jobs[&qless(id)].tags.join(" "))
    }

    /// Returns whether the job had the tag.
    pub fn rename_tag(&mut self, id: &str, from: &str, to: &str) -> bool {
        let Some(job) = self.jobs.get_mut(&qless(id)) else {
            return false;
        };
        if !job.tags.iter().any(|tag| tag == from) {
            return false;
        }
        if from != to && job.tags.iter().any(|tag| tag == to) {
            job.tags.retain(|tag| tag != from);
        }
        for tag in &mut job.tags {
            if tag == from {
                to.clone_into(tag);
            }
        }
        true
    }

    pub fn track(&mut self, id: &str, tags: &[String]) -> Result<String, String> {
        self.tag(id, tags)?;
        self.tracked.insert(id.to_owned());
        Ok("tracked".to_owned())
    }

    pub fn time_out(&mut self, id: &str) -> Result<String, String> {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(&qless(id)) else {
            return refuse("NoSuchJob");
        };
        if job.state != State::Running {
            return refuse("NotRunning");
        }
        job.lease = None;
        job.state = State::TimedOut;
        (job.since, job.ready_at) = (now, now);
        Ok("done".to_owned())
    }

    /// Puts an existing job into a queue, or into its own, with its options.
    pub fn requeue(&mut self, key: &Key, queue: Option<&QueueKey>) {
        if let Some(queue) = queue {
            self.enter(queue);
        }
        if let Some(job) = self.jobs.get_mut(key)
            && let Some(queue) = queue
        {
            job.queue = queue.clone();
        }
        self.enter_queue(key, 0.0);
    }

    pub fn relocate(&mut self, id: &str, queue: &QueueKey) -> Result<String, String> {
        self.change(id, |_| {})?;
        self.requeue(&qless(id), Some(queue));
        Ok("moved".to_owned())
    }

    pub fn unfail(&mut self, group: &str, queue: Option<&QueueKey>, count: usize) -> String {
        let is_in = |job: &ModelJob| job.failure.as_ref().is_some_and(|it| it.0 == group);
        let mut failed = self.keys(
            |_, job| job.state == State::Failed && is_in(job),
            |job| (job.since, job.seq),
        );
        failed.truncate(count);
        for key in &failed {
            self.requeue(key, queue);
        }
        failed.len().to_string()
    }

    pub fn retry_failed(&mut self, id: &str) -> Result<String, String> {
        match self.jobs.get(&qless(id)).map(|job| job.state) {
            None => refuse("NoSuchJob"),
            Some(State::Failed) => {
                self.requeue(&qless(id), None);
                Ok("retried".to_owned())
            }
            Some(_) => refuse("NotFailed"),
        }
    }

    pub fn recur(&mut self, queue: &QueueKey, recur: &Recur) -> Outcome {
        let id = recur.id.clone().unwrap_or_default();
        self.enter(queue);
        let (seq, children) = match self.recurring.get(&id) {
            Some(old) => (old.seq, old.children),
            None => (self.next_seq(), 0),
        };
        let recurring = ModelRecurring {
            seq,
            queue: queue.clone(),
            next_at: after(self.now, recur.offset_s),
            interval: after(0, recur.interval_s).max(1),
            children,
            backlog: recur.backlog,
            priority: recur.priority,
            retries: recur.retries,
            klass: recur.klass.clone(),
            tags: distinct(&recur.tags),
            body: recur.body.clone(),
        };
        self.recurring.insert(id.clone(), recurring);
        id
    }

    pub fn change_recurring(&mut self, id: &str, change: &RecurringChange) -> Outcome {
        if !self.recurring.contains_key(id) {
            return "!NoSuchRecurring".to_owned();
        }
        if let Some(queue) = &change.queue {
            self.enter(queue);
        }
        let Some(it) = self.recurring.get_mut(id) else {
            return String::new();
        };
        it.priority = change.priority.unwrap_or(it.priority);
        it.retries = change.retries.unwrap_or(it.retries);
        it.backlog = change.backlog.unwrap_or(it.backlog);
        it.body = change.body.clone().unwrap_or_else(|| it.body.clone());
        if change.klass.is_some() {
            it.klass.clone_from(&change.klass);
        }
        if let Some(seconds) = change.interval_s {
            let interval = after(0, seconds).max(1);
            it.next_at += interval - it.interval;
            it.interval = interval;
        }
        if let Some(queue) = &change.queue {
            it.queue = queue.clone();
        }
        for tag in distinct(&change.tag) {
            if !it.tags.contains(&tag) {
                it.tags.push(tag);
            }
        }
        it.tags.retain(|tag| !change.untag.contains(tag));
        it.tags.join(" ")
    }
}

/// The failure of a job without retries.
pub fn exhausted(queue: &str, worker: String, now: i64) -> (String, String, String, i64) {
    let message = format!("Job exhausted retries in queue \"{queue}\"");
    (format!("failed-retries-{queue}"), message, worker, now)
}
