//! Every route, with every method, for every kind of principal. The routes are read from the source files; `routes.txt`
//! contains the expected protection. A route without a row fails the test, and so does a row without a route.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use reqwest::Method;
use serde_json::Value;

use super::matrix::{read, routes};
use super::{Credentials, ask, status};
use crate::support::Server;
use crate::support::eventually;
use crate::support::keys::{
    ADMIN, ADMIN_KEY, ADMIN_TOKEN, API_TOKENS, JOBQ, OPERATOR_KEY, QLESS, RELAY, UI_KEYS,
    VIEWER_KEY,
};

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Principal {
    Anonymous,
    WrongToken,
    Viewer,
    Operator,
    Admin,
    AdminToken,
    Qless,
    Relay,
    Jobq,
    /// A token of the namespace in the path.
    Namespace,
    AnotherNamespace,
    /// An expired token of the namespace.
    Expired,
}

use Principal as P;

const PRINCIPALS: [Principal; 12] = [
    P::Anonymous,
    P::WrongToken,
    P::Viewer,
    P::Operator,
    P::Admin,
    P::AdminToken,
    P::Qless,
    P::Relay,
    P::Jobq,
    P::Namespace,
    P::AnotherNamespace,
    P::Expired,
];

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    /// 401: missing or wrong credentials.
    Unauthenticated,
    /// 403: the role is not sufficient.
    Forbidden,
    /// 404: no such route.
    Missing,
}

/// The expected outcome for a route with this protection.
fn expected(protection: &str, principal: Principal) -> Outcome {
    let (dashboard, owners): (&[Principal], &[Principal]) = match protection {
        "nothing" => return Outcome::Answered,
        "viewer" => (&[], &[P::Viewer, P::Operator, P::Admin, P::AdminToken]),
        "operator" => (&[P::Viewer], &[P::Operator, P::Admin, P::AdminToken]),
        "admin" => (&[P::Viewer, P::Operator], &[P::Admin, P::AdminToken]),
        "token" => (&[], &[P::Admin, P::AdminToken]),
        "qless" => (&[], &[P::Qless, P::AdminToken]),
        "relay" => (&[], &[P::Relay, P::AdminToken]),
        "jobq" => (&[], &[P::Jobq, P::AdminToken]),
        "namespace" => (&[], &[P::Namespace]),
        _ => panic!("unknown protection: {protection}"),
    };
    if owners.contains(&principal) {
        Outcome::Answered
    } else if dashboard.contains(&principal) {
        Outcome::Forbidden
    } else {
        Outcome::Unauthenticated
    }
}

/// The paths of the dashboard's pages, with a value for each parameter.
fn pages() -> Vec<String> {
    let text = read("ui/pages.rs");
    let found = text.split("<Route path=").skip(1).map(|rest| {
        let path = rest.split(" view=").next().unwrap();
        let words = path.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '"');
        let mut parts = Vec::new();
        for word in words.filter(|word| !word.is_empty()) {
            match word {
                "StaticSegment" => {}
                "ParamSegment" | "name" => parts.push("x".to_owned()),
                "lmstfy" => parts.push("ui/lmstfy/x/x".to_owned()),
                "relay" | "jobq" => parts.push(format!("ui/{word}/x")),
                word if word.starts_with('"') => {
                    let word = word.trim_matches('"');
                    // The name of a parameter.
                    if !["state", "id", "number"].contains(&word) {
                        parts.push(word.to_owned());
                    }
                }
                word => parts.push(word.to_owned()),
            }
        }
        format!("/{}", parts.join("/"))
    });
    found.collect()
}

/// All paths of the router.
fn paths() -> BTreeSet<String> {
    let mut all: BTreeSet<String> = pages().into_iter().collect();
    assert!(all.len() > 40, "{all:?}");
    for source in [
        "http/health.rs",
        "http/metrics.rs",
        "http/openapi.rs",
        "ui/http.rs",
        "protocol/token.rs",
        "protocol/qless.rs",
        "protocol/relay.rs",
        "protocol/jobq.rs",
        "protocol/lmstfy.rs",
    ] {
        all.extend(routes(source));
    }
    all
}

/// The rows of the table: path, method and protection.
fn rows() -> Vec<(String, String, String)> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/auth/routes.txt");
    let table = fs::read_to_string(table).unwrap();
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.flat_map(|line| {
        let [path, methods, protection] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("not a row: {line}");
        };
        let row = |method: &str| (path.to_owned(), method.to_owned(), protection.to_owned());
        methods.split(',').map(row).collect::<Vec<_>>()
    });
    rows.collect()
}

struct Scene {
    server: Server,
    own: String,
    other: String,
    expired: String,
}

impl Scene {
    async fn start() -> Scene {
        let options = ["--allow-flush", "--trust-client-clock"];
        let options = [&options[..], &API_TOKENS, &ADMIN_TOKEN, &UI_KEYS].concat();
        let server = Server::with(&options);
        let made = async |namespace: &str, more: &str| {
            let path = format!("/token/{namespace}?description=x{more}");
            let made = ask(&server, Method::POST, &path, Credentials::Bearer(ADMIN)).await;
            let made: Value = made.json().await.unwrap();
            made["token"].as_str().unwrap().to_owned()
        };
        let (own, other) = (made("x", "").await, made("other", "").await);
        let expired = made("x", "&expires=1s").await;
        eventually("the token expires", async || {
            let path = format!("/api/x/x/size?token={expired}");
            status(&server, &path, Credentials::None).await == 401
        })
        .await;
        Scene {
            server,
            own,
            other,
            expired,
        }
    }

    async fn outcome(&self, method: &str, path: &str, principal: Principal) -> Outcome {
        let verb = Method::from_bytes(method.as_bytes()).unwrap();
        let url = format!("http://{}{path}", self.server.address);
        let request = self.server.http.request(verb, url);
        let request = request.header("sec-fetch-site", "same-origin");
        let request = match principal {
            P::Anonymous => request,
            P::WrongToken => request.bearer_auth("wrong").header("x-token", "wrong"),
            P::Viewer => request.bearer_auth(VIEWER_KEY),
            P::Operator => request.bearer_auth(OPERATOR_KEY),
            P::Admin => request.bearer_auth(ADMIN_KEY),
            P::AdminToken => request.bearer_auth(ADMIN),
            P::Qless => request.bearer_auth(QLESS),
            P::Relay => request.bearer_auth(RELAY),
            P::Jobq => request.bearer_auth(JOBQ),
            P::Namespace => request.header("x-token", &self.own),
            P::AnotherNamespace => request.header("x-token", &self.other),
            P::Expired => request.header("x-token", &self.expired),
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        // The body is read only for these statuses; other responses can be streams.
        let text = match status {
            403 | 404 => response.text().await.unwrap(),
            _ => String::new(),
        };
        // lmstfy and Jobq respond like this to a wrong method, too.
        let is_missing = status == 404 && text.contains("api not found");
        match status {
            401 => Outcome::Unauthenticated,
            403 if text.contains("You need the") => Outcome::Forbidden,
            405 => Outcome::Missing,
            _ if is_missing => Outcome::Missing,
            _ => Outcome::Answered,
        }
    }
}

#[tokio::test]
async fn every_route_accepts_only_its_principals() {
    let scene = Scene::start().await;
    let (paths, rows) = (paths(), rows());
    let mut wrong = Vec::new();
    for (path, method, protection) in &rows {
        if !paths.contains(path) {
            wrong.push(format!("{path} {method}: a row without a route"));
        }
        for principal in PRINCIPALS {
            let seen = scene.outcome(method, path, principal).await;
            let expected = expected(protection, principal);
            if seen != expected {
                wrong.push(format!(
                    "{path} {method} by {principal:?}: {seen:?}, not {expected:?}"
                ));
            }
        }
    }
    for path in &paths {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let has_row = |row: &(String, String, String)| row.0 == *path && row.1 == method;
            if rows.iter().any(has_row) {
                continue;
            }
            for principal in [P::AdminToken, P::Namespace] {
                let seen = scene.outcome(method, path, principal).await;
                if seen == Outcome::Answered {
                    wrong.push(format!("{path} {method}: a route without a row"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
