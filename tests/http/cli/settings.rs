//! Options and tokens of a running server.

use serde_json::json;

use super::Cli;
use crate::support::Server;
use crate::support::keys::{ADMIN, ADMIN_TOKEN};

#[tokio::test]
async fn options_are_read_and_changed() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    assert_eq!(cli.run(&["config", "get", "heartbeat"]).ok(), "60\n");
    cli.run(&["config", "set", "heartbeat", "90"]).ok();
    cli.run(&["config", "set", "heartbeat", "30", "--queue", "mail"])
        .ok();
    assert_eq!(server.client().get("/config/heartbeat").await.ok(), 90);
    assert_eq!(
        cli.run(&["config", "get", "heartbeat", "--queue", "mail"])
            .ok(),
        "30\n"
    );
    let changed = cli.run(&["config", "list", "--changed", "--json"]).json();
    let heartbeat = changed
        .iter()
        .find(|it| it["option"] == "heartbeat")
        .unwrap();
    assert_eq!(
        (&heartbeat["value"], &heartbeat["default"]),
        (&json!(90), &json!(60))
    );
    assert!(cli.run(&["config", "list"]).ok().contains("jobs-history"));
    let why = cli.run(&["config", "set", "heartbeat", "soon"]).error(4);
    assert!(why.contains("must be a number"), "{why}");
    cli.run(&["config", "unset", "heartbeat"]).ok();
    cli.run(&["config", "unset", "heartbeat", "--queue", "mail"])
        .ok();
    assert_eq!(cli.run(&["config", "get", "heartbeat"]).ok(), "60\n");
    cli.run(&["config", "get", "heartbeat", "--queue", "mail"])
        .error(3);
    cli.run(&["config", "get", "nothing"]).error(3);
}

#[tokio::test]
async fn tokens_are_managed_through_the_server() {
    let server = Server::with(&ADMIN_TOKEN);
    let cli = Cli::of(&server).with_token(ADMIN);
    let create = [
        "token",
        "remote",
        "create",
        "shop",
        "--description",
        "the \u{1b}shop",
        "--expires",
        "1d",
    ];
    let token = cli.run(&create).ok();
    let listed = cli.run(&["token", "remote", "list", "--json"]).json();
    let of_shop = listed.iter().find(|it| it["namespace"] == "shop").unwrap();
    assert_eq!(
        (&of_shop["description"], &of_shop["expired"]),
        (&json!("the \u{1b}shop"), &json!(false))
    );
    assert!(
        !cli.run(&["token", "remote", "list", "shop"])
            .ok()
            .contains('\u{1b}')
    );
    // The namespace's token publishes; the admin's does not.
    cli.run(&["job", "put", "lmstfy:shop/cart", "x"]).error(4);
    let mut put = cli.command(&["job", "put", "lmstfy:shop/cart", "x"]);
    put.env("SWITCHYARD_TOKEN", token.trim());
    assert!(put.output().unwrap().status.success());
    let name = of_shop["name"].as_str().unwrap();
    cli.run(&["token", "remote", "revoke", "shop", "sha256:none"])
        .error(3);
    cli.run(&["token", "remote", "revoke", "shop", name]).ok();
    assert_eq!(
        cli.run(&["token", "remote", "list", "shop", "--json"]).ok(),
        ""
    );
    assert!(!put.output().unwrap().status.success());
}

/// A variable with two lines is a likely mistake. The error ends up in logs.
#[tokio::test]
async fn an_invalid_token_is_not_shown() {
    let server = Server::with(&[]);
    let mut list = Cli::of(&server).command(&["queue", "list"]);
    list.env("SWITCHYARD_TOKEN", "the-secret\nsecond");
    let output = list.output().unwrap();
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--token"), "{error}");
    assert!(
        !error.contains("secret") && !error.contains("second"),
        "{error}"
    );
}
