//! Relay: runs, heartbeats, retries as new runs.

use serde_json::json;

use super::{Folder, WAIT, Worker};
use crate::support::Server;
use crate::support::eventually;
use crate::support::relay::{Relay, with};

#[tokio::test]
async fn each_job_is_completed_after_its_program() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let relay = Relay::new(&server);
    let fields = json!({"payload": {"n": 1.5}, "max_retries": 3, "state": [1]});
    relay
        .put(&json!([
            with("mail", "a/b", fields),
            with("urgent", "c", json!({}))
        ]))
        .await;
    let script = r#"echo "$SWITCHYARD_QUEUE $SWITCHYARD_JOB_ID $SWITCHYARD_ATTEMPT $SWITCHYARD_STATE $(cat)" >> "$DIR/jobs""#;
    let options = "--api relay --queue urgent,mail --drain";
    Worker::start(&server, &folder, options, script)
        .ends_with(0)
        .await;
    let expected = ["urgent c   null", r#"mail a/b 1 [1] {"n":1.5}"#];
    assert_eq!(folder.lines("jobs"), expected);
    assert!(!relay.exists("mail", "a/b").await && !relay.exists("urgent", "c").await);
}

#[tokio::test]
async fn a_retry_is_a_new_run_with_one_retry_less() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let relay = Relay::new(&server);
    let payload = json!({"text": "kept"});
    let fields = json!({"payload": payload, "max_retries": 2, "state": {"step": 1}, "timeout": 1});
    relay.put_with("mail", "a", fields).await;
    let script = r#"echo "$SWITCHYARD_RUN_ID" >> "$DIR/runs"; exit 1"#;
    let options = "--api relay --queue mail --retry-delay 0s --poll-interval 20ms";
    let worker = Worker::start(&server, &folder, options, script);
    // Three runs; then the lease of the last one expires, and the server dead-letters the job.
    relay.wait_until_gone("mail", "a").await;
    worker.terminate();
    worker.ends_with(0).await;
    let runs = folder.lines("runs");
    assert_eq!(runs.len(), 3);
    assert!(runs[0] != runs[1] && runs[1] != runs[2]);
    let fields = json!({"payload": payload, "max_retries": 2, "state": {"step": 1}});
    relay.put_with("mail", "b", fields).await;
    let options = "--api relay --queue mail --retry-delay 1h --once";
    Worker::start(&server, &folder, options, "exit 75")
        .ends_with(3)
        .await;
    let job = relay.existing_job("mail", "b").await;
    assert_eq!(
        (job.payload.as_str(), job.state.as_deref()),
        (r#"{"text":"kept"}"#, Some(r#"{"step":1}"#))
    );
    assert_eq!((job.retries_remaining, job.run_id), (Some(1), None));
    assert!(job.run_at > job.created_at, "after the delay");
}

#[tokio::test]
async fn heartbeats_keep_the_run_and_a_replaced_job_stops_its_program() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let relay = Relay::new(&server);
    // Long enough that a worker on a busy machine sends its heartbeats in time.
    const TIMEOUT_S: i64 = 3;
    let fields = json!({"timeout": TIMEOUT_S, "max_retries": 0});
    relay.put_with("mail", "a", fields).await;
    // The program ends when it gets SIGTERM, so SIGKILL is never due.
    let options = "--api relay --queue mail --once --kill-after 60s";
    let script = format!(r#"trap 'touch "$DIR/signaled"; exit 0' TERM; {WAIT}"#);
    let worker = Worker::start(&server, &folder, options, &script);
    let updated = async || relay.job("mail", "a").await.map(|job| job.updated_at);
    let first = updated().await.unwrap();
    let is_kept = async || {
        updated()
            .await
            .is_some_and(|at| (at - first).num_seconds() > TIMEOUT_S)
    };
    eventually("the run is longer than its timeout", is_kept).await;
    let again = json!([with("mail", "a", json!({"run_at": "2030-01-01T00:00:00Z"}))]);
    relay.enqueue("replace", &again).await.only(202);
    worker.ends_with(3).await;
    assert!(folder.has("signaled"));
    assert!(
        relay.exists("mail", "a").await,
        "the new job was not completed"
    );
}

#[tokio::test]
async fn a_job_is_handed_back_with_all_its_retries() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let relay = Relay::new(&server);
    relay.put_with("mail", "a", json!({"max_retries": 2})).await;
    let before = relay.existing_job("mail", "a").await;
    let script = format!(r#"touch "$DIR/started"; {WAIT}"#);
    let worker = Worker::start(
        &server,
        &folder,
        "--api relay --queue mail --grace 0s",
        &script,
    );
    folder.wait_for("started").await;
    worker.terminate();
    worker.ends_with(0).await;
    let job = relay.existing_job("mail", "a").await;
    assert_eq!(
        (job.retries_remaining, job.run_id, job.run_at),
        (Some(2), None, before.run_at)
    );
}

#[tokio::test]
async fn a_dry_run_explains_that_it_is_not_possible() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let relay = Relay::new(&server);
    relay.put_ids("mail", &["a"]).await;
    let worker = Worker::start(
        &server,
        &folder,
        "--api relay --queue mail --dry-run",
        "true",
    );
    let said = worker.ends_with(1).await;
    assert!(
        said.contains("Relay cannot show the next jobs without claiming them"),
        "{said}"
    );
    assert_eq!(relay.existing_job("mail", "a").await.run_id, None);
}
