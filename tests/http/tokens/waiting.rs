//! A poll whose token is revoked ends without a job.

use std::cell::Cell;
use std::time::Duration;

use reqwest::Method;
use tokio::time::timeout;

use super::{ask, created, made, pair, printed};
use crate::support::metrics::{metrics_when, wait_until_polling};
use crate::support::{Server, log::Logged};

/// A guard against a poll that does not end; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Checks that a poll at `at` is rejected at once when `revoke` revokes its token, and that it does not get a later
/// job.
async fn assert_poll_rejected(at: &Server, token: &str, right: &str, revoke: impl AsyncFnOnce()) {
    // The previous poll has ended.
    wait_until_polling(at, 0).await;
    let path = format!("/api/ns/work?timeout=600&token={token}");
    let is_over = Cell::new(false);
    let poll = async {
        let poll = timeout(WAIT_MAX, ask(at, Method::GET, &path)).await;
        is_over.set(true);
        poll.expect("the poll ends when its token does").0
    };
    let revoking = async {
        // A token that expires can end its poll before the metrics show it.
        metrics_when(at, "the poll waits or has ended", |it| {
            is_over.get() || it.value("switchyard_long_polls") == Some(1.0)
        })
        .await;
        revoke().await;
    };
    let (status, ()) = tokio::join!(poll, revoking);
    assert_eq!(status, 401);
    let path = format!("/api/ns/work?token={right}");
    assert_eq!(ask(at, Method::PUT, &path).await.0, 201);
    assert_eq!(ask(at, Method::GET, &path).await.0, 200);
}

#[tokio::test]
async fn a_poll_ends_when_its_token_is_revoked() {
    let logged = Logged::with("warn", &[]);
    let server = &logged.server;
    let (token, right) = (made(server, "ns").await, made(server, "ns").await);
    assert_poll_rejected(server, &token, &right, async || {
        let path = format!("/token/ns/{token}");
        assert_eq!(ask(server, Method::DELETE, &path).await.0, 204);
    })
    .await;
    let token = created(&logged.database, &["ns"]);
    assert_poll_rejected(server, &token, &right, async || {
        printed(&logged.database, &["revoke", "ns", &token]);
    })
    .await;
}

/// A token of the namespace that expires after 2 s.
async fn expiring(server: &Server) -> String {
    let path = "/token/ns?description=x&expires=2s";
    let (status, body) = ask(server, Method::POST, path).await;
    assert_eq!(status, 201, "{body}");
    body["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_poll_ends_when_its_token_expires() {
    for options in [&[][..], &["--trust-client-clock"]] {
        let server = Server::with(options);
        let (token, right) = (expiring(&server).await, made(&server, "ns").await);
        assert_poll_rejected(&server, &token, &right, async || {}).await;
    }
    let Some(pair) = pair() else {
        return;
    };
    let right = made(&pair.one, "ns").await;
    for (here, there) in pair.both() {
        let token = expiring(here).await;
        assert_poll_rejected(there, &token, &right, async || {}).await;
    }
}

#[tokio::test]
async fn a_poll_on_another_server_ends_too() {
    let Some(pair) = pair() else {
        return;
    };
    let right = made(&pair.one, "ns").await;
    for (here, there) in pair.both() {
        let token = made(here, "ns").await;
        assert_poll_rejected(there, &token, &right, async || {
            let path = format!("/token/ns/{token}");
            assert_eq!(ask(here, Method::DELETE, &path).await.0, 204);
        })
        .await;
        let token = created(&pair.database, &["ns"]);
        assert_poll_rejected(there, &token, &right, async || {
            printed(&pair.database, &["revoke", "ns", &token]);
        })
        .await;
    }
}
