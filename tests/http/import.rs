//! `switchyard import --from-postgres` imports the table of a Relay server, and its clients continue.

use std::process::Output;

use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;

use crate::support::relay::Relay;
use crate::support::{Server, database};

/// The table as Relay creates it (relay-io/relay, `relay-postgres/migrations/1697429987001_initialize.sql`), and jobs
/// as it leaves them: waiting, scheduled, running, running in the last attempt, and returned after a timeout.
const RELAY: &str = r#"
CREATE TABLE jobs (
    id varchar NOT NULL, queue varchar NOT NULL, timeout interval NOT NULL, max_retries smallint DEFAULT NULL,
    retries_remaining smallint DEFAULT NULL, data jsonb NOT NULL, state jsonb DEFAULT NULL,
    in_flight boolean DEFAULT FALSE, run_id uuid DEFAULT NULL, run_at timestamp without time zone NOT NULL,
    expires_at timestamp without time zone, updated_at timestamp without time zone NOT NULL,
    created_at timestamp without time zone NOT NULL, PRIMARY KEY (queue, id));
INSERT INTO jobs VALUES
    ('first', 'mail', '30 s', 3, 2, '{"to": "ada", "n": 1.50}', '{"step": 2}', false, NULL,
     '2024-01-01 10:00:00.000001', NULL, '2024-01-02 00:00:00', '2024-01-01 09:00:00'),
    ('second', 'mail', '01:00:00', NULL, NULL, 'null', NULL, false, NULL,
     '2024-01-01 10:00:00.000002', NULL, '2024-01-01 00:00:00', '2024-01-01 00:00:00'),
    ('later', 'mail', '30 s', 0, 0, '[1]', NULL, false, NULL,
     '2099-01-01 00:00:00', NULL, '2024-01-01 00:00:00', '2024-01-01 00:00:00'),
    ('running', 'mail', '1 day', 5, 5, '{}', 'null', true, 'd8b1f4a5-52ab-4a29-8c34-f6b3b6c1d2e3',
     '2024-01-01 00:00:00', '2099-01-01 00:00:00', '2024-01-03 00:00:00', '2024-01-01 00:00:00'),
    ('first', 'größe', '30 s', NULL, NULL, '1', NULL, true, 'a8b1f4a5-52ab-4a29-8c34-f6b3b6c1d2e3',
     '2024-01-01 00:00:00', '2024-01-01 00:00:30', '2024-01-01 00:00:00', '2024-01-01 00:00:00')"#;

fn import(from: &str, to: &str, options: &[&str]) -> Output {
    let mut command = Server::program();
    command.args(["import", "--from-postgres", from, "--database", to]);
    command.args(options).output().unwrap()
}

/// Imports the table. Returns the report.
#[track_caller]
fn imported(from: &str, to: &str, options: &[&str]) -> String {
    let output = import(from, to, options);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Checks that the import is rejected with an error that contains these words.
#[track_caller]
fn refused(from: &str, to: &str, words: &str) {
    let output = import(from, to, &[]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(words), "{text}");
}

/// The cells of a row of the report: found, imported, already exist, skipped.
#[track_caller]
fn cells<'a>(report: &'a str, name: &str) -> Vec<&'a str> {
    let row = report.lines().find_map(|line| line.strip_prefix(name));
    let row = row.unwrap_or_else(|| panic!("no row {name}: {report}"));
    row.split_whitespace().collect()
}

/// The numbers of a row of the report of an import.
#[track_caller]
fn row(report: &str, name: &str) -> [u64; 4] {
    let cells = cells(report, name);
    let numbers: Vec<u64> = cells.iter().map(|it| it.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// The source and the target; `None` if the tests run on SQLite.
async fn databases(folder: &TempDir) -> Option<(String, String)> {
    let Some(server) = database::postgres() else {
        println!("not run: it needs PostgreSQL (scripts/postgres.sh)");
        return None;
    };
    let from = database::created(&server, &folder.path().join("relay"));
    let mut connection = PgConnection::connect(&from).await.unwrap();
    connection.execute(RELAY).await.unwrap();
    connection.close().await.unwrap();
    let to = database::created(&server, &folder.path().join("target"));
    Some((from, to))
}

#[tokio::test]
async fn jobs_of_relay_continue_after_an_import() {
    let folder = TempDir::new().unwrap();
    let Some((from, to)) = databases(&folder).await else {
        return;
    };
    let dry = imported(&from, &to, &["--dry-run"]);
    assert_eq!(cells(&dry, "Relay waiting"), ["2", "2", "–", "0"]);
    let report = imported(&from, &to, &[]);
    assert_eq!(row(&report, "Relay waiting"), [2, 2, 0, 0]);
    assert_eq!(row(&report, "Relay scheduled"), [1, 1, 0, 0]);
    assert_eq!(row(&report, "Relay running"), [2, 2, 0, 0]);
    refused(&from, &to, "the target already has 5 of the source's jobs");
    let again = imported(&from, &to, &["--existing", "keep"]);
    assert_eq!(row(&again, "Relay running"), [2, 0, 2, 0]);

    let server = Server::at_url(&to, &[]);
    let relay = Relay::new(&server);
    let running = relay.existing_job("mail", "running").await;
    let run = "d8b1f4a5-52ab-4a29-8c34-f6b3b6c1d2e3".parse().unwrap();
    assert_eq!((running.timeout, running.run_id), (86_400, Some(run)));
    assert_eq!(
        (running.max_retries, running.retries_remaining),
        (Some(5), Some(5))
    );
    // The runner that got the job from Relay completes it.
    relay.complete(&running).await;
    assert!(!relay.exists("mail", "running").await);
    let first = relay.existing_job("mail", "first").await;
    assert_eq!(first.payload, r#"{"n": 1.50, "to": "ada"}"#);
    assert_eq!(first.state.as_deref(), Some(r#"{"step": 2}"#));
    assert_eq!(
        first.run_at.to_rfc3339(),
        "2024-01-01T10:00:00.000001+00:00"
    );
    assert_eq!(first.retries_remaining, Some(2));
    assert_eq!(relay.next_ids("mail", 10).await, ["first", "second"]);
    // The lease of this one has expired.
    assert_eq!(relay.next_ids("größe", 10).await, ["first"]);
    let found = server.client().get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
}

#[tokio::test]
async fn a_target_in_use_and_a_source_without_the_table_are_refused() {
    let folder = TempDir::new().unwrap();
    let Some((from, to)) = databases(&folder).await else {
        return;
    };
    refused(&to, &from, "has no table of Relay");
    let file = folder.path().join("jobs.db");
    let file = format!("sqlite://{}", file.display());
    let server = Server::at_url(&file, &[]);
    refused(&from, &file, "another server has this database open");
    server.stop().await;
    imported(&from, &file, &[]);
    let mut server = Server::at_url(&to, &[]);
    refused(&from, &to, "a server is using the target");
    server.kill();
}
