//! Relay v2, held to its document and to what its own clients rely on. Here the real clock runs: nobody asks
//! how fast, and whatever takes time is waited for.

mod apart;
mod auth;
mod beat;
mod bodies;
mod crowd;
mod durable;
mod enqueue;
mod expiry;
mod finish;
mod names;
mod next;
mod outage;
mod pair;
mod refuse;
mod replace;
mod requeue;
mod routes;

use serde_json::json;

use crate::support::Server;
use crate::support::relay::Relay;

/// The run of nobody.
const NO_RUN: &str = "00000000-0000-4000-8000-000000000000";

fn start() -> Server {
    Server::with(&["--no-auth"])
}

fn client(server: &Server) -> Relay {
    Relay::new(server)
}

/// Everything that is kept twice agrees.
async fn sound(server: &Server) {
    let found = server.anyone().get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
}
