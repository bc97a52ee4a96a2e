//! Errors, and their statuses, codes and details.

use std::time::Instant;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::auth::Rejected;
use crate::engine::{Error, QUEUES};

/// The size of an error as JSON, without its texts.
const JSON_BYTES: usize = 100;

/// Why a request, or one of its items, failed.
#[derive(Clone, Debug)]
pub enum ApiError {
    Bad {
        field: &'static str,
        message: String,
    },
    NoSuchEndpoint,
    MethodNotAllowed,
    NotEnabled {
        message: &'static str,
    },
    Unauthorized,
    Rejected(Rejected),
    NoSuchOption {
        option: String,
    },
    TooLarge,
    Internal,
    Engine(Error),
}

impl ApiError {
    /// An error for a field that is missing, has the wrong type or is out of range.
    pub fn bad(field: &'static str, message: &str) -> ApiError {
        ApiError::Bad {
            field,
            message: message.to_owned(),
        }
    }

    /// `{"error", "code", …details}`, for the response or, for an item, for `errors`.
    pub fn to_object(&self) -> Map<String, Value> {
        let (_, code, details) = self.parts();
        let mut object = Map::new();
        object.insert("error".to_owned(), json!(self.message()));
        object.insert("code".to_owned(), json!(code));
        if let Value::Object(details) = details {
            object.extend(details);
        }
        object
    }

    /// The size of [`ApiError::to_object`] as JSON text, at most: the message and the details repeat the same texts, in
    /// which each character can be escaped.
    pub fn json_bytes(&self) -> usize {
        let dependents = match self {
            ApiError::Engine(Error::HasDependents { dependents, .. }) => {
                dependents.iter().map(|id| 2 * id.len() + 3).sum()
            }
            _ => 0,
        };
        JSON_BYTES + 4 * self.message().len() + dependents
    }

    /// Whether the same request can succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            ApiError::Engine(Error::Unavailable | Error::Busy) | ApiError::Rejected(Rejected::Busy)
        )
    }

    pub fn status(&self) -> StatusCode {
        self.parts().0
    }

    pub fn code(&self) -> &'static str {
        self.parts().1
    }

    fn message(&self) -> String {
        match self {
            ApiError::Bad { message, .. } => message.clone(),
            ApiError::NoSuchEndpoint => "no such endpoint".to_owned(),
            ApiError::MethodNotAllowed => "this method is not allowed here".to_owned(),
            ApiError::NotEnabled { message } => (*message).to_owned(),
            ApiError::Unauthorized => {
                "a token is required: Authorization: Bearer <token>".to_owned()
            }
            ApiError::Rejected(why) => why.message().to_owned(),
            ApiError::TooLarge => format!(
                "the request body must not exceed {} bytes",
                super::call::BODY_BYTES_MAX
            ),
            ApiError::NoSuchOption { option } => format!("option \"{option}\" does not exist"),
            // The log has the details, for the operator.
            ApiError::Internal | ApiError::Engine(Error::Store(_)) => {
                "internal error; see the server log".to_owned()
            }
            ApiError::Engine(error) => error.to_string(),
        }
    }

    fn parts(&self) -> (StatusCode, &'static str, Value) {
        let error = match self {
            ApiError::Bad { field, .. } => {
                return (
                    StatusCode::BAD_REQUEST,
                    "bad_request",
                    json!({ "field": field }),
                );
            }
            ApiError::NoSuchEndpoint => {
                return (StatusCode::NOT_FOUND, "no_such_endpoint", Value::Null);
            }
            ApiError::MethodNotAllowed => {
                return (
                    StatusCode::METHOD_NOT_ALLOWED,
                    "method_not_allowed",
                    Value::Null,
                );
            }
            ApiError::NotEnabled { .. } => {
                return (StatusCode::FORBIDDEN, "not_enabled", Value::Null);
            }
            ApiError::Unauthorized => {
                return (StatusCode::UNAUTHORIZED, "unauthorized", Value::Null);
            }
            ApiError::Rejected(why) => return (why.status(), why.code(), Value::Null),
            ApiError::NoSuchOption { option } => {
                return (
                    StatusCode::NOT_FOUND,
                    "no_such_option",
                    json!({ "option": option }),
                );
            }
            ApiError::TooLarge => return (StatusCode::PAYLOAD_TOO_LARGE, "too_large", Value::Null),
            ApiError::Internal => {
                return (StatusCode::INTERNAL_SERVER_ERROR, "internal", Value::Null);
            }
            ApiError::Engine(error) => error,
        };
        of_engine(error)
    }
}

/// The status, code and details of an error of the engine.
fn of_engine(error: &Error) -> (StatusCode, &'static str, Value) {
    let conflict = StatusCode::CONFLICT;
    let (status, details) = match error {
        Error::NoSuchJob { id } | Error::NoSuchRecurring { id } => {
            (StatusCode::NOT_FOUND, json!({ "id": id }))
        }
        Error::TooMany { what: QUEUES, .. } => {
            (StatusCode::BAD_REQUEST, json!({ "field": "queue" }))
        }
        Error::TooMany { .. } | Error::BadOption { .. } | Error::BadToken(_) => {
            (StatusCode::BAD_REQUEST, json!({ "field": "data" }))
        }
        Error::NotDepending { id, state, .. }
        | Error::NotRunning { id, state, .. }
        | Error::NotFailed { id, state } => {
            (conflict, json!({ "id": id, "state": state.as_str() }))
        }
        Error::WrongWorker { id, worker } => (conflict, json!({ "id": id, "worker": worker })),
        Error::WrongQueue { id, queue } => (conflict, json!({ "id": id, "queue": queue })),
        Error::HasDependents { id, dependents } => {
            (conflict, json!({ "id": id, "dependents": dependents }))
        }
        Error::AlreadyComplete { id } | Error::DependencyCycle { id } => {
            (conflict, json!({ "id": id }))
        }
        Error::Full => (StatusCode::INSUFFICIENT_STORAGE, Value::Null),
        Error::ResponseTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, Value::Null),
        Error::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, Value::Null),
        Error::Busy => (Rejected::Busy.status(), Value::Null),
        // qless has no dead letters, records or grants, and checks the length of names itself. Damaged tags are not the
        // client's error.
        Error::NotDead { .. }
        | Error::NoSuchRun { .. }
        | Error::JobExists { .. }
        | Error::NoSuchQueue { .. }
        | Error::QueueExists { .. }
        | Error::LogFull { .. }
        | Error::TooMuchWork { .. }
        | Error::DamagedTags { .. }
        | Error::NameTooLong
        | Error::Oversized
        | Error::Revoked
        | Error::Store(_) => return (StatusCode::INTERNAL_SERVER_ERROR, "internal", Value::Null),
    };
    (status, error.code(), details)
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        super::response::response(Err(self), Instant::now())
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        ApiError::Engine(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_error_is_not_underestimated() {
        let long = "\"".repeat(255);
        let id = long.clone();
        let dependents = vec![long.clone(); 2_000];
        for error in [
            ApiError::bad("data", "wrong"),
            Error::NoSuchJob { id: id.clone() }.into(),
            Error::WrongWorker {
                id: id.clone(),
                worker: long.clone(),
            }
            .into(),
            Error::WrongQueue {
                id: id.clone(),
                queue: long,
            }
            .into(),
            Error::HasDependents { id, dependents }.into(),
            ApiError::NoSuchOption {
                option: "\\".repeat(255),
            },
        ] {
            let json = serde_json::to_string(&error.to_object()).unwrap();
            let (bytes, size) = (error.json_bytes(), json.len());
            assert!(size <= bytes && bytes < 2 * size + 200, "{size}, {bytes}");
        }
    }
}
