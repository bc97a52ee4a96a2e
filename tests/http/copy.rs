//! `switchyard copy` copies everything, and jobs continue in the other database.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tempfile::TempDir;

use crate::support::{
    HOSTILE_NAMES, STATES, Server, database, escape, meta_text, one_in_each_state,
};

const CLIENT_CLOCK: &[&str] = &["--trust-client-clock"];

/// Numbers that careless code would round.
const EXACT: &str =
    r#"{"big":123456789012345678901234567890.10,"small":1e-400,"same":1.0,"nul":"\u0000"}"#;

fn sqlite(folder: &TempDir, name: &str) -> String {
    format!("sqlite://{}", folder.path().join(name).display())
}

fn copy(from: &str, to: &str) -> Output {
    let mut command = Server::program();
    command.args(["copy", "--from", from, "--to", to]);
    command.output().unwrap()
}

/// Copies a database. Returns standard output and standard error.
#[track_caller]
fn copied(from: &str, to: &str) -> (String, String) {
    let output = copy(from, to);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stdout}{stderr}");
    (stdout, stderr)
}

/// Checks that the copy is rejected with an error that contains these words.
#[track_caller]
fn refused(from: &str, to: &str, words: &str) {
    let output = copy(from, to);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(words), "{text}");
    assert!(
        !text.contains("panicked") && output.stdout.is_empty(),
        "{text}"
    );
}

/// A large `meta`.
fn large() -> Value {
    json!("große Daten ".repeat(200_000))
}

/// Fills the database with everything that it can contain, at times from 0 to 109 s.
async fn fill(server: &Server) {
    one_in_each_state(server).await;
    let worker = server.by("w");
    worker.set("heartbeat", json!(77)).await.ok();
    worker.set("work-max-running", json!(100)).await.ok();
    worker
        .set("an option of ours", json!({"a": [1.0, "ü"]}))
        .await
        .ok();
    for (n, name) in HOSTILE_NAMES.iter().enumerate() {
        let item =
            json!({"id": name, "meta": name, "priority": 0.1 + n as f64, "tags": [name, "shared"]});
        let queue = if is_dots(name) { "hostile" } else { name };
        worker.at(100).add(queue, item).await;
    }
    worker
        .at(100)
        .add("bulk", json!({"id": "large", "meta": large()}))
        .await;
    let exact =
        format!(r#"{{"data": {{"id": "exact", "meta": {EXACT}, "priority": 1e-7}}, "now": 100}}"#);
    let added = server
        .send(reqwest::Method::POST, "/add/bulk", Some(exact))
        .await;
    assert_eq!(added.ok(), "exact");
    // Failures of several groups, one of them retried; a wait and a run of fractional seconds.
    for (id, group) in [("f1", "g"), ("f2", "h"), ("f3", "h")] {
        worker
            .at(100)
            .add("fails", json!({"id": id, "meta": 1}))
            .await;
        worker.at(100.25).pop("fails").await;
        worker.at(101).fail(id, group).await;
    }
    let unfail = json!({"group": "h", "count": 1});
    worker.at(102).post("/unfail/fails", unfail).await.ok();
    worker
        .at(100)
        .add("timed", json!({"id": "timed", "meta": 1}))
        .await;
    worker.at(100.1).pop("timed").await;
    worker.at(100.7).complete("timed", "timed").await;
    let chain = json!({"id": "chain", "meta": 1, "depends": ["waiting", "exact"]});
    worker.at(103).add("work", chain).await;
    worker.at(103).post("/track", json!("chain")).await.ok();
    worker
        .at(103)
        .post("/track", json!({"id": "large", "tags": ["followed"]}))
        .await
        .ok();
    let note = json!({"id": "chain", "message": "a note", "data": {"x": 1.50}});
    worker.at(104).post("/log", note).await.ok();
    let again = json!({"id": "again", "meta": {"n": 1}, "interval": 60, "klass": "K", "tags": ["shared"],
        "priority": -0.3, "offset": 30});
    worker.at(70).post("/recur/again", again).await.ok();
    worker.at(105).pop("again").await;
    worker
        .at(105)
        .post_whole("/pause/timed", json!({}))
        .await
        .ok();
}

const QUEUES: [&str; 7] = ["work", "bulk", "fails", "timed", "again", "a/b", "hostile"];

/// Whether the name consists of dots, which clients resolve in paths.
fn is_dots(name: &&str) -> bool {
    name.bytes().all(|byte| byte == b'.')
}

/// All responses that clients can get at a time, byte for byte, with their requests.
async fn everything(server: &Server, now: f64) -> Vec<(String, String)> {
    let mut paths: Vec<String> = [
        "/queues",
        "/workers",
        "/worker/w",
        "/failed",
        "/failed/g",
        "/failed/h",
        "/jobs/complete?full=true",
        "/tags",
        "/tag/shared",
        "/tracked",
        "/recurring/again",
        "/config",
        "/events?after=0&limit=10000",
        "/check",
    ]
    .map(str::to_owned)
    .into();
    for queue in QUEUES.map(escape) {
        paths.push(format!("/queue/{queue}"));
        paths.push(format!("/stats/{queue}/0"));
        for state in [
            "waiting",
            "running",
            "stalled",
            "scheduled",
            "depends",
            "recurring",
        ] {
            paths.push(format!("/jobs/{state}/{queue}?full=true&limit=100"));
        }
    }
    let ids = ["large", "exact", "chain", "again-1", "f1", "f2", "timed"];
    let ids = ids
        .iter()
        .chain(&STATES)
        .chain(HOSTILE_NAMES)
        .filter(|id| !is_dots(id));
    paths.extend(ids.map(|id| format!("/job/{}", escape(id))));
    let mut seen = Vec::new();
    for path in paths {
        let response = server.at(now).get(&path).await;
        let text = response.results_text().to_owned();
        response.accepted();
        seen.push((path, text));
    }
    seen
}

#[track_caller]
fn assert_same(seen: &[(String, String)], expected: &[(String, String)]) {
    assert_eq!(seen.len(), expected.len());
    for (seen, expected) in seen.iter().zip(expected) {
        assert!(seen == expected, "{seen:.2000?}\n{expected:.2000?}");
    }
    let check = seen.iter().find(|(path, _)| path == "/check").unwrap();
    assert_eq!(check.1, r#"{"problems":[]}"#);
}

/// Checks that work continues: leases are valid, dependents are released, scheduled jobs become due, recurring jobs
/// create children, and new jobs are behind old ones.
async fn assert_work_continues(server: &Server) {
    let worker = server.by("w").at(109);
    worker.complete("work", "running").await;
    let exact = worker.get("/job/exact").await;
    assert_eq!(exact.meta_text(), EXACT);
    assert_eq!(worker.job("large").await["meta"], large());
    assert_eq!(worker.pop_ids("work", 100).await, ["stalled", "waiting"]);
    assert_eq!(worker.pop("bulk").await["id"], "large");
    worker.complete("work", "waiting").await;
    assert_eq!(worker.pop("bulk").await["id"], "exact");
    assert_eq!(worker.state("chain").await, "depends");
    worker.complete("bulk", "exact").await;
    assert_eq!(worker.pop_ids("work", 100).await, ["depends", "chain"]);
    assert_eq!(worker.job("chain").await["expires"], 109 + 77);
    let later = server.by("w").at(1050);
    assert!(
        later
            .pop_ids("work", 100)
            .await
            .contains(&"scheduled".to_owned())
    );
    assert_eq!(later.pop_ids("fails", 9).await.len(), 1);
    assert_eq!(
        later.pop_ids("again", 100).await.len(),
        15,
        "one per minute since 100 s"
    );
    server.at(1050).add_ids("bulk", &["newest"]).await;
    assert_eq!(server.at(1050).peek_ids("bulk").await, ["large", "newest"]);
    let none = later.get("/check").await.ok();
    assert_eq!(none, json!({"problems": []}));
}

/// Copies to another database, works there, copies back, and works there.
async fn copy_there_and_back(folder: &TempDir, there: &str) {
    let from = sqlite(folder, "from.db");
    let server = Server::at_url(&from, CLIENT_CLOCK);
    fill(&server).await;
    let before = everything(&server, 108.0).await;
    server.stop().await;
    let (stdout, stderr) = copied(&from, there);
    assert!(stdout.contains("rows copied and verified"), "{stdout}");
    for table in ["jobs", "tallies", "events"] {
        let line = stdout.lines().find(|line| line.starts_with(table));
        let words: Vec<_> = line.unwrap().split_whitespace().collect();
        assert!(words.len() == 3 && words[2].len() == 16, "{stdout}");
        let said = format!("copied {table}: {n} of {n} rows", n = words[1]);
        assert!(stderr.contains(&said), "{stderr}");
        assert!(
            stderr.contains(&said.replace("copied", "verified")),
            "{stderr}"
        );
    }
    let server = Server::at_url(there, CLIENT_CLOCK);
    assert_same(&everything(&server, 108.0).await, &before);
    assert_work_continues(&server).await;
    let before = everything(&server, 1050.0).await;
    server.stop().await;
    let back = sqlite(folder, "back.db");
    copied(there, &back);
    let server = Server::at_url(&back, CLIENT_CLOCK);
    assert_same(&everything(&server, 1050.0).await, &before);
    let worker = server.by("w").at(1050);
    worker.complete("work", "scheduled").await;
    server.at(1050).add_ids("bulk", &["newer"]).await;
    assert_eq!(
        worker.pop_ids("bulk", 9).await,
        ["large", "newest", "newer"]
    );
    let problems = server.at(1050).get("/check").await.ok();
    assert_eq!(problems, json!({"problems": []}));
}

#[tokio::test]
async fn copy_from_file_to_file_keeps_everything() {
    let folder = TempDir::new().unwrap();
    copy_there_and_back(&folder, &sqlite(&folder, "there.db")).await;
}

/// The address of a PostgreSQL database for a test; `None` if the tests run on SQLite.
fn postgres(folder: &TempDir, name: &str) -> Option<String> {
    let Some(server) = database::postgres() else {
        println!("not run: SWITCHYARD_TEST_POSTGRES is not set (scripts/postgres.sh does that)");
        return None;
    };
    Some(database::created(&server, &folder.path().join(name)))
}

#[tokio::test]
async fn copy_to_postgres_and_back_keeps_everything() {
    let folder = TempDir::new().unwrap();
    if let Some(there) = postgres(&folder, "there") {
        copy_there_and_back(&folder, &there).await;
    }
}

#[tokio::test]
async fn copy_handles_more_than_one_page_of_jobs() {
    let folder = TempDir::new().unwrap();
    let from = sqlite(&folder, "from.db");
    let server = Server::at_url(&from, CLIENT_CLOCK);
    let item = |n: usize| json!({"id": format!("job {n}"), "meta": n, "tags": ["t"]});
    for part in [0..10_000, 10_000..10_001] {
        let items: Vec<Value> = part.map(item).collect();
        server
            .at(0)
            .post("/add/work", items.into())
            .await
            .accepted();
    }
    server.stop().await;
    let mut addresses = vec![sqlite(&folder, "there.db")];
    addresses.extend(postgres(&folder, "paged"));
    addresses.push(sqlite(&folder, "back.db"));
    for pair in [vec![from], addresses].concat().windows(2) {
        let (stdout, stderr) = copied(&pair[0], &pair[1]);
        assert!(
            stderr.contains("copied jobs: 10001 of 10001 rows"),
            "{stderr}"
        );
        assert!(stdout.contains("tags"), "{stdout}");
    }
    let server = Server::at_url(&sqlite(&folder, "back.db"), CLIENT_CLOCK);
    let last = server.at(0).get("/job/job%2010000").await;
    assert_eq!(meta_text(last.results_text()), "10000");
    assert_eq!(
        server.at(0).get("/queue/work").await.ok()["waiting"],
        10_001
    );
}

async fn change(path: &Path, sql: &'static str) {
    let address = format!("sqlite://{}", path.display());
    let mut database = SqliteConnection::connect(&address).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut database).await.unwrap();
    database.close().await.unwrap();
}

/// An SQLite database with one job, which no server uses.
async fn with_a_job(folder: &TempDir, name: &str) -> String {
    let address = sqlite(folder, name);
    let server = Server::at_url(&address, &[]);
    server.client().add_ids("work", &["a"]).await;
    server.stop().await;
    address
}

#[tokio::test]
async fn invalid_sources_and_targets_are_rejected() {
    let folder = TempDir::new().unwrap();
    let from = with_a_job(&folder, "from.db").await;
    let to = sqlite(&folder, "to.db");
    let nowhere = sqlite(&folder, "nowhere.db");
    refused(&nowhere, &to, "there is no file");
    assert!(!folder.path().join("nowhere.db").exists());
    assert!(!folder.path().join("to.db").exists());
    refused("mysql://me:secret@x/y", &to, "mysql://me@x/y");
    refused("sqlite::memory:", &to, "exists only inside its server");
    refused(&from, "sqlite::memory:", "exists only inside its server");
    refused(&from, &from, "the same database");
    std::os::unix::fs::symlink(folder.path().join("from.db"), folder.path().join("link.db"))
        .unwrap();
    refused(&from, &sqlite(&folder, "link.db"), "the same database");
    refused(&from, "sqlite:///nowhere/at/all/x.db", "the target");
    std::fs::write(folder.path().join("text.db"), "no database ".repeat(1000)).unwrap();
    refused(&sqlite(&folder, "text.db"), &to, "the source");
    std::fs::write(folder.path().join("empty.db"), "").unwrap();
    refused(&sqlite(&folder, "empty.db"), &to, "no Switchyard tables");
    let other = with_a_job(&folder, "other.db").await;
    refused(&from, &other, "the target is not empty");
    let old = with_a_job(&folder, "old.db").await;
    change(
        &folder.path().join("old.db"),
        "DELETE FROM _sqlx_migrations WHERE version > 2",
    )
    .await;
    refused(&old, &to, "another version of Switchyard");
    // None of these attempts has changed anything.
    let server = Server::at_url(&from, &[]);
    assert_eq!(server.client().job("a").await["state"], "waiting");
    refused(&from, &to, "a server is using the source");
    refused(&other, &from, "a server is using the target");
    server.stop().await;
    copied(&from, &to);
}

#[tokio::test]
async fn a_copy_that_fails_verification_is_not_committed() {
    let folder = TempDir::new().unwrap();
    let from = with_a_job(&folder, "from.db").await;
    let to = sqlite(&folder, "to.db");
    let server = Server::at_url(&to, &[]);
    server.stop().await;
    let path = folder.path().join("to.db");
    let trigger =
        "CREATE TRIGGER spoil AFTER INSERT ON jobs BEGIN UPDATE jobs SET body = body || ' '; END";
    change(&path, trigger).await;
    refused(&from, &to, "differ in jobs (1 rows with the checksum");
    // The target is still empty.
    change(&path, "DROP TRIGGER spoil").await;
    copied(&from, &to);
    let server = Server::at_url(&to, &[]);
    assert_eq!(server.client().job("a").await["state"], "waiting");
}

#[tokio::test]
async fn data_that_postgres_cannot_store_is_reported_before_writing() {
    let folder = TempDir::new().unwrap();
    let Some(to) = postgres(&folder, "nul") else {
        return;
    };
    let from = with_a_job(&folder, "from.db").await;
    let path = folder.path().join("from.db");
    change(
        &path,
        "UPDATE jobs SET failure_message = 'x' || char(0) || 'y'",
    )
    .await;
    refused(&from, &to, r#"NUL (U+0000), which these contain: job "a""#);
    copied(&from, &sqlite(&folder, "file.db"));
    change(&path, "UPDATE jobs SET failure_message = NULL").await;
    copied(&from, &to);
}

#[tokio::test]
async fn a_postgres_database_in_use_is_rejected() {
    let folder = TempDir::new().unwrap();
    let (Some(one), Some(other)) = (postgres(&folder, "one"), postgres(&folder, "other")) else {
        return;
    };
    let from = with_a_job(&folder, "from.db").await;
    refused(&format!("{one}_not_there"), &other, "does not exist");
    refused(&one, &other, "no Switchyard tables");
    refused(
        &one.replace("://", "://x:secret@")
            .replace("switchyard@", ""),
        &other,
        "x@127.0.0.1",
    );
    let server = Server::at_url(&one, &[]);
    refused(&from, &one, "a server is using the target");
    server.client().add_ids("work", &["b"]).await;
    refused(&from, &one, "the target is not empty");
    refused(&one, &other, "a server is using the source");
    server.stop().await;
    refused(
        &one,
        &format!("{one}?application_name=x"),
        "the same database",
    );
    copied(&one, &other);
    let mut server = Server::at_url(&other, &[]);
    assert_eq!(server.client().job("b").await["state"], "waiting");
    // A server that was killed could not unregister.
    server.kill();
    refused(
        &other,
        &sqlite(&folder, "to.db"),
        "a server is using the source",
    );
}
