//! The steps of a walk: every verb, the clock, maintenance, restarts and crashes.

use std::fmt::Debug;

use switchyard::engine::{
    Claim, Depend, Enqueue, Fail, JobAction, JobKey, LeaseHolder, Mode, NextQueue, Publish, Put,
    QueueKey, Recur, RecurringChange, Retry,
};

/// A job of any protocol, for an operation.
#[derive(Clone, Debug)]
pub enum Ref {
    Qless(String),
    /// One of the last published jobs; 0 is the last one.
    Lmstfy(usize),
    Relay(QueueKey, String),
    /// A dead job of a Relay queue, by its place in the list.
    Dead(QueueKey, usize),
    Record(String, i64),
}

/// The jobs of an operation.
#[derive(Clone, Debug)]
pub enum Pick {
    /// All jobs of this qless queue, by a search.
    Queue(String),
    /// A text that is not a valid search.
    Invalid,
    Jobs(Vec<Ref>),
    /// More jobs than an operation may name.
    TooLong,
}

/// A Relay run: the last one of this key, or one that never existed.
#[derive(Clone, Debug)]
pub struct RunOf {
    pub queue: QueueKey,
    pub id: String,
    pub unknown: bool,
}

/// A Jobq queue by name: the existing one, or a deleted one that had the name.
#[derive(Clone, Debug)]
pub struct RecordQueue {
    pub name: String,
    pub deleted: bool,
}

/// A step. Times in [`Enqueue::run_at`] are microseconds from now.
#[derive(Clone, Debug)]
pub enum Step {
    Advance(i64),
    Maintain,
    Reopen,
    Crash,
    Flush,
    Put(QueueKey, Vec<Put>, String),
    Requeue(QueueKey, Vec<Put>, String),
    Pop(Claim),
    PopInTurn(Claim),
    Peek(QueueKey, usize),
    Complete(JobKey, String, LeaseHolder),
    Move(JobKey, String, LeaseHolder, NextQueue),
    Fail(Vec<Fail>, LeaseHolder),
    Retry(Vec<Retry>, LeaseHolder),
    Heartbeat(JobKey, Option<String>, LeaseHolder),
    Cancel(Vec<JobKey>),
    Depend(JobKey, Depend),
    Prioritize(JobKey, f64),
    Tag(JobKey, Vec<String>),
    Untag(JobKey, Vec<String>),
    Track(JobKey, Vec<String>),
    Untrack(JobKey),
    TimeOut(JobKey),
    Note(JobKey),
    Relocate(JobKey, QueueKey),
    Unfail(String, Option<QueueKey>, usize),
    RetryFailed(JobKey),
    Recur(QueueKey, Recur),
    ChangeRecurring(String, RecurringChange),
    Unrecur(String),
    Pause(QueueKey, bool),
    ForgetQueue(QueueKey),
    ForgetWorker(String),
    Configure(String, Option<String>),
    Publish(QueueKey, Vec<Publish>),
    Republish(QueueKey, usize, Publish),
    Consume(Claim),
    ConsumeWithToken(Claim),
    Acknowledge(QueueKey, Vec<usize>),
    Destroy(QueueKey),
    DeleteDeadLetter(QueueKey, usize),
    Respawn(QueueKey, usize, u32),
    RespawnJobs(Vec<usize>, u32),
    CreateToken(String),
    RevokeToken,
    Enqueue(Vec<Enqueue>, Mode),
    Next(Claim),
    HeartbeatRun(RunOf, Option<Option<String>>),
    CompleteRun(RunOf),
    RequeueRun(RunOf, Vec<Enqueue>, Mode),
    Delete(QueueKey, Vec<String>),
    ReenqueueDead(QueueKey, Vec<usize>),
    ReenqueueOldest(QueueKey, usize),
    DeleteDead(QueueKey, Vec<usize>),
    CreateQueue(String),
    DeleteQueue(RecordQueue),
    CreateRecord(RecordQueue, String, String),
    AdvanceRecord(RecordQueue, i64, String, String),
    Append(RecordQueue, i64, String),
    DeleteRecord(RecordQueue, i64),
    Poll(RecordQueue, usize, String),
    StartOperation(JobAction, Pick),
    CancelWithUndo(JobKey),
    StopOperation(usize),
    UndoOperation(usize),
}

impl Step {
    /// The name of the verb.
    pub fn name(&self) -> String {
        variant(self)
    }
}

/// The name of the variant of an enum.
pub fn variant(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find(|c: char| !c.is_ascii_alphanumeric());
    let name = end.and_then(|end| text.get(..end));
    name.unwrap_or(&text).to_owned()
}

/// The names of all steps. A walk must have reached each.
pub const NAMES: [&str; 66] = [
    "Advance",
    "Maintain",
    "Reopen",
    "Crash",
    "Flush",
    "Put",
    "Requeue",
    "Pop",
    "PopInTurn",
    "Peek",
    "Complete",
    "Move",
    "Fail",
    "Retry",
    "Heartbeat",
    "Cancel",
    "Depend",
    "Prioritize",
    "Tag",
    "Untag",
    "Track",
    "Untrack",
    "TimeOut",
    "Note",
    "Relocate",
    "Unfail",
    "RetryFailed",
    "Recur",
    "ChangeRecurring",
    "Unrecur",
    "Pause",
    "ForgetQueue",
    "ForgetWorker",
    "Configure",
    "Publish",
    "Republish",
    "Consume",
    "ConsumeWithToken",
    "Acknowledge",
    "Destroy",
    "DeleteDeadLetter",
    "Respawn",
    "RespawnJobs",
    "CreateToken",
    "RevokeToken",
    "Enqueue",
    "Next",
    "HeartbeatRun",
    "CompleteRun",
    "RequeueRun",
    "Delete",
    "ReenqueueDead",
    "ReenqueueOldest",
    "DeleteDead",
    "CreateQueue",
    "DeleteQueue",
    "CreateRecord",
    "AdvanceRecord",
    "Append",
    "DeleteRecord",
    "Poll",
    "StartOperation",
    "CancelWithUndo",
    "StopOperation",
    "UndoOperation",
    "Check",
];

/// The refusals of the engine that a client's request can cause. The others depend on the machine, on damaged data or
/// on sizes beyond this walk, and have tests of their own: `DamagedTags`, `TooMuchWork`, `ResponseTooLarge`, `Busy`,
/// `Oversized`, `Unavailable`, `NameTooLong`, `Full`, `Store`.
pub const REFUSALS: [&str; 26] = [
    "NoSuchJob",
    "NoSuchRun",
    "NoSuchRecurring",
    "NotRunning",
    "WrongWorker",
    "WrongQueue",
    "HasDependents",
    "AlreadyComplete",
    "DependencyCycle",
    "NotDepending",
    "BadOption",
    "BadToken",
    "TooMany",
    "NotFailed",
    "NotDead",
    "JobExists",
    "NoSuchQueue",
    "QueueExists",
    "LogFull",
    "Revoked",
    "Missing",
    "Ended",
    "TooLate",
    "TooManyJobs",
    "InvalidSearch",
    "NoJobs",
];
