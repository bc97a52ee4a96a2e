//! A job and its identity.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::engine::clock::Time;
use crate::engine::model::body::Body;
use crate::engine::model::history::History;

/// The longest name or id in bytes, for qless (`spec` of the HTTP table, envelope).
pub const NAME_BYTES_MAX: usize = 255;

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

    /// As it is stored and shown.
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

/// A queue's full name. The same name may stand in every protocol and namespace, each a queue of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueKey {
    pub protocol: Protocol,
    /// Empty where the protocol has no namespaces.
    pub namespace: String,
    pub name: String,
}

impl QueueKey {
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

/// The number of a queue in the database; short, because it leads every hot index.
pub type QueueId = i64;

/// A job's identity: the scope in which its id is unique, and the id.
/// The scope of all qless jobs is [`QLESS_SCOPE`], that of all lmstfy jobs [`LMSTFY_SCOPE`], and that of a Relay
/// or Jobq job its queue's number; a Relay job that is dead is alone in a scope of its own, so that its id is free.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    pub scope: i64,
    pub id: String,
}

/// A qless id names one job in the whole server, whatever its queue.
pub const QLESS_SCOPE: i64 = 0;

/// An lmstfy id is made up by the server, so it is unique whatever its namespace and queue. Who names one names
/// them too, and gets nothing where they are others.
pub const LMSTFY_SCOPE: i64 = -1;

/// Whether a job may have this id. Postgres stores no text with a NUL character and refuses to search for one.
pub fn is_possible(id: &str) -> bool {
    !id.contains('\0')
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

    /// Of a Relay job that is dead: its key is free for another.
    pub fn of_the_dead(seq: i64, id: impl Into<String>) -> JobKey {
        JobKey {
            scope: LMSTFY_SCOPE - seq,
            id: id.into(),
        }
    }
}

/// The retries of a job that may be retried for ever.
pub const FOR_EVER: i64 = i64::MAX;

/// What the database knows of where a job is; what depends on the moment besides is [`EffectiveState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Waiting = 1,
    Scheduled = 2,
    Depends = 3,
    Running = 4,
    Failed = 5,
    Complete = 6,
    /// Taken from its worker: it waits, ahead of all others.
    Stalled = 7,
    /// No tries are left: in the dead letter, until somebody respawns or deletes it.
    Dead = 8,
    /// A record of Jobq: nobody gets it to work on, its own state is in [`Job::work_state`].
    Record = 9,
}

impl State {
    pub const ALL: [State; 9] = [
        State::Waiting,
        State::Scheduled,
        State::Depends,
        State::Running,
        State::Failed,
        State::Complete,
        State::Stalled,
        State::Dead,
        State::Record,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Scheduled => "scheduled",
            State::Depends => "depends",
            State::Running => "running",
            State::Failed => "failed",
            State::Complete => "complete",
            State::Stalled => "stalled",
            State::Dead => "dead",
            State::Record => "record",
        }
    }

    pub fn from_code(code: i64) -> Option<State> {
        State::ALL.into_iter().find(|state| state.code() == code)
    }

    pub fn code(self) -> i64 {
        self as i64
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a job stands at a moment; and the list of those that stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectiveState {
    /// In the order in which they are claimed. The list begins with those that were taken from their
    /// worker, though such a job itself is called stalled.
    Waiting,
    /// By due time.
    Scheduled,
    /// By when they began to wait.
    Depends,
    /// With a lease that is not lost; by its end.
    Running,
    /// With a lost lease that nobody has taken over; by its end.
    Stalled,
    /// Newest failure first.
    Failed,
    /// Newest completion first.
    Complete,
    /// In the dead letter, oldest first: the order in which they are respawned.
    Dead,
    /// Of Jobq, longest untouched first: the order in which they are polled.
    Record,
}

impl EffectiveState {
    pub const ALL: [EffectiveState; 9] = [
        EffectiveState::Waiting,
        EffectiveState::Scheduled,
        EffectiveState::Depends,
        EffectiveState::Running,
        EffectiveState::Stalled,
        EffectiveState::Failed,
        EffectiveState::Complete,
        EffectiveState::Dead,
        EffectiveState::Record,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            EffectiveState::Waiting => "waiting",
            EffectiveState::Scheduled => "scheduled",
            EffectiveState::Depends => "depends",
            EffectiveState::Running => "running",
            EffectiveState::Stalled => "stalled",
            EffectiveState::Failed => "failed",
            EffectiveState::Complete => "complete",
            EffectiveState::Dead => "dead",
            EffectiveState::Record => "record",
        }
    }

    pub fn parse(text: &str) -> Option<EffectiveState> {
        EffectiveState::ALL
            .into_iter()
            .find(|standing| standing.as_str() == text)
    }
}

impl fmt::Display for EffectiveState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A worker's exclusive right to a job. Whoever holds it may heartbeat, complete, fail or retry the
/// job, even after `until`, as long as nobody else has claimed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub worker: String,
    /// New with every claim.
    pub id: String,
    pub until: Time,
    /// It was lost, and ends after the grace period that is given once.
    pub warned: bool,
}

/// Why and when a job failed last. Kept until the job is completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub group: String,
    pub message: String,
    pub worker: String,
    pub at: Time,
}

/// A job as it stands in the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Order of insertion.
    pub seq: i64,
    pub key: JobKey,
    /// The queue the job is in; of a complete job, the one in which it was completed.
    pub queue: QueueId,
    pub state: State,
    /// Lowest first.
    #[serde(with = "bits")]
    pub priority: f64,
    /// When the job became available, or (scheduled, depends) is to become so at the earliest.
    pub ready_at: Time,
    /// When the job came into its present state; of a scheduled job that fell due, when it was put.
    pub since: Time,
    /// There exactly while the job is running.
    pub lease: Option<Lease>,
    /// Tries allowed after the first; [`FOR_EVER`] where they are not counted.
    pub retries: i64,
    /// Of these, how many are left; −1 when a job failed for want of them.
    pub remaining: i64,
    pub klass: Option<String>,
    /// As they were added.
    pub tags: Vec<String>,
    pub history: History,
    pub failure: Option<Failure>,
    /// For how many seconds a lease of this job is given, where the job says that (Relay's `timeout`).
    pub timeout_s: Option<i64>,
    /// What workers keep with the job, as the JSON text that was written (Relay's and Jobq's `state`).
    pub work_state: Option<String>,
    /// When it was enqueued, handed out or heartbeat last (Relay), or changed (Jobq).
    pub updated_at: Option<Time>,
    /// What the client gave: JSON text, as it was written (Jobq: without white space); for lmstfy the bytes in base64.
    pub body: Body,
    /// When the job ends, wherever it is; `None` for never.
    pub expires_at: Option<Time>,
    /// What lmstfy's clients give along with the bytes, as the JSON text of an object.
    pub attributes: Option<String>,
    pub created_at: Time,
    /// The id of the recurring job that made it.
    pub spawned_from: Option<String>,
    /// Ids of the jobs whose completion this one waits for.
    pub dependencies: Vec<String>,
    /// Ids of the jobs that wait for this one.
    pub dependents: Vec<String>,
}

impl Job {
    /// Running with a lease that has been lost at `now`, though nobody has taken the job over yet.
    pub fn is_stalled(&self, now: Time) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.until <= now)
    }

    /// Its time to live has ended at `now`, though nobody may have taken it away yet.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Where the job stands at `now`. What is due waits, whether or not anybody has looked.
    pub fn effective_state(&self, now: Time) -> EffectiveState {
        match self.state {
            State::Scheduled if self.ready_at > now => EffectiveState::Scheduled,
            State::Waiting | State::Scheduled => EffectiveState::Waiting,
            State::Depends => EffectiveState::Depends,
            State::Running if !self.is_stalled(now) => EffectiveState::Running,
            State::Running | State::Stalled => EffectiveState::Stalled,
            State::Failed => EffectiveState::Failed,
            State::Complete => EffectiveState::Complete,
            State::Dead => EffectiveState::Dead,
            State::Record => EffectiveState::Record,
        }
    }
}

/// A number by its bits, so that it is read back as it was.
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
