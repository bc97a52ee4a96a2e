//! Tokens that expire.

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ask, created, detail, expired, made, pair, printed, refused, status, token};
use crate::check::run_statement;
use crate::support::eventually;
use crate::support::{Server, database};

#[tokio::test]
async fn an_expired_token_is_rejected_like_an_unknown_one() {
    let server = Server::with(&[]);
    let (token, valid) = (expired(&server, "ns").await, made(&server, "ns").await);
    for (method, path) in [
        (Method::PUT, "/api/ns/q?x"),
        (Method::GET, "/api/ns/q?x"),
        (Method::GET, "/api/ns/q?timeout=60"),
        (Method::DELETE, "/api/ns/q/job/1?x"),
    ] {
        let with = async |token: &str| {
            let path = format!("{path}&token={token}");
            ask(&server, method.clone(), &path).await
        };
        assert_eq!(with(&token).await, with("unknown").await, "{method} {path}");
        assert_eq!(with(&token).await, (401, json!({"error": "invalid token"})));
    }
    assert_eq!(status(&server, "ns", &valid).await, 200);
    // The secret is in use until the expired token is revoked.
    let again = format!("/token/ns?description=again&token={token}");
    let (status_, body) = ask(&server, Method::POST, &again).await;
    assert_eq!(
        (status_, &body["error"]),
        (400, &"the token has already existed".into())
    );
    let path = format!("/token/ns/{token}");
    assert_eq!(ask(&server, Method::DELETE, &path).await.0, 204);
    assert_eq!(ask(&server, Method::POST, &again).await.0, 201);
    assert_eq!(status(&server, "ns", &token).await, 200);
}

#[tokio::test]
async fn lists_show_expiry_and_expired_tokens() {
    let folder = TempDir::new().unwrap();
    let database = database::address(&folder.path().join("jobs.db"));
    let server = Server::at_url(&database, &[]);
    expired(&server, "ns").await;
    made(&server, "ns").await;
    let moment = "2035-01-31T02:00:00%2B02:00";
    let path = format!("/token/ns?description=later&expires={moment}");
    assert_eq!(ask(&server, Method::POST, &path).await.0, 201);
    for (description, is_expired) in [("expired", true), ("test", false), ("later", false)] {
        let detail = detail(&server, "ns", description).await;
        assert_eq!(detail["expired"], is_expired, "{detail}");
        assert_eq!(
            detail["expires_at"].is_null(),
            description == "test",
            "{detail}"
        );
        assert!(detail["created_at"].is_string(), "{detail}");
    }
    let later = detail(&server, "ns", "later").await;
    assert_eq!(later["expires_at"], "2035-01-31T00:00:00.000Z");
    // The list without details is that of lmstfy.
    let (_, body) = ask(&server, Method::GET, "/token/ns").await;
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    let listed = printed(&database, &["list", "ns"]);
    for (description, said) in [
        ("expired", "expired 20"),
        ("test", "never expires"),
        ("later", "expires 2035-01-31T00:00:00Z"),
    ] {
        let mut lines = listed
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>());
        let line = lines.find(|line| line[3] == description).expect("a line");
        assert_eq!(line.len(), 6, "{listed}");
        assert!(line[4].starts_with(said), "{listed}");
    }
    let page = format!("http://{}/ui/namespaces/ns", server.address);
    let page = server.http.get(page).send().await.unwrap();
    let page = page.text().await.unwrap();
    for word in ["expired ", "never", "2035-01-31 00:00:00 UTC", "not used"] {
        assert!(page.contains(word), "{word}");
    }
}

#[tokio::test]
async fn the_form_of_the_dashboard_accepts_an_expiry() {
    let server = Server::with(&[]);
    let origin = format!("http://{}", server.address);
    let post = async |expires: &str| {
        let form = [
            ("namespace", "ns"),
            ("description", "by hand"),
            ("expires", expires),
        ];
        let request = server.http.post(format!("{origin}/ui/namespaces"));
        let request = request.header("origin", &origin).form(&form);
        request.send().await.unwrap().text().await.unwrap()
    };
    let page = post("next week").await;
    assert!(
        page.contains("Token not created") && page.contains("RFC 3339"),
        "{page}"
    );
    assert!(
        page.contains(r#"value="next week""#),
        "the typed text is kept"
    );
    assert!(post("30d").await.contains("Token created for ns"));
    let by_hand = detail(&server, "ns", "by hand").await;
    assert!(by_hand["expires_at"].is_string(), "{by_hand}");
    assert!(post(" ").await.contains("Token created for ns"));
}

#[tokio::test]
async fn an_invalid_expiry_is_rejected_and_creates_no_token() {
    let folder = TempDir::new().unwrap();
    let database = database::address(&folder.path().join("jobs.db"));
    let server = Server::at_url(&database, &[]);
    for (expires, said) in [
        ("soon", "RFC 3339"),
        ("30", "RFC 3339"),
        ("-1d", "RFC 3339"),
        ("2035-01-31", "RFC 3339"),
        ("0s", "between 1 s"),
        ("3651d", "3650 days"),
        ("2020-01-31T00:00:00Z", "between 1 s"),
        ("2135-01-31T00:00:00Z", "3650 days"),
    ] {
        let path = format!("/token/ns?description=x&expires={expires}");
        let (status, body) = ask(&server, Method::POST, &path).await;
        let error = body["error"].as_str().unwrap();
        assert!(status == 400 && error.contains(said), "{expires}: {error}");
        let flag = format!("--expires={expires}");
        let output = token(&database, &["create", "ns", &flag]);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{expires}"
        );
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(said), "{expires}: {text}");
    }
    let (_, body) = ask(&server, Method::GET, "/token/ns").await;
    assert_eq!(body, json!({"tokens": {}}));
    // An empty parameter counts as missing, as for the others.
    let path = "/token/ns?description=x&expires=";
    assert_eq!(ask(&server, Method::POST, path).await.0, 201);
    assert_eq!(detail(&server, "ns", "x").await["expires_at"], Value::Null);
    let listed = created(
        &database,
        &["ns", "--expires", "30d", "--description", "by command"],
    );
    assert_eq!(status(&server, "ns", &listed).await, 200);
    assert!(detail(&server, "ns", "by command").await["expires_at"].is_string());
    refused(&database, &["create", "ns", "--expires", "9999d"]);
}

#[tokio::test]
async fn a_token_is_deleted_30_days_after_its_expiry() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.db");
    let server = Server::on(&path, &[]);
    let (old, recent, valid) = (
        expired(&server, "old").await,
        expired(&server, "recent").await,
        made(&server, "ns").await,
    );
    server.stop().await;
    for sql in [
        "UPDATE tokens SET expires_at = expires_at - 2592000000000 WHERE namespace = 'old'",
        "UPDATE tokens SET expires_at = expires_at - 2505600000000 WHERE namespace = 'recent'",
    ] {
        run_statement(&path, sql).await;
    }
    let server = Server::on(&path, &[]);
    let tokens = async |namespace: &str| {
        let path = format!("/token/{namespace}");
        let (_, body) = ask(&server, Method::GET, &path).await;
        body["tokens"].as_object().unwrap().len()
    };
    eventually("the old token is removed", async || {
        tokens("old").await == 0
    })
    .await;
    assert_eq!((tokens("recent").await, tokens("ns").await), (1, 1));
    assert_eq!(detail(&server, "recent", "expired").await["expired"], true);
    for (namespace, token, expected) in [
        ("old", &old, 401),
        ("recent", &recent, 401),
        ("ns", &valid, 200),
    ] {
        assert_eq!(
            status(&server, namespace, token).await,
            expected,
            "{namespace}"
        );
    }
    server.stop().await;
    let server = Server::on(&path, &[]);
    let (_, body) = ask(&server, Method::GET, "/token/old").await;
    assert_eq!(
        body,
        json!({"tokens": {}}),
        "it is removed from the database, too"
    );
}

#[tokio::test]
async fn a_token_expires_on_every_server_of_a_database() {
    let Some(pair) = pair() else {
        return;
    };
    for (here, there) in pair.both() {
        let token = expired(here, "ns").await;
        // Both servers use the clock of the database, so the token has expired on both.
        assert_eq!(status(there, "ns", &token).await, 401);
        assert_eq!(detail(there, "ns", "expired").await["expired"], true);
        let path = format!("/token/ns/{token}");
        assert_eq!(ask(there, Method::DELETE, &path).await.0, 204);
    }
}
