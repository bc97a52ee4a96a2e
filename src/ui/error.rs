//! The error of a page or an action.

use leptos::server_fn::codec::JsonEncoding;
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};

/// Why a server function failed. Each variant contains a sentence for the page.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum PageError {
    /// The requested object does not exist.
    #[error("{0}")]
    Missing(String),
    /// The user lacks the role.
    #[error("{0}")]
    Forbidden(String),
    /// The user takes too many actions.
    #[error("{0}")]
    TooMany(String),
    /// The engine cannot read or write now.
    #[error("{0}")]
    Unavailable(String),
    /// The request is malformed.
    #[error("{0}")]
    Request(String),
}

impl FromServerFnError for PageError {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        match error {
            // A field of a form is missing or malformed.
            ServerFnErrorErr::Args(why) | ServerFnErrorErr::Deserialization(why) => {
                PageError::Request(why)
            }
            other => PageError::Request(other.to_string()),
        }
    }
}
