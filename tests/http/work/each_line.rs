//! `--each-line`: one program that handles many jobs.

use serde_json::{Value, json};

use super::{Folder, Worker};
use crate::support::Server;

#[tokio::test]
async fn one_program_gets_many_jobs() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    for (id, response) in [
        ("a", "complete"),
        ("b", "fail no such user"),
        ("c", "retry"),
        ("d", "complete"),
    ] {
        client
            .add("mail", json!({"id": id, "meta": response}))
            .await;
    }
    let script = r#"echo start >> "$DIR/starts"
        while read -r line; do
            printf '%s\n' "$line" >> "$DIR/lines"
            meta="${line#*\"meta\":\"}"; echo "${meta%%\"*}"
        done
        echo end >> "$DIR/starts""#;
    let options = "--queue mail --each-line --drain --retry-delay 1h";
    Worker::start(&server, &folder, options, script)
        .ends_with(3)
        .await;
    assert_eq!(
        folder.lines("starts"),
        ["start", "end"],
        "its input was closed"
    );
    let lines = folder.lines("lines");
    let first: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        (&first["queue"], &first["id"], &first["attempt"]),
        (&json!("mail"), &json!("a"), &json!(1))
    );
    assert_eq!(first["job"]["meta"], "complete");
    for (id, state) in [
        ("a", "complete"),
        ("b", "failed"),
        ("c", "scheduled"),
        ("d", "complete"),
    ] {
        assert_eq!(client.state(id).await, state, "{id}");
    }
    let failure = client.job("b").await["failure"].take();
    assert_eq!(
        (&failure["group"], &failure["message"]),
        (&json!("program"), &json!("no such user"))
    );
}

#[tokio::test]
async fn a_second_answer_is_not_that_of_the_next_job() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a", "b"]).await;
    let script = r#"while read -r line; do
            case "$line" in
            *'"id":"a"'*) printf 'complete\ncomplete\n' ;;
            *) echo fail ;;
            esac
        done"#;
    let options = "--queue mail --each-line --drain";
    Worker::start(&server, &folder, options, script)
        .ends_with(3)
        .await;
    let states = [client.state("a").await, client.state("b").await];
    assert_eq!(states, ["complete", "failed"]);
}

#[tokio::test]
async fn a_program_that_ends_or_answers_something_else_is_started_again() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a", "b", "c", "d"]).await;
    let script = r#"echo start >> "$DIR/starts"
        read -r line
        case "$line" in
            *'"id":"a"'*) echo what ;;
            *'"id":"b"'*) echo broken >&2; exit 7 ;;
            *'"id":"c"'*) exit 0 ;;
            *) echo complete ;;
        esac
        read -r line; exit 0"#;
    Worker::start(&server, &folder, "--queue mail --each-line --drain", script)
        .ends_with(3)
        .await;
    assert_eq!(folder.lines("starts").len(), 4);
    for (id, group) in [("a", "no-answer"), ("b", "exit-7"), ("c", "no-answer")] {
        assert_eq!(client.job(id).await["failure"]["group"], group, "{id}");
    }
    assert_eq!(client.job("b").await["failure"]["message"], "broken");
    assert_eq!(client.state("d").await, "complete");
}

#[tokio::test]
async fn a_program_over_its_time_limit_is_replaced() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    let client = server.client();
    client.add_ids("mail", &["a", "b"]).await;
    let script = r#"while read -r line; do
            case "$line" in
                *'"id":"a"'*) while [ -d "$DIR" ]; do sleep 0.02; done ;;
                *) echo complete ;;
            esac
        done"#;
    let options = "--queue mail --each-line --drain --time-limit 500ms";
    Worker::start(&server, &folder, options, script)
        .ends_with(3)
        .await;
    assert_eq!(client.job("a").await["failure"]["group"], "time-limit");
    assert_eq!(client.state("b").await, "complete");
}
