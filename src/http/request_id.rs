//! An ID for every request: in the response's `X-Request-ID`, and in each log line of the request. The server ignores
//! IDs from clients, because a client could repeat the ID of another request.

use std::fmt::{self, Write};
use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

use super::counts::{HttpCounts, RequestInProgress};
use super::{Owner, guard};
use crate::auth::Rejected;
use crate::memory;
use crate::request::RequestId;
use crate::traces::{RequestSpan, of_request};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// The first segment of `/token/{namespace}/{token}`.
const TOKEN: &str = "token";

/// What is done for every request, beside assigning its ID.
#[derive(Clone, Default)]
pub struct Observer {
    pub counts: Arc<HttpCounts>,
    /// Whether each request is logged.
    pub log_requests: bool,
}

pub async fn assign_request_id(
    State(observer): State<Observer>,
    mut request: Request,
    next: Next,
) -> Response {
    let in_progress = RequestInProgress::begin(&observer.counts, &request);
    let mut id = [0; 32];
    let id = &*Uuid::now_v7().simple().encode_lower(&mut id);
    // At the highest level, so that the ID is logged at every level. Without the query, which can contain tokens.
    let span = tracing::error_span!(
        "request",
        id,
        method = %request.method(),
        path = %Path(request.uri().path())
    );
    if request.uri().path().starts_with("/ui") {
        request.extensions_mut().insert(RequestId(id.to_owned()));
    }
    let (method, route) = in_progress.route();
    let traced = RequestSpan::begin(&request, method, route, id);
    let value = HeaderValue::from_str(id);
    let owner = Owner::of(request.uri().path());
    let mut response = of_request(&traced, next.run(request).instrument(span)).await;
    // A stream or a compressed page keeps what was reserved for it.
    if let Some(bytes) = response.body().size_hint().exact()
        && !memory::fits_response(bytes)
        && Box::pin(memory::fit_response(bytes)).await.is_err()
    {
        response = guard::response(owner, Rejected::Busy);
    }
    // Outside of the span, which shows the path.
    in_progress.end(&response, id, observer.log_requests);
    if let Some(traced) = traced {
        traced.end(&mut response);
    }
    let headers = response.headers_mut();
    if let Ok(value) = value {
        headers.insert(X_REQUEST_ID, value);
    }
    // Responses contain payloads, and the address of a request can contain a token. The dashboard has rules of its own.
    if !matches!(owner, Owner::Dashboard) {
        headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
        headers.entry(X_CONTENT_TYPE_OPTIONS).or_insert(NOSNIFF);
    }
    response
}

/// A path for the log: without the token of `/token/{namespace}/{token}`, escaped, and cut.
struct Path<'a>(&'a str);

/// Characters of a path that are logged.
const PATH_CHARS_MAX: usize = 200;

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.0.trim_start_matches('/').splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(TOKEN), Some(namespace), Some(_)) => {
                write!(f, "/{TOKEN}/{}/…", Escaped(namespace))
            }
            _ => Escaped(self.0).fmt(f),
        }
    }
}

/// The beginning of a text, with everything but printable ASCII escaped: other characters can turn the log's direction or
/// control the terminal that shows it.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        for char in chars.by_ref().take(PATH_CHARS_MAX) {
            match char {
                ' '..='~' => f.write_char(char)?,
                _ => write!(f, "{}", char.escape_unicode())?,
            }
        }
        match chars.next() {
            Some(_) => f.write_char('…'),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_without_a_token() {
        for (path, shown) in [
            ("/token/ns/secret", "/token/ns/…"),
            ("/token/ns/secret/", "/token/ns/…"),
            ("/token/ns/secret/limit", "/token/ns/…"),
            ("//token/ns/secret", "/token/ns/…"),
            ("/token/ns", "/token/ns"),
            ("/token/ns/", "/token/ns/…"),
            ("/token", "/token"),
            ("/tokens/ns/job", "/tokens/ns/job"),
            ("/api/ns/token", "/api/ns/token"),
            ("/", "/"),
            ("*", "*"),
            ("/ui/\u{202e}\u{9b}31m\n", "/ui/\\u{202e}\\u{9b}31m\\u{a}"),
            ("/token/\u{202e}/x", "/token/\\u{202e}/…"),
        ] {
            assert_eq!(Path(path).to_string(), shown, "{path}");
        }
        let whole = "/".repeat(200);
        assert_eq!(Path(&whole).to_string(), whole);
        assert_eq!(Path(&format!("{whole}/")).to_string(), format!("{whole}…"));
    }
}
