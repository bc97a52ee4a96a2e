//! Why a verb refused. One enum for all protocols; each protocol has one table from it to its answers.

use super::job::Standing;
use super::tokens::Flaw;

/// How many bytes one answer may have. What lists many jobs counts them before it loads them.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A refusal. Nothing was changed by the verb that returned it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no job \"{id}\"")]
    NoSuchJob { id: String },
    #[error("there is no recurring job \"{id}\"")]
    NoSuchRecurring { id: String },
    #[error("job \"{id}\" is not running but {state}")]
    NotRunning { id: String, state: Standing },
    #[error("job \"{id}\" is with another worker, \"{worker}\"")]
    WrongWorker { id: String, worker: String },
    #[error("job \"{id}\" is in another queue, \"{queue}\"")]
    WrongQueue { id: String, queue: String },
    #[error("job \"{id}\" cannot be cancelled: {} depend on it", dependents.join(", "))]
    HasDependents { id: String, dependents: Vec<String> },
    #[error("job \"{id}\" is complete already")]
    AlreadyComplete { id: String },
    #[error("job \"{id}\" would wait for itself")]
    DependencyCycle { id: String },
    #[error("job \"{id}\" does not wait for others but is {state}")]
    NotDepending { id: String, state: Standing },
    #[error("{why}")]
    BadOption { why: String },
    #[error("{0}")]
    BadToken(#[from] Flaw),
    #[error("there may be {max} {what} at most")]
    TooMany { what: &'static str, max: usize },
    #[error("job \"{id}\" is not failed but {state}")]
    NotFailed { id: String, state: Standing },
    #[error("job \"{id}\" is not in the dead letter but {state}")]
    NotDead { id: String, state: Standing },
    #[error("there is a job \"{id}\" in queue \"{queue}\" already")]
    AlreadyThere { id: String, queue: String },
    #[error("there is no queue \"{name}\"")]
    NoSuchQueue { name: String },
    #[error("there is a queue \"{name}\" already")]
    QueueThere { name: String },
    #[error("the log of job \"{id}\" is full: it has {max} at most")]
    LogFull { id: String, max: &'static str },
    /// What a query was to look at is more than one request may.
    #[error(
        "the query takes too much work: it was given up after {looked_at} jobs; a condition on the state's tag, on the id or on `modified` narrows it"
    )]
    TooMuchWork { looked_at: usize },
    /// The jobs that an answer lists have too many bytes together.
    #[error("the answer would have more than {} MiB; ask for fewer jobs at once", ANSWER_BYTES_MAX >> 20)]
    AnswerTooLarge,
    /// The token that was shown is one no longer.
    #[error("the token has been revoked")]
    Revoked,
    /// The database cannot be reached now. Whether anything has changed is not known.
    #[error("the database cannot be reached now")]
    Unavailable,
    /// Postgres cannot index a name of the request.
    #[error(
        "an id or a queue name is too long for the database, which holds 2,600 bytes of any text"
    )]
    NameTooLong,
    /// New jobs are refused until the disk has space. Nothing was changed.
    #[error("the disk is full: new jobs are refused until there is space")]
    Full,
    /// The database could not be read or written. Nothing is known to have changed. Clients are shown this text, so
    /// what the driver says is not part of it; see [`Error::detail`].
    #[error("the database is not available")]
    Store(String),
}

impl Error {
    /// The error with what the driver says: for the operator, not for clients.
    pub fn detail(&self) -> String {
        match self {
            Error::Store(detail) => format!("{self}: {detail}"),
            error => error.to_string(),
        }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<crate::store::StoreError> for Error {
    fn from(error: crate::store::StoreError) -> Self {
        if error.is_full() {
            Error::Full
        } else if error.is_too_long() {
            Error::NameTooLong
        } else if error.is_outage() || error.is_conflict() {
            Error::Unavailable
        } else {
            let detail = error.to_string();
            tracing::error!(error = detail, "the database refused a statement");
            Error::Store(detail)
        }
    }
}
