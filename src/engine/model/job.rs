//! A job and its key.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::engine::clock::Time;
use crate::engine::model::body::Body;
use crate::engine::model::history::{Event, History};
pub use crate::engine::model::state::{EffectiveState, State};

/// Maximum length of a qless name or ID, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// What a text in a list occupies in memory beyond its length, in bytes.
const LISTED_TEXT_BYTES: usize = 32;

/// Begins the failure group of jobs without retries left, followed by the name of the queue.
const EXHAUSTED: &str = "failed-retries-";

/// Maximum length of the failure group of a qless job, in bytes.
pub const FAILURE_GROUP_BYTES_MAX: usize = NAME_BYTES_MAX + EXHAUSTED.len();

/// Whether a name consists of the characters that lmstfy allows in names of namespaces and queues: letters, digits,
/// hyphens and underscores.
pub fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(is_plain)
}

/// The protocol of a job and its queue. A claim returns only jobs of its own protocol.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Qless,
    Lmstfy,
    Relay,
    Jobq,
}

impl Protocol {
    /// The name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Qless => "qless",
            Protocol::Lmstfy => "lmstfy",
            Protocol::Relay => "Relay",
            Protocol::Jobq => "Jobq",
        }
    }

    pub const ALL: [Protocol; 4] = [
        Protocol::Qless,
        Protocol::Lmstfy,
        Protocol::Relay,
        Protocol::Jobq,
    ];

    /// The name used in the database and in the UI.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Qless => "qless",
            Protocol::Lmstfy => "lmstfy",
            Protocol::Relay => "relay",
            Protocol::Jobq => "jobq",
        }
    }

    /// Whether its jobs can be in this state.
    pub fn has(self, state: EffectiveState) -> bool {
        match self {
            Protocol::Qless => !matches!(state, EffectiveState::Dead | EffectiveState::Record),
            Protocol::Lmstfy | Protocol::Relay => matches!(
                state,
                EffectiveState::Waiting
                    | EffectiveState::Scheduled
                    | EffectiveState::Running
                    | EffectiveState::Dead
            ),
            Protocol::Jobq => state == EffectiveState::Record,
        }
    }
}

impl FromStr for Protocol {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.as_str() == text)
            .ok_or(())
    }
}

/// A queue's full name. Names are independent per protocol and namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueKey {
    pub protocol: Protocol,
    /// Empty if the protocol has no namespaces.
    pub namespace: String,
    pub name: String,
}

/// A queue has a weight of 1, and 1 more for each of these bytes of its namespace and name.
const BYTES_PER_WEIGHT: usize = 256;

impl QueueKey {
    /// The memory that the key occupies.
    pub fn bytes(&self) -> usize {
        size_of::<QueueKey>() + self.namespace.len() + self.name.len()
    }

    /// How much the queue counts toward the maximum number of queues, because each server keeps its name.
    pub fn weight(&self) -> usize {
        1 + (self.namespace.len() + self.name.len()) / BYTES_PER_WEIGHT
    }

    pub fn qless(name: impl Into<String>) -> QueueKey {
        QueueKey {
            protocol: Protocol::Qless,
            namespace: String::new(),
            name: name.into(),
        }
    }

    pub fn relay(name: impl Into<String>) -> QueueKey {
        QueueKey {
            protocol: Protocol::Relay,
            namespace: String::new(),
            name: name.into(),
        }
    }

    pub fn jobq(name: impl Into<String>) -> QueueKey {
        QueueKey {
            protocol: Protocol::Jobq,
            namespace: String::new(),
            name: name.into(),
        }
    }

    pub fn lmstfy(namespace: impl Into<String>, name: impl Into<String>) -> QueueKey {
        QueueKey {
            protocol: Protocol::Lmstfy,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// A queue's ID in the database. An integer, because it is the first column of every hot index.
pub type QueueId = i64;

/// A job's key: its ID, and the scope in which that is unique. All qless jobs have the scope [`QLESS_SCOPE`], all
/// lmstfy jobs [`LMSTFY_SCOPE`]. The scope of a Relay or Jobq job is its queue's ID. A dead Relay job has a scope of
/// its own, so that its ID can be used again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    pub scope: i64,
    pub id: String,
}

/// qless IDs are unique in the whole server, regardless of the queue.
pub const QLESS_SCOPE: i64 = 0;

/// lmstfy IDs are generated by the server, so they are unique across namespaces and queues. Requests name namespace and
/// queue as well, and do not find the job if those differ.
pub const LMSTFY_SCOPE: i64 = -1;

/// Longer than any ID.
const ID_BYTES_MAX: usize = 8 << 10;

/// Whether to look up this ID in the database. Postgres cannot store or search text with NUL.
pub fn can_look_up(id: &str) -> bool {
    id.len() <= ID_BYTES_MAX && !id.contains('\0')
}

/// Maximum length of the class of a job, in bytes. Old jobs can have a longer one.
pub const CLASS_BYTES_MAX: usize = 1_024;

/// What is wrong with the class of a job. It can be empty.
pub fn invalid_class_reason(class: &str) -> Option<String> {
    let bytes = class.len();
    (bytes > CLASS_BYTES_MAX).then(|| format!("is {bytes} bytes; the limit is {CLASS_BYTES_MAX}"))
}

/// What is wrong with a name that people read; `None` if it is valid.
pub fn invalid_name_reason(name: &str, bytes_max: usize) -> Option<String> {
    if name.is_empty() {
        Some("must not be empty".to_owned())
    } else if name.len() > bytes_max {
        Some(format!("must not exceed {bytes_max} bytes"))
    } else if name.chars().any(char::is_control) {
        Some("must not contain control characters".to_owned())
    } else {
        None
    }
}

impl JobKey {
    pub fn qless(id: impl Into<String>) -> JobKey {
        JobKey {
            scope: QLESS_SCOPE,
            id: id.into(),
        }
    }

    pub fn lmstfy(id: impl Into<String>) -> JobKey {
        JobKey {
            scope: LMSTFY_SCOPE,
            id: id.into(),
        }
    }

    /// The key of a dead Relay job, which leaves its former key free.
    pub fn dead_relay(seq: i64, id: impl Into<String>) -> JobKey {
        JobKey {
            scope: LMSTFY_SCOPE - seq,
            id: id.into(),
        }
    }
}

/// The value of `retries` for unlimited retries.
pub const UNLIMITED: i64 = i64::MAX;

/// A worker's exclusive right to a job. The holder may heartbeat, complete, fail or retry the job, even after `until`,
/// as long as no other worker has claimed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub worker: String,
    /// Changes with every claim.
    pub id: String,
    pub until: Time,
    /// The lease has expired, and `until` is the end of the grace period, which is granted once.
    #[serde(rename = "warned")]
    pub in_grace_period: bool,
}

/// The last failure of a job. Kept until the job is completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub group: String,
    pub message: String,
    pub worker: String,
    pub at: Time,
}

impl Failure {
    /// The failure of a job that has no retries left.
    pub fn exhausted(queue: &str, worker: String, at: Time) -> Failure {
        Failure {
            group: format!("{EXHAUSTED}{queue}"),
            message: exhausted_message(queue),
            worker,
            at,
        }
    }

    /// Whether the job failed because it had no retries left.
    pub fn is_exhausted(&self) -> bool {
        let queue = self.group.strip_prefix(EXHAUSTED);
        queue.is_some_and(|queue| self.message == exhausted_message(queue))
    }
}

fn exhausted_message(queue: &str) -> String {
    format!("Job exhausted retries in queue \"{queue}\"")
}

/// A job as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The insertion number, from one sequence for jobs, recurring jobs and operations: a job with a higher number was
    /// added later. A dead Relay job gets a new one.
    pub seq: i64,
    pub key: JobKey,
    /// The queue of the job. A complete job stays in the queue where it was completed.
    pub queue: QueueId,
    pub state: State,
    /// Lower numbers run first.
    #[serde(with = "bits")]
    pub priority: f64,
    /// When the job became available; for scheduled and depends, the earliest time at which it can.
    pub ready_at: Time,
    /// When the job entered its stored state. Two changes keep the earlier time: a scheduled job that became due, and a
    /// job whose dependencies were completed. An expired lease does not change it. See [`Job::state_since`].
    pub since: Time,
    /// Present exactly while the job is running.
    pub lease: Option<Lease>,
    /// Attempts allowed after the first, or [`UNLIMITED`].
    pub retries: i64,
    /// Remaining retries; -1 once the job has failed because none were left.
    pub remaining: i64,
    pub klass: Option<String>,
    /// In the order in which they were added.
    pub tags: Vec<String>,
    /// The stored text of the tags if it cannot be parsed; `tags` is then empty. Written back until the tags are
    /// replaced.
    #[serde(default)]
    pub damaged_tags: Option<String>,
    pub history: History,
    pub failure: Option<Failure>,
    /// The duration of a lease in seconds, if the job specifies it (Relay's `timeout`).
    pub timeout_s: Option<i64>,
    /// State that workers store with the job, as verbatim JSON text (Relay's and Jobq's `state`).
    pub work_state: Option<String>,
    /// When it was last enqueued, claimed or renewed by a heartbeat (Relay), or changed (Jobq).
    pub updated_at: Option<Time>,
    /// The client's data: verbatim JSON text (Jobq: without whitespace); for lmstfy base64.
    pub body: Body,
    /// The end of its time to live; `None` for no limit, and for dead jobs.
    pub expires_at: Option<Time>,
    /// Attributes that lmstfy clients add to the body, as the JSON text of an object.
    pub attributes: Option<String>,
    pub created_at: Time,
    /// The ID of the recurring job that created it.
    pub spawned_from: Option<String>,
    /// IDs of the jobs it depends on.
    pub dependencies: Vec<String>,
    /// IDs of the jobs that depend on it.
    pub dependents: Vec<String>,
}

impl Job {
    /// A waiting job that was created at `at`, without number, queue, retries, body and history.
    pub fn new(key: JobKey, at: Time) -> Job {
        Job {
            seq: 0,
            key,
            queue: 0,
            state: State::Waiting,
            priority: 0.0,
            ready_at: at,
            since: at,
            lease: None,
            retries: 0,
            remaining: 0,
            klass: None,
            tags: Vec::new(),
            damaged_tags: None,
            history: History::default(),
            failure: None,
            timeout_s: None,
            work_state: None,
            updated_at: None,
            body: Body::default(),
            expires_at: None,
            attributes: None,
            created_at: at,
            spawned_from: None,
            dependencies: Vec::new(),
            dependents: Vec::new(),
        }
    }

    /// The events of its history, oldest first. Empty if it cannot be parsed, which the server's log reports.
    pub fn events(&self) -> Vec<Event> {
        let events = self.history.events_of(self.seq, &self.key.id);
        events.unwrap_or_default()
    }

    /// Replaces the tags.
    pub(in crate::engine) fn set_tags(&mut self, tags: Vec<String>) {
        (self.tags, self.damaged_tags) = (tags, None);
    }

    /// The total size in bytes of those texts whose length clients control. In lists, a text occupies more than its length.
    pub fn text_bytes(&self) -> usize {
        let optional = [
            &self.work_state,
            &self.attributes,
            &self.klass,
            &self.damaged_tags,
            &self.spawned_from,
        ];
        let optional: usize = optional.into_iter().flatten().map(String::len).sum();
        let lists = [&self.tags, &self.dependencies, &self.dependents];
        let lists = lists.into_iter().flatten();
        let lists: usize = lists.map(|text| text.len() + LISTED_TEXT_BYTES).sum();
        let failure = self.failure.as_ref();
        let failure = failure.map_or(0, |it| it.message.len() + it.worker.len());
        let id = self.key.id.len();
        id + self.body.bytes() + self.history.as_text().len() + optional + lists + failure
    }

    /// Like [`Job::text_bytes`], without a body that was not loaded.
    pub fn loaded_bytes(&self) -> usize {
        let unread = match self.body.read() {
            Some(_) => 0,
            None => self.body.bytes(),
        };
        self.text_bytes() - unread
    }

    /// Whether the job's lease has expired at `now`. It may not have been processed yet.
    pub fn has_expired_lease(&self, now: Time) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.until <= now)
    }

    /// Whether the job's time to live has ended at `now`. It may not have been deleted yet.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether the job is scheduled and due: maintenance will promote it.
    pub fn is_due(&self, now: Time) -> bool {
        self.state == State::Scheduled && self.ready_at <= now
    }

    /// The state in whose list the job is, and by which it is found and counted: the effective state, but waiting for a
    /// timed-out job.
    pub fn listed_state(&self, now: Time) -> EffectiveState {
        match self.state {
            State::TimedOut => EffectiveState::Waiting,
            _ => self.effective_state(now),
        }
    }

    /// The state at `now`. A due job is waiting even if maintenance has not promoted it yet.
    pub fn effective_state(&self, now: Time) -> EffectiveState {
        match self.state {
            State::Scheduled if self.ready_at > now => EffectiveState::Scheduled,
            State::Waiting | State::Scheduled => EffectiveState::Waiting,
            State::Depends => EffectiveState::Depends,
            State::Running if !self.has_expired_lease(now) => EffectiveState::Running,
            State::Running | State::TimedOut => EffectiveState::Stalled,
            State::Failed => EffectiveState::Failed,
            State::Complete => EffectiveState::Complete,
            State::Dead => EffectiveState::Dead,
            State::Record => EffectiveState::Record,
        }
    }

    /// When the job entered its effective state.
    pub fn state_since(&self, now: Time) -> Time {
        match self.effective_state(now) {
            EffectiveState::Waiting => self.since.max(self.ready_at),
            EffectiveState::Stalled => self.lease.as_ref().map_or(self.since, |it| it.until),
            _ => self.since,
        }
    }
}

/// Serializes a number by its bits, so that it is restored exactly.
mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(number.to_bits())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}
