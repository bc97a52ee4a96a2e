//! What keeps hostile pages from using a browser against this server, before anything is routed: the host that a request
//! names, and the site that made the browser send it.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use tower_http::validate_request::{ValidateRequest, ValidateRequestHeaderLayer};

use super::{Https, Owner};
use crate::doors::{Hosts, Rejected, Sender};
use crate::protocol::{jobq, lmstfy, qless, relay, token};

/// The layer that checks every request.
pub fn layer(hosts: &Hosts) -> ValidateRequestHeaderLayer<Guard> {
    ValidateRequestHeaderLayer::custom(Guard(Arc::new(hosts.clone())))
}

/// The check. It allocates nothing for a request that passes.
#[derive(Clone, Debug)]
pub struct Guard(Arc<Hosts>);

impl ValidateRequest<axum::body::Body> for Guard {
    type ResponseBody = axum::body::Body;

    fn validate(&mut self, request: &mut Request) -> Result<(), Response> {
        let outcome = self.0.check(request).and_then(|()| check_site(request));
        outcome.map_err(|why| {
            tracing::warn!(code = why.code(), "rejected: {}", why.message());
            response(Owner::of(request.uri().path()), why)
        })
    }
}

/// Rejects what a page of another site asks for, wherever a browser might do it on its behalf: even a GET may take a
/// job. Links lead into the dashboard, which has a stricter check of its own for forms. A bearer token is never added by
/// a browser, and a page of another site cannot set one.
fn check_site(request: &Request) -> Result<(), Rejected> {
    let is_https = Https::is_set(request.extensions());
    let is_cross_site = match Sender::of(request.headers(), request.uri(), is_https) {
        Sender::Ours => false,
        Sender::AnotherSite => true,
        Sender::Unknown => is_browser(request) && !is_for_browsers(request.uri().path()),
    };
    if is_cross_site && Owner::of(request.uri().path()) != Owner::Dashboard && !has_bearer(request)
    {
        return Err(Rejected::CrossSite);
    }
    Ok(())
}

/// Whether a browser sent the request. Over plain HTTP, browsers do not say which site made them follow a link or load
/// an image. Clients that only name themselves like a browser send no `Accept-Language`.
fn is_browser(request: &Request) -> bool {
    let headers = request.headers();
    let agent = headers.get(header::USER_AGENT);
    let is_named = agent.is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/"));
    is_named && headers.contains_key(header::ACCEPT_LANGUAGE)
}

/// Paths beside the dashboard that people open; they change nothing.
fn is_for_browsers(path: &str) -> bool {
    path == "/" || path == "/health"
}

fn has_bearer(request: &Request) -> bool {
    let value = request.headers().get(header::AUTHORIZATION);
    let scheme = value.and_then(|value| value.as_bytes().get(..7));
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
}

/// The rejection in the shape of whose path it is.
fn response(owner: Owner, why: Rejected) -> Response {
    match owner {
        Owner::Dashboard => (why.status(), format!("{}\n", why.message())).into_response(),
        Owner::Token => token::rejected(why),
        Owner::Relay => relay::rejected(why),
        Owner::Jobq => jobq::rejected(why),
        Owner::Lmstfy => lmstfy::rejected(why),
        Owner::Qless => qless::rejected(why),
    }
}
