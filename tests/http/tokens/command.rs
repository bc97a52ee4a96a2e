//! `switchyard token`, with and without a running server.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use tempfile::TempDir;

use super::{created, made, pair, printed, refused, status};
use crate::support::{Server, database};

/// A folder for a database, and the address of the database.
fn place() -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let address = database::address(&folder.path().join("jobs.db"));
    (folder, address)
}

/// The token IDs of the tokens of the namespace.
fn names(database: &str, namespace: &str) -> Vec<String> {
    let listed = printed(database, &["list", namespace]);
    let names = listed
        .lines()
        .map(|line| line.split('\t').nth(1).unwrap().to_owned());
    names.collect()
}

#[tokio::test]
async fn without_a_server_the_command_creates_the_database() {
    let (_folder, database) = place();
    let token = created(&database, &["ns", "--description", "for\tada"]);
    let other = created(&database, &["other"]);
    let listed = printed(&database, &["list"]);
    let lines: Vec<Vec<_>> = listed
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert_eq!((lines[0][0], lines[0][3]), ("ns", "for ada"));
    assert!(lines[0][1].starts_with("sha256:") && lines[0][2].ends_with('Z'));
    assert_eq!(lines[1][0], "other");
    assert!(!listed.contains(&token));
    let server = Server::at_url(&database, &[]);
    assert_eq!(status(&server, "ns", &token).await, 200);
    assert_eq!(status(&server, "other", &other).await, 200);
    assert_eq!(status(&server, "other", &token).await, 401);
    server.stop().await;
    printed(&database, &["revoke", "ns", &token]);
    let server = Server::at_url(&database, &[]);
    assert_eq!(status(&server, "ns", &token).await, 401);
}

#[tokio::test]
async fn with_a_server_changes_apply_when_the_command_ends() {
    for options in [&[][..], &["--trust-client-clock"]] {
        let (_folder, database) = place();
        let server = Server::at_url(&database, options);
        for round in 0..5 {
            let token = created(&database, &["ns"]);
            assert_eq!(status(&server, "ns", &token).await, 200, "{round}");
            let which = match round % 2 {
                0 => token.clone(),
                _ => names(&database, "ns").remove(0),
            };
            printed(&database, &["revoke", "ns", &which]);
            assert_eq!(status(&server, "ns", &token).await, 401, "{round}");
        }
        // Concurrent changes of the server and of the command are both kept.
        let mut tokens = Vec::new();
        for _ in 0..3 {
            tokens.push(made(&server, "both").await);
            server.client().add_ids("a queue of qless", &["a"]).await;
            tokens.push(created(&database, &["both"]));
        }
        for token in &tokens {
            assert_eq!(status(&server, "both", token).await, 200);
        }
        assert_eq!(names(&database, "both").len(), 6);
        server.client().post("/cancel", "a".into()).await.ok();
        server.stop().await;
        let server = Server::at_url(&database, options);
        for token in &tokens {
            assert_eq!(status(&server, "both", token).await, 200);
        }
    }
}

#[tokio::test]
async fn several_commands_can_run_at_once() {
    let (_folder, database) = place();
    for server in [false, true] {
        let server = server.then(|| Server::at_url(&database, &[]));
        let commands = (0..6).map(|_| {
            let database = database.clone();
            std::thread::spawn(move || created(&database, &["many"]))
        });
        let commands: Vec<_> = commands.collect();
        let tokens = commands.into_iter().map(|command| command.join().unwrap());
        let tokens: Vec<_> = tokens.collect();
        if let Some(server) = &server {
            for token in &tokens {
                assert_eq!(status(server, "many", token).await, 200);
            }
        }
    }
    assert_eq!(names(&database, "many").len(), 12);
}

#[test]
fn invalid_commands_fail_with_a_message() {
    let (_folder, database) = place();
    let given = "-a-token-that-was-given";
    assert_eq!(created(&database, &["ns", "--token", given]), given);
    for (arguments, said) in [
        (&["create", "ns", "--token", given][..], "already"),
        (&["create", "ns", "--token", "short"], "20"),
        (&["create", "v0"], "v0"),
        (&["create", "a b"], "namespace"),
        (
            &["create", "ns", "--description", &"d".repeat(1_025)],
            "1024",
        ),
        (&["revoke", "ns", "nobody"], "no such token"),
        (&["revoke", "other", given], "no such token"),
    ] {
        let text = refused(&database, arguments);
        assert!(text.contains(said), "{arguments:?}: {text}");
        assert!(!text.contains(given), "{text}");
    }
    printed(&database, &["revoke", "ns", given]);
    assert_eq!(printed(&database, &["list"]), "");
    let text = refused("sqlite::memory:", &["list"]);
    assert!(text.contains("/token/"), "{text}");
    let text = refused("sqlite:///nowhere/at/all.db", &["create", "ns"]);
    assert!(text.contains("/nowhere/at/all.db"), "{text}");
}

/// The variable of clients, which a shell can contain for other commands, creates no token.
#[test]
fn the_token_of_clients_is_not_created_again() {
    let (_folder, database) = place();
    let of_clients = "the-token-of-a-client";
    let create = |variable: &str| {
        let mut command = Server::program();
        command.args(["token", "create", "ns", "--database", &database]);
        let output = command.env(variable, of_clients).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_ne!(create("SWITCHYARD_TOKEN").trim(), of_clients);
    assert_eq!(create("SWITCHYARD_NEW_TOKEN").trim(), of_clients);
}

/// Runs `switchyard token` with this standard input.
fn run_with_input(database: &str, arguments: &[&str], text: &[u8]) -> Output {
    let mut command = Server::program();
    command.arg("token").args(arguments);
    command.args(["--database", database]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The command may have ended without reading.
    stdin.write_all(text).ok();
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[tokio::test]
async fn a_token_can_come_from_standard_input_or_a_file() {
    let (folder, database) = place();
    let server = Server::at_url(&database, &[]);
    let given = "a-token-that-was-given";
    let made = run_with_input(
        &database,
        &["create", "ns", "--token", "-"],
        b"a-token-that-was-given\n",
    );
    assert_eq!(
        String::from_utf8_lossy(&made.stdout),
        format!("{given}\n"),
        "{made:?}"
    );
    assert_eq!(status(&server, "ns", given).await, 200);
    let revoked = run_with_input(
        &database,
        &["revoke", "ns", "-"],
        b"a-token-that-was-given\r\n",
    );
    assert!(revoked.status.success(), "{revoked:?}");
    assert_eq!(status(&server, "ns", given).await, 401);
    let path = folder.path().join("token");
    fs::write(&path, format!("{given}\n")).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(created(&database, &["ns", "--token-file", path]), given);
    assert_eq!(status(&server, "ns", given).await, 200);
    for (arguments, text, said) in [
        (&["create", "ns", "--token", "-"][..], &b""[..], "empty"),
        (&["create", "ns", "--token", "-"], b"\n", "empty"),
        (&["create", "ns", "--token", "-"], b"short", "20"),
        (&["revoke", "ns", "-"], b"", "empty"),
        (&["revoke", "ns", "-"], b"\xff", "standard input"),
        (
            &["revoke", "ns", "-"],
            b"another-token-that-is-none",
            "no such token",
        ),
    ] {
        let output = run_with_input(&database, arguments, text);
        assert!(!output.status.success(), "{arguments:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(said), "{arguments:?}: {text}");
        assert!(!text.contains("another-token"), "{text}");
    }
    assert_eq!(status(&server, "ns", given).await, 200);
}

#[tokio::test]
async fn the_command_waits_for_a_server_that_creates_the_file() {
    // The first of the two creates the tables, and the other one uses them.
    for _ in 0..5 {
        let (_folder, database) = place();
        let of_server = database.clone();
        let starting = std::thread::spawn(move || {
            let mut command = Server::command(&of_server, &[]);
            command.stderr(Stdio::null());
            command.stdout(Stdio::null()).spawn().unwrap()
        });
        let token = created(&database, &["ns"]);
        let mut server = starting.join().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(names(&database, "ns").len(), 1, "{token}");
    }
}

#[tokio::test]
async fn on_postgres_changes_apply_to_all_servers_at_once() {
    let Some(pair) = pair() else {
        return;
    };
    for (here, there) in pair.both() {
        let token = made(here, "ns").await;
        for server in [there, here] {
            assert_eq!(status(server, "ns", &token).await, 200);
        }
        printed(&pair.database, &["revoke", "ns", &token]);
        for server in [there, here] {
            assert_eq!(status(server, "ns", &token).await, 401);
        }
        let token = created(&pair.database, &["ns"]);
        for server in [there, here] {
            assert_eq!(status(server, "ns", &token).await, 200);
        }
        let path = format!("/token/ns/{token}");
        super::ask(here, reqwest::Method::DELETE, &path).await;
        for server in [there, here] {
            assert_eq!(status(server, "ns", &token).await, 401);
        }
    }
}

/// The output of `switchyard copy`, and whether it succeeded.
fn copied(from: &str, to: &str) -> (bool, String) {
    let mut command = Server::program();
    command.args(["copy", "--from", from, "--to", to]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

#[tokio::test]
async fn copy_includes_tokens() {
    let (_from, from) = place();
    let (_to, to) = place();
    let token = created(&from, &["ns", "--description", "for ada"]);
    // A server has already used the target, and created its first token.
    Server::at_url(&to, &[]).stop().await;
    assert_eq!(names(&to, "default").len(), 1);
    let (went_well, said) = copied(&from, &to);
    assert!(went_well, "{said}");
    assert_eq!(printed(&to, &["list"]), printed(&from, &["list"]));
    let server = Server::at_url(&to, &[]);
    assert_eq!(status(&server, "ns", &token).await, 200);
    server.stop().await;
    // A target with a token that a user created is not empty.
    let (_full, full) = place();
    created(&full, &["ns"]);
    let (went_well, said) = copied(&from, &full);
    assert!(!went_well && said.contains("tokens"), "{said}");
    assert_eq!(names(&full, "ns").len(), 1);
}
