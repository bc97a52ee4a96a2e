//! `/check`: finds and repairs inconsistencies that the test creates while the server runs.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection, Executor};
use tempfile::TempDir;

use crate::support::jobq::Jobq;
use crate::support::log::Logged;
use crate::support::{Caller, Server, database};

/// A kind of inconsistency, the statement that creates it, and a word of its description.
const BREAKAGES: [(&str, &str, &str); 30] = [
    (
        "number",
        "UPDATE queues SET last_number = 0 WHERE protocol = 'jobq'",
        "\"hosts\" records 0 as its last job ID, but has job 1",
    ),
    (
        "count",
        "UPDATE tallies SET n = n + 3 WHERE kind = 0 AND slot = 1",
        "waiting",
    ),
    ("count", "DELETE FROM tallies WHERE kind = 0", "failed"),
    (
        "count",
        "INSERT INTO tallies (kind, queue, day, slot, server, n) VALUES (0, 1, 0, 2, 9, 5)",
        "scheduled",
    ),
    (
        "tag",
        "DELETE FROM tags WHERE tag = 'red'",
        "\"waiting\" has the tag \"red\"",
    ),
    (
        "tagged",
        "INSERT INTO tags (job, tag, tagged_at, id) SELECT seq, 'blue', 1, id FROM jobs WHERE id = 'waiting'",
        "blue",
    ),
    (
        "tagged",
        "INSERT INTO tags (job, tag, tagged_at, id) VALUES (4711, 'blue', 1, 'nobody')",
        "nobody",
    ),
    (
        "tags",
        "UPDATE jobs SET tags = 'red' WHERE id = 'waiting'",
        "\"waiting\" has tags that cannot be read",
    ),
    (
        "tags",
        "UPDATE jobs SET tags = '[\"red\", 7]' WHERE id = 'waiting'",
        "\"waiting\" has tags that cannot be read",
    ),
    (
        "history",
        "UPDATE jobs SET history = '[[\"put\",1,' WHERE id = 'running'",
        "\"running\" has a history that cannot be read",
    ),
    (
        "history",
        "UPDATE jobs SET history = 'x', tags = '' WHERE id = 'waiting'",
        "\"waiting\" has a history that cannot be read",
    ),
    (
        "history",
        "UPDATE jobs SET history = '' WHERE state = 9",
        "\"1\" has a history that cannot be read",
    ),
    ("tag-count", "UPDATE tag_counts SET n = 7", "red"),
    ("tag-count", "DELETE FROM tag_counts", "red"),
    (
        "dependency",
        "INSERT INTO dependencies (job, needs) SELECT seq, 4711 FROM jobs WHERE id = 'depends'",
        "does not exist",
    ),
    (
        "dependency",
        "INSERT INTO dependencies (job, needs) SELECT 4711, seq FROM jobs WHERE id = 'waiting'",
        "\"waiting\"",
    ),
    (
        "dependency",
        "INSERT INTO dependencies (job, needs)
         SELECT a.seq, b.seq FROM jobs AS a, jobs AS b WHERE a.id = 'depends' AND b.id = 'complete'",
        "complete",
    ),
    (
        "dependency",
        "INSERT INTO dependencies (job, needs)
         SELECT a.seq, b.seq FROM jobs AS a, jobs AS b WHERE a.id = 'failed' AND b.id = 'waiting'",
        "not in state depends",
    ),
    ("depends", "DELETE FROM dependencies", "\"depends\""),
    (
        "lease",
        "UPDATE jobs SET worker = NULL WHERE id = 'running'",
        "without a lease",
    ),
    (
        "lease",
        "UPDATE jobs SET worker = 'w', lease_id = 'x', lease_until = 1 WHERE id = 'waiting'",
        "not running but has a lease",
    ),
    (
        "failure",
        "UPDATE jobs SET failure_at = NULL WHERE id = 'failed'",
        "\"failed\"",
    ),
    (
        "body",
        "INSERT INTO long_bodies (job, body) VALUES (4711, 'x')",
        "4711",
    ),
    (
        "lost-body",
        "UPDATE jobs SET body = '<0000000020' WHERE id = 'waiting'",
        "\"waiting\" has lost its body of 20 bytes",
    ),
    ("failure-count", "UPDATE failure_counts SET n = 9", "Oops"),
    ("failure-count", "DELETE FROM failure_counts", "Oops"),
    (
        "failed",
        "UPDATE tallies SET n = n - 1 WHERE kind = 3 AND slot = 1",
        "still-failed",
    ),
    (
        "statistics",
        "UPDATE tallies SET n = n + 1 WHERE kind = 1 AND slot = -1",
        "waited",
    ),
    (
        "statistics",
        "DELETE FROM tallies WHERE kind = 2 AND slot >= 0",
        "ran",
    ),
    (
        "worker",
        // Only a little earlier than its last claim, because maintenance forgets workers that were last seen long ago.
        "UPDATE workers SET last_seen = last_seen - 1 WHERE name = 'w'",
        "\"w\"",
    ),
];

/// A server with a job in each state.
async fn scene(database: &Path) -> Server {
    let server = Server::on(database, &[]);
    let worker = server.by("w");
    worker.add_and_pop(json!({"id": "failed", "meta": 1})).await;
    worker.fail("failed", "Oops").await;
    worker
        .add_and_pop(json!({"id": "complete", "meta": 1}))
        .await;
    worker.complete("work", "complete").await;
    worker
        .add_and_pop(json!({"id": "running", "meta": 1}))
        .await;
    let jobs = json!([
        {"id": "waiting", "meta": 1, "tags": ["red"]},
        {"id": "scheduled", "meta": 1, "delay": 1000},
        {"id": "depends", "meta": 1, "depends": ["waiting"]},
    ]);
    worker.post("/add/work", jobs).await.ok();
    let jobq = Jobq::new(&server);
    jobq.create("hosts").await;
    jobq.put("hosts", &json!("a payload")).await;
    server
}

/// Runs a statement directly on the database.
pub async fn run_statement(path: &Path, sql: &'static str) {
    let done = if database::postgres().is_some() {
        let address = database::address(path);
        let mut connection = PgConnection::connect(&address).await.unwrap();
        connection.execute(sql).await.map(drop)
    } else {
        let options = SqliteConnectOptions::new().filename(path);
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        connection.execute(sql).await.map(drop)
    };
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn problems(who: Caller<'_>) -> Vec<(String, String)> {
    let found = who.get("/check").await.ok();
    kinds(&found)
}

fn kinds(found: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let problems = found["problems"].as_array().unwrap().iter();
    problems
        .map(|problem| (text(&problem["kind"]), text(&problem["message"])))
        .collect()
}

#[tokio::test]
async fn each_kind_of_inconsistency_is_found_and_repaired() {
    let folder = TempDir::new().unwrap();
    for (index, (kind, breakage, about)) in BREAKAGES.into_iter().enumerate() {
        let path = folder.path().join(format!("{index}.db"));
        let server = scene(&path).await;
        let worker = server.by("w");
        assert_eq!(problems(worker).await, [], "before: {breakage}");
        run_statement(&path, breakage).await;
        let found = problems(worker).await;
        let repair_result = worker.post("/check", json!({"resolve": true})).await.ok();
        let of_kind =
            |(found, message): &(String, String)| found == kind && message.contains(about);
        assert!(found.iter().any(of_kind), "{breakage}: {found:?}");
        assert!(
            kinds(&repair_result).iter().any(of_kind),
            "{breakage}: {repair_result}"
        );
        assert_eq!(
            repair_result["resolved"],
            kinds(&repair_result).len(),
            "{breakage}: {repair_result}"
        );
        assert_eq!(problems(worker).await, [], "after: {breakage}");
        // After the repair, the queue works.
        worker
            .add("work", json!({"id": "next", "meta": 1, "priority": -9}))
            .await;
        assert_eq!(worker.pop("work").await["id"], "next");
        worker.complete("work", "next").await;
        assert_eq!(problems(worker).await, [], "after more work: {breakage}");
    }
}

#[tokio::test]
async fn tags_that_cannot_be_read_are_logged_and_kept_until_they_are_repaired() {
    let logged = Logged::with("info", &[]);
    let client = logged.server.by("w");
    let jobs = json!([
        {"id": "damaged", "meta": 1, "tags": ["red", "big"]},
        {"id": "whole", "meta": 1, "tags": ["red"]},
    ]);
    client.post("/add/work", jobs).await.ok();
    let path = logged.database_path();
    run_statement(
        &path,
        "UPDATE jobs SET tags = '[\"red\"' WHERE id = 'damaged'",
    )
    .await;

    // Changes of the job keep the text, so that it is still found.
    let priority = json!({"id": "damaged", "priority": -1});
    client.post("/priority", priority).await.ok();
    let tag = |tags: Value| json!({"id": "damaged", "tags": tags});
    for path in ["/tag", "/untag"] {
        let refused = client.post(path, tag(json!(["big"]))).await;
        assert_eq!(refused.status, 500);
        assert!(
            refused.text.contains("the stored tags of job"),
            "{refused:?}"
        );
    }
    assert_eq!(client.job("damaged").await["tags"], json!([]));
    let found = problems(client).await;
    let expected = "job \"damaged\" has tags that cannot be read";
    assert_eq!(found, [("tags".to_owned(), expected.to_owned())]);
    let log = logged.log();
    let lines = log
        .lines()
        .filter(|line| line.contains("the stored tags of a job cannot be read"));
    let lines: Vec<_> = lines.collect();
    assert!(lines.len() == 1 && lines[0].contains("damaged"), "{log}");

    // The repair takes the tags from the tag index.
    let repaired = client.post("/check", json!({"resolve": true})).await.ok();
    assert_eq!(repaired["resolved"], 1, "{repaired}");
    assert_eq!(client.job("damaged").await["tags"], json!(["big", "red"]));
    assert_eq!(client.get("/tag/red").await.ok()["total"], 2);
    client.post("/untag", tag(json!(["big"]))).await.ok();
    assert_eq!(problems(client).await, []);
}

#[tokio::test]
async fn a_history_that_cannot_be_read_is_logged_and_replaced_by_a_note() {
    let logged = Logged::with("info", &[]);
    let client = logged.server.by("w");
    client
        .add("work", json!({"id": "damaged", "meta": 1}))
        .await;
    let path = logged.database_path();
    let sql = "UPDATE jobs SET history = '[[\"put\"' || history WHERE id = 'damaged'";
    run_statement(&path, sql).await;
    assert_eq!(client.pop("work").await["history"], json!([]));
    client.complete("work", "damaged").await;
    let log = logged.log();
    assert!(
        log.contains("the stored history of a job cannot be read"),
        "{log}"
    );
    client.post("/check", json!({"resolve": true})).await.ok();
    let history = client.job("damaged").await["history"].clone();
    assert_eq!(history.as_array().unwrap().len(), 1);
    assert_eq!(
        history[0]["what"],
        "the earlier history could not be read and was removed"
    );
    assert_eq!(problems(client).await, []);
}

#[tokio::test]
async fn jobs_without_a_queue_get_one() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.db");
    let server = scene(&path).await;
    let worker = server.by("w");
    run_statement(&path, "UPDATE jobs SET queue = 77 WHERE id = 'waiting'").await;
    let found = problems(worker).await;
    assert!(found.iter().any(|(kind, _)| kind == "queue"), "{found:?}");
    worker.post("/check", json!({"resolve": true})).await.ok();
    assert_eq!(problems(worker).await, []);
    let queue = worker.job("waiting").await["queue"].clone();
    assert_eq!(worker.pop(queue.as_str().unwrap()).await["id"], "waiting");
}

#[tokio::test]
async fn several_inconsistencies_are_repaired_together() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.db");
    let server = scene(&path).await;
    let worker = server.by("w");
    for breakage in [
        "DELETE FROM tallies",
        "DELETE FROM tags",
        "DELETE FROM dependencies",
        "UPDATE jobs SET lease_until = NULL",
    ] {
        run_statement(&path, breakage).await;
    }
    let repair_result = worker.post("/check", json!({"resolve": true})).await.ok();
    assert_eq!(
        repair_result["resolved"],
        kinds(&repair_result).len(),
        "{repair_result}"
    );
    assert_eq!(problems(worker).await, []);
    assert_eq!(worker.state("depends").await, "waiting");
    assert_eq!(worker.state("running").await, "waiting");
    let counts = worker.get("/queue/work").await.ok();
    assert_eq!(counts["waiting"], 3, "{counts}");
    assert_eq!(worker.get("/tag/red").await.ok()["total"], 1);
}

#[tokio::test]
async fn a_consistent_database_has_no_problems_and_is_not_changed() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    assert_eq!(worker.get("/check").await.ok(), json!({"problems": []}));
    worker.add_ids("work", &["a", "b"]).await;
    assert_eq!(worker.pop("work").await["id"], "a");
    let response = worker.post("/check", json!({"resolve": true})).await.ok();
    assert_eq!(response, json!({"problems": [], "resolved": 0}));
    assert_eq!(worker.state("a").await, "running");
    worker.complete("work", "a").await;
}

#[tokio::test]
async fn repair_must_be_requested() {
    let server = Server::start();
    let client = server.at(0);
    let response = client.post("/check", json!({"resolve": false})).await;
    response.assert_rejected_field("resolve");
    client
        .post("/check", json!({}))
        .await
        .assert_rejected_field("resolve");
    client
        .post("/check", json!(true))
        .await
        .assert_rejected_field("data");
    let response = client.post_whole("/check", json!({})).await;
    response.assert_rejected_field("data");
}
