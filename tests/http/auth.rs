//! Authentication: the credentials of each API, and the checks at startup.

mod keys;
mod matrix;
mod reload;
mod rows;
mod secrets;
mod sites;
mod sources;
mod start;

use reqwest::{Method, Response};

use crate::support::Server;
use crate::support::keys::{ADMIN, JOBQ, PASSWORD, QLESS, RELAY};

/// The credentials of a request.
#[derive(Clone, Copy, Debug)]
enum Credentials<'a> {
    None,
    Bearer(&'a str),
    Basic(&'a str, &'a str),
    Header(&'a str),
}

async fn ask(
    server: &Server,
    method: Method,
    path: &str,
    credentials: Credentials<'_>,
) -> Response {
    ask_from(server, method, path, credentials, &[]).await
}

/// Sends a request with credentials and additional headers.
async fn ask_from(
    server: &Server,
    method: Method,
    path: &str,
    credentials: Credentials<'_>,
    headers: &[(&str, &str)],
) -> Response {
    let request = server
        .http
        .request(method.clone(), format!("http://{}{path}", server.address));
    let mut request = match credentials {
        Credentials::None => request,
        Credentials::Bearer(token) => request.bearer_auth(token),
        Credentials::Basic(user, password) => request.basic_auth(user, Some(password)),
        Credentials::Header(value) => request.header("authorization", value),
    };
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await;
    response.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// The status of the response to a request with these credentials.
async fn status(server: &Server, path: &str, credentials: Credentials<'_>) -> u16 {
    ask(server, Method::GET, path, credentials)
        .await
        .status()
        .into()
}
