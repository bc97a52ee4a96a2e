//! An ID for every request: in the response's `X-Request-ID`, and in each log line of the request. The server ignores
//! IDs from clients, because a client could repeat the ID of another request.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

use super::counts::{HttpCounts, Observed};
use crate::request::RequestId;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

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
    let observed = Observed::begin(&observer.counts, &request);
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
    let value = HeaderValue::from_str(id);
    let mut response = next.run(request).instrument(span).await;
    // Outside of the span, which shows the path.
    observed.end(&response, id, observer.log_requests);
    if let Ok(value) = value {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    response
}

/// A path for the log, without the token of `/token/{namespace}/{token}`.
struct Path<'a>(&'a str);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.0.trim_start_matches('/').splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(TOKEN), Some(namespace), Some(_)) => write!(f, "/{TOKEN}/{namespace}/…"),
            _ => f.write_str(self.0),
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
        ] {
            assert_eq!(Path(path).to_string(), shown, "{path}");
        }
    }
}
