//! A server keeps the jobs that it has claimed in memory, and another one changes them.

use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::task::JoinSet;

use super::{Pair, assert_consistent};
use crate::support::{Server, eventually, postgres};

/// Transactions that no statement uses.
const IDLE: &str = "
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle in transaction'";

/// The data of a request for a job.
type Data = fn(&str) -> Value;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_sees_what_another_one_did_to_a_job_that_it_claimed() {
    let Some(pair) = Pair::start(&[]) else { return };
    let changes: [(&str, Data); 3] = [
        ("/cancel", |id| id.into()),
        (
            "/fail",
            |id| json!({"id": id, "group": "g", "message": "m"}),
        ),
        ("/timeout", |id| id.into()),
    ];
    let requests: [(&str, Data); 4] = [
        ("/complete/work", |id| json!({"id": id, "meta": null})),
        ("/heartbeat", |id| id.into()),
        ("/retry/work", |id| id.into()),
        ("/track", |id| id.into()),
    ];
    for (change, data) in changes {
        for (request, item) in requests {
            // A worker without the lease is refused without a write.
            for worker in ["ada", "ben"] {
                let ids = ["on one", "on other"].map(|on| format!("{change}{request}{worker}{on}"));
                pair.one.client().add_ids("work", &[&ids[0], &ids[1]]).await;
                let claimed = pair.one.by("ada").pop_ids("work", 2).await;
                assert_eq!(claimed, ids);
                let mut answers = Vec::new();
                for (server, id) in [&pair.one, &pair.other].into_iter().zip(&ids) {
                    let by_other = pair.other.by("ada");
                    by_other.post(change, data(id)).await.accepted();
                    let answer = server.by(worker).post(request, item(id)).await;
                    let whole: Value = serde_json::from_str(&answer.text).unwrap();
                    let error = whole["error"].to_string();
                    assert!(!error.contains("no such endpoint"), "{request}");
                    answers.push((answer.status, error.replace(id.as_str(), "ID")));
                    pair.other.client().post("/cancel", json!(id)).await;
                }
                assert_eq!(answers[0], answers[1], "{change}, then {request}");
            }
        }
    }
    pair.assert_both_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_transaction_stays_open_after_many_requests() {
    let Some(database) = postgres::shared_database() else {
        return;
    };
    let server = Arc::new(Server::at_url(&database, &[]));
    let mut clients = JoinSet::new();
    for client in 0..16 {
        let server = Arc::clone(&server);
        clients.spawn(async move {
            let name = format!("worker-{client}");
            for n in 0..10 {
                let id = format!("{client}-{n}");
                server.client().add_ids("work", &[&id]).await;
                for id in server.by(&name).pop_ids("work", 2).await {
                    server.by(&name).complete("work", &id).await;
                }
            }
        });
    }
    clients.join_all().await;
    eventually("no transaction is open", async || {
        let mut watching = PgConnection::connect(&database).await.unwrap();
        let idle: i64 = sqlx::query_scalar(IDLE)
            .fetch_one(&mut watching)
            .await
            .unwrap();
        idle == 0
    })
    .await;
    assert_consistent(&server).await;
}
