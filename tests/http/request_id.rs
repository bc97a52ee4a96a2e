//! The request ID: in every response and in log entries.

use std::collections::HashSet;

use reqwest::Method;
use serde_json::json;

use crate::support::jobq::Jobq;
use crate::support::{Server, log::Logged};

/// The request ID of the response to a request with these headers.
async fn number(server: &Server, method: Method, path: &str, headers: &[(&str, &str)]) -> String {
    let mut request = server
        .http
        .request(method.clone(), format!("http://{}{path}", server.address));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    let numbers: Vec<_> = response.headers().get_all("x-request-id").iter().collect();
    assert_eq!(numbers.len(), 1, "{method} {path}: {numbers:?}");
    let number = numbers[0].to_str().unwrap().to_owned();
    let is_plain = number.len() == 32 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_plain, "{method} {path}: {number}");
    number
}

#[tokio::test]
async fn every_response_has_a_unique_request_id() {
    let options = ["--admin-token", "a", "--qless-token", "q"];
    let (open, closed) = (Server::with(&[]), Server::with(&options));
    let mut seen = HashSet::new();
    for server in [&open, &closed] {
        for (method, path) in [
            (Method::GET, "/health"),
            (Method::GET, "/queues"),
            (Method::HEAD, "/queues"),
            (Method::HEAD, "/get/q"),
            (Method::PUT, "/queues"),
            (Method::POST, "/add/q"),
            (Method::GET, "/nope"),
            (Method::OPTIONS, "/nope"),
            (Method::GET, "/ui"),
            (Method::GET, "/ui/"),
            (Method::GET, "/ui/nope"),
            (Method::GET, "/ui/events"),
            (Method::GET, "/ui/favicon.svg"),
            (Method::GET, "/ui/pkg/0/nope.js"),
            (Method::POST, "/ui/fn/nope"),
            (Method::GET, "/token/ns"),
            (Method::DELETE, "/token/ns/x"),
            (Method::GET, "/api/ns/q"),
            (Method::GET, "/api/nope"),
            (Method::PUT, "/api/v0/nope"),
        ] {
            let number = number(server, method.clone(), path, &[]).await;
            assert!(seen.insert(number), "{method} {path}");
        }
        let stream = [
            ("accept", "text/event-stream"),
            ("authorization", "Bearer q"),
        ];
        let number = number(server, Method::GET, "/events", &stream).await;
        assert!(seen.insert(number));
    }
}

#[tokio::test]
async fn a_request_id_of_the_client_is_ignored() {
    let server = Server::with(&[]);
    let theirs = "0123456789abcdef0123456789abcdef";
    let headers = [("x-request-id", theirs), ("x-correlation-id", theirs)];
    let number = number(&server, Method::GET, "/queues", &headers).await;
    assert_ne!(number, theirs);
}

#[tokio::test]
async fn log_entries_have_request_id_and_path_but_no_secrets() {
    for level in ["warn", "info", "trace"] {
        let logged = Logged::with(level, &["--admin-token", "right"]);
        let server = &logged.server;
        let wrong = [("authorization", "Bearer wrong-and-secret")];
        let page = number(server, Method::GET, "/ui/queues?a=in-the-query", &wrong).await;
        let path = "/token/ns/in-the-path?token=in-the-query";
        let token = number(server, Method::DELETE, path, &wrong).await;
        let log = logged.log();
        for (number, request) in [
            (page, "method=GET path=/ui/queues}"),
            (token, "method=DELETE path=/token/ns/…}"),
        ] {
            let line = log.lines().find(|line| line.contains(&number));
            let line = line.unwrap_or_else(|| panic!("{number} at {level}: {log}"));
            assert!(line.contains(request), "{line}");
        }
        for secret in ["wrong-and-secret", "in-the-path", "in-the-query"] {
            assert!(!log.contains(secret), "{secret} at {level}: {log}");
        }
    }
}

#[tokio::test]
async fn a_successful_request_is_not_logged() {
    let logged = Logged::with("info", &[]);
    logged.server.client().add("q", json!({"meta": 1})).await;
    assert!(!logged.log().contains("/add/q"), "{}", logged.log());
}

#[tokio::test]
async fn a_rejected_form_is_logged_in_one_line() {
    let logged = Logged::with("warn", &[]);
    let origin = format!("http://{}", logged.server.address);
    let form = [("protocol", "x\nFORGED"), ("queue", "q"), ("back", "/ui")];
    let request = logged
        .server
        .http
        .post(format!("{origin}/ui/fn/pause_queue"));
    let request = request.header("origin", &origin).form(&form);
    assert_eq!(request.send().await.unwrap().status(), 400);
    let log = logged.log();
    assert!(log.contains("x\\nFORGED"), "{log}");
}

/// With any `RUST_LOG`, the parser of queries does not write a client's text to the log, where it could look like
/// another line.
#[tokio::test]
async fn a_wrong_query_is_not_logged() {
    for level in ["trace", "warn", "info,sqlite3Parser=trace"] {
        let logged = Logged::with(level, &["--no-auth"]);
        let jobq = Jobq::new(&logged.server);
        jobq.create("q").await;
        let query = json!({"query": [["=", "1 a 'x\nFORGED\u{1b}[31m", 1]]});
        let reply = jobq.post("/queue/q/query_jobs", &query).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        let log = logged.log();
        assert!(
            !log.contains("FORGED") && !log.contains("sqlite3Parser"),
            "{log}"
        );
    }
}

/// lmstfy's tokens can be in an address, so nothing may store its responses; and no browser may guess their type.
#[tokio::test]
async fn responses_of_all_apis_are_neither_stored_nor_sniffed() {
    let server = Server::with(&["--no-auth"]);
    for path in [
        "/queues",
        "/nope",
        "/api/ns/q/size",
        "/v2/queues/q/jobs",
        "/api/v0/queue",
        "/token/ns",
        "/health",
    ] {
        let response = server.http.get(format!("http://{}{path}", server.address));
        let response = response.send().await.unwrap();
        let header = |name: &str| response.headers().get(name).cloned();
        assert_eq!(header("cache-control").unwrap(), "no-store", "{path}");
        assert_eq!(
            header("x-content-type-options").unwrap(),
            "nosniff",
            "{path}"
        );
    }
}
