//! Exit codes of the commands that talk to a server; `docs/command-line.md` lists them.

use std::process::ExitCode;

use crate::client;
use crate::ui::error::PageError;

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Code {
    /// Something else failed.
    Error = 1,
    /// The arguments or the input are wrong.
    Usage = 2,
    /// What the command names does not exist, or no job matches.
    NotFound = 3,
    /// The credentials do not allow it, or the server refuses it in the current state.
    Refused = 4,
    /// The server cannot be reached, or cannot serve requests now.
    Unreachable = 5,
}

/// The error of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: Code,
    /// Empty if the command has printed its errors already. Can contain any characters.
    pub message: String,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        let message = message.into();
        Failure { code, message }
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, message)
    }

    /// The errors were printed one by one.
    pub fn reported(code: Code) -> Failure {
        Failure::new(code, "")
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code as u8)
    }
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Failure {
        let client::Error::Refused { status, body, .. } = &error else {
            let code = match error {
                client::Error::Unexpected { .. } => Code::Error,
                client::Error::Invalid(_) => Code::Usage,
                _ => Code::Unreachable,
            };
            return Failure::new(code, error.to_string());
        };
        let code = match status.as_u16() {
            404 => Code::NotFound,
            401 | 403 | 409 | 413 | 421 | 422 | 507 => Code::Refused,
            429 | 502 | 503 | 504 => Code::Unreachable,
            _ => Code::Error,
        };
        // The errors of the dashboard are sentences.
        let message = match serde_json::from_value::<PageError>((**body).clone()) {
            Ok(error) => error.to_string(),
            Err(_) => error.to_string(),
        };
        let message = match status.as_u16() {
            401 => {
                let message = message.trim_end().trim_end_matches('.');
                format!("{message}. Set --token, or --user and --token")
            }
            _ => message,
        };
        Failure::new(code, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_errors_mean_that_the_server_is_unreachable() {
        let error = client::Error::Connect {
            server: "http://127.0.0.1:1".to_owned(),
            why: "connection refused".to_owned(),
        };
        let failure = Failure::from(error);
        assert_eq!(failure.code, Code::Unreachable);
        assert_eq!(
            failure.message,
            "cannot connect to http://127.0.0.1:1: connection refused"
        );
        let invalid = client::Error::Invalid("a header".to_owned());
        assert_eq!(Failure::from(invalid).code, Code::Usage);
    }
}
