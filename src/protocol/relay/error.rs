//! Relay's errors: a status, and a message in plain text.

use axum::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::auth::Rejected;
use crate::engine::Error;
use crate::protocol::common_error::CommonError;
use crate::protocol::request::UriError;
use crate::request::ErrorCode;

/// Why a request failed.
#[derive(Debug)]
pub enum ApiError {
    /// A syntax error.
    Bad(String),
    /// A wrong type, range or length.
    Unprocessable(String),
    /// The content type of the body is not JSON.
    NotJson,
    NoSuchJob,
    NoSuchEndpoint,
    Common(CommonError),
    Engine(Error),
}

/// The body of the response to an unknown path.
const ENDPOINTS: &str = "\
no such endpoint; the endpoints are
POST   /v2/queues/jobs
GET    /v2/queues/{queue}/jobs
GET    /v2/queues/{queue}/jobs/{id}
HEAD   /v2/queues/{queue}/jobs/{id}
DELETE /v2/queues/{queue}/jobs/{id}
PATCH  /v2/queues/{queue}/jobs/{id}/run-id/{run_id}
PUT    /v2/queues/{queue}/jobs/{id}/run-id/{run_id}
DELETE /v2/queues/{queue}/jobs/{id}/run-id/{run_id}
";

impl ApiError {
    /// The code in metrics and in the log.
    fn code(&self) -> &'static str {
        match self {
            ApiError::Bad(_) | ApiError::Unprocessable(_) => "bad_request",
            ApiError::NotJson => "not_json",
            ApiError::NoSuchJob => "no_such_job",
            ApiError::NoSuchEndpoint => "no_such_endpoint",
            ApiError::Common(error) => error.describe().1,
            ApiError::Engine(error) => error.code(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (api, code) = ("relay", self.code());
        (Extension(ErrorCode { api, code }), self.response()).into_response()
    }
}

impl ApiError {
    fn response(self) -> Response {
        let (status, text) = match self {
            ApiError::Bad(why) => (StatusCode::BAD_REQUEST, why),
            ApiError::Unprocessable(why) => (StatusCode::UNPROCESSABLE_ENTITY, why),
            ApiError::NotJson => {
                let why = "the Content-Type must be application/json".to_owned();
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, why)
            }
            // An empty body, as in the original server; clients check only the status.
            ApiError::NoSuchJob => return StatusCode::NOT_FOUND.into_response(),
            ApiError::NoSuchEndpoint => (StatusCode::NOT_FOUND, ENDPOINTS.to_owned()),
            ApiError::Common(error) => {
                let (status, _, why) = error.describe();
                (status, why.to_owned())
            }
            ApiError::Engine(error) => of_engine(&error),
        };
        (status, text).into_response()
    }
}

fn of_engine(error: &Error) -> (StatusCode, String) {
    let status = match error {
        Error::NoSuchJob { .. } | Error::NoSuchRun { .. } => StatusCode::NOT_FOUND,
        Error::JobExists { .. } => StatusCode::CONFLICT,
        Error::TooMany { .. } | Error::NameTooLong => StatusCode::UNPROCESSABLE_ENTITY,
        // Clients of the original server also retry after 503.
        Error::Full => StatusCode::SERVICE_UNAVAILABLE,
        // The API document's status for a request that can be retried.
        Error::Unavailable => StatusCode::TOO_MANY_REQUESTS,
        _ => {
            tracing::error!(%error, "a Relay request failed");
            let why = "internal error; see the server log".to_owned();
            return (StatusCode::INTERNAL_SERVER_ERROR, why);
        }
    };
    (status, error.to_string())
}

impl From<CommonError> for ApiError {
    fn from(error: CommonError) -> Self {
        ApiError::Common(error)
    }
}

impl From<UriError> for ApiError {
    fn from(what: UriError) -> Self {
        ApiError::Bad(what.message().to_owned())
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Busy => CommonError::Rejected(Rejected::Busy).into(),
            error => ApiError::Engine(error),
        }
    }
}
