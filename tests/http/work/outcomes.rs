//! What exit codes, signals and time limits mean for the job.

use serde_json::json;

use super::{Folder, Worker};
use crate::support::Server;
use crate::support::eventually;

#[tokio::test]
async fn exit_codes_complete_retry_and_fail() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    for (id, code) in [("done", 0), ("again", 75), ("broken", 7)] {
        client.add("mail", json!({"id": id, "meta": code})).await;
    }
    let script = r#"read code; echo "first line" >&2; echo "code $code" >&2; exit "$code""#;
    let options = "--queue mail --concurrency 3 --drain";
    Worker::start(&server, &folder, options, script)
        .ends_with(3)
        .await;
    assert_eq!(client.state("done").await, "complete");
    let again = client.job("again").await;
    assert_eq!(again["state"], "scheduled", "after --retry-delay");
    assert_eq!(
        (&again["retries"], &again["remaining"]),
        (&json!(5), &json!(4))
    );
    let broken = client.job("broken").await;
    assert_eq!(broken["state"], "failed");
    assert_eq!(broken["failure"]["group"], "exit-7");
    assert_eq!(broken["failure"]["message"], "first line\ncode 7");
}

#[tokio::test]
async fn the_meaning_of_exit_codes_and_the_group_can_be_chosen() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    for (id, code) in [("bad", 65), ("other", 7)] {
        client.add("mail", json!({"id": id, "meta": code})).await;
    }
    let script = r#"read code; echo "KeyError: x" >&2; exit "$code""#;
    let options =
        "--queue mail --drain --fail-code 65,66 --retry-delay 1h --group-pattern (\\w+Error):";
    Worker::start(&server, &folder, options, script)
        .ends_with(3)
        .await;
    assert_eq!(client.job("bad").await["failure"]["group"], "KeyError");
    assert_eq!(client.state("other").await, "scheduled");
    client
        .add("mail", json!({"id": "seven", "meta": 7, "retries": 0}))
        .await;
    let options = "--queue mail --drain --retry-code 7 --group-pattern (\\w+Error):";
    Worker::start(&server, &folder, options, script)
        .ends_with(3)
        .await;
    // Without retries left, a retry is a failure.
    let seven = client.job("seven").await;
    assert_eq!(
        (&seven["state"], &seven["failure"]["group"]),
        (&json!("failed"), &json!("KeyError"))
    );
    assert_eq!(seven["failure"]["message"], "KeyError: x");
}

#[tokio::test]
async fn a_program_that_a_signal_ends_fails_its_job() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a"]).await;
    Worker::start(&server, &folder, "--queue mail --once", "kill -KILL $$")
        .ends_with(3)
        .await;
    let failure = &client.job("a").await["failure"];
    assert_eq!(failure["group"], "signal-9");
    assert_eq!(failure["message"], "the program was ended by signal 9");
}

#[tokio::test]
async fn a_program_over_its_time_limit_is_stopped_with_its_children() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a"]).await;
    // Neither the shell nor its child, which ignores SIGTERM from its start, ends then. The shell starts no program to
    // record the signal, because SIGKILL follows.
    let script = r#"trap '' TERM
        while [ -d "$DIR" ]; do sleep 0.02; done &
        echo $! > "$DIR/child"
        trap ': > "$DIR/signaled"' TERM
        while [ -d "$DIR" ]; do sleep 0.02; done"#;
    let options = "--queue mail --once --time-limit 2s --kill-after 1s";
    Worker::start(&server, &folder, options, script)
        .ends_with(3)
        .await;
    assert!(folder.has("signaled"), "SIGTERM comes first");
    let stat = format!("/proc/{}/stat", folder.read("child").trim());
    let has_ended =
        async || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z"));
    eventually("its child has ended", has_ended).await;
    let failure = client.job("a").await["failure"].take();
    assert_eq!(failure["group"], "time-limit");
    assert_eq!(
        failure["message"],
        "the program exceeded its time limit of 2 s"
    );
    let options = "--queue mail --once --time-limit 100ms --kill-after 100ms --retry-code 124";
    client.add_ids("mail", &["b"]).await;
    Worker::start(&server, &folder, options, "sleep 60")
        .ends_with(3)
        .await;
    assert_eq!(
        client.state("b").await,
        "scheduled",
        "124 is the code of a time limit"
    );
}

#[tokio::test]
async fn only_the_end_of_long_output_is_kept() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a"]).await;
    let script = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf '%0100d\\n' $i >&2; done; echo end >&2; exit 1";
    Worker::start(&server, &folder, "--queue mail --once --quiet", script)
        .ends_with(3)
        .await;
    let job = client.job("a").await;
    let message = job["failure"]["message"].as_str().unwrap();
    assert!(message.ends_with("300\nend"), "{message}");
    assert!(
        (16_000..=16_384).contains(&message.len()),
        "{}",
        message.len()
    );
}

#[tokio::test]
async fn a_background_process_does_not_delay_the_outcome() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a"]).await;
    // It keeps the pipes open.
    let script = r#"(while [ -d "$DIR" ]; do sleep 0.05; done) & exit 0"#;
    Worker::start(&server, &folder, "--queue mail --once", script)
        .ends_with(0)
        .await;
    assert_eq!(client.state("a").await, "complete");
}
