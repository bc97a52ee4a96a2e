//! A job and its identity.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::clock::Time;
use super::history::History;

/// The longest name or id in bytes, for qless (`spec` of the HTTP table, envelope).
pub const NAME_BYTES_MAX: usize = 255;

/// Which front a job belongs to. A consuming verb hands out only jobs of its own protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Qless,
}

impl Protocol {
    pub const ALL: [Protocol; 1] = [Protocol::Qless];

    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Qless => "qless",
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
}

/// The number of a queue in the database; short, because it leads every hot index.
pub type QueueId = i64;

/// A job's identity: the scope in which its id is unique, and the id.
/// The scope of all qless jobs is [`QLESS_SCOPE`]; other protocols use the queue's number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    pub scope: i64,
    pub id: String,
}

/// A qless id names one job in the whole server, whatever its queue.
pub const QLESS_SCOPE: i64 = 0;

impl JobKey {
    pub fn qless(id: impl Into<String>) -> JobKey {
        JobKey {
            scope: QLESS_SCOPE,
            id: id.into(),
        }
    }
}

/// What the database knows of where a job is; what depends on the moment besides is [`Standing`].
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
}

impl State {
    pub const ALL: [State; 7] = [
        State::Waiting,
        State::Scheduled,
        State::Depends,
        State::Running,
        State::Failed,
        State::Complete,
        State::Stalled,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
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
}

impl Standing {
    pub const ALL: [Standing; 7] = [
        Standing::Waiting,
        Standing::Scheduled,
        Standing::Depends,
        Standing::Running,
        Standing::Stalled,
        Standing::Failed,
        Standing::Complete,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Waiting => "waiting",
            Standing::Scheduled => "scheduled",
            Standing::Depends => "depends",
            Standing::Running => "running",
            Standing::Stalled => "stalled",
            Standing::Failed => "failed",
            Standing::Complete => "complete",
        }
    }

    pub fn parse(text: &str) -> Option<Standing> {
        Standing::ALL
            .into_iter()
            .find(|standing| standing.as_str() == text)
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A worker's exclusive right to a job. Whoever holds it may heartbeat, complete, fail or retry the
/// job, even after `until`, as long as nobody else has claimed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub worker: String,
    /// New with every claim.
    pub id: String,
    pub until: Time,
    /// It was lost, and ends after the grace period that is given once.
    pub warned: bool,
}

/// Why and when a job failed last. Kept until the job is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub group: String,
    pub message: String,
    pub worker: String,
    pub at: Time,
}

/// A job as it stands in the database.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Order of insertion.
    pub seq: i64,
    pub key: JobKey,
    /// The queue the job is in; of a complete job, the one in which it was completed.
    pub queue: QueueId,
    pub state: State,
    /// Lowest first.
    pub priority: f64,
    /// When the job became available, or (scheduled, depends) is to become so at the earliest.
    pub ready_at: Time,
    /// When the job came into its present state; of a scheduled job that fell due, when it was put.
    pub since: Time,
    /// There exactly while the job is running.
    pub lease: Option<Lease>,
    /// Tries allowed after the first.
    pub retries: i64,
    /// Of these, how many are left; −1 when a job failed for want of them.
    pub remaining: i64,
    pub klass: Option<String>,
    /// As they were added.
    pub tags: Vec<String>,
    pub history: History,
    pub failure: Option<Failure>,
    /// What the client gave, as it was written (qless: the JSON text of `meta`).
    pub body: String,
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

    /// Where the job stands at `now`. What is due waits, whether or not anybody has looked.
    pub fn standing(&self, now: Time) -> Standing {
        match self.state {
            State::Scheduled if self.ready_at > now => Standing::Scheduled,
            State::Waiting | State::Scheduled => Standing::Waiting,
            State::Depends => Standing::Depends,
            State::Running if !self.is_stalled(now) => Standing::Running,
            State::Running | State::Stalled => Standing::Stalled,
            State::Failed => Standing::Failed,
            State::Complete => Standing::Complete,
        }
    }
}
