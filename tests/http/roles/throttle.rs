//! Failed and frequent sign-ins are throttled, without locking out other users.

use std::time::Instant;

use futures::StreamExt;
use futures::future::join_all;
use reqwest::{Method, Response};

use super::{ADMIN, ADMIN_KEY, Browser, OPERATOR_KEY, VIEWER_KEY, with_keys};
use crate::support::Server;

async fn with_password(browser: &Browser, path: &str, name: &str, password: &str) -> Response {
    let request = browser
        .http
        .request(Method::GET, format!("{}{path}", browser.origin));
    request
        .basic_auth(name, Some(password))
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn wrong_passwords_count_across_all_apis() {
    let server = Server::with(&with_keys(&["--qless-token", "the-token-of-qless"]));
    let browser = Browser::at(&server);
    for n in 0..30 {
        let path = ["/ui/queues", "/queues", "/token/default"][n % 3];
        let refused = with_password(&browser, path, "vera", "a-guess").await;
        assert_eq!(refused.status(), 401, "{path}");
    }
    for path in ["/ui/queues", "/queues", "/token/default"] {
        let refused = with_password(&browser, path, "vera", VIEWER_KEY).await;
        assert_eq!(refused.status(), 429, "{path}");
        let wait = refused.headers()["retry-after"].to_str().unwrap();
        assert!((1..=61).contains(&wait.parse::<u64>().unwrap()), "{wait}");
    }
    let form = [("name", "vera"), ("secret", VIEWER_KEY)];
    assert_eq!(browser.post("/ui/login", &form).await.status(), 429);
    // Other users behind the same address can sign in.
    let page = with_password(&browser, "/ui/queues", "olga", OPERATOR_KEY).await;
    assert_eq!(page.status(), 200);
    assert_eq!(
        browser
            .with_key(VIEWER_KEY)
            .open("/ui/queues")
            .await
            .status(),
        200
    );
    assert_eq!(
        browser.with_key(ADMIN).open("/ui/queues").await.status(),
        200
    );
}

#[tokio::test]
async fn unknown_names_do_not_avoid_the_login_throttle() {
    let server = Server::with(&with_keys(&[]));
    let browser = Browser::at(&server);
    let mut statuses = Vec::new();
    for n in 0..110 {
        let name = format!("name-{n}");
        let refused = with_password(&browser, "/ui/queues", &name, "a-guess").await;
        statuses.push(refused.status().as_u16());
    }
    assert!(statuses[..100].iter().all(|status| *status == 401));
    assert!(statuses[100..].iter().all(|status| *status == 429));
}

#[tokio::test]
async fn a_name_can_sign_in_30_times_a_minute() {
    let server = Server::with(&with_keys(&[]));
    let browser = Browser::at(&server);
    let sign_in = async |name: &str, secret: &str| {
        let form = [("name", name), ("secret", secret)];
        browser.post("/ui/login", &form).await.status().as_u16()
    };
    for _ in 0..30 {
        assert_eq!(sign_in("vera", VIEWER_KEY).await, 303);
    }
    assert_eq!(sign_in("vera", VIEWER_KEY).await, 429);
    assert_eq!(sign_in("olga", OPERATOR_KEY).await, 303);
}

#[tokio::test]
async fn a_user_cannot_take_more_than_5000_actions_at_once() {
    let server = Server::with(&with_keys(&[]));
    server.client().add_ids("work", &["a"]).await;
    let browser = Browser::at(&server);
    let olga = browser.with_key(OPERATOR_KEY);
    let form = [("id", "a"), ("back", "/ui"), ("after", "/ui")];
    let began = Instant::now();
    olga.act("track", &form[..1]).await;
    // Functions that only read are not actions.
    for _ in 0..10 {
        assert_ne!(olga.post("/ui/fn/confirm", &form).await.status(), 429);
    }
    // Without fields, so that they end soon: rejected forms are entries, too.
    let action = async || {
        let request = olga.request(Method::POST, "/ui/fn/add_tag").body("");
        let request = request.header("accept", "application/json");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.send().await.unwrap().status().as_u16()
    };
    let mut accepted = 1;
    while accepted < 5_000 {
        let statuses = join_all((accepted..5_000).take(50).map(|_| action())).await;
        assert!(!statuses.contains(&429), "after {accepted}");
        accepted += statuses.len();
    }
    let refused = loop {
        let response = olga.post("/ui/fn/untrack", &form).await;
        if response.status() == 429 {
            break response;
        }
        accepted += 1;
    };
    // One more is possible for each 30 s that this has taken.
    let more = usize::try_from(began.elapsed().as_secs() / 30).unwrap();
    assert!(accepted <= 5_000 + more, "{accepted}, {more}");
    let wait = refused.headers()["retry-after"].to_str().unwrap();
    assert!((1..=31).contains(&wait.parse::<u64>().unwrap()), "{wait}");
    let page = refused.text().await.unwrap();
    assert!(page.contains("You have taken too many actions."), "{page}");
    assert_eq!(olga.open("/ui/queues").await.status(), 200);
    let anna = browser.with_key(ADMIN_KEY);
    assert_eq!(anna.post("/ui/fn/untrack", &form).await.status(), 303);
    let first = browser.audit("?who=olga&action=track").await;
    assert_eq!(first.len(), 1);
    let newest = browser.audit("?who=olga").await.remove(0);
    assert_eq!(newest["outcome"], "refused", "{newest}");
    assert!(
        newest["result"]
            .as_str()
            .unwrap()
            .starts_with("Too many actions."),
        "{newest}"
    );
}

#[tokio::test]
async fn the_live_feed_ends_after_sign_out() {
    let server = Server::with(&with_keys(&[]));
    let (vera, _) = Browser::at(&server).signed_in("vera", VIEWER_KEY).await;
    let (other, _) = Browser::at(&server).signed_in("vera", VIEWER_KEY).await;
    let feed = async |browser: &Browser| {
        let request = browser.request(Method::GET, "/ui/events");
        let response = request
            .header("accept", "text/event-stream")
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        response.bytes_stream()
    };
    let (mut ended, mut open) = (feed(&vera).await, feed(&other).await);
    vera.post("/ui/logout", &[]).await;
    while let Some(chunk) = ended.next().await {
        chunk.unwrap();
    }
    // The other session of the same user continues.
    assert!(open.next().await.unwrap().is_ok());
    let next = tokio::select! {
        biased;
        next = open.next() => next,
        () = tokio::time::sleep(std::time::Duration::from_secs(60)) => None,
    };
    assert!(next.unwrap().is_ok());
}
