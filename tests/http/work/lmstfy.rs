//! lmstfy: a fixed time to run, completion only.

use super::{Folder, Worker};
use crate::support::Server;
use crate::support::eventually;
use crate::support::lmstfy::Lmstfy;

const SHORT: &str = "--api lmstfy --namespace billing --queue mail --ttr 4s --kill-after 100ms";

#[tokio::test]
async fn each_job_is_acknowledged_after_its_program() {
    let (server, folder) = (Server::with(&["--no-auth"]), Folder::new());
    let lmstfy = Lmstfy::new(&server, "billing");
    let bytes = b"\x00\xffnot text\n".to_vec();
    let id = lmstfy.publish("mail?tries=3", bytes.clone()).await;
    let other = lmstfy.publish("urgent", "now").await;
    let script = r#"cat > "$DIR/$SWITCHYARD_JOB_ID"
        echo "$SWITCHYARD_API $SWITCHYARD_NAMESPACE $SWITCHYARD_QUEUE $SWITCHYARD_REMAINING_TRIES" >> "$DIR/env""#;
    let options = "--api lmstfy --namespace billing --queue urgent,mail --drain";
    Worker::start(&server, &folder, options, script)
        .ends_with(0)
        .await;
    assert_eq!(std::fs::read(folder.path(&id)).unwrap(), bytes);
    assert_eq!(folder.read(&other), "now");
    assert_eq!(
        folder.lines("env"),
        ["lmstfy billing urgent 0", "lmstfy billing mail 2"]
    );
    assert!(lmstfy.job("mail", &id).await.is_none(), "acknowledged");
}

#[tokio::test]
async fn a_failed_job_is_delivered_again_after_its_time_to_run() {
    let (server, folder) = (Server::with(&["--no-auth"]), Folder::new());
    let lmstfy = Lmstfy::new(&server, "billing");
    let id = lmstfy.publish("mail?tries=2", "x").await;
    let script = r#"echo run >> "$DIR/runs"; [ "$(wc -l < "$DIR/runs")" = 2 ]"#;
    let worker = Worker::start(&server, &folder, SHORT, script);
    lmstfy.wait_until_gone("mail", &id).await;
    worker.terminate();
    worker.ends_with(0).await;
    assert_eq!(folder.lines("runs").len(), 2);
    assert_eq!(lmstfy.dead_size("mail").await, 0);
}

#[tokio::test]
async fn a_program_is_stopped_before_the_time_to_run_ends_and_its_job_not_acknowledged() {
    let (server, folder) = (Server::with(&["--no-auth"]), Folder::new());
    let lmstfy = Lmstfy::new(&server, "billing");
    let id = lmstfy.publish("mail", "x").await;
    let script =
        r#"trap 'touch "$DIR/signaled"; exit 0' TERM; while [ -d "$DIR" ]; do sleep 0.02; done"#;
    // SIGTERM comes after 1 s. The program ends then, so SIGKILL is not due after 2 more seconds.
    let options = "--api lmstfy --namespace billing --queue mail --ttr 4s --kill-after 2s --once";
    Worker::start(&server, &folder, options, script)
        .ends_with(3)
        .await;
    assert!(folder.has("signaled"));
    let dead = async || lmstfy.dead_size("mail").await == 1;
    eventually("the job is dead-lettered", dead).await;
    assert_eq!(lmstfy.dead("mail").await.1, id);
}

#[tokio::test]
async fn the_token_of_the_namespace_is_sent() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let path = format!("http://{}/token/billing?description=test", server.address);
    let made = server
        .http
        .post(path)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let token = made["token"].as_str().unwrap();
    let lmstfy = Lmstfy::new(&server, "billing").with_token(token);
    let id = lmstfy.publish("mail", "x").await;
    let options = format!("{SHORT} --drain");
    let said = Worker::start(&server, &folder, &options, "true")
        .ends_with(1)
        .await;
    assert!(
        said.contains("server answered 401: token not found"),
        "{said}"
    );
    let file = folder.write("token", &format!("{token}\n"));
    let options = format!("{options} --token-file {file}");
    Worker::start(&server, &folder, &options, "true")
        .ends_with(0)
        .await;
    assert!(lmstfy.job("mail", &id).await.is_none());
}
