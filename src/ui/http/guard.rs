//! Protects against requests from other sites: accepts forms only from the dashboard's own pages, and sets the security
//! headers of every response under `/ui`. Also rejects paths that the router of the pages would resolve differently
//! from the table of roles.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::auth::{BASIC, RequestOrigin};
use crate::request::{ClientAddress, Https, count_parameters};
use crate::ui::context::RETURN_BYTES_MAX;
use crate::ui::http::Dashboard;
use crate::ui::urls::encoding::is_ambiguous;

/// The headers of every response; pages also have a Content-Security-Policy.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
    // For browsers that do not support frame-ancestors.
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

/// Parameters that the address of a page can have: a thousand selected jobs, and a few others. The router compares each
/// name with all before it.
pub const PARAMETERS_MAX: usize = 1_100;

/// Bytes of the query string of most pages. A page can repeat its address in each row.
const QUERY_BYTES_MAX: usize = 16 << 10;

/// Bytes of the path of a page: the encoded names of a queue and of a job.
const PATH_BYTES_MAX: usize = 32 << 10;

/// Whether the query string is too long for its page. Selected jobs can be longer.
fn has_long_query(uri: &Uri) -> bool {
    let path = uri.path();
    let is_long = ["/ui/confirm", "/ui/jobs.csv", "/ui/jobs.jsonl"].contains(&path);
    let selects = is_long || path.starts_with("/ui/lmstfy/") && path.ends_with("/dead");
    !selects
        && uri
            .query()
            .is_some_and(|query| query.len() > QUERY_BYTES_MAX)
}

fn has_many_parameters(request: &Request) -> bool {
    let query = request.uri().query().unwrap_or_default();
    count_parameters(query.as_bytes()) > PARAMETERS_MAX
}

/// Rejects ambiguous paths and forms of other sites, and sets the headers. Over HTTPS, adds `Secure` to cookies.
pub async fn guard(
    State(dashboard): State<Dashboard>,
    mut request: Request,
    next: Next,
) -> Response {
    // Functions redirect to it.
    if let header::Entry::Occupied(referer) = request.headers_mut().entry(header::REFERER)
        && referer.get().len() > RETURN_BYTES_MAX
    {
        referer.remove_entry_mult();
    }
    let is_https = Https::is_set(request.extensions());
    let mut response = if is_ambiguous(request.uri().path()) {
        (StatusCode::NOT_FOUND, "No page at this address.\n").into_response()
    } else if request.uri().path().len() > PATH_BYTES_MAX {
        let why = "The path of the address is longer than 32 KiB.\n";
        (StatusCode::URI_TOO_LONG, why).into_response()
    } else if has_many_parameters(&request) {
        let why = "The address has too many parameters.\n";
        (StatusCode::URI_TOO_LONG, why).into_response()
    } else if has_long_query(request.uri()) {
        let why = "The query string of the address is longer than 16 KiB.\n";
        (StatusCode::URI_TOO_LONG, why).into_response()
    } else if is_allowed(&request) {
        next.run(request).await
    } else {
        if dashboard.may_log(ClientAddress::of(request.extensions())) {
            tracing::warn!("rejected a request that did not come from the dashboard");
        }
        (
            StatusCode::FORBIDDEN,
            "The request did not come from the dashboard. Nothing was changed.\n",
        )
            .into_response()
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    // The connection would keep the buffer of its longest header.
    let location = response.headers().get(header::LOCATION);
    if location.is_some_and(|page| page.len() > KEPT_LOCATION_BYTES) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    if is_https {
        secure_cookies(response.headers_mut());
    }
    response
}

/// Bytes of the address in a redirect after which the connection continues.
const KEPT_LOCATION_BYTES: usize = 4 << 10;

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

/// The response to a program without credentials. A browser would ask for a name and a password.
pub fn challenge() -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, BASIC)];
    let why = "Missing or wrong credentials. Send a name and password (Basic), or a token (Authorization: Bearer). If \
               only an admin token is configured, it is the password for any name.\n";
    (StatusCode::UNAUTHORIZED, challenge, why).into_response()
}

/// Whether requests with this method change nothing.
pub fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Whether the request is allowed by its origin. Forms must come from the dashboard's own pages; programs, which send
/// no origin, use the API instead. Other sites may link to pages, but not load them in the background, because that
/// would let them cause load and measure response times.
fn is_allowed(request: &Request) -> bool {
    let is_https = Https::is_set(request.extensions());
    match RequestOrigin::of(request.headers(), request.uri(), is_https) {
        RequestOrigin::SameOrigin => true,
        RequestOrigin::CrossSite => is_safe(request.method()) && is_link(request.headers()),
        RequestOrigin::Unknown => is_safe(request.method()),
    }
}

/// Whether the browser navigates to the page. Links have no `Origin`. Browsers that send `Sec-Fetch-Site` also send the
/// mode and the destination.
fn is_link(headers: &HeaderMap) -> bool {
    let is = |name: &'static str, value: &str| {
        let header = headers.get(HeaderName::from_static(name));
        header.is_none_or(|header| header.as_bytes() == value.as_bytes())
    };
    let has_origin = headers.contains_key(header::ORIGIN);
    !has_origin && is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_with_selected_jobs_accept_a_long_query() {
        let is_long = |path: &str, bytes: usize| {
            let uri = format!("{path}?{}", "a".repeat(bytes));
            has_long_query(&uri.parse().unwrap())
        };
        for path in ["/ui/tracked", "/ui/workers/dead", "/ui/dead"] {
            assert!(!is_long(path, QUERY_BYTES_MAX), "{path}");
            assert!(is_long(path, QUERY_BYTES_MAX + 1), "{path}");
        }
        for path in ["/ui/confirm", "/ui/lmstfy/a/b/dead"] {
            assert!(!is_long(path, QUERY_BYTES_MAX + 1), "{path}");
        }
    }
}
