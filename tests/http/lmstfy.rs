//! The lmstfy protocol, tested against its documentation and against what its own clients rely on. These tests use the
//! real clock; none requires an upper bound on time, and waits end with an event.

mod ack;
mod apart;
mod attributes;
mod bulk;
mod consume;
mod crowd;
mod dead;
mod durable;
mod expiry;
mod look;
mod model;
mod names;
mod numbers;
mod pair;
mod publish;
mod routes;
mod tokens;
mod turns;
mod wait;
mod wire;

use serde_json::json;

use crate::support::Server;
use crate::support::lmstfy::Lmstfy;

/// A server that requires no token.
fn start() -> Server {
    Server::with(&["--no-auth"])
}

/// A client for the namespace `ns`.
fn client(server: &Server) -> Lmstfy {
    Lmstfy::new(server, "ns")
}

/// Runs the consistency check.
async fn assert_consistent(server: &Server) {
    let found = server.anyone().get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
}
