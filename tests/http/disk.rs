//! A full disk: new jobs are rejected, everything else works, and no acknowledged job is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tempfile::TempDir;

use crate::support::eventually;
use crate::support::jobq::{self, Jobq};
use crate::support::lmstfy::Lmstfy;
use crate::support::metrics::metrics_when;
use crate::support::postgres::Postgres;
use crate::support::relay::{self, Relay};
use crate::support::{Response, Server, database};

/// A file system of 32 MiB in memory, which only the server can access.
struct Disk {
    folder: TempDir,
}

impl Disk {
    fn new() -> Disk {
        Disk {
            folder: TempDir::new().unwrap(),
        }
    }

    /// Starts a server with a new disk that contains its database, after running this shell command there.
    fn server(&self, prepare: &str, options: &[&str]) -> Server {
        let path = self.folder.path();
        let database = format!("sqlite://{}", path.join("jobs.db").display());
        let serve = Server::command(&database, options);
        let script = format!(
            r#"mount -t tmpfs -o size=32m tmpfs "$0" && cd "$0" && {prepare} && exec "$@""#
        );
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .arg(path)
            .arg(serve.get_program())
            .args(serve.get_args());
        for (name, value) in serve.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Server::run(command)
    }

    /// The path of a file on the disk, for the test process.
    fn path(&self, server: &Server, name: &str) -> PathBuf {
        let folder = self.folder.path().strip_prefix("/").unwrap();
        Path::new("/proc")
            .join(server.id().to_string())
            .join("root")
            .join(folder)
            .join(name)
    }
}

/// A job whose payload Postgres cannot compress.
fn job(id: &str, bytes: usize) -> Value {
    let mut state = 1_u32;
    let letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'0' + (state >> 24) as u8 % 64)
    };
    let meta: String = std::iter::repeat_with(letter).take(bytes).collect();
    json!({"id": id, "meta": meta.replace('\\', "~")})
}

/// Adds jobs until one is rejected.
async fn fill(server: &Server, prefix: &str) -> (Vec<String>, Response) {
    let mut added = Vec::new();
    loop {
        let id = format!("{prefix}{}", added.len());
        let response = server.client().post("/add/work", job(&id, 200_000)).await;
        if response.status != 200 {
            return (added, response);
        }
        added.push(id);
    }
}

async fn health(server: &Server) -> (u16, String) {
    check(server, "/health").await
}

async fn check(server: &Server, path: &str) -> (u16, String) {
    let url = format!("http://{}{path}", server.address);
    let response = server.http.get(url).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Checks that probes and metrics show the full disk.
async fn assert_shown(server: &Server) {
    assert_eq!(check(server, "/health/ready").await.0, 503);
    assert_eq!(check(server, "/health/live").await.0, 200);
    metrics_when(server, "the metrics show the full disk", |it| {
        it.value("switchyard_disk_full") == Some(1.0)
    })
    .await;
}

/// Checks that the protocols other than qless reject new jobs.
async fn assert_refused(server: &Server, lmstfy: &Lmstfy, jobq: &Jobq) {
    for path in ["/work", "/work/job/unknown"] {
        let response = lmstfy.put(path, "x").await;
        assert_eq!(response.status, 507, "{response:?}");
    }
    let response = Relay::new(server)
        .enqueue("unique", &json!([relay::new("work", "a")]))
        .await;
    assert_eq!(response.status, 503, "{response:?}");
    let response = jobq
        .post(
            &format!("{}/job", jobq::queue("work")),
            &json!({"payload": 1}),
        )
        .await;
    assert_eq!(response.status, 507, "{response:?}");
}

async fn recovers(server: &Server) {
    eventually("new jobs are accepted again", async || {
        health(server).await.0 == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_rejects_new_jobs_and_lets_workers_finish() {
    if database::postgres().is_some() {
        return;
    }
    let disk = Disk::new();
    let server = disk.server("true", &["--no-auth"]);
    let worker = server.by("w");
    let mut held = Vec::new();
    worker.add_ids("work", &["a", "b", "c"]).await;
    held.extend(worker.pop_ids("work", 3).await);
    let jobq = Jobq::new(&server);
    jobq.create("work").await;
    let lmstfy = Lmstfy::new(&server, "billing");
    let published = lmstfy.publish("work", "x").await;
    let (mut jobs, refused) = fill(&server, "first").await;
    assert!(jobs.len() > 40, "{} jobs fit the disk", jobs.len());
    assert_eq!(refused.status, 507, "{refused:?}");
    let refused: Value = serde_json::from_str(&refused.text).unwrap();
    assert_eq!(refused["code"], "disk_full");

    assert_refused(&server, &lmstfy, &jobq).await;
    let (status, text) = health(&server).await;
    assert_eq!(status, 503);
    assert!(text.contains("disk is full"), "{text}");
    assert_shown(&server).await;

    // Everything else works.
    let replaced = lmstfy.republish("work", &published, "y").await;
    lmstfy.ack("work", &replaced).await;
    worker.complete("work", "a").await;
    worker.fail("b", "group").await;
    let beat = worker.post("/heartbeat", json!({"id": "c"})).await;
    beat.ok();
    for _ in 0..10 {
        let ids = worker.pop_ids("work", 2).await;
        assert_eq!(ids.len(), 2);
        worker.complete("work", &ids[0]).await;
        worker.fail(&ids[1], "group").await;
        jobs.retain(|id| !ids.contains(id));
    }
    let page = server.http.get(format!("http://{}/ui", server.address));
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("The disk is full"));

    // Deleted jobs leave free space within the database.
    let canceled = jobs.split_off(jobs.len() / 4);
    worker.post("/cancel", json!(canceled)).await.ok();
    recovers(&server).await;
    worker.add_ids("work", &["after"]).await;

    // The disk is filled by another program.
    let filler = disk.path(&server, "filler");
    drop(fs::write(&filler, vec![1; 40 << 20]));
    let (more, refused) = fill(&server, "second").await;
    assert_eq!(refused.status, 507, "{refused:?}");
    worker.complete("work", "c").await;
    fs::remove_file(&filler).unwrap();
    recovers(&server).await;

    // Every acknowledged job exists once.
    let mut expected: Vec<String> = jobs.into_iter().chain(more).collect();
    expected.push("after".to_owned());
    expected.sort();
    let mut found = worker.pop_ids("work", 1_000).await;
    found.sort();
    assert_eq!(found, expected);
    let check = worker.get("/check").await.ok();
    assert_eq!(check["problems"], json!([]));
}

/// 24 MiB and half a page: the payload file is full in the middle of a page, which Postgres reports as a full disk.
const FILE_MAX: u32 = 2 * 24 * 1024 + 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_postgres_disk_rejects_new_jobs_and_lets_workers_finish() {
    let Some(postgres) = Postgres::with_files_up_to(FILE_MAX) else {
        return;
    };
    let server = Server::at_url(&postgres.address(), &["--no-auth"]);
    let worker = server.by("w");
    worker.add_ids("work", &["a", "b", "c"]).await;
    worker.pop_ids("work", 3).await;
    let (mut jobs, refused) = fill(&server, "first").await;
    assert!(jobs.len() > 40, "{} jobs fit the disk", jobs.len());
    assert_eq!(refused.status, 507, "{refused:?}");

    // Everything else works while new jobs are rejected.
    worker.complete("work", "a").await;
    worker.fail("b", "group").await;
    worker.post("/heartbeat", json!({"id": "c"})).await.ok();
    for _ in 0..10 {
        let refused = server
            .client()
            .post("/add/work", job("more", 200_000))
            .await;
        assert_eq!(refused.status, 507, "{refused:?}");
        let ids = worker.pop_ids("work", 2).await;
        assert_eq!(ids.len(), 2);
        worker.complete("work", &ids[0]).await;
        worker.fail(&ids[1], "group").await;
        jobs.retain(|id| !ids.contains(id));
    }

    // Postgres reuses the space of deleted jobs after a vacuum.
    let canceled = jobs.split_off(jobs.len() / 4);
    worker.post("/cancel", json!(canceled)).await.ok();
    vacuum(&postgres).await;
    recovers(&server).await;
    eventually("a long payload is accepted again", async || {
        let added = server
            .client()
            .post("/add/work", job("after", 200_000))
            .await;
        added.status == 200
    })
    .await;

    // Every acknowledged job exists once.
    jobs.push("after".to_owned());
    jobs.sort();
    let mut found = worker.pop_ids("work", 1_000).await;
    found.sort();
    assert_eq!(found, jobs);
    worker.complete("work", "c").await;
    let check = worker.get("/check").await.ok();
    assert_eq!(check["problems"], json!([]));
}

/// Whether the table of the reserve exists.
async fn has_reserve(postgres: &Postgres) -> bool {
    let mut admin = PgConnection::connect(&postgres.address()).await.unwrap();
    let table = sqlx::query_scalar("SELECT to_regclass('switchyard_reserve') IS NOT NULL");
    table.fetch_one(&mut admin).await.unwrap()
}

/// Makes the space of deleted payloads available.
async fn vacuum(postgres: &Postgres) {
    let mut admin = PgConnection::connect(&postgres.address()).await.unwrap();
    let vacuum = sqlx::raw_sql("VACUUM long_bodies");
    vacuum.execute(&mut admin).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_tablespace_workers_use_the_reserve_of_all_servers() {
    let Some(postgres) = Postgres::with_tablespace(32).await else {
        return;
    };
    let one = Server::at_url(&postgres.address(), &["--no-auth"]);
    let other = Server::at_url(&postgres.address(), &["--no-auth"]);
    // Maintenance writes twice a second.
    eventually("there is a reserve", async || has_reserve(&postgres).await).await;
    // On a full disk, the first `VACUUM` would have no space for its map of the table.
    let early = one.client().post("/add/work", job("early", 200_000)).await;
    assert_eq!(early.status, 200, "{early:?}");
    vacuum(&postgres).await;
    let (mut jobs, refused) = fill(&one, "first").await;
    assert!(jobs.len() > 20, "{} jobs fit the disk", jobs.len());
    jobs.insert(0, "early".to_owned());
    assert_eq!(refused.status, 507, "{refused:?}");
    assert!(!has_reserve(&postgres).await, "it was released");
    // The other server finds the disk full before it has used the space of the reserve.
    eventually("the other server refuses jobs", async || {
        health(&other).await.0 == 503
    })
    .await;
    let refused = other.client().post("/add/work", job("more", 100)).await;
    assert_eq!(refused.status, 507, "{refused:?}");

    // The first claims on this database: their indexes need new pages.
    for server in [&one, &other] {
        let worker = server.by("w");
        let ids = worker.pop_ids("work", 4).await;
        assert_eq!(ids.len(), 4);
        worker.complete("work", &ids[0]).await;
        worker.fail(&ids[1], "group").await;
        worker.post("/heartbeat", json!({"id": ids[2]})).await.ok();
        worker.post("/cancel", json!(ids[3])).await.ok();
        jobs.retain(|id| !ids.contains(id));
    }

    // With space again, the reserve returns.
    let gone = jobs.split_off(jobs.len() / 4);
    one.by("w").post("/cancel", json!(gone)).await.ok();
    vacuum(&postgres).await;
    for server in [&one, &other] {
        recovers(server).await;
        server
            .client()
            .add_ids("work", &[&format!("after-{}", server.id())])
            .await;
    }
    assert!(has_reserve(&postgres).await);
    let mut found = one.by("w").pop_ids("work", 1_000).await;
    found.retain(|id| !id.starts_with("after-"));
    found.sort();
    jobs.sort();
    assert_eq!(found, jobs);
    let check = other.by("w").get("/check").await.ok();
    assert_eq!(check["problems"], json!([]));
}

#[tokio::test]
async fn a_server_starts_on_a_full_disk_using_its_reserve() {
    if database::postgres().is_some() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let seed = folder.path().join("jobs.db");
    let server = Server::on(&seed, &[]);
    server.client().add_ids("work", &["kept"]).await;
    server.stop().await;
    let prepare = format!(
        "cp '{}' jobs.db && fallocate -l 8M jobs.db.reserve && ! dd if=/dev/zero of=filler bs=4k status=none 2>&1",
        seed.display()
    );
    let disk = Disk::new();
    let server = disk.server(&prepare, &[]);
    assert_eq!(server.client().pop_ids("work", 2).await, ["kept"]);
    fs::remove_file(disk.path(&server, "filler")).unwrap();
    recovers(&server).await;
    server.client().add_ids("work", &["new"]).await;
}
