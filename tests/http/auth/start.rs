//! Startup: errors, warnings, and the startup banner.

use std::process::Output;

use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;

use super::{ADMIN, Credentials, JOBQ, QLESS, RELAY, ask};
use crate::support::{Server, database, log::Logged};

/// The output of a server that must not start.
fn refused(command: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut program = Server::program();
    program.arg(command).args(arguments);
    if command == "serve" {
        program.args(["--database", "sqlite::memory:"]);
    }
    program.envs(variables.iter().copied());
    let output = program.output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn listening_on_a_non_loopback_address_without_credentials_is_refused() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        for command in ["serve", "dev"] {
            let output = refused(command, &["--listen", listen], &[]);
            assert_eq!(output.status.code(), Some(1));
            let text = text(&output);
            assert_eq!(text.lines().count(), 1, "{text}");
            for word in [listen, "--admin-token", "--qless-token", "--insecure"] {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
    }
    // `--no-auth` protects nothing.
    refused("serve", &["--listen", "0.0.0.0:0", "--no-auth"], &[]);
}

/// For each API: options that protect it, options that open it, and its name in errors.
const APIS: [(&[&str], &[&str], &str); 4] = [
    (
        &["--admin-token", ADMIN],
        &["--ui-open-as", "admin"],
        "--ui-open-as",
    ),
    (&["--qless-token", QLESS], &["--open-qless"], "--open-qless"),
    (&["--relay-token", RELAY], &["--open-relay"], "--open-relay"),
    (&["--jobq-token", JOBQ], &["--open-jobq"], "--open-jobq"),
];

#[tokio::test]
async fn on_a_non_loopback_address_each_api_needs_a_token_or_must_be_opened() {
    // Every subset of omitted APIs, as bits.
    for omitted in 0..16 {
        for open in [false, true] {
            let mut options = vec!["--listen", "0.0.0.0:0"];
            for (number, (token, opens, _)) in APIS.iter().enumerate() {
                if omitted & (1 << number) == 0 {
                    options.extend(if open { *opens } else { *token });
                }
            }
            if omitted == 0 {
                let (logged, log) = everywhere(&options[2..]);
                drop(logged);
                assert_eq!(
                    log.contains("accepting unauthenticated requests"),
                    open,
                    "{log}"
                );
                continue;
            }
            let text = text(&refused("serve", &options, &[]));
            for (number, (token, _, opens)) in APIS.iter().enumerate() {
                let is_named = omitted & (1 << number) != 0;
                for flag in [token[0], opens] {
                    assert_eq!(text.contains(flag), is_named, "{flag}, {options:?}: {text}");
                }
            }
            assert!(text.contains("--insecure"), "{text}");
            let insecure = [&options[2..], &["--insecure"]].concat();
            everywhere(&insecure);
        }
    }
    // Opening a protected API is a contradiction.
    for (token, opens, flag) in &APIS[1..] {
        let both = [*token, *opens].concat();
        assert!(text(&refused("serve", &both, &[])).contains(flag));
    }
    let by_variable = [("SWITCHYARD_OPEN_QLESS", "yes")];
    let listen = ["--listen", "0.0.0.0:0"];
    let text = text(&refused("serve", &listen, &by_variable));
    assert!(
        !text.contains("--open-qless") && text.contains("--open-jobq"),
        "{text}"
    );
}

/// A server on all addresses with these options, and its warnings.
fn everywhere(options: &[&str]) -> (Logged, String) {
    let options = [&["--listen", "0.0.0.0:0"], options].concat();
    let logged = Logged::with("warn", &options);
    let log = logged.log();
    (logged, log)
}

#[tokio::test]
async fn on_a_non_loopback_address_the_server_logs_its_open_apis() {
    let login = [
        "--admin-user",
        "ada",
        "--admin-password",
        "a-long-password-of-ada",
    ];
    let all = ["--admin-token", ADMIN, "--qless-token", QLESS];
    let all = [&all[..], &["--relay-token", RELAY, "--jobq-token", JOBQ]].concat();
    let no_auth = [&all[..], &["--no-auth"]].concat();
    let insecure_login = [&login[..], &["--insecure"]].concat();
    for (options, open) in [
        (
            &["--insecure"][..],
            &["/ui", "/token", "qless", "Relay", "Jobq"][..],
        ),
        (
            &["--insecure", "--qless-token", QLESS],
            &["/ui", "/token", "Relay", "Jobq"],
        ),
        (
            &["--insecure", "--relay-token", RELAY],
            &["/ui", "/token", "qless", "Jobq"],
        ),
        (
            &["--insecure", "--jobq-token", JOBQ],
            &["/ui", "/token", "qless", "Relay"],
        ),
        (
            &[
                "--admin-token",
                ADMIN,
                "--open-qless",
                "--open-relay",
                "--open-jobq",
            ],
            &["qless", "Relay", "Jobq"],
        ),
        (&insecure_login, &["qless", "Relay", "Jobq"]),
        (&all, &[]),
        (&no_auth, &["lmstfy"]),
    ] {
        let (logged, log) = everywhere(options);
        let health = ask(&logged.server, Method::GET, "/health", Credentials::None).await;
        assert_eq!(health.status(), 200);
        let warned = log
            .lines()
            .filter(|line| line.contains("accepting unauthenticated requests"));
        let warned: Vec<_> = warned.collect();
        assert_eq!(
            warned.len(),
            usize::from(!open.is_empty()),
            "{options:?}: {log}"
        );
        for api in ["/ui", "/token", "qless (", "Relay (", "Jobq (", "lmstfy ("] {
            let is_open = open.iter().any(|open| api.starts_with(open));
            assert_eq!(log.contains(api), is_open, "{api}, {options:?}: {log}");
        }
    }
}

#[tokio::test]
async fn on_loopback_open_apis_are_logged_only_if_others_have_credentials() {
    let all = ["--admin-token", ADMIN, "--qless-token", QLESS];
    let all = [&all[..], &["--relay-token", RELAY, "--jobq-token", JOBQ]].concat();
    for (options, warned) in [
        (&[][..], false),
        (&["--no-auth"], false),
        (&["--listen", "[::1]:0"], false),
        (&all, false),
        (&all[..4], true),
        (&all[..6], true),
        (&["--admin-token", ADMIN], true),
        (&["--relay-token", RELAY], true),
        (&["--jobq-token", JOBQ], true),
    ] {
        let logged = Logged::with("warn", options);
        let log = logged.log();
        assert_eq!(
            log.contains("accepting unauthenticated requests"),
            warned,
            "{options:?}: {log}"
        );
    }
}

#[test]
fn invalid_keys_are_rejected() {
    for (arguments, variables, said) in [
        (&["--admin-token", ""][..], &[][..], "--admin-token"),
        (&["--qless-token", " "], &[], "--qless-token"),
        (&["--relay-token", ""], &[], "--relay-token"),
        (&["--jobq-token", " "], &[], "--jobq-token"),
        (&[], &[("SWITCHYARD_QLESS_TOKEN", "")], "--qless-token"),
        (&[], &[("SWITCHYARD_RELAY_TOKEN", "")], "--relay-token"),
        (&[], &[("SWITCHYARD_JOBQ_TOKEN", "")], "--jobq-token"),
        (&[], &[("SWITCHYARD_ADMIN_TOKEN", "")], "--admin-token"),
        (&["--admin-user", "ada"], &[], "--admin-password"),
        (&["--admin-password", "hush-hush"], &[], "--admin-user"),
        (
            &["--admin-user", "a:b", "--admin-password", "hush-hush"],
            &[],
            "colon",
        ),
    ] {
        let arguments = [&["--listen", "127.0.0.1:0"], arguments].concat();
        let text = text(&refused("serve", &arguments, variables));
        assert!(text.contains(said), "{arguments:?} {variables:?}: {text}");
        assert!(!text.contains("hush-hush"), "{text}");
    }
}

#[tokio::test]
async fn keys_can_come_from_the_environment() {
    let mut command = Server::command("sqlite::memory:", &[]);
    command
        .env("SWITCHYARD_ADMIN_TOKEN", ADMIN)
        .env("SWITCHYARD_ADMIN_USER", "ada")
        .env("SWITCHYARD_ADMIN_PASSWORD", "pass")
        .env("SWITCHYARD_QLESS_TOKEN", format!(" {QLESS}\n"))
        .env("SWITCHYARD_JOBQ_TOKEN", JOBQ)
        .env("SWITCHYARD_NO_AUTH", "yes");
    let server = Server::run(command);
    for (path, credentials, expected) in [
        ("/ui", Credentials::None, 401),
        ("/ui", Credentials::Bearer(ADMIN), 200),
        ("/ui", Credentials::Basic("ada", "pass"), 200),
        ("/queues", Credentials::None, 401),
        ("/queues", Credentials::Bearer(QLESS), 200),
        ("/api/v0/queue", Credentials::None, 401),
        ("/api/v0/queue", Credentials::Bearer(QLESS), 401),
        ("/api/v0/queue", Credentials::Bearer(JOBQ), 200),
        ("/api/any/q/size", Credentials::None, 200),
    ] {
        let seen = ask(&server, Method::GET, path, credentials).await;
        assert_eq!(seen.status(), expected, "{path} {credentials:?}");
    }
}

/// The startup banner.
async fn banner(server: &mut Server) -> Vec<String> {
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| {
        line.contains("curl -X PUT") || line.contains("switchyard token create")
    }) {
        lines.push(server.banner.recv().await.expect("a banner"));
    }
    lines
}

/// Runs a command line like `curl -X PUT 'ADDRESS' -d 'hello'`.
async fn curl(server: &Server, line: &str) -> (u16, Value) {
    let address = line.split('\'').nth(1).unwrap();
    let form = "application/x-www-form-urlencoded";
    let request = server.http.put(address).header("content-type", form);
    let response = request.body("hello").send().await.unwrap();
    (response.status().into(), response.json().await.unwrap())
}

#[tokio::test]
async fn the_first_start_prints_a_token_and_a_working_command() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.db");
    let mut server = Server::on(&path, &[]);
    let lines = banner(&mut server).await;
    let line = lines.last().unwrap();
    assert!(line.contains(&format!("http://{}/api/default/work", server.address)));
    let (status, response) = curl(&server, line).await;
    assert_eq!(
        (status, &response["msg"]),
        (201, &"published".into()),
        "{line}"
    );
    let tokens = ask(&server, Method::GET, "/token/default", Credentials::None).await;
    let tokens: Value = tokens.json().await.unwrap();
    assert_eq!(tokens["tokens"].as_object().unwrap().len(), 1);
    server.stop().await;
    // The token is printed once, and is still valid.
    let mut server = Server::on(&path, &[]);
    let lines = banner(&mut server).await;
    let create = lines.last().unwrap();
    assert!(create.contains("switchyard token create"), "{create}");
    assert!(create.contains(&database::address(&path)), "{create}");
    let token = line.split("token=").nth(1).unwrap();
    let token = token.trim_end_matches("' -d 'hello'");
    let path = format!("/api/default/work/size?token={token}");
    let seen = ask(&server, Method::GET, &path, Credentials::None).await;
    assert_eq!(seen.status(), 200);
}

#[tokio::test]
async fn no_first_token_is_created_with_no_auth_or_on_a_non_loopback_address() {
    let mut open = Server::with(&["--no-auth"]);
    let lines = banner(&mut open).await;
    assert_eq!(curl(&open, lines.last().unwrap()).await.0, 201, "{lines:?}");
    let options = ["--listen", "0.0.0.0:0", "--insecure"];
    let mut everywhere = Server::with(&options);
    let lines = banner(&mut everywhere).await;
    assert!(lines.last().unwrap().contains("switchyard token create"));
    for server in [&open, &everywhere] {
        let tokens = ask(server, Method::GET, "/token/default", Credentials::None).await;
        let tokens: Value = tokens.json().await.unwrap();
        assert_eq!(tokens["tokens"], serde_json::json!({}));
    }
}

#[tokio::test]
async fn a_used_database_gets_no_first_token() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.db");
    let server = Server::on(&path, &["--no-auth"]);
    server.client().add_ids("work", &["a"]).await;
    server.stop().await;
    let mut server = Server::on(&path, &[]);
    let lines = banner(&mut server).await;
    assert!(lines.last().unwrap().contains("switchyard token create"));
}
