//! lmstfy's errors.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::json;

use crate::auth::Rejected;
use crate::engine::{Error, QUEUES};
use crate::protocol::request::UriError;
use crate::request::ErrorCode;

/// Why a request failed.
#[derive(Debug)]
pub enum ApiError {
    /// An invalid parameter or body, with the message of the API document or of the original server.
    Bad(&'static str),
    NoToken,
    WrongToken,
    /// The token names another pool than `default`.
    NoSuchPool,
    NoSuchJob,
    NoJobAvailable,
    TooLarge,
    NoSuchEndpoint,
    Rejected(Rejected),
    Engine(Error),
}

impl ApiError {
    /// The code in metrics and in the log.
    fn code(&self) -> Option<&'static str> {
        Some(match self {
            ApiError::Bad(_) => "bad_request",
            ApiError::NoToken | ApiError::WrongToken => "unauthorized",
            ApiError::NoSuchPool => "no_such_pool",
            ApiError::NoSuchJob => "no_such_job",
            // Not an error for metrics: a consumer that finds no job.
            ApiError::NoJobAvailable => return None,
            ApiError::TooLarge => "too_large",
            ApiError::NoSuchEndpoint => "no_such_endpoint",
            ApiError::Rejected(why) => why.code(),
            ApiError::Engine(error) => error.code(),
        })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let api = "lmstfy";
        let code = self.code().map(|code| Extension(ErrorCode { api, code }));
        (code, self.response()).into_response()
    }
}

impl ApiError {
    fn response(self) -> Response {
        let (status, error) = match self {
            ApiError::Bad(what) => (StatusCode::BAD_REQUEST, what),
            ApiError::NoToken => (StatusCode::UNAUTHORIZED, "token not found"),
            ApiError::WrongToken | ApiError::Engine(Error::Revoked) => {
                (StatusCode::UNAUTHORIZED, "invalid token")
            }
            ApiError::NoSuchPool => (StatusCode::NOT_FOUND, "pool not found"),
            ApiError::NoSuchJob => (StatusCode::NOT_FOUND, "job not found"),
            ApiError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "body too large"),
            ApiError::NoSuchEndpoint => (StatusCode::NOT_FOUND, "api not found"),
            ApiError::Rejected(why) => (why.status(), why.message()),
            // Its key is `msg`, unlike that of all other errors (API document, Consume jobs).
            ApiError::NoJobAvailable => {
                let body = Json(json!({ "msg": "no job available" }));
                return (StatusCode::NOT_FOUND, body).into_response();
            }
            ApiError::Engine(Error::ResponseTooLarge) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "response too large")
            }
            ApiError::Engine(Error::Unavailable) => {
                let body = Json(json!({ "error": Error::Unavailable.to_string() }));
                let later = [("retry-after", "1")];
                return (StatusCode::SERVICE_UNAVAILABLE, later, body).into_response();
            }
            ApiError::Engine(Error::TooMany { what: QUEUES, .. }) => {
                (StatusCode::BAD_REQUEST, "too many queues")
            }
            ApiError::Engine(Error::Full) => (StatusCode::INSUFFICIENT_STORAGE, "the disk is full"),
            ApiError::Engine(error) => {
                tracing::error!(%error, "an lmstfy request failed");
                (StatusCode::INTERNAL_SERVER_ERROR, "internal error")
            }
        };
        (status, Json(json!({ "error": error }))).into_response()
    }
}

impl From<UriError> for ApiError {
    fn from(what: UriError) -> Self {
        ApiError::Bad(what.message())
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Busy => ApiError::Rejected(Rejected::Busy),
            error => ApiError::Engine(error),
        }
    }
}
