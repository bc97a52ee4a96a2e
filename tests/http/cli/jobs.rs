//! Changes of jobs.

use serde_json::json;

use super::{Cli, fail_jobs};
use crate::support::Server;

#[tokio::test]
async fn jobs_are_changed_one_by_one() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    server.client().add_ids("mail", &["a", "b"]).await;
    cli.run(&["job", "tag", "red", "a", "b"]).ok();
    cli.run(&["job", "untag", "red", "b"]).ok();
    cli.run(&["job", "priority", "-2.5", "a"]).ok();
    cli.run(&["job", "move", "--to", "other", "a"]).ok();
    cli.run(&["job", "track", "a"]).ok();
    cli.run(&["job", "note", "a", "looked at it"]).ok();
    let job = &cli.run(&["job", "show", "a", "--json"]).json()[0];
    assert_eq!(
        [
            &job["tags"],
            &job["priority"],
            &job["queue"],
            &job["tracked"]
        ],
        [&json!(["red"]), &json!(-2.5), &json!("other"), &json!(true)]
    );
    let history = job["history"].as_array().unwrap();
    assert!(
        history
            .iter()
            .any(|it| it["event"] == "note" && it["subject"] == "looked at it"),
        "{job}"
    );
    cli.run(&["job", "untrack", "a"]).ok();
    server.by("w").get("/get/other").await.ok();
    cli.run(&["job", "timeout", "a"]).ok();
    assert_eq!(server.client().state("a").await, "stalled");
    let text = cli.run(&["job", "show", "a"]).ok();
    let first: Vec<&str> = text.split_whitespace().take(4).collect();
    assert_eq!(first, ["id", "a", "queue", "other"], "{text}");
    let canceled = cli.run(&["job", "cancel", "a", "--json"]).json();
    assert_eq!(
        (&canceled[0]["ok"], &canceled[0]["target"]),
        (&json!(true), &json!("a"))
    );
    cli.run(&["job", "show", "a"]).error(3);
}

#[tokio::test]
async fn ids_come_from_standard_input_and_each_is_reported() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    fail_jobs(&server, "mail", &["a", "b"], ("E", "x")).await;
    server.client().add_ids("mail", &["c"]).await;
    let ran = cli.run_with(&["job", "retry", "-", "--json"], "a\nnope\n\nc\nb\n");
    assert_eq!(ran.code, 4, "{ran:?}");
    let lines = super::lines_of_json(&ran.stdout);
    let seen: Vec<_> = lines
        .iter()
        .map(|it| (it["target"].as_str().unwrap(), it["ok"].as_bool().unwrap()))
        .collect();
    assert_eq!(
        seen,
        [("a", true), ("nope", false), ("c", false), ("b", true)]
    );
    assert!(ran.stderr.contains("error: c: "), "{ran:?}");
    assert_eq!(server.client().state("b").await, "waiting");
    let missing = cli.run_with(&["job", "retry", "-"], "nope\n");
    assert_eq!(missing.code, 3, "{missing:?}");
}

#[tokio::test]
async fn a_search_changes_all_jobs_as_an_operation_that_can_be_undone() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    let ids: Vec<String> = (0..30).map(|n| format!("job-{n}")).collect();
    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    server.client().add_ids("mail", &names).await;
    cli.run(&[
        "job",
        "tag",
        "red",
        "--search",
        "queue:mail",
        "--yes",
        "--wait",
    ])
    .ok();
    let done = cli
        .run(&[
            "job", "cancel", "--search", "tag:red", "--yes", "--wait", "--json",
        ])
        .json();
    assert_eq!(
        (&done[0]["done"], &done[0]["action"]),
        (&json!(30), &json!("cancel"))
    );
    let id = done[0]["id"].to_string();
    cli.run(&["job", "show", "job-3"]).error(3);
    cli.run(&["operation", "undo", &id]).ok();
    let undone = cli.run(&["operation", "wait", &id, "--json"]).json();
    assert_eq!(
        (&undone[0]["phase"], &undone[0]["restored"]),
        (&json!("undone"), &json!(30))
    );
    assert_eq!(server.client().state("job-3").await, "waiting");
    let listed = cli.run(&["operation", "list", "--json"]).json();
    assert_eq!(listed.len(), 2);
    let text = cli.run(&["operation", "show", &id]).ok();
    assert!(text.contains("tag:red"), "{text}");
    cli.run(&["operation", "stop", &id]).error(4);
    cli.run(&["operation", "show", "999"]).error(3);
    cli.run(&["job", "retry", "--search", "tag:blue", "--yes"])
        .error(3);
    cli.run(&["job", "retry", "--search", "state:nowhere", "--yes"])
        .error(2);
    cli.run(&["job", "retry", "a", "--search", "tag:red"])
        .error(2);
    cli.run(&["job", "retry"]).error(2);
    cli.run(&["job", "retry", "a", "--dry-run"]).error(2);
}

#[tokio::test]
async fn jobs_of_other_apis_are_shown_and_deleted() {
    let server = Server::with(&["--no-auth"]);
    let cli = Cli::of(&server);
    cli.run(&["queue", "create", "jobq:hosts"]).ok();
    for (queue, payload) in [
        ("lmstfy:shop/cart", "hello\u{1b}"),
        ("relay:r", "[1]"),
        ("jobq:hosts", "[1]"),
    ] {
        let id = cli.run(&["job", "put", queue, payload]).ok();
        let id = id.trim();
        let shown = cli
            .run(&["job", "show", id, "--queue", queue, "--json"])
            .json();
        match queue {
            "lmstfy:shop/cart" => assert_eq!(shown[0]["body"], payload),
            _ => assert_eq!(shown[0]["payload"], json!([1]), "{queue}"),
        }
        assert!(
            !cli.run(&["job", "show", id, "--queue", queue])
                .ok()
                .contains('\u{1b}')
        );
        cli.run(&["job", "delete", "--queue", queue, id]).error(2);
        cli.run(&["job", "delete", "--queue", queue, id, "--yes"])
            .ok();
        cli.run(&["job", "delete", "--queue", queue, id, "--yes"])
            .error(3);
        cli.run(&["job", "show", id, "--queue", queue]).error(3);
    }
}
