//! `--relay-token` and `--relay-body-max`.

use reqwest::Method;
use serde_json::json;

use super::{NO_RUN, client};
use crate::support::api_client::wrong_authorizations;
use crate::support::keys::{ADMIN, QLESS};
use crate::support::relay::{Relay, new, run_path};
use crate::support::{Server, raw};

const TOKEN: &str = "the-token-of-relay";

/// Every endpoint: method and path.
fn endpoints(id: &str) -> [(Method, String); 8] {
    [
        (Method::POST, "/queues/jobs".to_owned()),
        (Method::GET, "/queues/q/jobs".to_owned()),
        (Method::GET, format!("/queues/q/jobs/{id}")),
        (Method::HEAD, format!("/queues/q/jobs/{id}")),
        (Method::DELETE, format!("/queues/q/jobs/{id}")),
        (Method::PATCH, run_path("q", id, NO_RUN)),
        (Method::PUT, run_path("q", id, NO_RUN)),
        (Method::DELETE, run_path("q", id, NO_RUN)),
    ]
}

/// Checks that all endpoints reject this client.
async fn assert_rejected(relay: &Relay, shown: &str) {
    for (method, path) in endpoints("a") {
        let head = method == Method::HEAD;
        let mut request = relay.request(method.clone(), &path);
        if !shown.is_empty() {
            request = request.header("authorization", shown);
        }
        let jobs = json!([new("q", "b")]).to_string();
        let request = request
            .header("content-type", "application/json")
            .body(jobs);
        let asked = format!("{method} {path} by {shown:?}");
        let reply = relay.ask(&asked, request).await;
        assert_eq!(reply.status, 401, "{reply:?}");
        assert_eq!(reply.text.is_empty(), head, "{reply:?}");
        assert_eq!(
            reply.header("www-authenticate"),
            r#"Bearer realm="Switchyard""#
        );
    }
}

#[tokio::test]
async fn the_token_protects_all_of_relay_and_nothing_else() {
    let options = [
        "--relay-token",
        TOKEN,
        "--admin-token",
        ADMIN,
        "--qless-token",
        QLESS,
    ];
    let server = Server::with(&options);
    let relay = client(&server).with_token(TOKEN);
    relay.put_ids("q", &["a"]).await;
    let missing = client(&server);
    for shown in wrong_authorizations(TOKEN) {
        assert_rejected(&missing, &shown).await;
    }
    assert_rejected(&missing, &format!("Bearer {QLESS}")).await;
    let path = format!("/queues/q/jobs?token={TOKEN}");
    missing
        .send(Method::GET, &path)
        .await
        .assert_rejected(401, &[]);
    assert!(relay.exists("q", "a").await && !relay.exists("q", "b").await);
    for token in [TOKEN, ADMIN] {
        let relay = client(&server).with_token(token);
        relay.put_ids("q", &["c"]).await;
        for id in ["a", "c"] {
            let job = relay.take("q").await;
            assert_eq!(job.id, id);
            relay.heartbeat(&job).await.only(202);
            let again = json!([new("q", id)]);
            relay.requeue(&job, "", &again).await.only(202);
        }
        relay.delete("q", "c").await;
        assert!(!relay.exists("q", "c").await);
    }
    // The token is valid for Relay only.
    for path in ["/queues", "/ui", "/token/ns"] {
        let url = format!("http://{}{path}", server.address);
        let response = server
            .http
            .get(url)
            .bearer_auth(TOKEN)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 401, "{path}");
    }
}

#[tokio::test]
async fn without_a_token_all_requests_are_accepted() {
    let server = Server::with(&["--qless-token", QLESS]);
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    assert_eq!(relay.next_ids("q", 1).await, ["a"]);
}

#[tokio::test]
async fn the_maximum_body_size_can_be_set() {
    let server = Server::with(&["--relay-body-max", "200"]);
    let relay = client(&server);
    let jobs = |size: usize| {
        let jobs = json!([new("q", "a")]).to_string();
        format!("{jobs}{}", " ".repeat(size - jobs.len()))
    };
    let run = format!("/v2{}", run_path("q", "a", NO_RUN));
    for (method, path) in [
        ("POST", "/v2/queues/jobs"),
        ("PUT", &*run),
        ("PATCH", &*run),
    ] {
        let (status, text) = raw::request(&server, method, path, jobs(201).as_bytes()).await;
        assert_eq!(status, 413, "{text}");
    }
    relay.enqueue_text("", jobs(200)).await.only(202);
    let larger = Server::with(&["--relay-body-max", "20000000"]);
    let relay = client(&larger);
    relay.enqueue_text("", jobs(9_000_000)).await.only(202);
    assert!(relay.exists("q", "a").await);
}
