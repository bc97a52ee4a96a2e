//! Requests that a hostile page can make a browser send: from another site, and to host names that resolve to this
//! server (DNS rebinding).

use reqwest::Method;
use serde_json::{Value, json};

use super::{ADMIN, Credentials, JOBQ, QLESS, RELAY, ask, ask_from};
use crate::support::{Server, raw};

/// Requests of each protocol and of `/token`, and one to an unknown path: method, path and body.
const REQUESTS: [(&str, &str, &str); 13] = [
    ("POST", "/add/q", r#"{"data":{"meta":1}}"#),
    ("GET", "/get/q?host=w", ""),
    ("GET", "/peek/q", ""),
    ("GET", "/events", ""),
    ("POST", "/v2/queues/jobs", "[]"),
    ("GET", "/v2/queues/q/jobs", ""),
    ("POST", "/api/v0/queue", r#"{"name":"new"}"#),
    ("GET", "/api/v0/queue", ""),
    ("GET", "/api/ns/q", ""),
    ("GET", "/api/ns/q/size", ""),
    ("POST", "/token/ns?description=x", ""),
    ("GET", "/token/ns", ""),
    ("GET", "/nope", ""),
];

/// The user agent of browsers and of some other clients.
const AGENT: (&str, &str) = ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)");

/// Whether an error has the format of the protocol that owns the path.
fn is_in_shape(path: &str, text: &str) -> bool {
    if path.starts_with("/v2") || path.starts_with("/ui") {
        return !text.is_empty() && !text.starts_with('{');
    }
    let body: Value = serde_json::from_str(text).unwrap();
    let is_qless = !path.starts_with("/api") && !path.starts_with("/token");
    body["error"].is_string() && body["code"].is_string() == is_qless
}

/// Checks that every request is rejected if it comes from another site.
async fn refuses_other_sites(server: &Server) {
    for (method, path, body) in REQUESTS {
        let origin = format!("http://{}", server.address);
        for (headers, is_ours) in [
            (&[("sec-fetch-site", "cross-site")][..], false),
            (&[("sec-fetch-site", "same-site")], false),
            (
                &[("sec-fetch-site", "cross-site"), ("origin", &origin)],
                false,
            ),
            (&[("origin", "http://evil.example")], false),
            (&[("origin", "null")], false),
            (&[AGENT, ("accept-language", "en")], false),
            (&[AGENT], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("origin", &origin)], true),
            (&[], true),
        ] {
            if is_ours && path == "/events" {
                continue;
            }
            let url = format!("http://{}{path}", server.address);
            let verb = Method::from_bytes(method.as_bytes()).unwrap();
            let mut request = server.http.request(verb, url).body(body);
            request = request.header("content-type", "application/json");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            let text = response.text().await.unwrap();
            let asked = format!("{method} {path} {headers:?}");
            if is_ours {
                assert_ne!(status, 403, "{asked}: {text}");
            } else {
                assert_eq!(status, 403, "{asked}: {text}");
                assert!(is_in_shape(path, &text), "{asked}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn every_api_rejects_other_sites_even_without_a_token() {
    let open = Server::with(&["--no-auth"]);
    let keys = ["--qless-token", QLESS, "--relay-token", RELAY];
    let closed = Server::with(&[&keys[..], &["--jobq-token", JOBQ]].concat());
    refuses_other_sites(&open).await;
    refuses_other_sites(&closed).await;
    // Links may lead to the dashboard, and browsers never add a bearer token.
    let evil = [("sec-fetch-site", "cross-site")];
    let page = ask_from(&open, Method::GET, "/ui", Credentials::None, &evil).await;
    assert_eq!(page.status(), 200);
    let seen = ask_from(
        &closed,
        Method::GET,
        "/queues",
        Credentials::Bearer(QLESS),
        &evil,
    )
    .await;
    assert_eq!(seen.status(), 200);
    // Without HTTPS, browsers do not send Sec-Fetch headers.
    let browser = [AGENT, ("accept-language", "en")];
    for path in ["/health", "/ui"] {
        let page = ask_from(&open, Method::GET, path, Credentials::None, &browser).await;
        assert_eq!(page.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn requests_of_other_sites_change_nothing() {
    let server = Server::with(&["--no-auth"]);
    server.client().add_ids("q", &["a"]).await;
    let evil = [("sec-fetch-site", "cross-site")];
    for (method, path) in [
        (Method::GET, "/get/q?host=evil"),
        (Method::POST, "/get/q?host=evil"),
        (Method::POST, "/cancel"),
        (Method::PUT, "/api/ns/q"),
        (Method::POST, "/token/ns?description=evil"),
    ] {
        let seen = ask_from(&server, method, path, Credentials::None, &evil).await;
        assert_eq!(seen.status(), 403, "{path}");
    }
    assert_eq!(server.client().state("a").await, "waiting");
    let size = ask(&server, Method::GET, "/api/ns/q/size", Credentials::None).await;
    let size: Value = size.json().await.unwrap();
    assert_eq!(size["size"], 0);
    let tokens = ask(&server, Method::GET, "/token/ns", Credentials::None).await;
    let tokens: Value = tokens.json().await.unwrap();
    assert_eq!(tokens, json!({"tokens": {}}));
}

/// Sends a request with these additional header lines. Returns status and body of the response.
async fn with_lines(server: &Server, path: &str, version: &str, lines: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/{version}\r\nconnection: close\r\n{lines}\r\n");
    raw::exchange(server, request.as_bytes()).await
}

async fn with_host(server: &Server, path: &str, host: &str) -> (u16, String) {
    with_lines(server, path, "1.1", &format!("host: {host}\r\n")).await
}

const PATHS: [&str; 8] = [
    "/health",
    "/ui",
    "/token/ns",
    "/peek/q",
    "/v2/queues/q/jobs",
    "/api/v0/queue",
    "/api/ns/q/size",
    "/nope",
];

#[tokio::test]
async fn unknown_host_names_are_rejected() {
    let plain = Server::with(&[]);
    let named = Server::with(&["--allowed-host", "jobs.example", "--allowed-host", "other"]);
    let closed = Server::with(&["--qless-token", QLESS, "--admin-token", ADMIN]);
    for path in PATHS {
        for server in [&plain, &named, &closed] {
            for host in [
                "rebind.evil.example",
                "rebind.evil.example:3000",
                "jobs.example.evil",
                "",
            ] {
                let (status, text) = with_host(server, path, host).await;
                assert_eq!(status, 421, "{path} at {host:?}: {text}");
                assert!(is_in_shape(path, &text), "{path}: {text}");
                assert!(text.contains("--allowed-host"), "{text}");
            }
            for host in [
                &*server.address,
                "127.0.0.1",
                "[::1]:1",
                "localhost",
                "LOCALHOST:99",
            ] {
                let (status, text) = with_host(server, path, host).await;
                assert!(![400, 421].contains(&status), "{path} at {host}: {text}");
            }
            // The absolute form of a request target contains a host as well.
            let absolute = format!("http://evil.example{path}");
            let (status, text) = with_host(server, &absolute, "localhost").await;
            assert_eq!(status, 421, "{absolute}: {text}");
        }
        for host in ["jobs.example", "Jobs.Example:443", "jobs.example.", "other"] {
            assert_eq!(
                with_host(&plain, path, host).await.0,
                421,
                "{path} at {host}"
            );
            assert_ne!(
                with_host(&named, path, host).await.0,
                421,
                "{path} at {host}"
            );
        }
    }
    let made = "POST /token/default?description=x HTTP/1.1\r\nhost: rebind.evil.example\r\nconnection: close\r\n\
                content-length: 0\r\n\r\n";
    assert_eq!(raw::exchange(&plain, made.as_bytes()).await.0, 421);
}

#[tokio::test]
async fn a_request_must_have_exactly_one_host() {
    let server = Server::with(&[]);
    for path in PATHS {
        for lines in ["", "host: localhost\r\nhost: localhost\r\n"] {
            let (status, text) = with_lines(&server, path, "1.1", lines).await;
            assert_eq!(status, 400, "{path} with {lines:?}: {text}");
            assert!(is_in_shape(path, &text), "{path}: {text}");
        }
        // Health checks use HTTP/1.0, browsers do not.
        let (status, text) = with_lines(&server, path, "1.0", "").await;
        assert!(![400, 421].contains(&status), "{path}: {text}");
        let (status, _) = with_lines(&server, path, "1.0", "host: evil.example\r\n").await;
        assert_eq!(status, 421, "{path}");
    }
}

#[tokio::test]
async fn on_a_non_loopback_address_the_host_is_checked_if_an_api_is_open() {
    let keys = [
        "--listen",
        "0.0.0.0:0",
        "--admin-token",
        ADMIN,
        "--qless-token",
        QLESS,
    ];
    let keys = [&keys[..], &["--jobq-token", JOBQ]].concat();
    for (more, expected) in [
        (&["--relay-token", RELAY][..], 200),
        (&["--relay-token", RELAY, "--no-auth"], 421),
        (&["--relay-token", RELAY, "--ui-open-as", "viewer"], 421),
        (
            &["--relay-token", RELAY, "--allowed-host", "other.example"],
            421,
        ),
        (
            &["--relay-token", RELAY, "--allowed-host", "jobs.example"],
            200,
        ),
        (&["--open-relay"], 421),
        (&["--open-relay", "--allowed-host", "jobs.example"], 200),
    ] {
        let server = Server::with(&[&keys[..], more].concat());
        let (status, text) = with_host(&server, "/health", "jobs.example").await;
        assert_eq!(status, expected, "{more:?}: {text}");
    }
}
