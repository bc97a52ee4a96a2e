//! `switchyard job put`.

use serde_json::json;
use tempfile::TempDir;

use super::{Cli, lines_of_json};
use crate::support::Server;
use crate::support::keys::{API_TOKENS, QLESS};

#[tokio::test]
async fn a_job_has_its_options_and_its_payload_unchanged() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    let payload = r#"{"big":12345678901234567890,"one":1.0}"#;
    let words = [
        "job",
        "put",
        "mail",
        payload,
        "--id",
        "a",
        "--class",
        "Mail",
        "--priority",
        "-3",
        "--retries",
        "2",
        "--tag",
        "red",
        "--tag",
        "big",
        "--delay",
        "1h",
    ];
    assert_eq!(cli.run(&words).ok(), "a\n");
    let text = cli.run(&["job", "show", "a", "--json"]).ok();
    assert!(text.contains(payload), "{text}");
    let job = &lines_of_json(&text)[0];
    assert_eq!(
        [
            &job["class"],
            &job["priority"],
            &job["retries"],
            &job["tags"],
            &job["state"]
        ],
        [
            &json!("Mail"),
            &json!(-3.0),
            &json!(2),
            &json!(["red", "big"]),
            &json!("scheduled")
        ]
    );
    cli.run(&["job", "put", "mail", "{}", "--depends", "a", "--id", "b"])
        .ok();
    let job = &cli.run(&["job", "show", "b", "--json"]).json()[0];
    assert_eq!(
        (&job["state"], &job["depends"]),
        (&json!("depends"), &json!(["a"]))
    );
    let made = cli
        .run_with(&["job", "put", "mail", "-", "--json"], "{\n \"x\": 1\n}")
        .json();
    let id = made[0]["id"].as_str().unwrap();
    let job = &cli.run(&["job", "show", id, "--json"]).json()[0];
    assert_eq!(
        (&job["payload"], &made[0]["queue"]),
        (&json!({ "x": 1 }), &json!("mail"))
    );
    cli.run(&["job", "put", "mail", "{"]).error(2);
    cli.run(&["job", "put", "mail", "{}", "--ttl", "5"])
        .error(2);
    cli.run(&["job", "put", "lmstfy:mail", "{}"]).error(2);
}

#[tokio::test]
async fn lines_become_jobs_and_wrong_lines_are_reported() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    let many: String = (0..600).map(|n| format!("{{\"n\": {n}}}\n")).collect();
    let ids = cli
        .run_with(
            &["job", "put", "bulk", "--lines", "-", "--tag", "red"],
            &many,
        )
        .ok();
    assert_eq!(ids.lines().count(), 600);
    let shown = cli
        .run(&["queue", "show", "bulk", "--json", "--limit", "1"])
        .json();
    assert_eq!(shown[0]["waiting"], 600);
    let ran = cli.run_with(
        &["job", "put", "some", "--lines", "-", "--json"],
        "1\n\nnot json\n[2]",
    );
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr
            .contains("error: line 3: the payload is not valid JSON"),
        "{ran:?}"
    );
    let lines = lines_of_json(&ran.stdout);
    assert_eq!(lines.iter().filter(|it| it["id"].is_string()).count(), 2);
    assert!(
        lines
            .iter()
            .any(|it| it["line"] == 3 && it["error"].is_string()),
        "{lines:?}"
    );
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("jobs.jsonl");
    let items = [
        r#"{"id": "x", "meta": {"a": 1}, "priority": 5, "tags": ["t"]}"#,
        r#"{"id": "", "meta": 1}"#,
        r#"["no object"]"#,
        r#"{"id": "y", "meta": 2, "delay": "soon"}"#,
        r#"{"id": "z", "meta": 3}"#,
    ];
    std::fs::write(&file, items.join("\n")).unwrap();
    let file = file.to_str().unwrap();
    let ran = cli.run(&["job", "put", "items", "--items", file]);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, "x\nz\n"), "{ran:?}");
    for line in ["line 2: ", "line 3: ", "line 4: "] {
        assert!(ran.stderr.contains(line), "{line}{ran:?}");
    }
    cli.run(&["job", "put", "items", "--items", file, "--id", "q"])
        .error(2);
    cli.run(&["job", "put", "items", "--lines", "/nowhere"])
        .error(2);
}

#[tokio::test]
async fn lines_are_put_into_every_api() {
    let server = Server::with(&["--no-auth"]);
    let cli = Cli::of(&server);
    cli.run(&["queue", "create", "jobq:hosts"]).ok();
    for queue in ["lmstfy:shop/cart", "relay:r", "jobq:hosts"] {
        let ids = cli
            .run_with(&["job", "put", queue, "--lines", "-"], "[1]\n[2]\n[3]\n")
            .ok();
        assert_eq!(ids.lines().count(), 3, "{queue}");
        let shown = cli.run(&["queue", "show", queue, "--json"]).json();
        assert_eq!(shown[0]["jobs"].as_array().unwrap().len(), 3, "{queue}");
    }
    // Relay refuses a request as a whole; the other jobs are put one by one.
    let items = "{\"id\": \"1\", \"payload\": 1}\n{\"id\": \"1\", \"payload\": 2}\n{\"id\": \"2\", \"payload\": 3}\n";
    let ran = cli.run_with(&["job", "put", "relay:r", "--items", "-"], items);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, "1\n2\n"), "{ran:?}");
    assert!(ran.stderr.contains("line 2: "), "{ran:?}");
}

#[tokio::test]
async fn the_token_of_the_api_is_enough_to_put() {
    let server = Server::with(&API_TOKENS);
    let cli = Cli::of(&server);
    let why = cli.run(&["job", "put", "mail", "1"]).error(4);
    assert!(why.contains("--token"), "{why}");
    cli.with_token(QLESS).run(&["job", "put", "mail", "1"]).ok();
}
