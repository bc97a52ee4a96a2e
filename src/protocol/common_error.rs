//! Errors that Relay and Jobq report alike.

use axum::http::StatusCode;

use super::request::BodyError;
use crate::auth::Rejected;

/// Why a request failed, for reasons that do not depend on the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommonError {
    Body(BodyError),
    MethodNotAllowed,
    Unauthorized,
    Rejected(Rejected),
}

impl CommonError {
    /// The status, the code in metrics and in the log, and the message.
    pub fn describe(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            CommonError::Body(BodyError::TooLarge) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                "the request body is too large",
            ),
            CommonError::Body(BodyError::Incomplete) => (
                StatusCode::BAD_REQUEST,
                "bad_request",
                "the request body ended early",
            ),
            CommonError::Body(BodyError::TimedOut) => (
                StatusCode::BAD_REQUEST,
                "bad_request",
                "the request body did not arrive in time",
            ),
            CommonError::Body(BodyError::Busy) => CommonError::Rejected(Rejected::Busy).describe(),
            CommonError::MethodNotAllowed => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "this method is not allowed here",
            ),
            CommonError::Unauthorized => (
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "a token is required: Authorization: Bearer TOKEN",
            ),
            CommonError::Rejected(why) => (why.status(), why.code(), why.message()),
        }
    }
}
