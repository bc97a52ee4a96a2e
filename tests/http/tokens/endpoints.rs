//! `/token`, compatible with the admin API of lmstfy.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ask, made, status};
use crate::support::Server;

const GIVEN: &str = "a-token-that-was-given";

#[tokio::test]
async fn a_token_is_created_listed_and_deleted() {
    let server = Server::with(&[]);
    let token = made(&server, "ns").await;
    assert!(token.len() >= 32, "{token}");
    assert_eq!(status(&server, "ns", &token).await, 200);
    assert_eq!(status(&server, "other", &token).await, 401);
    let given = format!("/token/ns?description=f%C3%BCr%20ada&token={GIVEN}");
    let response = ask(&server, Method::POST, &given).await;
    assert_eq!(response, (201, json!({"token": GIVEN})));
    let (status_, body) = ask(&server, Method::GET, "/token/ns").await;
    assert_eq!(status_, 200);
    let tokens = body["tokens"].as_object().unwrap();
    let mut descriptions: Vec<_> = tokens.values().collect();
    descriptions.sort_by_key(ToString::to_string);
    assert_eq!(descriptions, ["für ada", "test"]);
    assert!(tokens.keys().all(|name| name.starts_with("sha256:")));
    assert!(!body.to_string().contains(GIVEN), "{body}");
    let delete = async |which: &str| {
        let path = format!("/token/ns/{which}");
        assert_eq!(
            ask(&server, Method::DELETE, &path).await,
            (204, Value::Null)
        );
    };
    delete(GIVEN).await;
    assert_eq!(status(&server, "ns", GIVEN).await, 401);
    assert_eq!(status(&server, "ns", &token).await, 200);
    let (_, body) = ask(&server, Method::GET, "/token/ns").await;
    let name = body["tokens"].as_object().unwrap().keys().next().unwrap();
    delete(name).await;
    assert_eq!(status(&server, "ns", &token).await, 401);
    // Deleting an unknown token succeeds.
    for which in [GIVEN, name, "nobody", "%FF", "a%2Fb"] {
        delete(which).await;
    }
    let (_, body) = ask(&server, Method::GET, "/token/ns").await;
    assert_eq!(body, json!({"tokens": {}}));
    let response = ask(&server, Method::DELETE, "/token/no%20ns/x").await;
    assert_eq!(response, (204, Value::Null));
}

#[tokio::test]
async fn parameters_can_be_a_form() {
    let server = Server::with(&[]);
    let url = format!("http://{}/token/ns", server.address);
    let form = [("description", "a & b"), ("token", GIVEN), ("pool", "x")];
    let response = server.http.post(&url).form(&form).send().await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(
        response.json::<Value>().await.unwrap(),
        json!({"token": GIVEN})
    );
    // Some parameters in the query, some in the form.
    let request = server.http.post(format!("{url}?token={GIVEN}2"));
    let response = request.form(&[("description", "c")]).send().await.unwrap();
    assert_eq!(response.status(), 201);
    let (_, body) = ask(&server, Method::GET, "/token/ns").await;
    let tokens = body["tokens"].as_object().unwrap();
    assert!(tokens.values().any(|it| it == "a & b") && tokens.values().any(|it| it == "c"));
    // Other content types are not parsed as a form.
    let request = server.http.post(&url).header("content-type", "text/plain");
    let response = request.body("description=d").send().await.unwrap();
    assert_eq!(response.status(), 400);
    let request = server
        .http
        .post(&url)
        .form(&[("description", "x".repeat(20_000))]);
    assert_eq!(request.send().await.unwrap().status(), 413);
}

#[tokio::test]
async fn errors_are_those_of_lmstfy() {
    let server = Server::with(&[]);
    let given = format!("/token/ns?description=x&token={GIVEN}");
    assert_eq!(ask(&server, Method::POST, &given).await.0, 201);
    let long = "d".repeat(1_025);
    for (path, said) in [
        ("/token/ns", "invalid description"),
        ("/token/ns?description=", "invalid description"),
        ("/token/ns?description=%00", "invalid description"),
        (
            &format!("/token/ns?description={long}"),
            "invalid description",
        ),
        (
            "/token/ns?description=x&token=short",
            "the user token was too short",
        ),
        (&given, "the token has already existed"),
        ("/token/v0?description=x", "v0"),
        ("/token/a%20b?description=x", "namespace"),
        ("/token/%FF?description=x", "namespace"),
        (
            "/token/ns?description=x&token=01234567890123456%3A789",
            "colon",
        ),
        ("/token/ns?description=%FF", "UTF-8"),
    ] {
        let (status, body) = ask(&server, Method::POST, path).await;
        assert_eq!(status, 400, "{path}");
        let error = body["error"].as_str().unwrap();
        assert!(error.contains(said), "{path}: {error}");
    }
    for (method, path) in [
        (Method::PUT, "/token/ns"),
        (Method::DELETE, "/token/ns"),
        (Method::GET, "/token/ns/x"),
        (Method::POST, "/token/ns/x"),
    ] {
        let (status, body) = ask(&server, method.clone(), path).await;
        assert_eq!(status, 405, "{method} {path}");
        assert!(body["error"].is_string());
    }
}

#[tokio::test]
async fn a_flush_keeps_tokens_and_deletes_jobs() {
    let server = Server::with(&["--allow-flush"]);
    let token = made(&server, "ns").await;
    let path = format!("/api/ns/q?token={token}");
    assert_eq!(ask(&server, Method::PUT, &path).await.0, 201);
    server.client().post("/flush", Value::Null).await.ok();
    assert_eq!(ask(&server, Method::GET, &path).await.0, 404);
    assert_eq!(status(&server, "ns", &token).await, 200);
}
