//! SIGTERM and SIGINT.

use serde_json::json;

use super::{Folder, WAIT, Worker};
use crate::support::eventually;
use crate::support::{Server, signal};

#[tokio::test]
async fn a_worker_without_jobs_stops_at_once() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    for name in ["TERM", "INT"] {
        let worker = Worker::start(
            &server,
            &folder,
            &format!("--queue mail --name {name}"),
            "true",
        );
        eventually("the worker asks", async || {
            let workers = server.client().get("/workers").await.ok();
            workers
                .as_array()
                .unwrap()
                .iter()
                .any(|it| it["name"] == name)
        })
        .await;
        signal(name, worker.id());
        worker.ends_with(0).await;
    }
}

#[tokio::test]
async fn programs_may_finish_within_the_grace_time() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a", "b"]).await;
    let script = format!(r#"touch "$DIR/started"; {WAIT}"#);
    let mut worker = Worker::start(&server, &folder, "--queue mail --grace 60s", &script);
    folder.wait_for("started").await;
    worker.terminate();
    // The worker has received the signal: it claims no more jobs, and its program still runs.
    let said = worker.says("no more jobs are claimed").await;
    assert!(!said.contains("handed a job back"), "{said}");
    folder.write("go", "");
    worker.ends_with(0).await;
    assert_eq!(client.state("a").await, "complete");
    assert_eq!(
        client.state("b").await,
        "waiting",
        "no more jobs are claimed"
    );
}

#[tokio::test]
async fn after_the_grace_time_programs_are_stopped_and_jobs_handed_back() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a"]).await;
    // Its exit code does not count, because it was signaled to end.
    let script = r#"trap 'touch "$DIR/signaled"; exit 0' TERM
        touch "$DIR/started"
        while [ -d "$DIR" ]; do sleep 0.02; done"#;
    let worker = Worker::start(&server, &folder, "--queue mail --grace 100ms", script);
    folder.wait_for("started").await;
    worker.terminate();
    let said = worker.ends_with(0).await;
    assert!(
        folder.has("signaled") && said.contains("handed a job back"),
        "{said}"
    );
    let job = client.job("a").await;
    assert_eq!(job["remaining"], job["retries"], "no retry was used");
    assert_eq!(
        server.by("w2").pop("mail").await["id"],
        "a",
        "it is available at once"
    );
    assert_eq!(client.job("a").await["worker"], json!("w2"));
}

#[tokio::test]
async fn a_second_signal_ends_the_grace_time() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a"]).await;
    let script = r#"touch "$DIR/started"; while [ -d "$DIR" ]; do sleep 0.02; done"#;
    let mut worker = Worker::start(&server, &folder, "--queue mail --grace 10m", script);
    folder.wait_for("started").await;
    // Signals that arrive at the same time can be merged, so they are repeated until the worker ends.
    let mut status = None;
    while status.is_none() {
        worker.terminate();
        let wait = tokio::time::timeout(super::WAIT_MAX / 100, worker.0.wait());
        status = wait.await.ok();
    }
    assert_eq!(status.unwrap().unwrap().code(), Some(0));
    assert_eq!(client.state("a").await, "stalled");
}
