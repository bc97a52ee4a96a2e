//! The model: jobs, queues, recurring jobs, options and operations in maps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use switchyard::engine::{EffectiveState, Protocol, QueueKey, State};

use super::operations::ModelOperation;

/// What a step returns. A refusal is `!` and the name of the error; the results of several items have commas between
/// them.
pub type Outcome = String;

pub const SECOND: i64 = 1_000_000;

/// Where the ID of a job is unique.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Qless,
    Lmstfy,
    /// A Relay or Jobq queue.
    In(QueueKey),
    /// A dead Relay job.
    Dead(i64),
}

pub type Key = (Scope, String);

pub fn qless(id: &str) -> Key {
    (Scope::Qless, id.to_owned())
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelLease {
    pub worker: String,
    pub until: i64,
    pub in_grace_period: bool,
    /// The number of the claim, which identifies a run.
    pub number: u64,
}

/// A job. The fields are those of the engine's.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelJob {
    pub seq: i64,
    pub queue: QueueKey,
    pub state: State,
    pub priority: f64,
    pub ready_at: i64,
    pub since: i64,
    pub lease: Option<ModelLease>,
    pub retries: i64,
    pub remaining: i64,
    pub klass: Option<String>,
    pub tags: Vec<String>,
    pub body: String,
    pub failure: Option<(String, String, String, i64)>,
    pub timeout_s: Option<i64>,
    pub work_state: Option<String>,
    pub updated_at: Option<i64>,
    pub expires_at: Option<i64>,
    pub created_at: i64,
    pub spawned_from: Option<String>,
    pub needs: BTreeSet<String>,
    /// The approximate size of a record's log, in bytes.
    pub log_bytes: usize,
}

impl ModelJob {
    pub fn has_ended(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    pub fn effective_state(&self, now: i64) -> EffectiveState {
        match self.state {
            State::Scheduled if self.ready_at > now => EffectiveState::Scheduled,
            State::Waiting | State::Scheduled => EffectiveState::Waiting,
            State::Depends => EffectiveState::Depends,
            State::Running if !self.has_expired(now) => EffectiveState::Running,
            State::Running | State::TimedOut => EffectiveState::Stalled,
            State::Failed => EffectiveState::Failed,
            State::Complete => EffectiveState::Complete,
            State::Dead => EffectiveState::Dead,
            State::Record => EffectiveState::Record,
        }
    }

    pub fn has_expired(&self, now: i64) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.until <= now)
    }

    /// Makes the job available now or after a delay.
    pub fn set_available(&mut self, now: i64, delay: f64) {
        self.lease = None;
        self.since = now;
        self.ready_at = if delay > 0.0 { after(now, delay) } else { now };
        self.state = if !self.needs.is_empty() {
            State::Depends
        } else if self.ready_at > now {
            State::Scheduled
        } else {
            State::Waiting
        };
    }

    pub fn fail(&mut self, failure: (String, String, String, i64)) {
        self.lease = None;
        self.state = State::Failed;
        self.since = failure.3;
        self.failure = Some(failure);
    }
}

/// This time plus seconds, in microseconds.
#[expect(clippy::cast_possible_truncation, reason = "rounded")]
pub fn after(now: i64, seconds: f64) -> i64 {
    now + (seconds * SECOND as f64).round() as i64
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelQueue {
    pub paused: bool,
    /// The last number of a record.
    pub last_number: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelRecurring {
    pub seq: i64,
    pub queue: QueueKey,
    pub next_at: i64,
    pub interval: i64,
    pub children: i64,
    pub backlog: i64,
    pub priority: f64,
    pub retries: i64,
    pub klass: Option<String>,
    pub tags: Vec<String>,
    pub body: String,
}

impl ModelRecurring {
    /// When the first child is due that is not skipped, if the next one is due at `next_at`.
    pub fn first_kept(&self, next_at: i64, now: i64) -> i64 {
        let behind = now - next_at;
        let backlog = self.backlog.saturating_mul(self.interval);
        match self.backlog > 0 && behind > backlog {
            true => {
                next_at + (behind - backlog + self.interval - 1) / self.interval * self.interval
            }
            false => next_at,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub now: i64,
    /// The times that the current transaction has given to jobs, beyond its own.
    pub ticks: i64,
    pub jobs: BTreeMap<Key, ModelJob>,
    pub queues: BTreeMap<QueueKey, ModelQueue>,
    pub recurring: BTreeMap<String, ModelRecurring>,
    pub tracked: BTreeSet<String>,
    pub config: BTreeMap<String, String>,
    pub operations: Vec<ModelOperation>,
    /// The next queue of each worker that claims in turn.
    pub turns: HashMap<(String, Vec<QueueKey>), usize>,
    /// The number of the last run of a Relay job.
    pub runs: HashMap<(QueueKey, String), u64>,
    /// The number of published jobs.
    pub published: usize,
    /// Whether the token exists.
    pub token: bool,
    last_seq: i64,
    last_lease: u64,
}

impl Model {
    /// An empty model at this time.
    pub fn at(now: i64) -> Model {
        Model {
            now,
            ..Model::default()
        }
    }

    /// Begins a step: time passes.
    pub fn begin(&mut self) {
        self.now += 1_009 + self.ticks;
        self.ticks = 0;
    }

    pub fn next_seq(&mut self) -> i64 {
        self.last_seq += 1;
        self.last_seq
    }

    /// A time later than those of the transaction before.
    pub fn tick(&mut self) -> i64 {
        self.ticks += 1;
        self.now + self.ticks - 1
    }

    pub fn next_lease(&mut self) -> u64 {
        self.last_lease += 1;
        self.last_lease
    }

    /// Deletes everything.
    pub fn flush(&mut self) {
        *self = Model {
            now: self.now,
            ticks: self.ticks,
            published: self.published,
            token: self.token,
            last_seq: self.last_seq,
            last_lease: self.last_lease,
            turns: std::mem::take(&mut self.turns),
            runs: std::mem::take(&mut self.runs),
            ..Model::default()
        };
    }

    /// Creates the queue unless it exists.
    pub fn enter(&mut self, queue: &QueueKey) {
        self.queues.entry(queue.clone()).or_default();
    }

    pub fn new_job(&mut self, queue: &QueueKey) -> ModelJob {
        ModelJob {
            seq: self.next_seq(),
            queue: queue.clone(),
            state: State::Waiting,
            priority: 0.0,
            ready_at: self.now,
            since: self.now,
            lease: None,
            retries: 5,
            remaining: 5,
            klass: None,
            tags: Vec::new(),
            body: String::new(),
            failure: None,
            timeout_s: None,
            work_state: None,
            updated_at: None,
            expires_at: None,
            created_at: self.now,
            spawned_from: None,
            needs: BTreeSet::new(),
            log_bytes: 0,
        }
    }

    /// The qless jobs that depend on this one.
    pub fn dependents(&self, id: &str) -> Vec<String> {
        let jobs = self.jobs.iter();
        let dependents = jobs.filter(|((scope, _), job)| {
            *scope == Scope::Qless && !job.needs.is_empty() && job.needs.contains(id)
        });
        dependents.map(|((_, id), _)| id.clone()).collect()
    }

    /// Removes a job, and the dependencies on it.
    pub fn remove(&mut self, key: &Key) -> Option<ModelJob> {
        let removed = self.jobs.remove(key)?;
        if key.0 == Scope::Qless {
            for id in self.dependents(&key.1) {
                if let Some(job) = self.jobs.get_mut(&qless(&id)) {
                    job.needs.remove(&key.1);
                }
            }
        }
        Some(removed)
    }

    /// The keys of the jobs that the condition selects, in this order.
    pub fn keys<O: Ord>(
        &self,
        select: impl Fn(&Key, &ModelJob) -> bool,
        order: impl Fn(&ModelJob) -> O,
    ) -> Vec<Key> {
        let mut found: Vec<(O, &Key)> = self
            .jobs
            .iter()
            .filter(|(key, job)| select(key, job))
            .map(|(key, job)| (order(job), key))
            .collect();
        found.sort();
        found.into_iter().map(|(_, key)| key.clone()).collect()
    }

    /// The dead jobs of a queue, oldest first.
    pub fn dead(&self, queue: &QueueKey) -> Vec<Key> {
        self.keys(
            |_, job| job.queue == *queue && job.state == State::Dead,
            |job| (job.since, job.seq),
        )
    }

    /// An option that is a number.
    pub fn option(&self, name: &str) -> Option<f64> {
        self.config.get(name)?.parse().ok()
    }

    pub fn heartbeat_s(&self, queue: &str) -> f64 {
        let own = self.option(&format!("{queue}-heartbeat"));
        let own = own.or_else(|| self.option(&format!("heartbeat-{queue}")));
        own.or_else(|| self.option("heartbeat")).unwrap_or(60.0)
    }

    pub fn cutoff_s(&self, queue: &str) -> Option<f64> {
        self.option(&format!("{queue}-cutoff"))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    pub fn concurrency(&self, queue: &QueueKey) -> Option<usize> {
        if queue.protocol != Protocol::Qless {
            return None;
        }
        let max = self.option(&format!("{}-max-concurrency", queue.name));
        max.filter(|max| *max > 0.0).map(|max| max as usize)
    }

    /// The key of the published job with this number, counted from the last one.
    pub fn published_key(&self, nth: usize) -> Key {
        let name = match self.published.checked_sub(nth + 1) {
            Some(number) => format!("p{number}"),
            None => "none".to_owned(),
        };
        (Scope::Lmstfy, name)
    }
}
