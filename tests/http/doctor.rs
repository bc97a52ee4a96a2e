//! `switchyard doctor` and the support bundle.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor};
use tempfile::TempDir;

use crate::support::keys::ADMIN;
use crate::support::{Server, database};

struct Installation(TempDir);

impl Installation {
    fn new() -> Installation {
        Installation(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn address(&self) -> String {
        format!("sqlite://{}", self.path("jobs.db").display())
    }

    /// Creates an SQLite database with a queue. No server has it open.
    async fn create_database(&self) {
        let server = Server::at_url(&self.address(), &[]);
        let job = json!({"id": "the-name-of-a-job", "meta": "the-payload-of-a-job"});
        server
            .client()
            .post("/add/the-name-of-a-queue", job)
            .await
            .ok();
        server.stop().await;
    }

    /// Runs a statement on the database, as an administrator might by accident.
    async fn run(&self, sql: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.path("jobs.db"));
        let mut connection = options.connect().await.unwrap();
        connection.execute(sql).await.unwrap();
        connection.close().await.unwrap();
    }

    fn doctor(&self, arguments: &[&str]) -> Output {
        let mut command = Server::program();
        command
            .args(["doctor", "--database", &self.address()])
            .args(arguments);
        command.output().unwrap()
    }

    /// The findings with this level, and the exit code.
    fn findings(&self, level: &str, arguments: &[&str]) -> (Vec<(String, String)>, i32) {
        let output = self.doctor(&[&["--json"], arguments].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let with_level = findings.filter(|finding| finding["level"] == level);
        let found = with_level
            .map(|it| (text(&it["check"]), text(&it["message"])))
            .collect();
        (found, output.status.code().unwrap())
    }

    #[track_caller]
    fn assert_problem(&self, check: &str, words: &str, arguments: &[&str]) {
        let (problems, code) = self.findings("problem", arguments);
        assert_eq!(code, 1, "{problems:?}");
        let is_it = |(name, message): &(String, String)| name == check && message.contains(words);
        assert!(problems.iter().any(is_it), "{check}: {words}: {problems:?}");
    }
}

#[tokio::test]
async fn a_sound_installation_has_no_problems() {
    let installation = Installation::new();
    let (warnings, code) = installation.findings("warning", &[]);
    assert_eq!(code, 0);
    assert!(
        warnings
            .iter()
            .any(|(_, message)| message.contains("has no tables yet")),
        "{warnings:?}"
    );
    assert!(!installation.path("jobs.db").exists(), "nothing is created");
    installation.create_database().await;
    let output = installation.doctor(&[]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{text}");
    for line in [
        "ok       database       SQLite",
        "not in use",
        "ok       integrity",
        "ok       consistency",
        "ok       migrations",
        "ok       indexes",
        "ok       disk",
        "ok       clock",
        "ok       files",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // A server that is running does not disturb the checks.
    let server = Server::at_url(&installation.address(), &[]);
    let (problems, code) = installation.findings("problem", &[]);
    assert_eq!((problems, code), (Vec::new(), 0));
    let (fine, _) = installation.findings("ok", &[]);
    assert!(
        fine.iter()
            .any(|(_, message)| message.contains("in use by a server")),
        "{fine:?}"
    );
    server.stop().await;
}

#[tokio::test]
async fn without_a_folder_for_temporary_files_the_check_sorts_beside_the_database() {
    let installation = Installation::new();
    let folder = installation.path("that's it");
    fs::create_dir(&folder).unwrap();
    let address = format!("sqlite://{}", folder.join("jobs.db").display());
    let server = Server::at_url(&address, &[]);
    server.stop().await;
    let files = || fs::read_dir(&folder).unwrap().count();
    let before = files();
    let mut command = Server::program();
    command.args(["doctor", "--database", &address]);
    command.env("TMPDIR", installation.path("missing"));
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ok       consistency"), "{text}");
    assert_eq!(files(), before, "the files of the sorts are deleted");
}

#[tokio::test]
async fn problems_are_found_and_change_the_exit_code() {
    let installation = Installation::new();
    installation.create_database().await;
    installation.assert_problem("access", "--admin-token", &["--listen", "0.0.0.0:0"]);
    installation.assert_problem("configuration", "HTTPS", &["--hsts"]);
    installation.run("DROP INDEX jobs_waiting").await;
    installation.assert_problem("indexes", "jobs_waiting", &[]);
    installation
        .run("UPDATE tallies SET n = n + 3 WHERE kind = 0")
        .await;
    installation.assert_problem("consistency", "inconsistencies", &[]);
    installation
        .run("CREATE UNIQUE INDEX foreign_one ON audit (role)")
        .await;
    installation.assert_problem(
        "definitions",
        "the file has unexpected tables or indexes",
        &[],
    );
    let database = installation.path("jobs.db");
    fs::set_permissions(&database, fs::Permissions::from_mode(0o666)).unwrap();
    installation.assert_problem("files", "can be changed by others (mode 666)", &[]);
    fs::set_permissions(&database, fs::Permissions::from_mode(0o644)).unwrap();
    let (warnings, _) = installation.findings("warning", &[]);
    assert!(
        warnings
            .iter()
            .any(|(_, message)| message.contains("can be read by others")),
        "{warnings:?}"
    );
    let secret = installation.path("alert-secret");
    fs::write(&secret, "0123456789abcdef").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let path = secret.display().to_string();
    let (warnings, _) = installation.findings("warning", &["--alert-secret-file", &path]);
    assert!(
        warnings.iter().any(|(_, message)| message.contains(&path)),
        "{warnings:?}"
    );
    installation
        .run("UPDATE _sqlx_migrations SET version = 999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .await;
    installation.assert_problem("migrations", "from a newer program", &[]);
    let far = std::time::SystemTime::now() + std::time::Duration::from_secs(10_000);
    fs::File::options()
        .write(true)
        .open(&database)
        .unwrap()
        .set_modified(far)
        .unwrap();
    installation.assert_problem("clock", "the clock was set back", &[]);
    fs::write(
        &database,
        "not a database, but a text that is long enough to have a header".repeat(100),
    )
    .unwrap();
    let (problems, code) = installation.findings("problem", &[]);
    assert_eq!(code, 1);
    assert!(
        problems
            .iter()
            .any(|(check, _)| check == "database" || check == "integrity"),
        "{problems:?}"
    );
}

#[tokio::test]
async fn the_bundle_has_versions_and_counts_but_no_payloads_names_or_secrets() {
    let installation = Installation::new();
    installation.create_database().await;
    installation
        .run("UPDATE tallies SET n = n + 3 WHERE kind = 0")
        .await;
    let path = installation.path("bundle.json");
    let bundle = path.display().to_string();
    let arguments = [
        "--bundle",
        &bundle,
        "--admin-token",
        ADMIN,
        "--ui-key",
        "viewer:olga:the-secret-of-olga",
    ];
    let output = installation.doctor(&arguments);
    assert_eq!(
        output.status.code(),
        Some(1),
        "the database is inconsistent"
    );
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("the-name-of-a-queue"),
        "the terminal shows details"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let text = fs::read_to_string(&path).unwrap();
    for hidden in ["the-name-of", "the-payload-of", ADMIN, "the-secret-of-olga"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    let bundle: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(bundle["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(bundle["database"]["rows"]["jobs"], 1);
    assert_eq!(bundle["database"]["kind"], "SQLite");
    let settings = bundle["settings"].to_string();
    assert!(
        settings.contains("# admin-token is set and not shown"),
        "{settings}"
    );
    assert!(bundle["findings"].as_array().unwrap().len() > 8);
    // An existing file is not replaced.
    let again = installation.doctor(&arguments);
    assert!(String::from_utf8_lossy(&again.stderr).contains("cannot write"));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn doctor_reports_that_a_server_uses_the_database() {
    let folder = TempDir::new().unwrap();
    let database = database::address(&folder.path().join("jobs.db"));
    let server = Server::at_url(&database, &[]);
    server
        .client()
        .add("work", json!({"id": "a", "meta": 1}))
        .await;
    let mut command = Server::program();
    let output = command
        .args(["doctor", "--json", "--database", &database])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["problems"], 0, "{report:#}");
    assert!(
        report.to_string().contains("in use by a server"),
        "{report:#}"
    );
}
