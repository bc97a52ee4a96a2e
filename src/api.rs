//! What the dashboard asks the server for: views (`api/views.rs`, the types that pages show), server
//! functions that read (`api/read.rs`) and server functions that act (`api/act.rs`).
//!
//! A server function is three lines: who asks, call the engine's verb, turn the result into a view.
//! The addresses are fixed, so that a form on an old page still works after an update.

/// Server functions that change something, each for a plain form.
pub mod act;
/// The server's side of a server function: the engine, the answer, the way back.
pub mod desk;
/// What the server's options mean.
pub mod options;
/// Server functions that read.
pub mod read;
/// Which role what takes.
pub mod roles;
/// From the engine's types to views.
pub mod turn;
/// What pages show.
pub mod views;

use leptos::server_fn::{codec::JsonEncoding, error::FromServerFnError, error::ServerFnErrorErr};
use serde::{Deserialize, Serialize};

/// Why a server function has nothing to show.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum Trouble {
    /// What was asked for is not there.
    #[error("{0}")]
    Missing(String),
    /// It takes another role.
    #[error("{0}")]
    Forbidden(String),
    /// The engine cannot answer now.
    #[error("{0}")]
    Unavailable(String),
    /// The question was malformed, or the way to the server is broken.
    #[error("{0}")]
    Request(String),
}

impl FromServerFnError for Trouble {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        match error {
            // A field of a form that is missing or malformed.
            ServerFnErrorErr::Args(why) | ServerFnErrorErr::Deserialization(why) => {
                Trouble::Request(why)
            }
            other => Trouble::Request(other.to_string()),
        }
    }
}
