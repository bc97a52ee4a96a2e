//! Databases of all earlier schemas are upgraded with their jobs, even if the server is killed meanwhile. A database of
//! a newer program is refused.
//!
//! `SWITCHYARD_JOBS` sets the number of jobs, `SWITCHYARD_UPGRADE_KILLS` how often each of some upgrades is
//! interrupted, `SWITCHYARD_SEED` when.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqlSafeStr};
use tempfile::TempDir;

use crate::support::random::Random;
use crate::support::{Server, database, settings};

/// The initial schemas of the upgrades that are killed. Each is followed by migrations that change rows.
const INTERRUPTED: [usize; 3] = [1, 8, 15];

/// Longer than `LONG` in `src/engine/model/body.rs`: a longer body than that has a row of its own.
const LONG: usize = 20_000;

/// The schema from which long bodies are separate rows, and the one with tables of tags and of recurring jobs.
const LONG_BODIES: usize = 17;
const TAGS: usize = 3;

/// Runs statements on the database, in the dialect of both.
macro_rules! on {
    ($address:expr, |$connection:ident| $run:expr) => {
        if $address.starts_with("postgres") {
            let mut $connection = PgConnection::connect($address).await.unwrap();
            $run;
            $connection.close().await.unwrap();
        } else {
            let options: SqliteConnectOptions = $address.parse().unwrap();
            let options = options.create_if_missing(true);
            let mut $connection = options.connect().await.unwrap();
            $run;
            $connection.close().await.unwrap();
        }
    };
}

/// The migrations of a database, in the order of their versions.
fn migrations(address: &str) -> Vec<Migration> {
    let dialect = if address.starts_with("postgres") {
        "postgres"
    } else {
        "sqlite"
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("migrations")
        .join(dialect);
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let migrations = files.iter().zip(1..).map(|(file, version)| {
        let sql = fs::read_to_string(file).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy();
        let (_, description) = name.split_once('_').unwrap();
        let description = description.replace('_', " ");
        let sql = AssertSqlSafe(sql).into_sql_str();
        Migration::new(
            version,
            description.into(),
            MigrationType::Simple,
            sql,
            false,
        )
    });
    migrations.collect()
}

/// What a job of this number has in every schema.
fn meta(number: u64, schema: usize) -> Value {
    if schema < LONG_BODIES && number.is_multiple_of(50) {
        json!("x".repeat(LONG))
    } else {
        json!(number)
    }
}

/// Statements that write this many jobs, in five states, and a recurring job into a database of this schema.
fn jobs(count: u64, schema: usize) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_micros()).unwrap();
    let (past, future) = (now - 60_000_000, now + 3_600_000_000);
    let day = past / 86_400_000_000;
    let long = json!("x".repeat(LONG));
    let has_long = i32::from(schema < LONG_BODIES);
    let fill = format!(
        "INSERT INTO queues (id, protocol, namespace, name, first_seen) VALUES (1, 'qless', '', 'work', {past});
         INSERT INTO workers (protocol, name, last_seen) VALUES ('qless', 'w', {past});
         WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {count})
         INSERT INTO jobs (seq, scope, id, queue, state, priority, ready_at, since, worker, lease_id, lease_until, retries,
             remaining, tags, history, failure_group, failure_message, failure_worker, failure_at, body, created_at, version)
         SELECT n + 1, 0, 'job-' || n, 1, CASE n % 5 WHEN 0 THEN 1 WHEN 1 THEN 2 WHEN 2 THEN 4 WHEN 3 THEN 5 ELSE 6 END, 0,
             CASE n % 5 WHEN 1 THEN {future} ELSE {past} END, {past}, CASE n % 5 WHEN 2 THEN 'w' END,
             CASE n % 5 WHEN 2 THEN 'lease' || n END, CASE n % 5 WHEN 2 THEN {future} END, 5, 5,
             CASE n % 7 WHEN 0 THEN '[\"t\"]' ELSE '[]' END, '[[\"put\",{past},\"work\",null]]',
             CASE n % 5 WHEN 3 THEN 'g' END, CASE n % 5 WHEN 3 THEN 'm' END, CASE n % 5 WHEN 3 THEN 'w' END,
             CASE n % 5 WHEN 3 THEN {past} END, CASE WHEN {has_long} = 1 AND n % 50 = 0 THEN '{long}' ELSE '' || n END,
             {past}, 1
         FROM numbers;
         INSERT INTO tallies (kind, queue, day, slot, server, n)
         SELECT 0, 1, 0, state, 0, count(*) FROM jobs GROUP BY state;
         INSERT INTO tallies (kind, queue, day, slot, server, n)
         SELECT 3, 1, {day}, slots.slot, 0, count(*) FROM jobs, (SELECT 0 AS slot UNION ALL SELECT 1) AS slots
         WHERE state = 5 GROUP BY slots.slot;
         INSERT INTO failure_counts (failure_group, queue, server, n) SELECT 'g', 1, 0, count(*) FROM jobs WHERE state = 5;"
    );
    let tags = "INSERT INTO tags (job, tag, tagged_at, id)
         SELECT seq, 't', created_at, id FROM jobs WHERE tags <> '[]';
         INSERT INTO tag_counts (tag, server, n) SELECT 't', 0, count(*) FROM tags;";
    let recurring = format!(
        r#"INSERT INTO recurring (id, seq, queue, next_at, interval, made, backlog, priority, retries, klass, tags, body, version)
         VALUES ('r', {count} + 1, 1, {future}, 60000000, 7, 2, 5, 3, 'k', '["t"]', '"{}"', 1);"#,
        "x".repeat(LONG)
    );
    if schema < TAGS {
        fill
    } else {
        fill + tags + &recurring
    }
}

/// Makes a database of this schema with jobs.
async fn prepare(address: &str, schema: usize, count: u64) {
    let mut migrations = migrations(address);
    migrations.truncate(schema);
    let migrator = Migrator::with_migrations(migrations);
    on!(address, |connection| {
        migrator.run(&mut connection).await.unwrap();
        let fill = AssertSqlSafe(jobs(count, schema));
        sqlx::raw_sql(fill).execute(&mut connection).await.unwrap();
    });
}

/// Starts the server on the database, and checks that all jobs exist and can be processed.
async fn assert_upgraded(address: &str, schema: usize, count: u64) {
    let server = Server::at_url(address, &[]);
    let client = server.client();
    assert_eq!(
        client.get("/check").await.ok(),
        json!({"problems": []}),
        "from {schema}"
    );
    let queue = client.get("/queue/work").await.ok();
    for (state, first) in [("waiting", 0), ("scheduled", 1), ("running", 2)] {
        let expected = (count - first).div_ceil(5);
        assert_eq!(queue[state], expected, "{state} from {schema}: {queue}");
    }
    let group = client.get("/failed/g").await.ok();
    assert_eq!(
        group["total"],
        (count - 3).div_ceil(5),
        "from {schema}: {group}"
    );
    for number in 0..count.min(60) {
        let job = client.get(&format!("/job/job-{number}")).await.ok();
        assert_eq!(job["meta"], meta(number, schema), "{number} from {schema}");
        let tags = if number.is_multiple_of(7) {
            json!(["t"])
        } else {
            json!([])
        };
        assert_eq!(job["tags"], tags, "{number} from {schema}");
    }
    if schema >= TAGS {
        let recurring = client.get("/recurring/r").await.ok();
        let expected = json!({"id": "r", "queue": "work", "klass": "k", "meta": "x".repeat(LONG), "state": "recur",
            "priority": 5, "interval": 60, "retries": 3, "count": 7, "tags": ["t"], "backlog": 2});
        assert_eq!(recurring, expected, "from {schema}");
    }
    let worker = server.by("w");
    assert_eq!(worker.pop("work").await["id"], "job-0", "from {schema}");
    worker.complete("work", "job-0").await;
    // The lease from before the upgrade is still valid.
    worker.complete("work", "job-2").await;
    assert_eq!(
        client.get("/check").await.ok(),
        json!({"problems": []}),
        "from {schema}"
    );
    server.stop().await;
}

/// The address of a database without tables, in this folder.
fn empty(folder: &TempDir) -> String {
    let path = folder.path().join("jobs.db");
    match database::postgres() {
        Some(server) => database::created(&server, &path),
        None => database::address(&path),
    }
}

#[tokio::test]
async fn databases_of_all_earlier_schemas_are_upgraded_with_their_jobs() {
    let count = settings::number("SWITCHYARD_JOBS", 200);
    let last = migrations("").len();
    for schema in 1..=last {
        let folder = TempDir::new().unwrap();
        let address = empty(&folder);
        prepare(&address, schema, count).await;
        assert_upgraded(&address, schema, count).await;
    }
}

#[tokio::test]
async fn an_upgrade_that_is_killed_continues_at_the_next_start() {
    let count = settings::number("SWITCHYARD_JOBS", 5_000);
    let kills = settings::number("SWITCHYARD_UPGRADE_KILLS", 3);
    let mut random = Random(settings::seed());
    for schema in INTERRUPTED {
        let folder = TempDir::new().unwrap();
        let address = empty(&folder);
        prepare(&address, schema, count).await;
        for _ in 0..kills {
            let mut command = Server::command(&address, &[]);
            let mut upgrading = command.stdout(Stdio::null()).spawn().unwrap();
            // The times are random on purpose.
            tokio::time::sleep(Duration::from_millis(random.below(count / 25 + 1))).await;
            upgrading.kill().unwrap();
            upgrading.wait().unwrap();
        }
        assert_upgraded(&address, schema, count).await;
    }
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let folder = TempDir::new().unwrap();
    let address = empty(&folder);
    Server::at_url(&address, &[]).stop().await;
    let newer = "UPDATE _sqlx_migrations SET version = 999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)";
    on!(address.as_str(), |connection| {
        sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
    });
    let refused = Server::command(&address, &[]).output().unwrap();
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr);
    let why = "schema is version 999, from a newer program";
    assert!(error.contains(why), "{error}");
}
