//! Sessions and the login throttle with two servers on one database.

use super::{Browser, OPERATOR_KEY, VIEWER_KEY, with_keys};
use crate::support::{Server, postgres};

async fn status(browser: &Browser) -> u16 {
    browser.open("/ui/queues").await.status().as_u16()
}

/// The same session at another server.
fn at(server: &Server, browser: &Browser) -> Browser {
    Browser {
        cookie: browser.cookie.clone(),
        ..Browser::at(server)
    }
}

#[tokio::test]
async fn a_session_is_valid_and_ends_on_every_server_that_has_its_key() {
    let Some(database) = postgres::shared_database() else {
        return;
    };
    let one = Server::at_url(&database, &with_keys(&[]));
    let other = Server::at_url(&database, &with_keys(&[]));
    let (olga, _) = Browser::at(&one).signed_in("olga", OPERATOR_KEY).await;
    assert_eq!(status(&at(&other, &olga)).await, 200);
    // A server without the key does not accept the session.
    let without = Server::at_url(&database, &["--ui-key", "viewer:vera:another-key-of-vera"]);
    assert_eq!(status(&at(&without, &olga)).await, 303);
    // A role applies on every server.
    let (vera, _) = Browser::at(&one).signed_in("vera", VIEWER_KEY).await;
    let refused = at(&other, &vera).post("/ui/fn/retry", &[("id", "a")]).await;
    assert_eq!(refused.status(), 403);
    // A sign-out on one server ends the session on all servers.
    let out = at(&other, &olga).post("/ui/logout", &[]).await;
    assert_eq!(out.status(), 303);
    for server in [&one, &other] {
        assert_eq!(status(&at(server, &olga)).await, 303);
    }
    // The limit of 20 sessions per name holds across the servers.
    for n in 0..20 {
        let server = [&one, &other][n % 2];
        assert_eq!(status(&at(server, &vera)).await, 200, "{n}");
        Browser::at(server).signed_in("vera", VIEWER_KEY).await;
    }
    for server in [&one, &other] {
        assert_eq!(status(&at(server, &vera)).await, 303);
    }
}

#[tokio::test]
async fn each_server_counts_wrong_passwords_separately() {
    let Some(database) = postgres::shared_database() else {
        return;
    };
    let one = Server::at_url(&database, &with_keys(&[]));
    let other = Server::at_url(&database, &with_keys(&[]));
    let (one, other) = (Browser::at(&one), Browser::at(&other));
    let form = |secret| [("name", "vera"), ("secret", secret)];
    for _ in 0..10 {
        let refused = one.post("/ui/login", &form("a-guess")).await;
        assert_eq!(refused.status(), 403);
    }
    assert_eq!(one.post("/ui/login", &form(VIEWER_KEY)).await.status(), 429);
    assert_eq!(
        other.post("/ui/login", &form(VIEWER_KEY)).await.status(),
        303
    );
}
