//! Errors in the words of qless-core, because its clients search for them.

use super::Dialect;
use crate::engine::{EffectiveState, Error};
use crate::protocol::redis::outage;
use crate::protocol::redis::resp::Reply;

/// Why a command was refused.
#[derive(Debug)]
pub enum CommandError {
    /// An error that the script would raise.
    Script(String),
    Engine(Error),
}

impl CommandError {
    pub fn new(area: &str, words: &str) -> CommandError {
        CommandError::Script(format!("{area}(): {words}"))
    }

    /// The reply. `area` is the name of the command in messages.
    pub fn reply(self, area: &str, dialect: Dialect) -> Reply {
        match self {
            CommandError::Script(words) => Reply::script_error(&words),
            CommandError::Engine(error) => error_reply(&error, area, dialect),
        }
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> CommandError {
        CommandError::Engine(error)
    }
}

/// The reply to an error of the engine. `area` is the name of the command in messages.
pub fn error_reply(error: &Error, area: &str, dialect: Dialect) -> Reply {
    outage(error).unwrap_or_else(|| of_engine(error, area, dialect))
}

fn of_engine(error: &Error, area: &str, dialect: Dialect) -> Reply {
    let names_job = match dialect {
        Dialect::Current | Dialect::Php => true,
        Dialect::Terse | Dialect::Workerless => matches!(area, "Priority" | "Log" | "Tag"),
    };
    let job = |id: &str| match names_job {
        true => format!("Job {id}"),
        false => "Job".to_owned(),
    };
    let words = match error {
        Error::NoSuchJob { id } => match area {
            "Depends" => format!("Job {id} not in the depends state: false"),
            "Track" => "Job does not exist".to_owned(),
            _ => format!("{} does not exist", job(id)),
        },
        Error::NoSuchRecurring { id } => match area {
            "Recur" => format!("No recurring job {id}"),
            _ => format!("Job {id} does not exist"),
        },
        Error::NotRunning { id, state, is_due } => {
            let state = stored(*state, *is_due);
            match area {
                "Timeout" => format!("Job {id} not running"),
                "Complete" | "Retry" => format!("{} is not currently running: {state}", job(id)),
                _ => format!("{} not currently running: {state}", job(id)),
            }
        }
        Error::WrongWorker { id, worker } => {
            let how = match area {
                "Complete" => "has been handed out to another worker",
                "Retry" => "has been given to another worker",
                "Fail" => "running with another worker",
                _ => "given out to another worker",
            };
            format!("{} {how}: {worker}", job(id))
        }
        Error::WrongQueue { id, queue } => format!("{} running in another queue: {queue}", job(id)),
        Error::NotDepending { id, state, is_due } => {
            let state = stored(*state, *is_due);
            format!("Job {id} not in the depends state: {state}")
        }
        Error::HasDependents { id, dependents } => {
            let first = dependents.first().map_or("", String::as_str);
            format!("{id} is a dependency of {first} but is not mentioned to be canceled")
        }
        error => error.to_string(),
    };
    Reply::script_error(&format!("{area}(): {words}"))
}

/// The state that qless-core names: a scheduled job stays scheduled until a client asks for jobs.
fn stored(state: EffectiveState, is_due: bool) -> EffectiveState {
    match is_due {
        true => EffectiveState::Scheduled,
        false => state,
    }
}
