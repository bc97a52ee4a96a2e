//! What the lists show, as tables and as JSON.

use serde_json::json;

use super::{Cli, fail_jobs};
use crate::support::{HOSTILE_NAMES, Server};

/// The first two lines with single spaces.
fn words(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().take(2).map(words).collect()
}

#[tokio::test]
async fn queues_are_listed_with_their_counts() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    assert_eq!(cli.run(&["queue", "list", "--json"]).ok(), "");
    server.client().add_ids("mail", &["a", "b"]).await;
    server.client().add_ids("images", &["c"]).await;
    cli.run(&["queue", "pause", "images"]).ok();
    let queues = cli.run(&["queue", "list", "--json"]).json();
    let names: Vec<_> = queues
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(queues.len(), 2, "{names:?}");
    let mail = queues.iter().find(|it| it["name"] == "mail").unwrap();
    assert_eq!(
        (&mail["waiting"], &mail["api"], &mail["paused"]),
        (&json!(2), &json!("qless"), &json!(false))
    );
    assert!(
        mail["oldest_waiting"].as_str().unwrap().ends_with('Z'),
        "{mail}"
    );
    let paused = cli.run(&["queue", "list", "--paused", "--quiet"]).ok();
    assert_eq!(paused, "images\n");
    let found = cli.run(&["queue", "list", "MAI", "--quiet"]).ok();
    assert_eq!(found, "mail\n");
    let table = cli.run(&["queue", "list"]).ok();
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("QUEUE   WAITING  SCHEDULED"),
        "{table}"
    );
    assert_eq!(lines.len(), 3, "{table}");
    assert!(table.contains("paused"), "{table}");
    let pause = [
        "queue", "pause", "images", "--reason", "deploy", "--for", "2h",
    ];
    cli.run(&pause).ok();
    let shown = cli
        .run(&["queue", "show", "images", "--json"])
        .json()
        .remove(0);
    assert_eq!(shown["pause"]["reason"], "deploy");
    assert!(shown["pause"]["until"].is_string(), "{shown}");
    let text = cli.run(&["queue", "show", "images"]).ok();
    assert!(
        text.contains("paused (") && text.contains("deploy)"),
        "{text}"
    );
    let both = [&pause[..], &["--until", "2999-01-01T00:00"]].concat();
    cli.run(&both).error(2);
    let shown = cli.run(&["queue", "show", "mail", "--json"]).json();
    assert_eq!(shown[0]["jobs"].as_array().unwrap().len(), 2);
    let text = cli.run(&["queue", "show", "mail"]).ok();
    assert_eq!(words(&text), ["queue mail", "waiting 2"]);
}

#[tokio::test]
async fn all_queues_can_be_paused_and_resumed() {
    let server = Server::with(&["--no-auth"]);
    let cli = Cli::of(&server);
    let paused = || cli.run(&["queue", "list", "--paused", "--quiet"]).ok();
    let none = cli.run(&["queue", "pause", "--all"]).ok();
    assert!(none.contains("0 queues paused."), "{none}");
    for (queue, payload) in [
        ("mail", "1"),
        ("lmstfy:shop/cart", "hello"),
        ("relay:r", "{}"),
    ] {
        cli.run(&["job", "put", queue, payload]).ok();
    }
    cli.run(&["queue", "create", "jobq:records"]).ok();
    let pause = ["queue", "pause", "--all", "--reason", "move", "--for", "2h"];
    let done = cli.run(&pause).ok();
    assert!(done.contains("3 queues paused until "), "{done}");
    assert_eq!(paused().lines().count(), 3);
    let shown = cli.run(&["queue", "show", "relay:r", "--json"]).json();
    assert_eq!(shown[0]["pause"]["reason"], "move");
    assert!(shown[0]["pause"]["until"].is_string(), "{shown:?}");
    let done = cli.run(&["queue", "resume", "--all", "--json"]).json();
    assert_eq!(done[0]["target"], "all queues");
    assert_eq!(done[0]["ok"], true);
    assert_eq!(paused(), "");
    let past = ["queue", "pause", "--all", "--until", "2000-01-01T00:00"];
    cli.run(&past).error(4);
    assert_eq!(paused(), "");
}

#[tokio::test]
async fn queues_of_every_api_can_be_shown_and_paused() {
    let server = Server::with(&["--no-auth"]);
    let cli = Cli::of(&server);
    for (queue, payload) in [
        ("mail", "1"),
        ("lmstfy:shop/cart", "hello"),
        ("relay:r", "{}"),
    ] {
        cli.run(&["job", "put", queue, payload]).ok();
        cli.run(&["queue", "pause", queue]).ok();
        let shown = cli.run(&["queue", "show", queue, "--json"]).json();
        assert_eq!(
            (&shown[0]["name"], &shown[0]["waiting"]),
            (&json!(queue), &json!(1))
        );
        assert_eq!(shown[0]["paused"], true, "{queue}");
        cli.run(&["queue", "unpause", queue]).ok();
        let listed = cli.run(&["queue", "list", "--paused"]).ok();
        assert!(!listed.contains(queue), "{listed}");
    }
    cli.run(&["queue", "create", "jobq:hosts"]).ok();
    cli.run(&[
        "job",
        "put",
        "jobq:hosts",
        "{\"a\": 1}",
        "--state",
        "[\"NEW\"]",
    ])
    .ok();
    let shown = cli.run(&["queue", "show", "jobq:hosts", "--json"]).json();
    assert_eq!(shown[0]["jobs"][0]["state"], "[\"NEW\"]");
    assert!(
        cli.run(&["queue", "pause", "jobq:hosts"])
            .error(4)
            .contains("cannot be paused")
    );
    let only = cli
        .run(&["queue", "list", "--api", "relay", "--quiet"])
        .ok();
    assert_eq!(only, "relay:r\n");
    cli.run(&["queue", "delete", "jobq:hosts"]).error(2);
    cli.run(&["queue", "delete", "jobq:hosts", "--yes"]).ok();
    cli.run(&["queue", "show", "jobq:hosts"]).error(3);
}

#[tokio::test]
async fn hostile_names_are_found_and_cannot_control_the_terminal() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    for name in HOSTILE_NAMES {
        let queue = format!("qless:{name}");
        cli.run(&["job", "put", &queue, "[1]", "--id", name]).ok();
        cli.run(&["queue", "pause", &queue]).ok();
        let shown = cli.run(&["queue", "show", &queue, "--json"]).json();
        assert_eq!(
            (&shown[0]["queue"], &shown[0]["paused"]),
            (&json!(name), &json!(true))
        );
        let job = cli.run(&["job", "show", name, "--json"]).json();
        assert_eq!(
            (&job[0]["id"], &job[0]["payload"]),
            (&json!(name), &json!([1]))
        );
    }
    let quiet = cli.run(&["queue", "list", "--quiet"]).ok();
    assert_eq!(quiet.lines().count(), HOSTILE_NAMES.len());
    // Names have no control characters, but messages and payloads have.
    let message = "\u{1b}]0;title\u{7}\u{9b}2J\u{202e}\r\nsecond line";
    fail_jobs(&server, "bad", &["x"], ("Group", message)).await;
    let bidi = "\u{202e}evil";
    server.client().add_ids(bidi, &["y"]).await;
    for words in [
        &["job", "show", "x"][..],
        &["job", "show", "x", "--json"],
        &["job", "list", "state:failed"],
        &["job", "list", "state:failed", "--json"],
        &["failure", "list"],
        &["failure", "list", "--json"],
        &["failure", "show", "Group"],
        &["queue", "list"],
        &["queue", "list", "--json"],
        &["queue", "show", bidi],
    ] {
        let text = cli.run(words).ok();
        let is_unsafe = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(is_unsafe), "{words:?}: {text:?}");
    }
    let shown = cli.run(&["job", "show", "x", "--json"]).json();
    assert_eq!(
        shown[0]["failure"]["message"], message,
        "JSON keeps the text"
    );
}

#[tokio::test]
async fn searches_have_the_grammar_of_the_dashboard() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    let ids: Vec<String> = (0..120).map(|n| format!("job-{n}")).collect();
    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    server.client().add_ids("mail", &names).await;
    let tagged = json!({ "id": "vip", "meta": { "to": "ada" }, "tags": ["red"], "priority": -2.5 });
    server.client().post("/add/other", tagged).await.ok();
    let found = cli
        .run(&["job", "list", "tag:red", "data.to:ada", "--json"])
        .json();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["id"], &found[0]["priority"]),
        (&json!("vip"), &json!(-2.5))
    );
    let all = cli
        .run(&["job", "search", "queue:mail", "--json", "--limit", "1000"])
        .json();
    assert_eq!(all.len(), 120, "several pages");
    let some = cli
        .run(&["job", "list", "queue:mail", "--json", "--limit", "7"])
        .json();
    assert_eq!(some.len(), 7);
    let others = cli
        .run(&["job", "list", "--json", "--", "-queue:mail"])
        .json();
    assert_eq!(others.len(), 1);
    let table = cli.run(&["job", "list", "vip"]).ok();
    assert!(table.starts_with("ID   QUEUE  STATE"), "{table}");
    let why = cli.run(&["job", "list", "state:nowhere"]).error(2);
    assert!(why.contains("invalid search at"), "{why}");
    assert_eq!(
        cli.run(&["job", "list", "tag:blue"]).ok().lines().count(),
        1,
        "only titles"
    );
    for limit in ["0", "10001", "many"] {
        cli.run(&["job", "list", "--limit", limit]).error(2);
    }
}

#[tokio::test]
async fn failures_are_shown_by_group_and_retried() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    fail_jobs(&server, "mail", &["a", "b", "c"], ("Timeout", "no answer")).await;
    fail_jobs(&server, "mail", &["d"], ("Other", "x")).await;
    let groups = cli.run(&["failure", "list", "--json"]).json();
    assert_eq!(groups.len(), 2);
    assert_eq!(
        (&groups[0]["group"], &groups[0]["count"]),
        (&json!("Timeout"), &json!(3))
    );
    let shown = cli.run(&["failure", "show", "Timeout", "--json"]).json();
    assert_eq!(shown[0]["jobs"].as_array().unwrap().len(), 3);
    let text = cli.run(&["failure", "show", "Timeout"]).ok();
    assert!(
        text.contains("no answer") && text.contains("worker-1"),
        "{text}"
    );
    let why = cli.run(&["failure", "retry", "Timeout"]).error(2);
    assert!(
        why.contains("matching jobs: 3. Continue?") && why.contains("--yes"),
        "{why}"
    );
    let dry = cli
        .run(&["failure", "retry", "Timeout", "--dry-run", "--json"])
        .json();
    assert_eq!(dry[0]["jobs"], 3);
    let done = cli
        .run(&["failure", "retry", "Timeout", "--yes", "--wait", "--json"])
        .json();
    assert_eq!(
        (&done[0]["done"], &done[0]["phase"]),
        (&json!(3), &json!("done"))
    );
    assert_eq!(server.client().state("a").await, "waiting");
    assert_eq!(server.client().state("d").await, "failed");
    cli.run(&["failure", "retry", "Timeout", "--yes"]).error(3);
    cli.run(&["failure", "show", "Nothing"]).error(3);
}

#[tokio::test]
async fn workers_and_recurring_jobs_are_listed() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    server.client().add_ids("mail", &["a"]).await;
    server.by("worker-1").get("/get/mail").await.ok();
    let workers = cli.run(&["worker", "list", "--json"]).json();
    assert_eq!(
        (&workers[0]["name"], &workers[0]["running"]),
        (&json!("worker-1"), &json!(1))
    );
    let shown = cli.run(&["worker", "show", "worker-1", "--json"]).json();
    assert_eq!(shown[0]["jobs"][0]["id"], "a");
    cli.run(&["worker", "show", "nobody"]).error(3);
    cli.run(&["worker", "forget", "nobody"]).error(3);
    cli.run(&["worker", "forget", "worker-1"]).ok();
    let put = [
        "recurring",
        "put",
        "mail",
        "{\"n\": 1.0}",
        "--every",
        "1h",
        "--id",
        "hourly/1",
        "--json",
    ];
    let made = cli.run(&put).json();
    assert_eq!(made[0]["target"], "hourly/1");
    cli.run(&put).error(4);
    let rows = cli.run(&["recurring", "list", "--json"]).json();
    assert_eq!(
        (&rows[0]["id"], &rows[0]["interval_s"]),
        (&json!("hourly/1"), &json!(3600.0))
    );
    let text = cli.run(&["recurring", "show", "hourly/1"]).ok();
    assert!(
        text.contains("every hour") && text.contains("{\"n\": 1.0}"),
        "{text}"
    );
    cli.run(&["recurring", "end", "hourly/1"]).ok();
    cli.run(&["recurring", "end", "hourly/1"]).error(3);
}
