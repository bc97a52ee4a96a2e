//! Unavailable servers.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::{Folder, WAIT, Worker, command};
use crate::support::Server;
use crate::support::eventually;
use crate::support::ports::Port;

/// A server on this port and database.
fn serve(port: &Port, database: &Path) -> Server {
    let listen = format!("127.0.0.1:{}", port.number);
    Server::on(database, &["--listen", &listen])
}

fn worker(port: &Port, folder: &Folder, options: &str, script: &str) -> Worker {
    let mut command = command(folder, options, script);
    command.env(
        "SWITCHYARD_SERVER",
        format!("http://127.0.0.1:{}", port.number),
    );
    Worker::run(command)
}

#[tokio::test]
async fn a_worker_waits_for_its_server_and_survives_a_restart() {
    let (port, data, folder) = (Port::reserve(), TempDir::new().unwrap(), Folder::new());
    let database = data.path().join("jobs.db");
    let script = r#"echo "$SWITCHYARD_JOB_ID" >> "$DIR/jobs""#;
    let mut worker = worker(&port, &folder, "--queue mail", script);
    worker
        .says("cannot claim jobs: cannot connect to http://127.0.0.1:")
        .await;
    let mut server = serve(&port, &database);
    worker.says("the server is available again").await;
    server.client().add_ids("mail", &["a"]).await;
    folder.wait_for("jobs").await;
    eventually("completed", async || {
        server.client().state("a").await == "complete"
    })
    .await;
    server.kill();
    // It cannot claim jobs, or cannot report the outcome of the first one, whose response was perhaps not sent yet.
    worker.says("cannot ").await;
    let server = serve(&port, &database);
    server.client().add_ids("mail", &["b"]).await;
    eventually("completed", async || {
        server.client().state("b").await == "complete"
    })
    .await;
    worker.terminate();
    worker.ends_with(0).await;
    assert_eq!(folder.lines("jobs"), ["a", "b"]);
}

#[tokio::test]
async fn an_outcome_is_reported_when_the_server_is_back() {
    let (port, data, folder) = (Port::reserve(), TempDir::new().unwrap(), Folder::new());
    let database = data.path().join("jobs.db");
    let mut server = serve(&port, &database);
    server.client().add_ids("mail", &["a"]).await;
    let script = format!(r#"touch "$DIR/started"; {WAIT}"#);
    let mut worker = worker(&port, &folder, "--queue mail --once", &script);
    folder.wait_for("started").await;
    server.kill();
    folder.write("go", "");
    worker.says("cannot report the outcome of a job").await;
    let server = serve(&port, &database);
    worker.ends_with(0).await;
    assert_eq!(server.client().state("a").await, "complete");
}

#[tokio::test]
async fn a_program_is_stopped_when_its_lease_expires_without_a_server() {
    let (port, data, folder) = (Port::reserve(), TempDir::new().unwrap(), Folder::new());
    let database = data.path().join("jobs.db");
    let mut server = serve(&port, &database);
    let client = server.client();
    client.set("heartbeat", json!(1)).await.accepted();
    client.add_ids("mail", &["a"]).await;
    let script =
        format!(r#"trap 'touch "$DIR/signaled"; exit 0' TERM; touch "$DIR/started"; {WAIT}"#);
    let worker = worker(&port, &folder, "--queue mail --once", &script);
    folder.wait_for("started").await;
    server.kill();
    let said = worker.ends_with(3).await;
    assert!(folder.has("signaled"));
    assert!(
        said.contains("its lease expired, because the server did not respond"),
        "{said}"
    );
    let server = serve(&port, &database);
    let is_stalled = async || server.client().state("a").await == "stalled";
    eventually("another worker can have the job", is_stalled).await;
}
