//! The last use of tokens.

use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;

use super::{ask, detail, expired, made, pair, printed, status};
use crate::support::eventually;
use crate::support::{Server, database};

/// The hour of the last use of the token with the description `test`.
async fn last_use(server: &Server) -> Value {
    detail(server, "ns", "test").await["last_used_at"].clone()
}

/// Whether the time is a full hour.
fn is_hour(moment: &Value) -> bool {
    let text = moment.as_str().unwrap_or_default();
    text.starts_with("20") && text.ends_with(":00:00.000Z")
}

#[tokio::test]
async fn a_list_shows_the_hour_of_the_last_use() {
    let folder = TempDir::new().unwrap();
    let database = database::address(&folder.path().join("jobs.db"));
    let server = Server::at_url(&database, &[]);
    let token = made(&server, "ns").await;
    assert_eq!(last_use(&server).await, Value::Null);
    assert_eq!(status(&server, "ns", "wrong").await, 401);
    assert_eq!(status(&server, "other", &token).await, 401);
    assert_eq!(
        last_use(&server).await,
        Value::Null,
        "a refused request is not a use"
    );
    assert_eq!(status(&server, "ns", &token).await, 200);
    let used = last_use(&server).await;
    assert!(is_hour(&used), "{used}");
    // The command reads the stored value.
    eventually("the last use is stored", async || {
        printed(&database, &["list", "ns"]).contains("\tused 20")
    })
    .await;
    // Reloading the tokens keeps the last use.
    printed(&database, &["create", "another"]);
    assert!(is_hour(&last_use(&server).await));
    server.stop().await;
    let server = Server::at_url(&database, &[]);
    assert!(is_hour(&last_use(&server).await));
}

#[tokio::test]
async fn requests_with_an_expired_or_revoked_token_do_not_count_as_use() {
    let server = Server::with(&[]);
    let token = expired(&server, "ns").await;
    let before = detail(&server, "ns", "expired").await;
    assert_eq!(status(&server, "ns", &token).await, 401);
    assert_eq!(detail(&server, "ns", "expired").await, before);
    let token = made(&server, "ns").await;
    assert_eq!(status(&server, "ns", &token).await, 200);
    let path = format!("/token/ns/{token}");
    assert_eq!(ask(&server, Method::DELETE, &path).await.0, 204);
    // A new token with the same secret has no last use.
    let path = format!("/token/ns?description=test&token={token}");
    assert_eq!(ask(&server, Method::POST, &path).await.0, 201);
    assert_eq!(last_use(&server).await, Value::Null);
}

#[tokio::test]
async fn another_server_of_the_database_shows_the_last_use() {
    let Some(pair) = pair() else {
        return;
    };
    for (here, there) in pair.both() {
        let token = made(here, "ns").await;
        assert_eq!(status(here, "ns", &token).await, 200);
        eventually("the other server reads the last use", async || {
            is_hour(&last_use(there).await)
        })
        .await;
        let path = format!("/token/ns/{token}");
        assert_eq!(ask(there, Method::DELETE, &path).await.0, 204);
    }
}
