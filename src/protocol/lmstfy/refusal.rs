//! What lmstfy's clients are told when something is not done.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::auth::Rejected;
use crate::engine::Error;
use crate::protocol::request::NotText;

/// Why a request is refused.
#[derive(Debug)]
pub enum Refusal {
    /// A parameter or a body, with the words that the document or the original has for it.
    Bad(&'static str),
    NoToken,
    WrongToken,
    /// The token names a pool, which is not ours.
    NoSuchPool,
    NoSuchJob,
    NoJobAvailable,
    TooLarge,
    NoSuchEndpoint,
    Rejected(Rejected),
    Engine(Error),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, error) = match self {
            Refusal::Bad(what) => (StatusCode::BAD_REQUEST, what),
            Refusal::NoToken => (StatusCode::UNAUTHORIZED, "token not found"),
            Refusal::WrongToken | Refusal::Engine(Error::Revoked) => {
                (StatusCode::UNAUTHORIZED, "invalid token")
            }
            Refusal::NoSuchPool => (StatusCode::NOT_FOUND, "pool not found"),
            Refusal::NoSuchJob => (StatusCode::NOT_FOUND, "job not found"),
            Refusal::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "body too large"),
            Refusal::NoSuchEndpoint => (StatusCode::NOT_FOUND, "api not found"),
            Refusal::Rejected(why) => (why.status(), why.message()),
            // Under another name than all others (document, Consume jobs).
            Refusal::NoJobAvailable => {
                let body = Json(json!({ "msg": "no job available" }));
                return (StatusCode::NOT_FOUND, body).into_response();
            }
            Refusal::Engine(Error::ResponseTooLarge) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "response too large")
            }
            Refusal::Engine(Error::Unavailable) => {
                let body = Json(json!({ "error": "the database is unreachable; try again" }));
                let later = [("retry-after", "1")];
                return (StatusCode::SERVICE_UNAVAILABLE, later, body).into_response();
            }
            Refusal::Engine(Error::Full) => (StatusCode::INSUFFICIENT_STORAGE, "the disk is full"),
            Refusal::Engine(error) => {
                tracing::error!(%error, "an lmstfy request failed");
                (StatusCode::INTERNAL_SERVER_ERROR, "internal error")
            }
        };
        (status, Json(json!({ "error": error }))).into_response()
    }
}

impl From<NotText> for Refusal {
    fn from(what: NotText) -> Self {
        Refusal::Bad(what.told())
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Engine(error)
    }
}
