//! Relay v2, tested against its documentation and against what its own clients rely on. These tests use the real clock;
//! none requires an upper bound on time, and waits end with an event.

mod auth;
mod bodies;
mod concurrency;
mod durable;
mod enqueue;
mod errors;
mod expiry;
mod finish;
mod heartbeat;
mod isolation;
mod names;
mod next;
mod outage;
mod pair;
mod replace;
mod requeue;
mod routes;

use crate::support::Server;
use crate::support::pair::assert_consistent;
use crate::support::relay::Relay;

/// The ID of a run that does not exist.
const NO_RUN: &str = "00000000-0000-4000-8000-000000000000";

fn start() -> Server {
    Server::with(&["--no-auth"])
}

fn client(server: &Server) -> Relay {
    Relay::new(server)
}
