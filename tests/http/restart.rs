//! A restart loses nothing.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Server;

/// All responses that clients can get at a time.
async fn everything(server: &Server, now: f64) -> Vec<Value> {
    let who = server.at(now);
    let mut seen = Vec::new();
    for path in [
        "/queues",
        "/workers",
        "/worker/w",
        "/failed",
        "/failed/g",
        "/jobs/complete?full=true",
        "/peek/work/100",
    ] {
        seen.push(who.get(path).await.ok());
    }
    for state in ["waiting", "running", "stalled", "scheduled", "depends"] {
        seen.push(
            who.get(&format!("/jobs/{state}/work?full=true&limit=100"))
                .await
                .ok(),
        );
    }
    seen
}

/// Creates jobs in every state in the queue `work`.
async fn fill(server: &Server) {
    let worker = server.by("w");
    let ids = [
        "stalled", "running", "failed", "complete", "waiting", "waiting2",
    ];
    worker.at(0).add_ids("work", &ids).await;
    worker.at(0).pop("work").await;
    worker.at(50).pop_ids("work", 3).await;
    worker.at(51).fail("failed", "g").await;
    worker.at(52).complete("work", "complete").await;
    worker
        .at(53)
        .add(
            "work",
            json!({"id": "scheduled", "meta": {"b": 1, "a": 2}, "delay": 100}),
        )
        .await;
    worker
        .at(53)
        .add(
            "work",
            json!({"id": "depends", "meta": [], "depends": ["waiting"], "tags": ["日"]}),
        )
        .await;
    worker.at(53).add_ids("other", &["elsewhere"]).await;
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("jobs.db");
    let server = Server::on(&database, &["--trust-client-clock"]);
    fill(&server).await;
    let before = everything(&server, 61.0).await;
    server.stop().await;
    let server = Server::on(&database, &["--trust-client-clock"]);
    assert_eq!(everything(&server, 61.0).await, before);
    // Work continues: leases are valid, and waiting jobs keep their order.
    let worker = server.by("w").at(61);
    worker.complete("work", "running").await;
    assert_eq!(
        server.by("v").at(61).pop_ids("work", 10).await,
        ["stalled", "waiting", "waiting2"]
    );
    server.by("v").at(61).complete("work", "waiting").await;
    assert_eq!(server.at(61).state("depends").await, "waiting");
    assert_eq!(
        server.by("v").at(153).pop_ids("work", 10).await,
        ["stalled", "waiting2", "depends", "scheduled"]
    );
    // New jobs are behind old ones that became available at the same time.
    server.at(53).add_ids("other", &["newer"]).await;
    assert_eq!(
        server.at(53).peek_ids("other").await,
        ["elsewhere", "newer"]
    );
}

#[tokio::test]
async fn everything_survives_a_crash() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("jobs.db");
    let mut server = Server::on(&database, &["--trust-client-clock"]);
    fill(&server).await;
    let mut before = everything(&server, 61.0).await;
    server.kill();
    let server = Server::on(&database, &["--trust-client-clock"]);
    let mut after = everything(&server, 61.0).await;
    // After a crash, the last time of a worker can be known from its jobs only.
    before.remove(1);
    after.remove(1);
    assert_eq!(after, before);
}

#[tokio::test]
async fn an_in_memory_database_behaves_like_others() {
    let server = Server::at_url("sqlite::memory:", &["--trust-client-clock"]);
    fill(&server).await;
    assert_eq!(everything(&server, 61.0).await[0][0]["name"], "work");
}
