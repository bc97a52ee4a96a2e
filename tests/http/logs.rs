//! The log: its formats, and the lines about requests.

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::lmstfy::Lmstfy;
use crate::support::log::Logged;

/// The lines about requests, as JSON.
fn requests(log: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    let is_request = |line: &Value| line["target"] == "requests";
    lines.filter(is_request).collect()
}

#[tokio::test]
async fn each_request_is_logged_with_its_route_and_without_secrets() {
    let options = ["--log-requests", "--log-format", "json"];
    let logged = Logged::with("warn", &options);
    let server = &logged.server;
    server
        .client()
        .add("q", json!({"id": "secret-id", "meta": "secret-body"}))
        .await;
    server
        .client()
        .get("/job/secret-id?x=secret-query")
        .await
        .ok();
    let secret = Lmstfy::new(server, "ns").with_token("secret-token-of-a-client");
    secret.get("/q").await;
    let path = "/token/ns/secret-token";
    let url = format!("http://{}{path}", server.address);
    server.http.delete(url).send().await.unwrap();
    eventually("all requests are logged", async || {
        requests(&logged.log()).len() >= 4
    })
    .await;
    let log = logged.log();
    assert!(!log.contains("secret"), "{log}");
    let lines = requests(&log);
    let found: Vec<_> = lines
        .iter()
        .map(|it| {
            assert_eq!(it["id"].as_str().unwrap().len(), 32, "{it}");
            assert!(it["duration_ms"].as_f64().unwrap() >= 0.0, "{it}");
            assert_eq!(it["level"], "INFO");
            let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
            let status = it["status"].as_u64().unwrap();
            (text("method"), text("route"), status, text("code"))
        })
        .collect();
    let expected = [
        ("POST", "/add/{queue}", 200, ""),
        ("GET", "/job/{id}", 200, ""),
        ("GET", "/api/{namespace}/{queue}", 401, "unauthorized"),
        ("DELETE", "/token/{namespace}/{token}", 204, ""),
    ];
    let expected = expected.map(|(method, route, status, code)| {
        (method.to_owned(), route.to_owned(), status, code.to_owned())
    });
    assert_eq!(found, expected);
}

#[tokio::test]
async fn requests_are_not_logged_unless_asked() {
    let logged = Logged::with("info", &[]);
    logged.server.client().get("/queues").await.ok();
    let server = logged.server.client().get("/nope").await;
    server.assert_rejected(404, "no_such_endpoint");
    let log = logged.log();
    assert!(!log.contains("duration_ms"), "{log}");
}

#[tokio::test]
async fn a_warning_in_json_has_the_id_of_its_request() {
    let options = [
        "--log-format",
        "json",
        "--admin-token",
        "the-token-of-the-admin",
    ];
    let logged = Logged::with("warn", &options);
    let url = format!("http://{}/metrics", logged.server.address);
    let request = logged.server.http.get(url).bearer_auth("wrong");
    let response = request.send().await.unwrap();
    let id = response.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let log = logged.log();
    let line = log.lines().find(|line| line.contains("wrong credentials"));
    let line: Value = serde_json::from_str(line.unwrap()).unwrap();
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["message"], "rejected a request with wrong credentials");
    assert_eq!(line["span"]["id"], id.as_str());
}

#[tokio::test]
async fn rejections_by_the_dashboard_cannot_fill_the_log() {
    let logged = Logged::with("warn", &["--admin-token", "the-token-of-the-admin"]);
    let (http, root) = (
        &logged.server.http,
        format!("http://{}", logged.server.address),
    );
    for _ in 0..10 {
        let foreign = http.post(format!("{root}/ui/fn/cancel")).send().await;
        assert_eq!(foreign.unwrap().status(), 403);
        let malformed = http
            .post(format!("{root}/ui/login"))
            .header("origin", &root)
            .header("content-type", "text/plain");
        let malformed = malformed.body("name").send().await.unwrap();
        assert!(malformed.status().is_client_error());
    }
    let log = logged.log();
    let is_rejection = |line: &&str| {
        line.contains("did not come from the dashboard") || line.contains("request failed")
    };
    assert_eq!(log.lines().filter(is_rejection).count(), 10, "{log}");
}
