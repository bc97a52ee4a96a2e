//! Pages that read large jobs occupy little memory.

use std::path::PathBuf;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::check::run_statement;
use crate::support::Server;

/// Inserts copies of the job `first`: `$n` of them, numbered from `$from` in the order of their insertion, and with these
/// tags and this message of a failure.
macro_rules! copies {
    ($from:literal, $to:literal, $tags:literal, $message:literal) => {
        concat!(
            "INSERT INTO jobs (seq, version, queue, state, ready_at, since, worker, lease_id, lease_until, remaining,
                history, warned, updated_at, priority, retries, klass, tags, failure_group, failure_message,
                failure_worker, failure_at, body, expires_at, timeout_s, work_state, label, scope, id, created_at,
                spawned_from, attributes)
            WITH RECURSIVE numbers (n) AS (SELECT ",
            $from,
            " UNION ALL SELECT n + 1 FROM numbers WHERE n < ",
            $to,
            ")
            SELECT seq + n, version, queue, state, ready_at, since, worker, lease_id || n, lease_until, remaining,
                history, warned, updated_at, priority, retries, klass, ",
            $tags,
            ", failure_group, ",
            $message,
            ", failure_worker, failure_at, body, expires_at, timeout_s, work_state, label, scope, id || n, created_at,
                spawned_from, attributes
            FROM jobs CROSS JOIN numbers WHERE id = 'first'"
        )
    };
}

struct Scene {
    server: Server,
    path: PathBuf,
    _folder: TempDir,
}

impl Scene {
    /// A server with the job `first`, which worker `w` has claimed.
    async fn new() -> Scene {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("jobs.db");
        let server = Server::on(&path, &["--trust-client-clock"]);
        let worker = server.by("w").at(0);
        worker.add_ids("work", &["first"]).await;
        worker.pop("work").await;
        Scene {
            server,
            path,
            _folder: folder,
        }
    }

    async fn page(&self, path: &str) -> String {
        let url = format!("http://{}{path}", self.server.address);
        let page = self.server.http.get(url).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::OK, "{path}");
        page.text().await.unwrap()
    }

    /// Requests the page twice. It occupies less than this many MB more.
    async fn assert_small(&self, path: &str, mb: f64) {
        let before = self.server.peak_memory_mb();
        self.page(path).await;
        self.page(path).await;
        let more = self.server.peak_memory_mb() - before;
        assert!(more < mb, "{path}: {more} MB");
    }
}

#[tokio::test]
async fn pages_with_the_messages_of_10000_failed_jobs_occupy_little_memory() {
    let scene = Scene::new().await;
    scene.server.by("w").at(0).fail("first", "group").await;
    // 1,000 characters of four bytes each.
    let copies = copies!(
        1,
        9999,
        "tags",
        "replace(hex(zeroblob(1000)), '00', char(128512))"
    );
    run_statement(&scene.path, copies).await;
    // Their messages have 40 MB. A slow machine does not analyze all of them within the time limit.
    scene.assert_small("/ui/failures/group", 60.0).await;
    let of_their_own = "UPDATE jobs SET failure_group = 'g' || seq WHERE state = 4";
    run_statement(&scene.path, of_their_own).await;
    let counts = "INSERT INTO failure_counts (failure_group, queue, server, n)
                  SELECT failure_group, queue, 1, 1 FROM jobs WHERE state = 4";
    run_statement(&scene.path, counts).await;
    scene.assert_small("/ui/failures", 60.0).await;
    scene.assert_small("/ui/failures?q=zzzz", 60.0).await;
}

#[tokio::test]
async fn the_messages_of_10000_failed_jobs_are_analyzed() {
    let scene = Scene::new().await;
    scene.server.by("w").at(0).fail("first", "group").await;
    run_statement(&scene.path, copies!(1, 10_000, "tags", "'m'")).await;
    let page = scene.page("/ui/failures/group").await;
    assert!(page.contains("Messages of the newest 10,000 jobs"));
}

#[tokio::test]
async fn searches_of_jobs_with_many_tags_occupy_little_memory() {
    let scene = Scene::new().await;
    // 200 KB of tags, and above them, small jobs, after which the batches of a search are large.
    let large = copies!(
        1,
        300,
        "'[\"' || replace(hex(zeroblob(2000)), '00', hex(randomblob(24)) || '\",\"') || '\"]'",
        "NULL"
    );
    run_statement(&scene.path, large).await;
    run_statement(&scene.path, copies!(301, 720, "tags", "NULL")).await;
    for path in ["/ui/jobs?q=zzzz", "/ui/jobs?q=error%3Azzzz"] {
        scene.assert_small(path, 90.0).await;
    }
}

#[tokio::test]
async fn lists_of_1000_jobs_with_many_tags_occupy_little_memory() {
    let scene = Scene::new().await;
    // Up to 16 KiB of tags.
    let running = copies!(
        1,
        999,
        "'[\"' || replace(hex(zeroblob(1900)), '00', 'abcde\",\"') || '\"]'",
        "NULL"
    );
    run_statement(&scene.path, running).await;
    for path in [
        "/ui/workers/w",
        "/ui/jobs?q=queue%3Awork&sort=priority",
        "/ui/jobs.jsonl?q=queue%3Awork",
    ] {
        scene.assert_small(path, 90.0).await;
    }
}

/// Inserts 2,999 copies of the recurring job `r`.
const RECURRING_COPIES: &str = "
INSERT INTO recurring (id, seq, queue, next_at, interval, made, backlog, priority, retries, version, cron, zone, held_next,
    klass, tags, body)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2999)
SELECT id || n, seq + n, queue, next_at, interval, made, backlog, priority, retries, version, cron, zone, held_next, klass,
    tags, body FROM recurring CROSS JOIN numbers WHERE id = 'r'";

/// 2,000 tags in 14 KB, which occupy 64 KB in memory.
fn short_tags() -> Vec<String> {
    (1_000..3_000).map(|n| n.to_string()).collect()
}

#[tokio::test]
async fn the_ids_of_recurring_jobs_with_many_tags_occupy_little_memory() {
    let scene = Scene::new().await;
    let item = json!({"id": "r", "meta": null, "interval": 60, "tags": short_tags()});
    let client = scene.server.at(0);
    client.post("/recur/work", item).await.ok();
    run_statement(&scene.path, RECURRING_COPIES).await;
    scene
        .assert_small("/jobs/recurring/work?limit=3000", 60.0)
        .await;
}

/// They would be sorted with their payloads.
#[tokio::test]
async fn jobs_before_a_page_of_whole_jobs_are_not_read() {
    let scene = Scene::new().await;
    let client = scene.server.at(0);
    let payload = "x".repeat(1 << 20);
    let item = |n| json!({"id": format!("{n}"), "meta": payload});
    for tens in 0..10 {
        let items = (0..10).map(|n| item(tens * 10 + n));
        let items: Value = items.collect();
        client.post("/add/large", items).await.ok();
    }
    let path = "/jobs/waiting/large?full=true&limit=1&offset=99";
    assert!(scene.page(path).await.contains("\"99\""));
    scene.assert_small(path, 30.0).await;
}

#[tokio::test]
async fn a_job_with_many_tags_is_not_copied_for_each_repetition_of_its_id() {
    let scene = Scene::new().await;
    let client = scene.server.at(0);
    let item = json!({"id": "a", "meta": null, "tags": short_tags()});
    client.add("work", item).await;
    let path = format!("/jobs?{}", "id=a&".repeat(4_000));
    let before = scene.server.peak_memory_mb();
    let url = format!("http://{}{path}", scene.server.address);
    let response = scene.server.http.get(url).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let more = scene.server.peak_memory_mb() - before;
    assert!(more < 60.0, "{more} MB");
}
