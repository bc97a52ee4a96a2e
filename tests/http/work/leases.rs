//! Heartbeats, and jobs whose lease is lost.

use serde_json::json;

use super::{Folder, WAIT, Worker};
use crate::support::Server;
use crate::support::eventually;

async fn with_leases(seconds: u32) -> Server {
    let server = Server::with(&[]);
    let set = server.client().set("heartbeat", json!(seconds)).await;
    set.accepted();
    server
}

#[tokio::test]
async fn heartbeats_extend_the_lease_while_the_program_runs() {
    // Long enough that a worker on a busy machine sends its heartbeats in time.
    const LEASE_S: u32 = 3;
    let (server, folder) = (with_leases(LEASE_S).await, Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a"]).await;
    let worker = Worker::start(&server, &folder, "--queue mail --once", WAIT);
    eventually("the job runs", async || {
        client.state("a").await == "running"
    })
    .await;
    let expires = async || {
        client.job("a").await["expires"]
            .as_f64()
            .unwrap_or_default()
    };
    let first = expires().await;
    let extended = async || expires().await > first + f64::from(LEASE_S);
    eventually("heartbeats", extended).await;
    folder.write("go", "");
    worker.ends_with(0).await;
    assert_eq!(client.state("a").await, "complete");
}

/// Records the signal to end for the test, and ignores it. Starts no program for that, because SIGKILL follows.
const STUBBORN: &str = r#"trap ': > "$DIR/signaled"' TERM
    touch "$DIR/started"
    while [ -d "$DIR" ]; do sleep 0.02; done"#;

/// A worker that runs a stubborn program for the job `a` of the queue `mail`.
async fn stubborn_job() -> (Server, Folder, Worker) {
    let (server, folder) = (with_leases(1).await, Folder::new());
    server.client().add_ids("mail", &["a"]).await;
    let options = "--queue mail --once --kill-after 2s";
    let worker = Worker::start(&server, &folder, options, STUBBORN);
    folder.wait_for("started").await;
    (server, folder, worker)
}

#[tokio::test]
async fn the_program_of_a_job_that_another_worker_got_is_stopped_and_not_completed() {
    let (server, folder, worker) = stubborn_job().await;
    let client = server.client();
    client.post("/timeout", json!("a")).await.accepted();
    // The lease of the other worker does not end during the test.
    client.set("heartbeat", json!(600)).await.accepted();
    assert_eq!(server.by("w2").pop("mail").await["id"], "a");
    let said = worker.ends_with(3).await;
    assert!(folder.has("signaled"), "SIGTERM comes before SIGKILL");
    assert!(said.contains("lost a job"), "{said}");
    server
        .by("w2")
        .post("/heartbeat", json!("a"))
        .await
        .accepted();
    let job = client.job("a").await;
    assert_eq!(
        (&job["state"], &job["worker"]),
        (&json!("running"), &json!("w2"))
    );
}

#[tokio::test]
async fn the_program_of_a_canceled_job_is_stopped() {
    let (server, folder, worker) = stubborn_job().await;
    let client = server.client();
    client.post("/cancel", json!("a")).await.accepted();
    worker.ends_with(3).await;
    assert!(folder.has("signaled"));
}

#[tokio::test]
async fn a_job_that_comes_back_to_its_worker_does_not_run_twice_at_once() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a"]).await;
    // The first run ignores SIGTERM; the second one ends at once.
    let script = r#"if mkdir "$DIR/first" 2> /dev/null; then
            trap '' TERM
            echo $$ > "$DIR/process"
            touch "$DIR/started"
            while [ -d "$DIR" ]; do sleep 0.02; done
        fi
        kill -0 "$(cat "$DIR/process")" 2> /dev/null && touch "$DIR/both""#;
    let script = format!("{script}; exit 0");
    let options = "--queue mail --concurrency 2 --kill-after 100ms --name w1";
    let worker = Worker::start(&server, &folder, options, &script);
    folder.wait_for("started").await;
    // The worker has a free slot, so it gets the job again; its heartbeats would still be accepted.
    client.post("/timeout", json!("a")).await.accepted();
    eventually("completed", async || client.state("a").await == "complete").await;
    worker.terminate();
    let said = worker.ends_with(0).await;
    assert!(said.contains("this worker has claimed it again"), "{said}");
    assert!(
        !folder.has("both"),
        "the first program ended before the second one started"
    );
    let job = client.job("a").await;
    let done = job["history"].as_array().unwrap().iter();
    assert_eq!(done.filter(|event| event["what"] == "done").count(), 1);
}
