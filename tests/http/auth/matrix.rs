//! Every route of the server, and the credentials that it accepts. The routes are read from the source files, so that
//! none is missing.

use std::fs;
use std::path::Path;

use reqwest::Method;
use serde_json::Value;

use super::{Credentials, ask, ask_from, status};
use crate::support::Server;
use crate::support::eventually;
use crate::support::keys::{
    ADMIN, ADMIN_LOGIN, ADMIN_TOKEN, API_TOKENS, JOBQ, PASSWORD, QLESS, RELAY,
};

/// What protects a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protection {
    Nothing,
    Admin,
    Qless,
    Relay,
    Jobq,
    /// A token of the namespace.
    Lmstfy,
}

/// The text of a source file.
pub fn read(source: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(source);
    fs::read_to_string(path).unwrap()
}

/// The paths of the routes in a source, with a value for each parameter.
pub fn routes(source: &str) -> Vec<String> {
    let text = read(source);
    // Unit tests define routes of their own.
    let text = text.split("#[cfg(test)]").next().unwrap();
    let found = text.split(".route(").skip(1).map(|rest| {
        let first = rest.split(',').next().unwrap().trim();
        let queue = if source == "protocol/jobq.rs" {
            "/api/v0/queue/{queue}"
        } else {
            "/api/{namespace}/{queue}"
        };
        let path = match first.split('"').collect::<Vec<_>>()[..] {
            ["queue"] => queue.to_owned(),
            ["&under(", path, _] => format!("{queue}/{path}"),
            ["", path, ""] => path.to_owned(),
            _ => panic!("{source} has a route that is not understood: {first}"),
        };
        let parts = path.split('/').map(|part| match part {
            "{*rest}" => "any/thing",
            "{count}" => "1",
            "{state}" => "running",
            part if part.starts_with('{') => "x",
            part => part,
        });
        parts.collect::<Vec<_>>().join("/")
    });
    let found: Vec<_> = found.collect();
    assert!(!found.is_empty(), "no route in {source}");
    found
}

/// All routes, each with its protection.
fn all() -> Vec<(String, Protection)> {
    let mut all = Vec::new();
    for (source, protection) in [
        ("http/health.rs", Protection::Nothing),
        ("http/metrics.rs", Protection::Admin),
        ("http/openapi.rs", Protection::Nothing),
        ("ui/http.rs", Protection::Admin),
        ("protocol/token.rs", Protection::Admin),
        ("protocol/qless.rs", Protection::Qless),
        ("protocol/relay.rs", Protection::Relay),
        ("protocol/jobq.rs", Protection::Jobq),
        ("protocol/lmstfy.rs", Protection::Lmstfy),
    ] {
        for path in routes(source) {
            let protection = match path.as_str() {
                // The same for all users.
                "/ui/favicon.svg" | "/ui/pkg/x/x" | "/ui/login" => Protection::Nothing,
                // These paths belong to Jobq, not to lmstfy.
                "/api/v0/any/thing" => Protection::Jobq,
                _ => protection,
            };
            all.push((path, protection));
        }
    }
    // Pages and server functions, for which Leptos creates routes.
    for path in [
        "/ui",
        "/ui/queues",
        "/ui/config",
        "/ui/fn/retry",
        "/ui/fn/nope",
    ] {
        all.push((path.to_owned(), Protection::Admin));
    }
    all
}

/// Checks that the list of source files with routes is complete.
#[test]
fn all_sources_with_routes_are_listed() {
    fn collect(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if fs::read_to_string(&path).unwrap().contains(".route(") {
                found.push(path.display().to_string());
            }
        }
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    collect(&src, &mut found);
    let name = |path: &String| path.rsplit_once("/src/").unwrap().1.to_owned();
    let mut found: Vec<_> = found.iter().map(name).collect();
    found.sort();
    let known = [
        "http/health.rs",
        "http/metrics.rs",
        "http/openapi.rs",
        "protocol/jobq.rs",
        "protocol/lmstfy.rs",
        "protocol/qless.rs",
        "protocol/relay.rs",
        "protocol/token.rs",
        "ui/http.rs",
    ];
    assert_eq!(found, known);
}

#[tokio::test]
async fn each_api_accepts_only_its_own_credentials() {
    let server = Server::with(&[&API_TOKENS[..], &ADMIN_TOKEN, &ADMIN_LOGIN].concat());
    let all_but_lmstfy = &[
        Protection::Admin,
        Protection::Qless,
        Protection::Relay,
        Protection::Jobq,
    ][..];
    let keys = [
        (Credentials::None, &[][..]),
        (Credentials::Bearer("wrong"), &[]),
        (Credentials::Basic("ada", "wrong"), &[]),
        (Credentials::Basic("ada", PASSWORD), all_but_lmstfy),
        (Credentials::Bearer(ADMIN), all_but_lmstfy),
        (Credentials::Bearer(QLESS), &[Protection::Qless]),
        (Credentials::Bearer(RELAY), &[Protection::Relay]),
        (Credentials::Bearer(JOBQ), &[Protection::Jobq]),
    ];
    let routes = all();
    assert!(routes.len() > 65, "{routes:?}");
    for (path, protection) in &routes {
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ] {
            for (credentials, opens) in keys {
                // The headers of a form of the dashboard.
                let ours = [("sec-fetch-site", "same-origin")];
                let seen = ask_from(&server, method.clone(), path, credentials, &ours).await;
                let is_in = seen.status() != 401;
                let expected = *protection == Protection::Nothing || opens.contains(protection);
                // lmstfy does not check tokens for paths that are not routes.
                let is_nothing = *protection == Protection::Lmstfy && seen.status() == 404;
                assert!(
                    is_in == expected || is_nothing,
                    "{method} {path} with {credentials:?}: {}",
                    seen.status()
                );
            }
        }
    }
}

#[tokio::test]
async fn unknown_paths_reveal_nothing_and_health_is_public() {
    let server = Server::with(&["--qless-token", QLESS, "--admin-token", ADMIN]);
    for (path, expected) in [
        ("/health", 200),
        ("/health/live", 200),
        ("/health/ready", 200),
        ("/health/nope", 404),
        ("/metrics", 401),
        ("/ui/favicon.svg", 200),
        ("/nope", 404),
        ("/token", 404),
        ("/token/a/b/c", 404),
        ("/api", 404),
    ] {
        let seen = ask(&server, Method::GET, path, Credentials::None).await;
        assert_eq!(seen.status(), expected, "{path}");
    }
}

#[tokio::test]
async fn a_namespace_accepts_only_its_own_tokens() {
    let server = Server::with(&["--qless-token", QLESS, "--admin-token", ADMIN]);
    let made = async |namespace: &str, more: &str| {
        let path = format!("/token/{namespace}?description=x{more}");
        let made = ask(&server, Method::POST, &path, Credentials::Bearer(ADMIN)).await;
        let made: Value = made.json().await.unwrap();
        made["token"].as_str().unwrap().to_owned()
    };
    let (right, other, revoked) = (
        made("x", "&expires=1h").await,
        made("other", "").await,
        made("x", "").await,
    );
    let expired = made("x", "&expires=1s").await;
    eventually("the token expires", async || {
        let path = format!("/api/x/x/size?token={expired}");
        status(&server, &path, Credentials::None).await == 401
    })
    .await;
    let path = format!("/token/x/{revoked}");
    ask(&server, Method::DELETE, &path, Credentials::Bearer(ADMIN)).await;
    let paths: Vec<_> = routes("protocol/lmstfy.rs");
    let paths = paths.iter().filter(|path| *path != "/api/v0/any/thing");
    for path in paths {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let status = async |token: &str| {
                let path = format!("{path}?token={token}");
                ask(&server, method.clone(), &path, Credentials::None)
                    .await
                    .status()
                    .as_u16()
            };
            if status(&right).await == 405 || status("").await == 404 {
                // The route does not have this method.
                continue;
            }
            assert_ne!(status(&right).await, 401, "{method} {path}");
            for wrong in ["", "wrong", &other, &revoked, &expired, ADMIN, QLESS] {
                assert_eq!(status(wrong).await, 401, "{method} {path} with {wrong}");
            }
        }
    }
    let open = Server::with(&["--no-auth"]);
    let seen = ask(&open, Method::PUT, "/api/x/x", Credentials::None).await;
    assert_eq!(seen.status(), 201);
}
