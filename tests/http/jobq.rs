//! Jobq, tested against its documentation and the decisions where the documentation is silent. These tests use the real
//! clock; none requires an upper bound on time.

mod alone;
mod auth;
mod bodies;
mod concurrency;
mod docs;
mod durable;
mod events;
mod grammar;
mod injection;
mod isolation;
mod jobs;
mod model;
mod oracle;
mod outage;
mod pages;
mod pair;
mod polls;
mod query;
mod queues;
mod routes;
mod selection;
mod states;

use crate::support::Server;
use crate::support::jobq::Jobq;
use crate::support::pair::assert_consistent;

fn start() -> Server {
    Server::with(&["--no-auth"])
}

fn client(server: &Server) -> Jobq {
    Jobq::new(server)
}

/// A server with a queue `q`.
async fn start_with_queue() -> (Server, Jobq) {
    let server = start();
    let jobq = client(&server);
    jobq.create("q").await;
    (server, jobq)
}
