//! Another server has changed the database, and this one does not know of that server yet: it runs its statements without
//! a transaction around them.

use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::PgConnection;

use super::assert_consistent;
use crate::support::{Server, postgres};

/// A server on a database of its own, and a connection to that.
struct Alone {
    server: Server,
    other: PgConnection,
}

impl Alone {
    async fn start() -> Option<Alone> {
        let database = postgres::shared_database()?;
        Some(Alone {
            server: Server::at_url(&database, &[]),
            other: PgConnection::connect(&database).await.unwrap(),
        })
    }

    /// Changes the database like another server.
    async fn change(&mut self, sql: &'static str) {
        let changed = sqlx::raw_sql(sql).execute(&mut self.other).await.unwrap();
        assert_eq!(changed.rows_affected(), 1, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_takes_the_change_of_another_server_into_account() {
    let Some(mut alone) = Alone::start().await else {
        return;
    };
    let client = alone.server.by("ada");
    client.add_ids("work", &["a", "b"]).await;
    assert_eq!(client.pop_ids("work", 2).await, ["a", "b"]);
    let sql = "UPDATE jobs SET version = version + 1, worker = 'ben' WHERE id = 'a'";
    alone.change(sql).await;
    let client = alone.server.by("ada");
    let complete = json!({"id": "a", "meta": null});
    let refused = client.post("/complete/work", complete).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let job = alone.server.client().job("a").await;
    assert_eq!(
        (&job["state"], &job["worker"]),
        (&json!("running"), &json!("ben"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_of_a_job_that_another_server_has_renewed_succeeds() {
    let Some(mut alone) = Alone::start().await else {
        return;
    };
    let client = alone.server.by("ada");
    client.add_ids("work", &["a"]).await;
    assert_eq!(client.pop_ids("work", 2).await, ["a"]);
    let sql = "UPDATE jobs SET version = version + 1 WHERE id = 'a'";
    alone.change(sql).await;
    alone.server.by("ada").complete("work", "a").await;
    assert_eq!(alone.server.client().state("a").await, "complete");
    assert_consistent(&alone.server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_gets_nothing_from_a_queue_that_another_server_has_paused() {
    let Some(mut alone) = Alone::start().await else {
        return;
    };
    let client = alone.server.by("ada");
    client.add_ids("work", &["a", "b"]).await;
    let sql =
        "WITH raised AS (UPDATE state SET revision = revision + 1 WHERE id = 1 RETURNING revision)
        UPDATE queues SET paused = 1, revision = raised.revision FROM raised WHERE name = 'work'";
    alone.change(sql).await;
    let client = alone.server.by("ada");
    assert_eq!(client.pop_ids("work", 2).await.len(), 0, "it is paused");
    // Jobs are added nevertheless.
    client.add_ids("work", &["c"]).await;
    assert_eq!(
        alone.server.client().peek_ids("work").await,
        ["a", "b", "c"]
    );
    assert_consistent(&alone.server).await;
}
