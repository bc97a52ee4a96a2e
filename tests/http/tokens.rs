//! Tokens of lmstfy namespaces: the endpoints and the command line.

mod command;
mod endpoints;
mod expiry;
mod last_use;
mod waiting;

use std::process::{Output, Stdio};

use reqwest::Method;
use serde_json::Value;

use crate::support::eventually;
use crate::support::pair::Pair;
use crate::support::{Server, postgres};

/// Two servers on a new database, of which the other one gets no notifications; `None` if the tests run on SQLite.
fn pair() -> Option<Pair> {
    let database = postgres::shared_database()?;
    Some(Pair {
        one: Server::at_url(&database, &[]),
        other: Server::at_url(&database, &["--no-notify"]),
        database,
    })
}

/// The status and the body of a response of `/token` or of lmstfy; null if there is no body.
async fn ask(server: &Server, method: Method, path: &str) -> (u16, Value) {
    let request = server
        .http
        .request(method, format!("http://{}{path}", server.address));
    let response = request.send().await.unwrap();
    let status = response.status().into();
    let text = response.text().await.unwrap();
    let body = serde_json::from_str(&text);
    (status, body.unwrap_or(Value::Null))
}

/// Creates a token of the namespace.
async fn made(server: &Server, namespace: &str) -> String {
    let path = format!("/token/{namespace}?description=test");
    let (status, body) = ask(server, Method::POST, &path).await;
    assert_eq!(status, 201, "{body}");
    body["token"].as_str().unwrap().to_owned()
}

/// Creates a token of the namespace that expires after 1 s, and waits until it has expired.
async fn expired(server: &Server, namespace: &str) -> String {
    let path = format!("/token/{namespace}?description=expired&expires=1s");
    let (status, body) = ask(server, Method::POST, &path).await;
    assert_eq!(status, 201, "{body}");
    let token = body["token"].as_str().unwrap().to_owned();
    eventually("the token expires", async || {
        self::status(server, namespace, &token).await == 401
    })
    .await;
    token
}

/// The entry for the token with this description in the detailed list.
async fn detail(server: &Server, namespace: &str, description: &str) -> Value {
    let path = format!("/token/{namespace}?details=true");
    let (status, body) = ask(server, Method::GET, &path).await;
    assert_eq!(status, 200, "{body}");
    let tokens = body["tokens"].as_object().unwrap();
    let name = tokens.iter().find(|(_, said)| *said == description);
    body["details"][name.unwrap().0].clone()
}

/// The status of a request with this token.
async fn status(server: &Server, namespace: &str, token: &str) -> u16 {
    let path = format!("/api/{namespace}/q/size?token={token}");
    ask(server, Method::GET, &path).await.0
}

/// Runs `switchyard token` on the database with this address.
fn token(database: &str, arguments: &[&str]) -> Output {
    let mut command = Server::program();
    command.arg("token").args(arguments);
    command.args(["--database", database]);
    command.stdin(Stdio::null()).output().unwrap()
}

/// The output of a successful command.
#[track_caller]
fn printed(database: &str, arguments: &[&str]) -> String {
    let output = token(database, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The error of a failed command.
#[track_caller]
fn refused(database: &str, arguments: &[&str]) -> String {
    let output = token(database, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// The token that `create` printed.
#[track_caller]
fn created(database: &str, arguments: &[&str]) -> String {
    let output = printed(database, &[&["create"], arguments].concat());
    let token = output.strip_suffix('\n').expect("a line");
    assert!(
        token.len() >= 20 && !token.contains(char::is_whitespace),
        "{token}"
    );
    token.to_owned()
}
