//! What keeps other sites out: who may post a form, and the headers of every answer under `/ui`. Paths that the pages'
//! router would read differently from the table of roles end here as well.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::visit::is_ambiguous;
use crate::auth::{BASIC, RequestOrigin};
use crate::request::Https;

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

/// Refuses ambiguous paths and requests of other sites that would change something, and gives every answer its headers.
/// Over HTTPS, browsers send the dashboard's cookies back over HTTPS only.
pub async fn guard(request: Request, next: Next) -> Response {
    let is_https = Https::is_set(request.extensions());
    let mut response = if is_ambiguous(request.uri().path()) {
        (StatusCode::NOT_FOUND, "No page at this address.\n").into_response()
    } else if is_allowed(&request) {
        next.run(request).await
    } else {
        tracing::warn!(
            path = request.uri().path(),
            "rejected a request that did not come from the dashboard"
        );
        (
            StatusCode::FORBIDDEN,
            "The request did not come from the dashboard. Nothing was changed.\n",
        )
            .into_response()
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    if is_https {
        secure_cookies(response.headers_mut());
    }
    response
}

fn secure_cookies(headers: &mut HeaderMap) {
    if let header::Entry::Occupied(mut cookies) = headers.entry(header::SET_COOKIE) {
        for cookie in cookies.iter_mut() {
            let secure = [cookie.as_bytes(), b"; Secure"].concat();
            if let Ok(secure) = HeaderValue::from_bytes(&secure) {
                *cookie = secure;
            }
        }
    }
}

/// The answer to whoever is not let in: with it a browser asks for a name and a password.
pub fn refuse() -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, BASIC)];
    let why = "The dashboard requires a name and password. If only an admin token is configured, use it as the \
               password with any name.\n";
    (StatusCode::UNAUTHORIZED, challenge, why).into_response()
}

/// Whether requests of this method only look.
pub fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Whether the origin of the request may do what it asks. Forms come from our own pages; a request that does not say where
/// it comes from is not from a browser, and has the API. Pages of other sites may link here, but not load our pages in the
/// background: that would let them cause work, and measure how long it takes.
fn is_allowed(request: &Request) -> bool {
    let is_https = Https::is_set(request.extensions());
    match RequestOrigin::of(request.headers(), request.uri(), is_https) {
        RequestOrigin::SameOrigin => true,
        RequestOrigin::CrossSite => is_safe(request.method()) && is_link(request.headers()),
        RequestOrigin::Unknown => is_safe(request.method()),
    }
}

/// Whether the browser shows the response as a page of its own. Browsers that name the site name mode and destination too.
fn is_link(headers: &HeaderMap) -> bool {
    let is = |name: &'static str, value: &str| {
        let header = headers.get(HeaderName::from_static(name));
        header.is_none_or(|header| header.as_bytes() == value.as_bytes())
    };
    is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document")
}
