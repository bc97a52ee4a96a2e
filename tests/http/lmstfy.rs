//! The lmstfy interface, held to its document and to what its own clients rely on. Here the real clock
//! runs: nobody asks how fast, and whatever takes time is waited for.

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

/// A server that asks for no token.
fn start() -> Server {
    Server::with(&["--no-auth"])
}

/// Someone who works in the namespace `ns` of the server.
fn client(server: &Server) -> Lmstfy {
    Lmstfy::new(server, "ns")
}

/// Everything that is kept twice agrees.
async fn sound(server: &Server) {
    let found = server.anyone().get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
}
