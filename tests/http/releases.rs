//! Large dependents of a completed job are released in several transactions.

use std::cell::Cell;
use std::path::Path;
use std::pin::pin;

use futures::future::{Either, select};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::check::run_statement;
use crate::support::{Server, database, eventually};

const LEAVES: usize = 200;

/// A server with a running job, and jobs with long histories that depend on it.
async fn server_with_leaves(path: &Path) -> Server {
    let server = Server::at_url(&database::address(path), &[]);
    let worker = server.by("w");
    worker.add("work", json!({"id": "need", "meta": 1})).await;
    let leaf = |n| json!({"id": format!("leaf{n}"), "meta": 1, "depends": ["need"]});
    let leaves = (0..LEAVES).map(leaf).collect::<Vec<_>>();
    let added = worker.post("/add/leaves", leaves.into()).await.ok();
    assert_eq!(added.as_array().unwrap().len(), LEAVES);
    // The history of a job is up to 1 MiB long.
    let lengthen = match database::postgres() {
        Some(_) => {
            "UPDATE jobs SET history = '[[\"note\",1,\"' || repeat('00', 250000) || '\",null]]' WHERE state = 3"
        }
        None => {
            "UPDATE jobs SET history = '[[\"note\",1,\"' || hex(zeroblob(250000)) || '\",null]]' WHERE state = 3"
        }
    };
    run_statement(path, lengthen).await;
    assert_eq!(worker.pop("work").await["id"], "need");
    server
}

async fn ids(server: &Server, list: &str) -> usize {
    let found = server.client().get(list).await.ok();
    found.as_array().map_or(0, Vec::len)
}

async fn waiting(server: &Server) -> Value {
    let queue = server.client().get("/queue/leaves").await.ok();
    queue["waiting"].clone()
}

#[tokio::test]
async fn other_requests_run_while_large_dependents_are_released() {
    let folder = TempDir::new().unwrap();
    let server = server_with_leaves(&folder.path().join("jobs.db")).await;
    let worker = server.by("w");
    // Begun after the first releases, and answered before the completion.
    let puts_meanwhile = Cell::new(0);
    let puts = async {
        loop {
            if waiting(&server).await != json!(0) {
                worker.add("beside", json!({"meta": 1})).await;
                puts_meanwhile.set(puts_meanwhile.get() + 1);
            }
        }
    };
    let complete = worker.complete("work", "need");
    let is_complete = matches!(select(pin!(complete), pin!(puts)).await, Either::Left(_));
    assert!(is_complete, "the puts have no end");
    // The release is about 25 transactions.
    assert!(puts_meanwhile.get() > 0);
    assert_eq!(waiting(&server).await, json!(LEAVES));
    assert_eq!(ids(&server, "/jobs/depends/leaves").await, 0);
    let problems = server.client().get("/check").await.ok();
    assert_eq!(problems["problems"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_is_killed_releases_the_other_dependents_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.db");
    let mut server = server_with_leaves(&path).await;
    {
        let worker = server.by("w");
        let some = async {
            while ids(&server, "/peek/leaves/2").await == 0 {
                tokio::task::yield_now().await;
            }
        };
        let complete = worker.complete("work", "need");
        select(pin!(complete), pin!(some)).await;
    }
    server.kill();
    let server = Server::at_url(&database::address(&path), &[]);
    let all = async || waiting(&server).await == json!(LEAVES);
    eventually("all dependents are released", all).await;
    assert_eq!(server.client().state("need").await, "complete");
    let problems = server.client().get("/check").await.ok();
    assert_eq!(problems["problems"], json!([]));
    server.stop().await;
}
