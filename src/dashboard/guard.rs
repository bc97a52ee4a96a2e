//! What keeps other sites out: who may post a form, and the headers of every answer under `/ui`.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// What every answer carries, besides a page's Content-Security-Policy.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
    // For browsers that do not know the policy's frame-ancestors.
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Refuses requests of other sites that would change something, and gives every answer its headers.
pub async fn guard(request: Request, next: Next) -> Response {
    let mut response = if is_safe(request.method()) || is_ours(request.headers(), request.uri()) {
        next.run(request).await
    } else {
        tracing::warn!(
            path = request.uri().path(),
            "refused a request that did not come from the dashboard"
        );
        (
            StatusCode::FORBIDDEN,
            "This request did not come from the dashboard, so nothing was done.\n",
        )
            .into_response()
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Whether requests of this method only look.
fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Whether a browser says that the request came from our own page, or from the person at its keyboard.
/// Browsers send `Sec-Fetch-Site` over HTTPS and to this machine, and `Origin` with every form; who sends
/// neither is no browser, and has the API.
fn is_ours(headers: &HeaderMap, uri: &Uri) -> bool {
    let text = |name: &str| headers.get(name).map(HeaderValue::to_str);
    match (text("sec-fetch-site"), text("origin")) {
        (Some(site), _) => matches!(site, Ok("same-origin" | "none")),
        (None, Some(Ok(origin))) => {
            // HTTP/2 has no Host header but an authority.
            let host = match uri.authority() {
                Some(authority) => Some(authority.as_str()),
                None => text("host").and_then(Result::ok),
            };
            let origin = origin
                .strip_prefix("https://")
                .or_else(|| origin.strip_prefix("http://"));
            origin.is_some() && origin == host
        }
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(headers: &[(&'static str, &'static str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        is_ours(&headers, &Uri::from_static("/ui/fn/retry"))
    }

    #[test]
    fn our_own_pages_may_act() {
        assert!(verdict(&[
            ("sec-fetch-site", "same-origin"),
            ("host", "q:3000")
        ]));
        assert!(verdict(&[("sec-fetch-site", "none")]));
        assert!(verdict(&[("origin", "http://q:3000"), ("host", "q:3000")]));
        assert!(verdict(&[
            ("origin", "https://q.example"),
            ("host", "q.example")
        ]));
    }

    #[test]
    fn nobody_else_may() {
        assert!(!verdict(&[]));
        assert!(!verdict(&[("host", "q:3000")]));
        assert!(!verdict(&[
            ("sec-fetch-site", "cross-site"),
            ("origin", "http://q:3000"),
            ("host", "q:3000")
        ]));
        assert!(!verdict(&[
            ("sec-fetch-site", "same-site"),
            ("host", "q:3000")
        ]));
        assert!(!verdict(&[
            ("origin", "http://evil.example"),
            ("host", "q:3000")
        ]));
        assert!(!verdict(&[("origin", "http://q:3001"), ("host", "q:3000")]));
        assert!(!verdict(&[("origin", "null"), ("host", "q:3000")]));
        assert!(!verdict(&[("origin", "null")]));
    }
}
