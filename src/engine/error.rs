//! Errors of the engine. One enum for all protocols; each protocol maps it to its own responses.

use crate::engine::model::job::EffectiveState;
use crate::engine::tokens::TokenError;
use crate::memory::Busy;
use crate::store::StoreError;

/// Bytes that one response may have. Queries that list jobs check their sizes before they load them.
pub const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// Maximum length of a driver's error.
const DETAIL_BYTES_MAX: usize = 500;

/// An error. A verb that returns one has changed nothing, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("job \"{id}\" does not exist")]
    NoSuchJob { id: String },
    #[error("job \"{id}\" has no such run; it has ended, timed out, or never existed")]
    NoSuchRun { id: String },
    #[error("recurring job \"{id}\" does not exist")]
    NoSuchRecurring { id: String },
    /// `is_due`: the job is scheduled and due, so that its state is waiting.
    #[error("job \"{id}\" is in state {state}, not running")]
    NotRunning {
        id: String,
        state: EffectiveState,
        is_due: bool,
    },
    #[error("job \"{id}\" is leased to another worker, \"{worker}\"")]
    WrongWorker { id: String, worker: String },
    #[error("job \"{id}\" is in another queue, \"{queue}\"")]
    WrongQueue { id: String, queue: String },
    #[error(
        "job \"{id}\" cannot be canceled because other jobs depend on it: {}",
        first_of(dependents)
    )]
    HasDependents { id: String, dependents: Vec<String> },
    #[error("job \"{id}\" is already complete")]
    AlreadyComplete { id: String },
    #[error("job \"{id}\" would depend on itself, directly or through other jobs")]
    DependencyCycle { id: String },
    /// `is_due`: as in [`Error::NotRunning`].
    #[error("job \"{id}\" is {state} and does not depend on other jobs")]
    NotDepending {
        id: String,
        state: EffectiveState,
        is_due: bool,
    },
    #[error("{why}")]
    BadOption { why: String },
    #[error("{0}")]
    BadToken(#[from] TokenError),
    #[error("too many {what}; the limit is {max}")]
    TooMany { what: &'static str, max: usize },
    #[error("job \"{id}\" is in state {state}, not failed")]
    NotFailed { id: String, state: EffectiveState },
    #[error("job \"{id}\" is {state}, not dead")]
    NotDead { id: String, state: EffectiveState },
    #[error("job \"{id}\" already exists in queue \"{queue}\"")]
    JobExists { id: String, queue: String },
    #[error("queue \"{name}\" does not exist")]
    NoSuchQueue { name: String },
    #[error("queue \"{name}\" already exists")]
    QueueExists { name: String },
    #[error("the log of job \"{id}\" is full; the limit is {max}")]
    LogFull { id: String, max: &'static str },
    #[error("the stored tags of job \"{id}\" cannot be read; run the consistency check")]
    DamagedTags { id: String },
    /// The query would have to read more than one request may.
    #[error(
        "the query needs too much work and stopped after {scanned} jobs; narrow it with a condition on the state's label, the ID or `modified`"
    )]
    TooMuchWork { scanned: usize },
    /// The listed jobs are too large together.
    #[error("the response would exceed {} MiB; request fewer jobs", RESPONSE_BYTES_MAX >> 20)]
    ResponseTooLarge,
    /// Other requests occupy the memory for large requests and responses, the permit of a consistency check or of pages
    /// with a large offset, the subscriptions of long polls, or the next IDs of a recurring job. Nothing was changed.
    #[error("the server is busy with other requests; try again")]
    Busy,
    /// The token used for the request has been revoked.
    #[error("the token was revoked")]
    Revoked,
    /// The named jobs are too large for one transaction. Callers that can split their request do.
    #[error("the named jobs are too large for one transaction; name fewer jobs")]
    Oversized,
    /// The database is unreachable or too slow. The outcome is unknown.
    #[error("the database did not respond in time; try again")]
    Unavailable,
    /// Postgres cannot index a name in the request.
    #[error("the ID or queue name is too long; the database accepts at most 2,600 bytes")]
    NameTooLong,
    /// The disk is full; new jobs are refused. Nothing was changed.
    #[error("the disk is full; new jobs are refused until space is freed")]
    Full,
    /// The database could not be read or written; the outcome is unknown. Users of the dashboard see this text, so it
    /// does not contain the driver's error; see [`Error::detail`].
    #[error("a database statement failed")]
    Store(String),
}

impl Error {
    /// The code in metrics, and in the responses of qless, which knows most of these errors.
    pub fn code(&self) -> &'static str {
        match self {
            Error::NoSuchJob { .. } => "no_such_job",
            Error::NoSuchRun { .. } => "no_such_run",
            Error::NoSuchRecurring { .. } => "no_such_recurring",
            Error::NotRunning { .. } => "not_running",
            Error::WrongWorker { .. } => "wrong_worker",
            Error::WrongQueue { .. } => "wrong_queue",
            Error::DamagedTags { .. } => "damaged_tags",
            Error::HasDependents { .. } => "has_dependents",
            Error::AlreadyComplete { .. } => "already_complete",
            Error::DependencyCycle { .. } => "dependency_cycle",
            Error::NotDepending { .. } => "not_depending",
            Error::BadOption { .. } | Error::BadToken(_) | Error::TooMany { .. } => "bad_request",
            Error::NotFailed { .. } => "not_failed",
            Error::NotDead { .. } => "not_dead",
            Error::JobExists { .. } => "job_exists",
            Error::NoSuchQueue { .. } => "no_such_queue",
            Error::QueueExists { .. } => "queue_exists",
            Error::LogFull { .. } => "log_full",
            Error::TooMuchWork { .. } => "too_much_work",
            Error::ResponseTooLarge => "too_large",
            Error::Revoked => "revoked",
            Error::NameTooLong => "name_too_long",
            Error::Full => "disk_full",
            Error::Busy => "busy",
            Error::Unavailable => "unavailable",
            Error::Oversized | Error::Store(_) => "internal",
        }
    }

    /// The error with the driver's message: for operators, not for clients.
    pub fn detail(&self) -> String {
        match self {
            Error::Store(detail) => detail.clone(),
            error => error.to_string(),
        }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<Busy> for Error {
    fn from(_: Busy) -> Self {
        Error::Busy
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        if error.is_disk_full() {
            Error::Full
        } else if error.is_too_long() {
            Error::NameTooLong
        } else if matches!(error, StoreError::TransactionTooLarge) {
            Error::Oversized
        } else if matches!(error, StoreError::Busy | StoreError::Grown) {
            Error::Busy
        } else if error.is_outage() || error.is_conflict() || error.is_slow() {
            Error::Unavailable
        } else {
            let mut detail = error.to_string();
            // It can quote what a client has sent.
            detail.truncate(detail.floor_char_boundary(DETAIL_BYTES_MAX));
            tracing::error!(error = detail, "a database statement failed");
            Error::Store(detail)
        }
    }
}
/// The IDs that a message names.
const IDS_NAMED: usize = 10;

/// The first IDs, and how many others there are.
fn first_of(ids: &[String]) -> String {
    let named = ids.get(..IDS_NAMED).unwrap_or(ids).join(", ");
    match ids.len().saturating_sub(IDS_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
