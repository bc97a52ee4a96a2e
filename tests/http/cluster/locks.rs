//! A server that waits for another one's lock is not cut off from the database.

use std::time::Duration;

use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::time::{sleep, timeout};

use super::Pair;

/// A guard against an event that never happens; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Time between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// The lock of a commit group that adds dependencies.
const ADDING: &str =
    "SELECT CAST(pg_advisory_xact_lock(CAST(CAST('state' AS regclass) AS oid)::bigint) AS TEXT)";

/// The row that each commit group with events writes.
const STATE: &str = "SELECT CAST(id AS TEXT) FROM state WHERE id = 1 FOR UPDATE";

/// The start of each transaction that waits for a lock.
const WAITING: &str = "
SELECT DISTINCT CAST(xact_start AS TEXT) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Waits until two transactions, one after the other, have waited for a lock: the first one gave up.
async fn wait_for_second_attempt(database: &str) {
    let mut watching = PgConnection::connect(database).await.unwrap();
    let mut seen = std::collections::HashSet::new();
    let retried = async {
        while seen.len() < 2 {
            let waiting: Vec<(String,)> = sqlx::query_as(WAITING)
                .fetch_all(&mut watching)
                .await
                .unwrap();
            seen.extend(waiting);
            sleep(PAUSE).await;
        }
    };
    timeout(WAIT_MAX, retried).await.expect("a second attempt");
}

#[tokio::test]
async fn a_put_that_waits_for_another_servers_lock_is_retried() {
    let Some(pair) = Pair::start(&[]) else { return };
    pair.one.client().add_ids("work", &["first"]).await;
    for (id, lock) in [("event", STATE), ("dependent", ADDING)] {
        let mut other = PgConnection::connect(&pair.database).await.unwrap();
        let mut transaction = other.begin().await.unwrap();
        sqlx::query(lock).execute(&mut *transaction).await.unwrap();
        let item = json!({"id": id, "meta": null, "depends": ["first"]});
        let client = pair.one.client();
        let put = async { client.post("/add/work", item).await };
        let release = async {
            wait_for_second_attempt(&pair.database).await;
            transaction.rollback().await.unwrap();
        };
        let (put, ()) = tokio::join!(put, release);
        put.ok();
        assert_eq!(pair.other.client().state(id).await, "depends");
    }
    pair.assert_both_consistent().await;
}

#[tokio::test]
async fn other_commit_groups_do_not_wait_for_one_that_adds_dependencies() {
    let Some(pair) = Pair::start(&[]) else { return };
    let mut other = PgConnection::connect(&pair.database).await.unwrap();
    let mut transaction = other.begin().await.unwrap();
    sqlx::query(ADDING)
        .execute(&mut *transaction)
        .await
        .unwrap();
    for (one, other) in pair.both() {
        one.client().add("work", json!({"meta": 1})).await;
        let job = other.by("w").pop("work").await;
        let id = job["id"].as_str().unwrap();
        one.by("w").complete("work", id).await;
    }
    transaction.rollback().await.unwrap();
    pair.assert_both_consistent().await;
}
