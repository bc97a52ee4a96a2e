//! Recovery of a Postgres database to a point in time, as `docs/postgres.md` describes it.

use serde_json::json;

use crate::support::Server;
use crate::support::pair::assert_consistent;
use crate::support::postgres::Postgres;

#[tokio::test]
async fn a_postgres_database_is_restored_to_a_point_in_time() {
    let Some(primary) = Postgres::start() else {
        return;
    };
    let archive = primary.archive_log().await;
    let server = Server::at_url(&primary.address(), &[]);
    server
        .client()
        .add("mail", json!({"id": "before", "meta": 1}))
        .await;
    let backup = primary.base_backup();
    server
        .client()
        .add("mail", json!({"id": "kept", "meta": 2}))
        .await;
    let time = primary.now().await;
    // The mistake that the restore undoes.
    server.client().post("/cancel", json!("kept")).await;
    server
        .client()
        .add("mail", json!({"id": "lost", "meta": 3}))
        .await;
    primary.all_archived().await;
    server.stop().await;
    primary.stop();
    backup.recover(&archive, &time).await;
    let restored = Server::at_url(&backup.address(), &[]);
    let ids = restored.client().peek_ids("mail").await;
    assert!(
        ids.contains(&"before".to_owned()) && ids.contains(&"kept".to_owned()),
        "{ids:?}"
    );
    assert!(!ids.contains(&"lost".to_owned()), "{ids:?}");
    assert_consistent(&restored).await;
    // The restored database accepts new jobs.
    restored
        .client()
        .add("mail", json!({"id": "after", "meta": 4}))
        .await;
    restored.stop().await;
}
