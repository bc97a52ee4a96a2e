//! `switchyard backup` and `switchyard restore`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Executor};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::support::pair::assert_consistent;
use crate::support::{Server, database, one_in_each_state};

/// Clients that put jobs during a backup.
const CLIENTS: usize = 8;

struct PageStart {
    folder: TempDir,
}

impl PageStart {
    fn new() -> PageStart {
        let folder = TempDir::new().unwrap();
        PageStart { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn address(&self, name: &str) -> String {
        format!("sqlite://{}", self.path(name).display())
    }

    fn server(&self, name: &str) -> Server {
        Server::at_url(&self.address(name), &[])
    }

    fn backup(&self, database: &str, file: &str) -> Output {
        command_for("backup", &self.path(file), &self.address(database))
            .output()
            .unwrap()
    }

    fn restore(&self, file: &str, database: &str, more: &[&str]) -> Output {
        let mut command = command_for("restore", &self.path(file), &self.address(database));
        command.args(more).output().unwrap()
    }

    /// The names of all files except the lock files and disk reserves of servers.
    fn files(&self) -> BTreeSet<String> {
        let files = fs::read_dir(self.folder.path()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let kept = |name: &String| ![".lock", ".reserve"].iter().any(|end| name.ends_with(end));
        names.filter(kept).collect()
    }
}

fn command_for(what: &str, file: &Path, database: &str) -> Command {
    let mut command = Server::program();
    command.arg(what).arg(file).args(["--database", database]);
    command
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output, why: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(why), "{why}: {error}");
    assert!(!error.contains("panicked"), "{error}");
}

/// The IDs of all jobs that are waiting.
async fn waiting(server: &Server) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    loop {
        let path = format!("/jobs/waiting/work?offset={}&limit=1000", ids.len());
        let page = server.client().get(&path).await.ok();
        let page: Vec<String> = serde_json::from_value(page).unwrap();
        if page.is_empty() {
            return ids;
        }
        ids.extend(page);
    }
}

/// Puts jobs until a put fails. Acknowledged IDs are added to the set.
async fn put_until_killed(
    http: reqwest::Client,
    address: String,
    client: usize,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
) {
    for number in 0.. {
        let id = format!("job-{client}-{number}");
        let request = http.post(format!("http://{address}/add/work"));
        let body = json!({"data": {"id": id, "meta": "x".repeat(2_000)}}).to_string();
        let request = request
            .header("content-type", "application/json")
            .body(body);
        match request.send().await {
            Ok(response) if response.status() == 200 => acknowledged.lock().unwrap().insert(id),
            _ => return,
        };
    }
}

/// Starts clients that put jobs until the server is killed. Returns the set to which they add the IDs of acknowledged
/// jobs, and the clients.
fn put_from_all_clients(server: &Server) -> (Arc<Mutex<BTreeSet<String>>>, JoinSet<()>) {
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (http, address) = (server.http.clone(), server.address.clone());
        clients.spawn(put_until_killed(
            http,
            address,
            client,
            Arc::clone(&acknowledged),
        ));
    }
    (acknowledged, clients)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_has_every_job_acknowledged_before_it_began() {
    let place = PageStart::new();
    let mut server = place.server("jobs.db");
    let (acknowledged, clients) = put_from_all_clients(&server);
    let mut before = Vec::new();
    for number in 0..3 {
        let more = (number + 1) * 300;
        while acknowledged.lock().unwrap().len() < more {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        before.push(acknowledged.lock().unwrap().clone());
        let (file, address) = (
            place.path(&format!("backup-{number}")),
            place.address("jobs.db"),
        );
        let backup = tokio::task::spawn_blocking(move || {
            command_for("backup", &file, &address).output().unwrap()
        });
        let text = succeeded(&backup.await.unwrap());
        assert!(text.contains("verified (integrity, consistency)"), "{text}");
    }
    server.kill();
    clients.join_all().await;
    let acknowledged = acknowledged.lock().unwrap().clone();
    for (number, before) in before.iter().enumerate() {
        let (file, database) = (format!("backup-{number}"), format!("restored-{number}.db"));
        let mode = fs::metadata(place.path(&file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        succeeded(&place.restore(&file, &database, &[]));
        let restored = place.server(&database);
        assert_consistent(&restored).await;
        let ids = waiting(&restored).await;
        assert!(before.is_subset(&ids), "{} of {}", ids.len(), before.len());
        restored.stop().await;
    }
    // The server that was killed has lost nothing.
    let server = place.server("jobs.db");
    assert!(acknowledged.is_subset(&waiting(&server).await));
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_restored_database_has_jobs_in_all_states_and_continues() {
    let place = PageStart::new();
    let server = Server::at_url(&place.address("jobs.db"), &["--trust-client-clock"]);
    one_in_each_state(&server).await;
    let before = server.at(100).get("/queues").await.ok();
    succeeded(&place.backup("jobs.db", "backup"));
    server
        .at(100)
        .add("later", json!({"id": "after", "meta": 1}))
        .await;
    server.stop().await;
    // The database was changed after the backup; it is replaced.
    succeeded(&place.restore("backup", "jobs.db", &["--force"]));
    let server = Server::at_url(&place.address("jobs.db"), &["--trust-client-clock"]);
    assert_eq!(server.at(100).get("/queues").await.ok(), before);
    assert_consistent(&server).await;
    server
        .at(100)
        .add("later", json!({"id": "again", "meta": 1}))
        .await;
    server.stop().await;
    let mode = fs::metadata(place.path("jobs.db"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn files_are_neither_overwritten_nor_replaced_by_accident() {
    let place = PageStart::new();
    let server = place.server("jobs.db");
    server
        .client()
        .add("work", json!({"id": "kept", "meta": 1}))
        .await;
    fs::write(place.path("taken"), "mine").unwrap();
    refused(&place.backup("jobs.db", "taken"), "already exists");
    assert_eq!(fs::read_to_string(place.path("taken")).unwrap(), "mine");
    succeeded(&place.backup("jobs.db", "backup"));
    refused(&place.backup("jobs.db", "backup"), "already exists");
    for more in [&[][..], &["--force"]] {
        refused(
            &place.restore("backup", "jobs.db", more),
            "a server has this database open",
        );
    }
    assert_eq!(waiting(&server).await.len(), 1);
    server.stop().await;
    refused(
        &place.restore("backup", "jobs.db", &[]),
        "--force replaces it",
    );
    refused(&place.restore("jobs.db", "jobs.db", &[]), "already exists");
    refused(&place.backup("missing.db", "other"), "there is no file");
    refused(&place.restore("missing", "new.db", &[]), "there is no file");
    let (jobs, new) = (place.path("jobs.db"), place.path("absent/backup"));
    refused(
        &command_for("backup", &new, &format!("sqlite://{}", jobs.display()))
            .output()
            .unwrap(),
        "absent",
    );
    for address in ["postgres://nobody@127.0.0.1:1/none", "sqlite::memory:"] {
        let why = if address.starts_with("postgres") {
            "pg_dump"
        } else {
            "temporary"
        };
        refused(
            &command_for("backup", &place.path("other"), address)
                .output()
                .unwrap(),
            why,
        );
        refused(
            &command_for("restore", &place.path("backup"), address)
                .output()
                .unwrap(),
            why,
        );
    }
    let expected = ["backup", "jobs.db", "taken"].map(str::to_owned);
    assert_eq!(place.files(), expected.into(), "nothing is left over");
}

#[tokio::test]
async fn restore_keeps_a_symbolic_link_to_the_database() {
    let place = PageStart::new();
    let server = place.server("jobs.db");
    server
        .client()
        .add("work", json!({"id": "kept", "meta": 1}))
        .await;
    succeeded(&place.backup("jobs.db", "backup"));
    server.stop().await;
    std::os::unix::fs::symlink(place.path("jobs.db"), place.path("link.db")).unwrap();
    succeeded(&place.restore("backup", "link.db", &["--force"]));
    assert!(place.path("link.db").is_symlink());
    let server = place.server("jobs.db");
    assert_eq!(waiting(&server).await.len(), 1);
}

#[tokio::test]
async fn restore_creates_the_missing_file_that_a_link_names() {
    let place = PageStart::new();
    let server = place.server("jobs.db");
    let job = json!({"id": "kept", "meta": 1});
    server.client().post("/add/work", job).await.ok();
    succeeded(&place.backup("jobs.db", "backup"));
    fs::create_dir(place.path("data")).unwrap();
    std::os::unix::fs::symlink("data/new.db", place.path("link.db")).unwrap();
    succeeded(&place.restore("backup", "link.db", &[]));
    assert!(place.path("link.db").is_symlink());
    let server = place.server("data/new.db");
    assert_eq!(waiting(&server).await.len(), 1);
}

#[tokio::test]
async fn damaged_and_foreign_files_are_not_restored() {
    let place = PageStart::new();
    let server = place.server("jobs.db");
    for number in 0..50 {
        let job = json!({"id": format!("j{number}"), "meta": "x".repeat(5_000)});
        server.client().post("/add/work", job).await.ok();
    }
    succeeded(&place.backup("jobs.db", "backup"));
    let whole = fs::read(place.path("backup")).unwrap();
    let mut holed = whole.clone();
    let middle = whole.len() / 2;
    holed[middle..middle + 20_000].fill(0xAA);
    for (name, content, why) in [
        ("holed", holed, "is damaged"),
        ("half", whole[..middle].to_vec(), "is damaged"),
        ("text", b"not a database".to_vec(), "is damaged"),
        ("empty", Vec::new(), "is not a Switchyard database"),
    ] {
        fs::write(place.path(name), content).unwrap();
        refused(&place.restore(name, "new.db", &[]), why);
        fs::remove_file(place.path(name)).unwrap();
    }
    // Its triggers would run with the statements of a server.
    fs::write(place.path("triggered"), whole).unwrap();
    let mut connection = SqliteConnection::connect(&place.address("triggered"))
        .await
        .unwrap();
    let trigger = "CREATE TRIGGER foreign_one AFTER INSERT ON audit BEGIN DELETE FROM audit; END";
    connection.execute(trigger).await.unwrap();
    connection.close().await.unwrap();
    refused(
        &place.restore("triggered", "new.db", &[]),
        "trigger foreign_one",
    );
    // The file of a running server lacks what is still in its log.
    refused(
        &place.restore("jobs.db", "new.db", &[]),
        "has a write-ahead log beside it",
    );
    assert!(!place.path("new.db").exists());
}

#[tokio::test]
async fn a_killed_backup_leaves_no_incomplete_file_with_its_name() {
    let place = PageStart::new();
    let server = place.server("jobs.db");
    let jobs: Vec<Value> = (0..2_000)
        .map(|n| json!({"id": format!("j{n}"), "meta": "x".repeat(4_000)}))
        .collect();
    for jobs in jobs.chunks(250) {
        server.client().post("/add/work", json!(jobs)).await.ok();
    }
    for number in 0..3 {
        let file = place.path(&format!("backup-{number}"));
        let mut backup = command_for("backup", &file, &place.address("jobs.db"));
        let mut backup = backup
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Killed as soon as it writes, or later each time.
        let is_writing = || {
            place
                .files()
                .iter()
                .any(|name| name.starts_with(".switchyard-"))
        };
        while !is_writing() && backup.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(number));
        }
        backup.kill().ok();
        backup.wait().unwrap();
        if file.exists() {
            succeeded(&place.restore(
                &format!("backup-{number}"),
                &format!("restored-{number}.db"),
                &[],
            ));
        }
        for left in place
            .files()
            .iter()
            .filter(|name| name.starts_with(".switchyard-"))
        {
            fs::remove_dir_all(place.path(left)).unwrap();
        }
    }
    assert_consistent(&server).await;
    succeeded(&place.backup("jobs.db", "backup"));
}

#[tokio::test]
async fn restore_ignores_the_write_ahead_log_of_the_replaced_database() {
    let place = PageStart::new();
    let mut server = place.server("jobs.db");
    server
        .client()
        .add("work", json!({"id": "first", "meta": 1}))
        .await;
    succeeded(&place.backup("jobs.db", "backup"));
    server
        .client()
        .add("work", json!({"id": "second", "meta": 1}))
        .await;
    // The second job is only in the write-ahead log.
    server.kill();
    assert!(fs::metadata(place.path("jobs.db-wal")).unwrap().len() > 0);
    succeeded(&place.restore("backup", "jobs.db", &["--force"]));
    let server = place.server("jobs.db");
    assert_eq!(waiting(&server).await, ["first".to_owned()].into());
    assert_consistent(&server).await;
}

/// The documented way for Postgres: a dump while jobs are put, restored into another database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_dump_under_load_is_consistent() {
    let Some(postgres) = database::postgres() else {
        return;
    };
    let place = PageStart::new();
    let address = database::address(&place.path("jobs"));
    let mut server = Server::at_url(&address, &[]);
    let (acknowledged, clients) = put_from_all_clients(&server);
    while acknowledged.lock().unwrap().len() < 300 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let before = acknowledged.lock().unwrap().clone();
    let dump = place.path("switchyard.dump");
    let run = |mut command: Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let mut command = Command::new("pg_dump");
    command
        .args(["--format=custom", "--file"])
        .arg(&dump)
        .arg(&address);
    run(command);
    server.kill();
    clients.join_all().await;
    let restored = database::created(&postgres, &place.path("restored"));
    let mut command = Command::new("pg_restore");
    command
        .arg("--exit-on-error")
        .arg(format!("--dbname={restored}"))
        .arg(&dump);
    run(command);
    let server = Server::at_url(&restored, &[]);
    assert_consistent(&server).await;
    assert!(before.is_subset(&waiting(&server).await));
    let backup = command_for("backup", &place.path("file"), &address).output();
    refused(&backup.unwrap(), "pg_dump");
}
