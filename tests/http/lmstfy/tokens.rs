//! Tokens: access to namespaces.

use reqwest::Method;

use crate::support::lmstfy::{Lmstfy, Reply};
use crate::support::metrics::wait_until_polling;
use crate::support::{Server, escape};

/// Every call with a valid body and its status, for a sequence of calls by an authorized client. `{}` is the namespace.
const CALLS: [(Method, &str, &str, u16); 17] = [
    (Method::PUT, "/api/{}/q", "x", 201),
    (Method::PUT, "/api/{}/q/bulk", "[1]", 201),
    (Method::PUT, "/api/{}/q/job/x", "x", 201),
    (Method::GET, "/api/{}/q/peek", "", 200),
    (Method::GET, "/api/{}/q/size", "", 200),
    (Method::GET, "/api/{}/q/job/x", "", 404),
    (Method::DELETE, "/api/{}/q/job/x", "", 204),
    (Method::GET, "/api/{}/q", "", 200),
    (Method::GET, "/api/{}/r,q", "", 200),
    (Method::GET, "/api/{}/q?count=5&timeout=1", "", 200),
    (Method::GET, "/api/{}/q/deadletter", "", 200),
    (Method::GET, "/api/{}/q/deadletter/size", "", 200),
    (Method::PUT, "/api/{}/q/deadletter", "", 200),
    (Method::DELETE, "/api/{}/q/deadletter", "", 204),
    (Method::DELETE, "/{}/q/deadletter", "", 204),
    (Method::DELETE, "/api/{}/q", "", 204),
    (Method::GET, "/api/{}/q?timeout=1", "", 404),
];

/// Creates a token of the namespace.
pub async fn token(server: &Server, namespace: &str) -> String {
    let url = format!(
        "http://{}/token/{namespace}?description=test",
        server.address
    );
    let response = server.http.post(url).send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 201, "{response:?}");
    let response: serde_json::Value = response.json().await.expect("JSON");
    response["token"].as_str().expect("a token").to_owned()
}

/// Revokes a token.
pub async fn revoke(server: &Server, namespace: &str, token: &str) {
    let url = format!(
        "http://{}/token/{namespace}/{}",
        server.address,
        escape(token)
    );
    let response = server.http.delete(url).send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 204, "{response:?}");
}

/// Where a client sends its token.
#[derive(Clone, Debug, Default)]
struct SentToken {
    header: Option<String>,
    query: Option<String>,
}

fn header(token: &str) -> SentToken {
    let header = Some(token.to_owned());
    SentToken {
        header,
        query: None,
    }
}

fn query(token: &str) -> SentToken {
    let query = Some(token.to_owned());
    SentToken {
        header: None,
        query,
    }
}

fn both(header: &str, query: &str) -> SentToken {
    SentToken {
        header: Some(header.to_owned()),
        query: Some(query.to_owned()),
    }
}

async fn call(
    server: &Server,
    method: &Method,
    path: &str,
    body: &'static str,
    sent: &SentToken,
) -> Reply {
    let mut path = path.replace("{}", "ns");
    if let Some(token) = &sent.query {
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str(&format!("token={}", escape(token)));
    }
    let url = format!("http://{}{path}", server.address);
    let mut request = server.http.request(method.clone(), url).body(body);
    if let Some(token) = &sent.header {
        request = request.header("X-Token", token);
    }
    Reply::of(format!("{method} {path} with {sent:?}"), request).await
}

/// Checks that every call with one of these tokens is rejected with this error.
async fn refused(server: &Server, sent: &[SentToken], status: u16, error: &str) {
    for sent in sent {
        for (method, path, body, _) in CALLS {
            let reply = call(server, &method, path, body, sent).await;
            reply.assert_rejected(status, error);
        }
    }
}

#[tokio::test]
async fn without_a_token_every_call_is_rejected() {
    let server = Server::with(&[]);
    let own = Lmstfy::new(&server, "ns").with_token(&token(&server, "ns").await);
    let dead = own.publish_dead("q", "dead").await;
    let id = own.publish("q?tries=5", "x").await;
    let other = token(&server, "other").await;
    let revoked = token(&server, "ns").await;
    revoke(&server, "ns", &revoked).await;
    let right = token(&server, "ns").await;
    let wrong = "0123456789abcdefghij";
    let none = [
        SentToken::default(),
        header(""),
        query(""),
        both("", ""),
        header("default:"),
        query("default:"),
    ];
    refused(&server, &none, 401, "token not found").await;
    let invalid = [
        header(wrong),
        query(wrong),
        header(&other),
        query(&other),
        header(&revoked),
        query(&revoked),
        both(wrong, &right),
        both(&other, &right),
        header(&format!("default:{wrong}")),
        header(&format!("{right}x")),
        header(right.split_at(right.len() - 1).0),
    ];
    refused(&server, &invalid, 401, "invalid token").await;
    let elsewhere = [
        header(&format!("elsewhere:{right}")),
        query(&format!("elsewhere:{right}")),
        header("elsewhere:"),
        both(&format!("elsewhere:{right}"), &right),
    ];
    refused(&server, &elsewhere, 404, "pool not found").await;
    // The rejected calls had no effect.
    assert_eq!(own.size("q").await, 1);
    assert_eq!(own.existing_job("q", &id).await.remain_tries, 5);
    assert_eq!(own.dead("q").await, (1, dead));
}

#[tokio::test]
async fn a_token_of_the_namespace_allows_every_call() {
    let server = Server::with(&[]);
    let right = token(&server, "ns").await;
    let other = token(&server, "other").await;
    for sent in [
        header(&right),
        query(&right),
        both("", &right),
        both(&right, ""),
        both(&right, "wrong"),
        both(&right, &other),
        header(&format!("default:{right}")),
        query(&format!("default:{right}")),
    ] {
        for (method, path, body, status) in CALLS {
            let reply = call(&server, &method, path, body, &sent).await;
            assert_eq!(reply.status, status, "{reply:?}");
            assert_ne!(reply.text, r#"{"error":"pool not found"}"#, "{reply:?}");
        }
    }
}

#[tokio::test]
async fn several_tokens_are_valid_at_once_and_revoked_individually() {
    let server = Server::with(&[]);
    let lmstfy = Lmstfy::new(&server, "ns");
    let (one, other) = (token(&server, "ns").await, token(&server, "ns").await);
    assert_ne!(one, other);
    for token in [&one, &other] {
        lmstfy.clone().with_token(token).publish("q", "x").await;
    }
    // A token cannot be revoked through another namespace.
    revoke(&server, "other", &one).await;
    lmstfy.clone().with_token(&one).publish("q", "x").await;
    revoke(&server, "ns", &one).await;
    let reply = lmstfy.clone().with_token(&one).put("/q", "x").await;
    reply.assert_rejected(401, "invalid token");
    lmstfy.clone().with_token(&other).publish("q", "x").await;
    assert_eq!(lmstfy.with_token(&other).size("q").await, 4);
}

/// Checks names, then the pool, then the token, then the parameters, then the body.
#[tokio::test]
async fn the_token_is_checked_after_names_and_before_parameters() {
    let server = Server::with(&[]);
    let right = token(&server, "ns").await;
    let lmstfy = Lmstfy::new(&server, "ns");
    let wrong = lmstfy.clone().with_token("elsewhere:wrong");
    wrong.put("/q.q", "x").await.bad();
    wrong
        .put("/q?ttl=x", "x")
        .await
        .assert_rejected(404, "pool not found");
    lmstfy.put("/q.q", "x").await.bad();
    lmstfy
        .put("/q?ttl=x", vec![0; 70000])
        .await
        .assert_rejected(401, "token not found");
    let invalid = lmstfy.clone().with_token("wrong");
    invalid
        .put("/q?ttl=x", vec![0; 70000])
        .await
        .assert_rejected(401, "invalid token");
    let own = lmstfy.clone().with_token(&right);
    own.put("/q?ttl=x", vec![0; 70000])
        .await
        .assert_rejected(400, "invalid ttl");
    own.put("/q", vec![0; 70000])
        .await
        .assert_rejected(413, "body too large");
    // Unknown paths need no token.
    lmstfy
        .get("/q/unknown")
        .await
        .assert_rejected(404, "api not found");
}

#[tokio::test]
async fn namespaces_cannot_have_names_of_other_protocols() {
    let server = Server::with(&[]);
    let url = format!("http://{}/token/v0?description=test", server.address);
    let response = server.http.post(url).send().await.expect("an answer");
    assert!(response.status().is_client_error(), "{response:?}");
}

#[tokio::test]
async fn tokens_and_revocations_survive_a_restart() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let database = folder.path().join("jobs.db");
    let mut server = Server::on(&database, &[]);
    let (good, bad) = (token(&server, "ns").await, token(&server, "ns").await);
    revoke(&server, "ns", &bad).await;
    server.kill();
    let server = Server::on(&database, &[]);
    let lmstfy = Lmstfy::new(&server, "ns");
    lmstfy.clone().with_token(&good).publish("q", "x").await;
    let reply = lmstfy.with_token(&bad).put("/q", "x").await;
    reply.assert_rejected(401, "invalid token");
}

/// The token is checked when the poll starts.
#[tokio::test]
async fn a_valid_token_allows_polls() {
    let server = Server::with(&[]);
    let lmstfy = Lmstfy::new(&server, "ns").with_token(&token(&server, "ns").await);
    let poll = lmstfy.poll(&server, "q?timeout=50").await;
    wait_until_polling(&server, 1).await;
    let id = lmstfy.publish("q", "x").await;
    assert_eq!(poll.take().await.id, id);
}
