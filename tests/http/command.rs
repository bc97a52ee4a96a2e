//! The command line.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Server;

#[tokio::test]
async fn options_can_come_from_the_environment() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("from-environment.db");
    let mut command = Server::program();
    command
        .arg("serve")
        .env("SWITCHYARD_LISTEN", "127.0.0.1:0")
        .env(
            "SWITCHYARD_DATABASE",
            format!("sqlite://{}", database.display()),
        )
        .env("SWITCHYARD_DURABILITY", "process")
        .env("SWITCHYARD_TRUST_CLIENT_CLOCK", "true")
        .env("SWITCHYARD_ALLOW_FLUSH", "true");
    let server = Server::run(command);
    let job = server
        .by("w")
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    assert_eq!(job["expires"], 60, "the clock is the client's");
    assert!(database.is_file());
    assert_eq!(server.client().post("/flush", Value::Null).await.ok(), true);
}

#[tokio::test]
async fn an_option_of_the_environment_can_be_false() {
    let mut command = Server::command("sqlite::memory:", &[]);
    command
        .env("SWITCHYARD_TRUST_CLIENT_CLOCK", "false")
        .env("SWITCHYARD_ALLOW_FLUSH", "0");
    let server = Server::run(command);
    server
        .client()
        .post("/flush", Value::Null)
        .await
        .assert_rejected(403, "not_enabled");
    let job = server
        .by("w")
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    assert_ne!(job["expires"], 60);
}

#[test]
fn help_explains_options_and_names_their_variables() {
    let help = Server::program()
        .args(["serve", "--help"])
        .output()
        .unwrap();
    assert!(help.status.success());
    let text = String::from_utf8(help.stdout).unwrap();
    for option in [
        "listen",
        "database",
        "durability",
        "trust-client-clock",
        "allow-flush",
    ] {
        let line = text
            .lines()
            .position(|line| line.contains(&format!("--{option}")));
        let line = line.unwrap_or_else(|| panic!("--{option}: {text}"));
        let explained: Vec<&str> = text.lines().skip(line).take(2).collect();
        assert!(explained.concat().len() > 40, "{explained:?}");
        let variable = format!("SWITCHYARD_{}", option.replace('-', "_").to_uppercase());
        assert!(text.contains(&variable), "{variable}: {text}");
    }
}

#[tokio::test]
async fn the_startup_banner_shows_page_and_api_and_a_working_curl_command() {
    let mut server = Server::with(&[]);
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("curl ")) {
        lines.push(server.banner.recv().await.unwrap());
    }
    let url = format!("http://{}", server.address);
    assert!(
        lines.iter().any(|line| line.contains(&format!("{url}/ui"))),
        "{lines:?}"
    );
    let curl = lines.last().unwrap();
    let (address, body) = curl
        .split_once("curl ")
        .unwrap()
        .1
        .split_once(" -d '")
        .unwrap();
    let (address, body) = (address.trim(), body.trim_end().trim_end_matches('\''));
    assert!(address.starts_with(&url), "{address}");
    // Like curl, which sends this content type with `-d`.
    let request = server.http.post(address).body(body.to_owned());
    let response = request
        .header("content-type", "application/x-www-form-urlencoded")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200, "{curl}");
    let queues = server.client().get("/queues").await.ok();
    assert_eq!(queues[0]["waiting"], 1);
}

#[test]
fn invalid_commands_fail_with_a_message() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("not-a-database");
    std::fs::write(
        &file,
        "this is a text, and not a short one; no database begins like it. ".repeat(100),
    )
    .unwrap();
    let not_a_database = format!("sqlite://{}", file.display());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken
        .local_addr()
        .map(|address| (taken, address.to_string()))
        .unwrap();
    for (options, said) in [
        (&["--durability", "none"][..], "none"),
        (&["--listen", "nowhere"], "nowhere"),
        (&["--listen", &taken.1], &taken.1),
        (&["--database", "mysql://x"], "mysql://x"),
        (
            &["--database", "sqlite:///nowhere/at/all/x.db"],
            "/nowhere/at/all/x.db",
        ),
        (&["--database", &not_a_database], "not-a-database"),
        (&["--colour", "red"], "--colour"),
    ] {
        let mut command = Server::program();
        command.arg("serve");
        if !options.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if !options.contains(&"--database") {
            command.args(["--database", "sqlite::memory:"]);
        }
        let output = command
            .args(options)
            .stdout(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{options:?}");
        assert!(text.contains(said), "{options:?}: {text}");
        assert!(!text.contains("panicked"), "{options:?}: {text}");
    }
}

#[tokio::test]
async fn a_second_server_on_the_same_file_is_rejected() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("jobs.db");
    let url = format!("sqlite://{}", database.display());
    let server = Server::at_url(&url, &[]);
    let mut second = Server::program();
    second.args(["serve", "--listen", "127.0.0.1:0", "--database", &url]);
    let output = second.output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("jobs.db"), "{text}");
    // The first server is not affected.
    server
        .client()
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
}

#[test]
fn a_server_stops_although_its_output_is_not_read() {
    let mut command = Server::command("sqlite::memory:", &[]);
    command.env("RUST_LOG", "info");
    let mut server = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(server.stderr.take());
    let mut line = String::new();
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    let pid = server.id().to_string();
    let signaled = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(signaled.unwrap().success());
    let began = Instant::now();
    while server.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            server.kill().unwrap();
            panic!("the server does not stop");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn dev_generates_queues_workers_and_failures() {
    let mut command = Server::program();
    command.args(["dev", "--listen", "127.0.0.1:0"]);
    let server = Server::run(command);
    let who = server.client();
    let look = async || {
        (
            who.get("/queues").await.ok(),
            who.get("/workers").await.ok(),
            who.get("/failed").await.ok(),
        )
    };
    let is_empty = |seen: &Value| *seen == json!([]) || *seen == json!({});
    let first = loop {
        let seen = look().await;
        if !is_empty(&seen.0) && !is_empty(&seen.1) && !is_empty(&seen.2) {
            break seen;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    while look().await == first {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn dev_puts_the_requested_number_of_jobs_of_all_protocols() {
    let mut command = Server::program();
    command.args(["dev", "--listen", "127.0.0.1:0", "--jobs", "50000"]);
    let mut server = Server::run(command);
    while let Some(line) = server.banner.recv().await {
        if line == "added all 50000 generated jobs" {
            break;
        }
    }
    let queues = server.client().get("/queues").await.ok();
    let count = |queue: &Value| {
        ["waiting", "scheduled", "depends"]
            .iter()
            .map(|kind| queue[kind].as_i64().unwrap())
            .sum::<i64>()
    };
    let total: i64 = queues.as_array().unwrap().iter().map(count).sum();
    // 68 % of the jobs are qless jobs; 38 % are complete and 6 % failed, which this does not count.
    assert!(total >= 50_000 * 24 / 100, "{total}");
    for name in ["billing.import", "billing/outbox-0", "bulk-0", "ledger-0"] {
        let path = format!("/ui/queues?q={name}");
        let page = server.try_send(Method::GET, &path, None).await.unwrap();
        assert!(page.text.contains(&format!("/{name}\"")), "{name}");
    }
}
