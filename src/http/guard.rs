//! Checks every request before its handler runs: the host that it names, and whether a page of another site caused a
//! browser to send it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::Owner;
use crate::auth::{Hosts, LoginThrottle, Rejected, RequestOrigin};
use crate::protocol::common_error::CommonError;
use crate::protocol::{jobq, lmstfy, qless, relay, token};
use crate::request::Https;

/// The check. It allocates nothing for a request that passes.
#[derive(Debug)]
pub struct Guard {
    hosts: Hosts,
    /// Limits the logged rejections of an address.
    throttle: Arc<LoginThrottle>,
}

impl Guard {
    pub fn new(hosts: &Hosts, throttle: &Arc<LoginThrottle>) -> Guard {
        Guard {
            hosts: hosts.clone(),
            throttle: Arc::clone(throttle),
        }
    }

    /// Checks a request.
    ///
    /// # Errors
    /// Why it is rejected.
    pub fn check(&self, request: &Request) -> Result<(), Rejected> {
        self.hosts.check(request)?;
        check_site(request)
    }

    /// Logs a rejection, and returns the response.
    pub fn reject(&self, why: Rejected, client: Option<IpAddr>, owner: Owner) -> Response {
        if self.throttle.may_log(client) {
            tracing::warn!(code = why.code(), "rejected: {}", why.message());
        }
        response(owner, why)
    }
}

/// Rejects requests of other sites' pages to every API: even a GET can claim a job. Links to the dashboard are allowed;
/// it has a stricter check for forms. A request with a bearer token is accepted, because browsers add none, and a page
/// of another site cannot set one.
fn check_site(request: &Request) -> Result<(), Rejected> {
    let is_https = Https::is_set(request.extensions());
    let is_cross_site = match RequestOrigin::of(request.headers(), request.uri(), is_https) {
        RequestOrigin::SameOrigin => false,
        RequestOrigin::CrossSite => true,
        RequestOrigin::Unknown => is_browser(request) && !is_for_browsers(request.uri().path()),
    };
    if is_cross_site && Owner::of(request.uri().path()) != Owner::Dashboard && !has_bearer(request)
    {
        return Err(Rejected::CrossSite);
    }
    Ok(())
}

/// Whether a browser sent the request. Over plain HTTP, browsers do not say from which site a link or an image comes.
/// Other clients with a browser's user agent send no `Accept-Language`.
fn is_browser(request: &Request) -> bool {
    let headers = request.headers();
    let agent = headers.get(header::USER_AGENT);
    let is_named = agent.is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/"));
    is_named && headers.contains_key(header::ACCEPT_LANGUAGE)
}

/// Paths outside the dashboard that people open in browsers. They change nothing.
fn is_for_browsers(path: &str) -> bool {
    matches!(
        path,
        "/" | "/health" | "/health/live" | "/health/ready" | "/metrics"
    ) || path.starts_with("/openapi/")
}

fn has_bearer(request: &Request) -> bool {
    let value = request.headers().get(header::AUTHORIZATION);
    let scheme = value.and_then(|value| value.as_bytes().get(..7));
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
}

/// The rejection in the form of the API that owns the path.
pub(super) fn response(owner: Owner, why: Rejected) -> Response {
    match owner {
        Owner::Dashboard => (why.status(), format!("{}\n", why.message())).into_response(),
        Owner::Token => token::rejected(why),
        Owner::Relay => relay::ApiError::from(CommonError::Rejected(why)).into_response(),
        Owner::Jobq => jobq::ApiError::from(CommonError::Rejected(why)).into_response(),
        Owner::Lmstfy => lmstfy::ApiError::Rejected(why).into_response(),
        Owner::Qless => qless::ApiError::Rejected(why).into_response(),
    }
}
