//! Jobq's errors: a status, and an object with a message.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Value, json};

use crate::auth::Rejected;
use crate::engine::Error;
use crate::protocol::common_error::CommonError;
use crate::protocol::request::UriError;
use crate::query;
use crate::request::ErrorCode;

/// Why a request failed.
#[derive(Debug)]
pub enum ApiError {
    Bad(String),
    /// A syntax error in the query, with its position.
    BadQuery(query::QueryError),
    NotFound(&'static str),
    NoSuchEndpoint,
    Common(CommonError),
    Engine(Error),
}

impl ApiError {
    /// The code in metrics and in the log.
    fn code(&self) -> &'static str {
        match self {
            ApiError::Bad(_) => "bad_request",
            ApiError::BadQuery(_) => "bad_query",
            ApiError::NotFound(_) => "not_found",
            ApiError::NoSuchEndpoint => "no_such_endpoint",
            ApiError::Common(error) => error.describe().1,
            ApiError::Engine(error) => error.code(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (api, code) = ("jobq", self.code());
        (Extension(ErrorCode { api, code }), self.response()).into_response()
    }
}

impl ApiError {
    fn response(self) -> Response {
        let (status, error) = match self {
            ApiError::Bad(why) => (StatusCode::BAD_REQUEST, why),
            ApiError::BadQuery(error) => {
                let body = json!({ "error": error.to_string(), "at": position(&error) });
                return (StatusCode::BAD_REQUEST, Json(body)).into_response();
            }
            ApiError::NotFound(why) => (StatusCode::NOT_FOUND, why.to_owned()),
            ApiError::NoSuchEndpoint => (StatusCode::NOT_FOUND, "api not found".to_owned()),
            ApiError::Common(error) => {
                let (status, _, why) = error.describe();
                (status, why.to_owned())
            }
            ApiError::Engine(Error::Unavailable) => {
                let body = Json(json!({ "error": Error::Unavailable.to_string() }));
                let later = [("retry-after", "1")];
                return (StatusCode::SERVICE_UNAVAILABLE, later, body).into_response();
            }
            ApiError::Engine(error) => of_engine(&error),
        };
        (status, Json(json!({ "error": error }))).into_response()
    }
}

/// The position in the query: the index of the term, the index of its element, and the column in its text.
fn position(error: &query::QueryError) -> Value {
    json!({ "term": error.term, "place": error.part, "column": error.column })
}

fn of_engine(error: &Error) -> (StatusCode, String) {
    let status = match error {
        Error::NoSuchQueue { .. } | Error::NoSuchJob { .. } => StatusCode::NOT_FOUND,
        Error::QueueExists { .. } => StatusCode::CONFLICT,
        Error::Full => StatusCode::INSUFFICIENT_STORAGE,
        Error::LogFull { .. }
        | Error::TooMany { .. }
        | Error::TooMuchWork { .. }
        | Error::ResponseTooLarge => StatusCode::UNPROCESSABLE_ENTITY,
        _ => {
            tracing::error!(%error, "a Jobq request failed");
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
        match what {
            // Names are valid UTF-8, so no resource has this name.
            UriError::Path => ApiError::NotFound(what.message()),
            UriError::Query | UriError::TooManyParameters => {
                ApiError::Bad(what.message().to_owned())
            }
        }
    }
}

impl From<query::QueryError> for ApiError {
    fn from(error: query::QueryError) -> Self {
        ApiError::BadQuery(error)
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
