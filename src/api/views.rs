//! What pages show. Times are integer microseconds since 1970, UTC.

mod about;
mod audit;
mod check;
mod config;
mod failing;
mod graph;
mod jobq;
mod lmstfy;
mod marks;
mod operations;
mod place;
mod put;
mod recurring;
mod relay;
mod scheduled;
mod search;
mod searches;
mod series;
mod worker;

use serde::{Deserialize, Serialize};

pub use crate::auth::{AuthMethod, Role};
pub use about::AboutView;
pub use audit::{AuditQuery, AuditRow, AuditView, Fact, Fate, SignIn, Thing};
pub use check::{CheckView, CheckedKind};
pub use config::{ConfigView, Setting};
pub use failing::{FailingGroup, FailingView, FailuresView, Said};
pub use graph::{Graph, Node};
pub use jobq::{
    Change, Conflict, Mark, NewRecord, RecordList, RecordRow, RecordView, RecordsView,
    RefusedQuery, StateRow, Undone, Wanted, WrongRecord,
};
pub use lmstfy::{
    DeadRow, DeadView, LmstfyJobView, NamespaceRow, NamespaceView, NamespacesView, NewToken,
    TokenRow,
};
pub use marks::{TagRow, TagView, TagsView, TrackedEvent, TrackedView};
pub use operations::*;
pub use place::{Api, Place};
pub use put::{NewJob, NewJobView, NotPut};
pub use recurring::{RecurringForm, RecurringRow, RecurringView, RecurringsView};
pub use relay::RelayJobView;
pub use scheduled::ScheduledView;
pub use search::{Chip, Finds, Mistaken, Outcome, SearchView, in_quotes};
pub use searches::{SavedRow, SearchesView};
pub use series::{Asked, RangeView, Recent, Series, Span, Spark};
pub use worker::{Pulse, WorkerRow, WorkerView};

/// Where a job stands, as the dashboard names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stand {
    Waiting,
    Scheduled,
    Depends,
    Running,
    Stalled,
    Failed,
    Complete,
    /// In the dead letter.
    Dead,
    /// A record of Jobq, whose state is its own.
    Record,
}

impl Stand {
    /// In the order of a job's life; so stand the tabs and the bars.
    pub const ALL: [Stand; 9] = [
        Stand::Waiting,
        Stand::Scheduled,
        Stand::Depends,
        Stand::Running,
        Stand::Stalled,
        Stand::Failed,
        Stand::Complete,
        Stand::Dead,
        Stand::Record,
    ];

    /// As it stands in addresses and class names.
    pub fn as_str(self) -> &'static str {
        match self {
            Stand::Waiting => "waiting",
            Stand::Scheduled => "scheduled",
            Stand::Depends => "depends",
            Stand::Running => "running",
            Stand::Stalled => "stalled",
            Stand::Failed => "failed",
            Stand::Complete => "complete",
            Stand::Dead => "dead",
            Stand::Record => "record",
        }
    }

    /// The state that an address names.
    pub fn parse(text: &str) -> Option<Stand> {
        Stand::ALL.into_iter().find(|stand| stand.as_str() == text)
    }
}

/// How many jobs stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub waiting: i64,
    pub scheduled: i64,
    pub depends: i64,
    pub running: i64,
    pub stalled: i64,
    pub failed: i64,
    pub complete: i64,
    pub dead: i64,
    pub records: i64,
}

impl Tally {
    pub fn of(&self, stand: Stand) -> i64 {
        match stand {
            Stand::Waiting => self.waiting,
            Stand::Scheduled => self.scheduled,
            Stand::Depends => self.depends,
            Stand::Running => self.running,
            Stand::Stalled => self.stalled,
            Stand::Failed => self.failed,
            Stand::Complete => self.complete,
            Stand::Dead => self.dead,
            Stand::Record => self.records,
        }
    }

    /// Both together.
    pub fn plus(self, other: Tally) -> Tally {
        Tally {
            waiting: self.waiting + other.waiting,
            scheduled: self.scheduled + other.scheduled,
            depends: self.depends + other.depends,
            running: self.running + other.running,
            stalled: self.stalled + other.stalled,
            failed: self.failed + other.failed,
            complete: self.complete + other.complete,
            dead: self.dead + other.dead,
            records: self.records + other.records,
        }
    }
}

/// A queue and what is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    pub place: Place,
    pub tally: Tally,
    /// When the job that is next in line became available.
    pub oldest_waiting: Option<i64>,
    /// Nobody gets a job of it.
    pub paused: bool,
    /// Not listed without need until something is put into it.
    pub forgotten: bool,
    /// How many recurring jobs it has.
    pub recurring: i64,
}

impl QueueRow {
    /// Jobs that something is still to become of.
    pub fn unfinished(&self) -> i64 {
        let tally = &self.tally;
        tally.waiting
            + tally.scheduled
            + tally.depends
            + tally.running
            + tally.stalled
            + tally.failed
            + tally.dead
    }

    /// The states in which its jobs can be; and one in which there are some though they should not.
    pub fn stands(&self) -> impl Iterator<Item = Stand> {
        let shown = |stand: &Stand| self.place.api.has(*stand) || self.tally.of(*stand) > 0;
        Stand::ALL.into_iter().filter(shown)
    }

    /// Whether the queue can be forgotten, so that it leaves the lists. Those of Jobq are deleted instead.
    pub fn is_idle(&self) -> bool {
        let is_quiet = self.unfinished() == 0 && self.recurring == 0 && !self.paused;
        is_quiet && self.place.api != Api::Jobq
    }
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    pub seq: i64,
    pub id: String,
    pub place: Place,
    pub klass: Option<String>,
    pub stand: Stand,
    pub priority: f64,
    /// `i64::MAX` for any number.
    pub retries: i64,
    /// −1 when it failed for want of retries.
    pub remaining: i64,
    pub tags: Vec<String>,
    pub worker: Option<String>,
    /// The one moment that matters where the job stands: due, end of the lease, failed, completed, available.
    pub when: i64,
    /// The beginning of the payload on one line.
    pub glimpse: String,
    pub failure: Option<FailureNote>,
    /// How many jobs it waits for.
    pub waits_for: usize,
    /// When its time to live ends, wherever it is.
    pub ends: Option<i64>,
    /// The number of a dead job, where its id may be another job's by now, or several dead ones'.
    pub letter: Option<i64>,
}

impl JobRow {
    /// Taken from its worker by hand: called stalled, it waits, first in line.
    pub fn is_taken_away(&self) -> bool {
        self.stand == Stand::Stalled && self.worker.is_none()
    }

    /// The list in which the job stands.
    pub fn list(&self) -> Stand {
        if self.is_taken_away() {
            Stand::Waiting
        } else {
            self.stand
        }
    }

    /// By which its page, and whoever ticks it in a dead letter, names it.
    pub fn handle(&self) -> String {
        match self.letter {
            Some(letter) => letter.to_string(),
            None => self.id.clone(),
        }
    }

    /// How many times it may be consumed still, and how many times it might be in all. A try counts as used
    /// from the moment in which the job is handed out.
    pub fn tries(&self) -> (i64, i64) {
        let left = match self.stand {
            Stand::Running | Stand::Stalled => self.remaining,
            Stand::Dead => 0,
            Stand::Waiting
            | Stand::Scheduled
            | Stand::Depends
            | Stand::Failed
            | Stand::Complete
            | Stand::Record => self.remaining + 1,
        };
        (left.max(0), self.retries + 1)
    }
}

/// A job's last failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureNote {
    pub group: String,
    pub message: String,
    pub worker: String,
    pub when: i64,
}

/// What a job's history tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Happening {
    Put,
    Popped,
    TimedOut,
    Retried,
    Failed,
    Done,
    /// No try was left: it went to the dead letter.
    Died,
    /// Taken out of the dead letter, to be tried again.
    Respawned,
    /// Recorded.
    Created,
    /// One state became another; both stand in it as JSON text.
    Advanced,
    /// An event of a user, in the detail as JSON text.
    Event,
    /// Somebody's word: the message is the subject, more may be in the detail.
    Note,
}

/// One entry of a job's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub what: Happening,
    pub when: i64,
    /// Queue, worker or failure group, by what happened.
    pub subject: Option<String>,
    pub detail: Option<String>,
}

/// What is known of the times of a job, of any protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    pub created: i64,
    /// When it came into its present state.
    pub since: i64,
    /// When it became, or becomes, available.
    pub ready: i64,
    /// The end of its worker's lease.
    pub expires: Option<i64>,
    pub history: Vec<Entry>,
}

/// A qless job with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    pub row: JobRow,
    pub life: Life,
    /// The payload as it was written.
    pub body: String,
    pub dependencies: Relatives,
    pub dependents: Relatives,
    pub graph: Graph,
    pub tracked: bool,
    /// The recurring job that made it.
    pub origin: Option<Origin>,
}

/// The recurring job that made a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    pub id: String,
    /// Whether it goes on.
    pub lives: bool,
}

/// Jobs that a job waits for, or that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Relatives {
    pub total: usize,
    /// The first of them.
    pub jobs: Vec<Relative>,
}

/// A job beside another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relative {
    pub id: String,
    /// `None` if the job has gone in the same moment.
    pub job: Option<JobRow>,
}

/// Failed jobs that share a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupRow {
    pub group: String,
    pub count: i64,
    pub first: Option<i64>,
    pub last: Option<i64>,
    /// Of the newest failure.
    pub message: Option<String>,
}

/// The overview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverviewView {
    /// Those that are listed.
    pub queues: Vec<QueueRow>,
    /// The jobs of each API that has queues.
    pub totals: Vec<(Api, Tally)>,
    pub groups: Vec<GroupRow>,
    pub workers: Vec<WorkerRow>,
    /// The fullest dead letters.
    pub dead: Vec<DeadRow>,
    /// How many dead letters are not empty.
    pub dead_letters: usize,
    pub recent: Recent,
}

/// A queue and a page of its jobs in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueView {
    pub queue: QueueRow,
    pub stand: Stand,
    pub jobs: Vec<JobRow>,
}

/// What happened in a queue on one UTC day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsView {
    pub queue: QueueRow,
    /// The number of the day, 1970-01-01 being 0.
    pub day: i64,
    pub today: i64,
    /// From put to claim.
    pub wait: Spread,
    /// From claim to completion.
    pub run: Spread,
    pub failures: i64,
    /// Of the failures, how many are failed still.
    pub failed: i64,
    /// Lost leases.
    pub retries: i64,
}

/// How long something took, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub total: i64,
    pub mean: f64,
    pub variance: f64,
    /// How many by their length: 60 seconds, 59 minutes, 23 hours, 6 days.
    pub slots: Vec<i64>,
}
