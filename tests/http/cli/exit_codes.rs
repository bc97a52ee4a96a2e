//! Exit codes, credentials and roles.

use serde_json::Value;

use super::{Cli, fail_jobs};
use crate::support::Server;
use crate::support::keys::{ADMIN, ADMIN_TOKEN, OPERATOR_KEY, UI_KEYS, VIEWER_KEY};

#[tokio::test]
async fn wrong_arguments_are_usage_errors() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    for words in [
        &["queue"][..],
        &["queue", "pause"],
        &["queue", "pause", "--all", "mail"],
        &["queue", "forget", "--all"],
        &["queue", "show", "lmstfy:no-namespace"],
        &["queue", "list", "--api", "amqp"],
        &["job", "priority", "high", "a"],
        &["operation", "show", "x"],
        &["queue", "create", "mail"],
        &["job", "delete", "--queue", "mail", "a", "--yes"],
        &["queue", "list", "--server", "ftp://a"],
        &["recurring", "put", "mail", "--every", "soon"],
        &["top"],
    ] {
        let ran = cli.run(words);
        assert_eq!(ran.code, 2, "{words:?}: {ran:?}");
        assert!(!ran.stderr.is_empty(), "{words:?}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_exit_code_5() {
    let mut server = Server::with(&[]);
    let cli = Cli::of(&server);
    server.kill();
    for words in [
        &["queue", "list"][..],
        &["job", "put", "mail", "1"],
        &["job", "cancel", "a", "b"],
    ] {
        let why = cli.run(words).error(5);
        assert!(
            why.starts_with("error: cannot connect to http://127.0.0.1:"),
            "{why}"
        );
        assert_eq!(why.lines().count(), 1, "{why}");
    }
    assert_eq!(
        cli.run(&["complete-queues", "m"]).ok(),
        "",
        "a completion shows no error"
    );
}

#[tokio::test]
async fn a_missing_object_is_exit_code_3() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    for words in [
        &["queue", "show", "nowhere"][..],
        &["queue", "pause", "nowhere"],
        &["queue", "forget", "relay:nowhere"],
        &["job", "show", "nothing"],
        &["job", "retry", "nothing"],
        &["job", "cancel", "nothing"],
        &["job", "tag", "red", "nothing"],
        &["job", "note", "nothing", "x"],
        &["job", "timeout", "nothing"],
        &["recurring", "show", "nothing"],
    ] {
        let ran = cli.run(words);
        assert_eq!(ran.code, 3, "{words:?}: {ran:?}");
        assert!(ran.stderr.contains("error: "), "{words:?}: {ran:?}");
    }
    assert_eq!(
        cli.run(&["queue", "list", "--quiet"]).ok(),
        "",
        "no command has created a queue"
    );
}

/// What a viewer may do.
const READS: [&[&str]; 9] = [
    &["queue", "list"],
    &["queue", "show", "mail"],
    &["job", "list"],
    &["job", "show", "a"],
    &["failure", "list"],
    &["worker", "list"],
    &["recurring", "list"],
    &["operation", "list"],
    &["config", "list"],
];

#[tokio::test]
async fn roles_decide_what_a_command_may_do() {
    let options = [&ADMIN_TOKEN[..], &UI_KEYS].concat();
    let server = Server::with(&options);
    let cli = Cli::of(&server);
    fail_jobs(&server, "mail", &["a"], ("E", "x")).await;
    let why = cli.run(&["queue", "list"]).error(4);
    assert!(why.contains("--token"), "{why}");
    let wrong = cli.with_token("a-wrong-token");
    wrong.run(&["queue", "list"]).error(4);
    let [viewer, operator, admin] =
        [VIEWER_KEY, OPERATOR_KEY, ADMIN].map(|token| cli.with_token(token));
    for words in READS {
        viewer.run(words).ok();
    }
    for words in [
        &["job", "cancel", "a"][..],
        &["queue", "pause", "mail"],
        &["failure", "retry", "E", "--yes"],
    ] {
        let why = viewer.run(words).error(4);
        let expected = "You need the operator role";
        assert!(why.contains(expected), "{words:?}: {why}");
    }
    operator.run(&["job", "retry", "a"]).ok();
    for words in [
        &["config", "set", "heartbeat", "5"][..],
        &["token", "remote", "list"],
    ] {
        let why = operator.run(words).error(4);
        let expected = "You need the admin role";
        assert!(why.contains(expected), "{words:?}: {why}");
    }
    let create = ["token", "remote", "create", "n", "--description", "d"];
    operator.run(&create).error(4);
    assert_eq!(server.client().state("a").await, "waiting");
    admin.run(&["config", "set", "heartbeat", "5"]).ok();
}

#[tokio::test]
async fn the_audit_log_records_changes_and_refusals_but_no_reads() {
    let options = [&ADMIN_TOKEN[..], &UI_KEYS].concat();
    let server = Server::with(&options);
    let cli = Cli::of(&server);
    fail_jobs(&server, "mail", &["a"], ("E", "x")).await;
    cli.with_token(VIEWER_KEY).run(&["queue", "list"]).ok();
    cli.with_token(VIEWER_KEY)
        .run(&["job", "cancel", "a"])
        .error(4);
    cli.with_token(OPERATOR_KEY)
        .run(&["job", "retry", "a"])
        .ok();
    let audit = format!("http://{}/ui/audit.json", server.address);
    let audit = server.http.get(audit).bearer_auth(ADMIN).send().await;
    let audit: Value = audit.unwrap().json().await.unwrap();
    let entries = audit["entries"].as_array().unwrap();
    let has = |action: &str, who: &str| {
        let is_it = |it: &&Value| it["action"] == action && it.to_string().contains(who);
        entries.iter().any(|it| is_it(&it))
    };
    assert!(has("retry", "olga"), "{audit}");
    assert!(has("cancel", "vera"), "{audit}");
    assert_eq!(entries.len(), 2, "{audit}");
}

#[tokio::test]
async fn the_secret_of_one_user_is_rejected_for_another_name() {
    let server = Server::with(&UI_KEYS);
    let cli = Cli::of(&server).with_token(VIEWER_KEY);
    cli.run(&["queue", "list", "--user", "vera"]).ok();
    cli.run(&["queue", "list", "--user", "olga"]).error(4);
}
