//! qless: input, environment, several queues, the end of the work.

use serde_json::json;

use super::{Folder, WAIT, Worker};
use crate::support::{Server, meta_text};

#[tokio::test]
async fn each_job_runs_the_program_with_its_payload_and_is_completed() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    let payload = r#"{"to": "ada@example.com",  "n": 1.50, "big": 10000000000000000000001}"#;
    let body = format!(
        r#"{{"data": {{"id": "a", "klass": "Mail", "tags": ["x", "y"], "meta": {payload}}}}}"#
    );
    let added = server.send(reqwest::Method::POST, "/add/mail", Some(body));
    added.await.accepted();
    client.add("mail", json!({"id": "b", "meta": "text"})).await;
    let script = r#"cat > "$DIR/$SWITCHYARD_JOB_ID"
        echo "$SWITCHYARD_API $SWITCHYARD_QUEUE $SWITCHYARD_ATTEMPT $SWITCHYARD_KLASS $SWITCHYARD_TAGS" > "$DIR/env-$SWITCHYARD_JOB_ID""#;
    let worker = Worker::start(
        &server,
        &folder,
        "--queue mail --concurrency 2 --drain",
        script,
    );
    worker.ends_with(0).await;
    assert_eq!(folder.read("a"), payload, "byte for byte");
    assert_eq!(folder.read("b"), "\"text\"");
    assert_eq!(folder.read("env-a"), "qless mail 1 Mail x,y\n");
    for id in ["a", "b"] {
        assert_eq!(client.state(id).await, "complete");
    }
    let completed = client.get("/job/a").await;
    assert_eq!(
        meta_text(completed.results_text()),
        payload,
        "byte for byte"
    );
}

#[tokio::test]
async fn the_whole_job_or_an_environment_variable_can_be_the_input() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client
        .add("mail", json!({"id": "a", "meta": {"n": 1}}))
        .await;
    let script = r#"cat > "$DIR/job""#;
    Worker::start(&server, &folder, "--queue mail --once --json", script)
        .ends_with(0)
        .await;
    let job: serde_json::Value = serde_json::from_str(&folder.read("job")).unwrap();
    assert_eq!((&job["id"], &job["meta"]["n"]), (&json!("a"), &json!(1)));
    client
        .add("mail", json!({"id": "b", "meta": {"n": 2}}))
        .await;
    let script = r#"cat > "$DIR/stdin"; echo "$SWITCHYARD_PAYLOAD" > "$DIR/payload""#;
    Worker::start(&server, &folder, "--queue mail --once --env", script)
        .ends_with(0)
        .await;
    assert_eq!(
        (folder.read("stdin"), folder.read("payload")),
        (String::new(), "{\"n\":2}\n".to_owned())
    );
    let large = "x".repeat(128 << 10);
    client.add("mail", json!({"id": "c", "meta": large})).await;
    Worker::start(&server, &folder, "--queue mail --once --env", script)
        .ends_with(3)
        .await;
    assert_eq!(client.job("c").await["failure"]["group"], "payload");
}

#[tokio::test]
async fn a_program_need_not_read_its_input() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    // More than a pipe holds.
    client
        .add("mail", json!({"id": "a", "meta": "x".repeat(1 << 20)}))
        .await;
    Worker::start(&server, &folder, "--queue mail --once", "true")
        .ends_with(0)
        .await;
    assert_eq!(client.state("a").await, "complete");
}

#[tokio::test]
async fn queues_are_used_in_their_order() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("low", &["l1", "l2"]).await;
    client.add_ids("high", &["h1", "h2"]).await;
    let script = r#"echo "$SWITCHYARD_JOB_ID" >> "$DIR/order""#;
    Worker::start(&server, &folder, "--queue high,low --drain", script)
        .ends_with(0)
        .await;
    assert_eq!(folder.lines("order"), ["h1", "h2", "l1", "l2"]);
    client.add_ids("low", &["l3", "l4"]).await;
    client.add_ids("high", &["h3", "h4"]).await;
    let options = "--queue high --queue low --order round-robin --drain";
    Worker::start(&server, &folder, options, script)
        .ends_with(0)
        .await;
    assert_eq!(folder.lines("order").split_off(4), ["h3", "l3", "h4", "l4"]);
}

#[tokio::test]
async fn as_many_programs_run_at_once_as_the_concurrency_says() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    server.client().add_ids("mail", &["a", "b", "c"]).await;
    // Each of the first two waits for the other, so both must run at once.
    let script = format!(r#"touch "$DIR/$SWITCHYARD_JOB_ID"; {WAIT}"#);
    let worker = Worker::start(
        &server,
        &folder,
        "--queue mail --concurrency 2 --drain",
        &script,
    );
    folder.wait_for("a").await;
    folder.wait_for("b").await;
    assert_eq!(server.client().get("/queue/mail").await.ok()["running"], 2);
    assert!(!folder.has("c"), "a third program does not run");
    folder.write("go", "");
    worker.ends_with(0).await;
    assert!(folder.has("c"));
}

#[tokio::test]
async fn once_ends_after_one_job_and_waits_for_it() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    let worker = Worker::start(&server, &folder, "--queue mail --once --name w1", "true");
    crate::support::eventually("the worker asks", async || {
        let workers = client.get("/workers").await.ok();
        workers
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["name"] == "w1")
    })
    .await;
    client.add_ids("mail", &["a", "b"]).await;
    worker.ends_with(0).await;
    assert_eq!(client.state("a").await, "complete");
    assert_eq!(client.state("b").await, "waiting");
    // Together with --drain, it does not wait.
    for _ in 0..2 {
        let worker = Worker::start(&server, &folder, "--queue mail --once --drain", "true");
        worker.ends_with(0).await;
    }
    assert_eq!(client.state("b").await, "complete");
}

#[tokio::test]
async fn a_dry_run_shows_the_next_jobs_and_claims_none() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a", "b", "c"]).await;
    let options = "--queue mail,other --concurrency 2 --dry-run";
    let worker = Worker::start(&server, &folder, options, r#"touch "$DIR/ran""#);
    let (code, output) = worker.ended().await;
    assert_eq!(code, 0);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, "mail\ta\t4 bytes\nmail\tb\t4 bytes\n");
    assert!(!folder.has("ran"));
    assert_eq!(client.state("a").await, "waiting");
}

#[tokio::test]
async fn output_of_programs_is_passed_on_unless_quiet() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    for (option, is_passed) in [("", true), ("--quiet", false)] {
        server.client().add_ids("mail", &["a"]).await;
        let options = format!("--queue mail --once {option}");
        let script = "echo to-stdout; echo to-stderr >&2";
        let (code, output) = Worker::start(&server, &folder, &options, script)
            .ended()
            .await;
        assert_eq!(code, 0);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&output.stdout) == "to-stdout\n", is_passed);
        assert_eq!(text(&output.stderr).contains("to-stderr"), is_passed);
    }
}
