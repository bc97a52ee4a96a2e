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
    } else if is_safe(request.method()) || is_ours(&request) {
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

/// Whether a browser says that the request came from our own page, or from the person at its keyboard; who says
/// nothing is no browser, and has the API.
fn is_ours(request: &Request) -> bool {
    let is_https = Https::is_set(request.extensions());
    RequestOrigin::of(request.headers(), request.uri(), is_https) == RequestOrigin::SameOrigin
}
