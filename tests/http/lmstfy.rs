//! The lmstfy protocol, tested against its documentation and against what its own clients rely on. These tests use the
//! real clock. Waits end with an event. Tests with short times repeat themselves if the machine was too slow.

mod ack;
mod attributes;
mod bulk;
mod concurrency;
mod consume;
mod dead;
mod delays_and_tries;
mod durable;
mod expiry;
mod isolation;
mod model;
mod names;
mod numbers;
mod pair;
mod peek;
mod publish;
mod routes;
mod tokens;
mod wait;
mod wire;

use crate::support::Server;
use crate::support::lmstfy::Lmstfy;
use crate::support::pair::assert_consistent;

/// A server that requires no token.
fn start() -> Server {
    Server::with(&["--no-auth"])
}

/// A client for the namespace `ns`.
fn client(server: &Server) -> Lmstfy {
    Lmstfy::new(server, "ns")
}
