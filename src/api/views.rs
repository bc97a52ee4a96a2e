//! What pages show. Times are integer microseconds since 1970, UTC.

use serde::{Deserialize, Serialize};

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
}

impl Stand {
    /// In the order of a job's life; so stand the tabs and the bars.
    pub const ALL: [Stand; 7] = [
        Stand::Waiting,
        Stand::Scheduled,
        Stand::Depends,
        Stand::Running,
        Stand::Stalled,
        Stand::Failed,
        Stand::Complete,
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
        }
    }
}

/// A queue and what is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    pub name: String,
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
    }

    /// Whether the queue can be forgotten, so that it leaves the lists.
    pub fn is_idle(&self) -> bool {
        self.unfinished() == 0 && self.recurring == 0 && !self.paused
    }
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    pub id: String,
    pub queue: String,
    pub klass: Option<String>,
    pub stand: Stand,
    pub priority: f64,
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
}

impl JobRow {
    /// Taken from its worker by hand: it is called stalled, though it waits, first in line.
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

/// A job with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    pub row: JobRow,
    pub created: i64,
    /// When it came into its present state.
    pub since: i64,
    /// When it became, or becomes, available.
    pub ready: i64,
    /// The end of its worker's lease.
    pub expires: Option<i64>,
    pub history: Vec<Entry>,
    /// The payload as it was written.
    pub body: String,
    pub dependencies: Relatives,
    pub dependents: Relatives,
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

/// A worker and what it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRow {
    pub name: String,
    pub last_seen: i64,
    pub running: i64,
    pub stalled: i64,
}

/// Whether a worker still shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pulse {
    /// Within the last minute.
    Alive,
    /// Within the last five minutes.
    Late,
    Silent,
}

impl WorkerRow {
    pub fn pulse(&self, now: i64) -> Pulse {
        match now.saturating_sub(self.last_seen) / 60_000_000 {
            ..1 => Pulse::Alive,
            1..5 => Pulse::Late,
            _ => Pulse::Silent,
        }
    }
}

/// The overview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverviewView {
    /// Those that are listed.
    pub queues: Vec<QueueRow>,
    /// The jobs of all queues.
    pub total: Tally,
    pub groups: Vec<GroupRow>,
    pub workers: Vec<WorkerRow>,
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

/// The options in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigView {
    /// In the order of their table.
    pub of_server: Vec<Setting>,
    /// What has been set for single queues.
    pub of_queues: Vec<Setting>,
    /// What else has been set.
    pub others: Vec<Setting>,
    /// What can be set for a queue.
    pub kinds: Vec<String>,
    /// Names of queues to choose from.
    pub queues: Vec<String>,
}

/// An option in force; values are JSON text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    pub option: String,
    pub value: String,
    pub default: Option<String>,
}

impl Setting {
    /// Whether something else than the default is in force.
    pub fn is_changed(&self) -> bool {
        self.default.as_ref() != Some(&self.value)
    }
}

/// A failure group and a page of its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupView {
    pub group: GroupRow,
    pub jobs: Vec<JobRow>,
}

/// A worker and the jobs it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    pub worker: WorkerRow,
    /// Those in time, then those whose lease is lost.
    pub jobs: Vec<JobRow>,
}

/// A tag and how many jobs have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagRow {
    pub tag: String,
    pub jobs: i64,
}

/// A tag and a page of its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagView {
    pub tag: TagRow,
    pub jobs: Vec<JobRow>,
}

/// A page of the tags, most used first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagsView {
    pub tags: Vec<TagRow>,
    /// Whether there are more after these.
    pub more: bool,
}

/// The tracked jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedView {
    /// By the time of tracking, each with the newest entry of its history.
    pub jobs: Vec<(JobRow, Option<Entry>)>,
    /// Ids of those that are not there.
    pub gone: Vec<String>,
    /// How many are tracked; not all need be among the jobs.
    pub total: usize,
    /// What happened to them lately, newest first.
    pub events: Vec<TrackedEvent>,
    /// Among how many events of the server they were looked for.
    pub searched: i64,
}

/// Something that happened to a tracked job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedEvent {
    /// The number of the event.
    pub seq: i64,
    pub when: i64,
    /// The event's channel, which says what happened.
    pub what: String,
    pub id: String,
}

/// A recurring job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringRow {
    pub id: String,
    pub queue: String,
    /// Nobody gets a job of the queue, so no child is made either.
    pub paused: bool,
    pub klass: Option<String>,
    /// Microseconds from one child to the next.
    pub interval: i64,
    /// When the next child is due; may have passed.
    pub next: i64,
    pub made: i64,
    pub backlog: i64,
    pub priority: f64,
    pub retries: i64,
    pub tags: Vec<String>,
}

/// What somebody has typed of a recurring job. All is text, so that a slip of the hand is answered in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecurringForm {
    pub id: String,
    pub queue: String,
    pub klass: String,
    /// The payload of its children.
    pub data: String,
    pub interval: String,
    /// What the interval counts: a number of seconds.
    pub unit: String,
    /// Seconds until the first child.
    pub offset: String,
    pub priority: String,
    pub retries: String,
    pub backlog: String,
}

/// A page of the recurring jobs of one queue, or of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringsView {
    pub total: i64,
    pub rows: Vec<RecurringRow>,
    /// Names of queues to choose from.
    pub queues: Vec<String>,
}

/// A recurring job with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurringView {
    pub row: RecurringRow,
    /// The payload of its children as it was written.
    pub body: String,
    /// The newest of its children that are there, newest first.
    pub children: Vec<JobRow>,
    /// Names of queues to choose from.
    pub queues: Vec<String>,
}

/// What the consistency check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckView {
    /// When it began to look.
    pub when: i64,
    pub kinds: Vec<CheckedKind>,
}

/// Problems of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedKind {
    pub kind: String,
    pub total: usize,
    /// The first of them, as sentences.
    pub sentences: Vec<String>,
}
