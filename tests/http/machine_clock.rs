//! The machine's clock is set forward and back.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::database;
use crate::support::eventually;
use crate::support::machine_clock::MachineClock;

/// On Postgres, the clock is the database's (`cluster/machine_clock.rs`).
#[tokio::test]
async fn a_jump_of_the_machines_clock_ends_only_the_leases_that_it_passes_and_revives_none() {
    let folder = TempDir::new().unwrap();
    if database::postgres().is_some() {
        return;
    }
    let clock = MachineClock::new();
    let server = clock.server(&database::file(&folder.path().join("jobs.db")), &[]);
    server
        .client()
        .set("long-heartbeat", json!(7_200))
        .await
        .ok();
    let (first, second) = (server.by("first"), server.by("second"));
    for queue in ["short", "long"] {
        server.client().add_ids(queue, &[queue]).await;
        assert_eq!(first.pop(queue).await["id"], *queue);
    }
    for (id, delay) in [("soon", 1_800), ("later", 7_200)] {
        let job = json!({"id": id, "meta": 1, "delay": delay});
        server.client().add("due", job).await;
    }
    clock.set(3_600);
    eventually("the short lease has ended", async || {
        second.pop("short").await["id"] == "short"
    })
    .await;
    assert_eq!(second.pop("long").await, Value::Null);
    eventually("the job is due", async || {
        second.pop("due").await["id"] == "soon"
    })
    .await;
    assert_eq!(second.pop("due").await, Value::Null);
    // The clock waits for the machine's.
    clock.set(-3_600);
    second.post("/heartbeat", json!("short")).await.ok();
    first
        .post("/complete/short", json!({"id": "short", "meta": 1}))
        .await
        .assert_rejected(409, "wrong_worker");
    assert_eq!(first.pop("short").await, Value::Null);
    second.complete("short", "short").await;
    second.complete("due", "soon").await;
    first.complete("long", "long").await;
    assert_eq!(server.client().state("later").await, "scheduled");
}
