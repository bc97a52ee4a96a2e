//! Who comes in, and what it may do: every request under `/ui`, besides the files that are the same for everybody,
//! passes here first. A key comes with the request itself (`Authorization`) or has opened a session; what may be done
//! with it stands in `api/roles.rs`.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::audit::{self, Noted};
use super::guard::is_safe;
use super::refused::Refused;
use super::{Dashboard, REFRESH, cookie, forms, guard, login};
use crate::api::Trouble;
use crate::api::roles;
use crate::api::views::Role;
use crate::app::visit::{self, AuthMethod, is_ours};
use crate::auth::{
    Auth, CredentialSource, Identity, Keyring, LoginThrottle, PresentedCredentials,
    log_wrong_credentials,
};
use crate::engine::{Engine, Result};
use crate::request::drain;
use crate::request::{ClientAddress, Https, RequestId};
use crate::secret::Hash;

/// The name of those who show no key.
const ANYBODY: &str = "anybody";

/// Where somebody signs in.
pub const LOGIN: &str = "/ui/login";

/// The keys of the dashboard, and what is told of them.
pub struct Entry {
    pub keyring: Keyring,
    /// Whether there are any. A reload does not change that.
    has_keys: bool,
    /// What those may do who show no key, if they are let in.
    guests: Option<Role>,
    /// What the dashboard calls this server; may be empty.
    pub environment: String,
    pub throttle: Arc<LoginThrottle>,
    pub refused: Refused,
}

/// Whoever has come in.
#[derive(Clone, Debug)]
pub struct Principal {
    pub identity: Identity,
    pub method: AuthMethod,
}

impl Entry {
    pub fn new(auth: &Auth, environment: Option<&str>) -> Entry {
        Entry {
            keyring: auth.keyring.clone(),
            has_keys: auth.ui_has_keys(),
            guests: auth.guest_role(),
            environment: environment.unwrap_or_default().to_owned(),
            throttle: Arc::clone(&auth.throttle),
            refused: Refused::default(),
        }
    }

    /// Who sends this request.
    pub async fn principal(
        &self,
        engine: &Engine,
        headers: &HeaderMap,
        from: Option<IpAddr>,
    ) -> Result<Authentication> {
        let came = |who: &Identity, method| Principal {
            identity: who.clone(),
            method,
        };
        if self.has_keys {
            let active = self.keyring.active();
            if let Some(shown) = PresentedCredentials::from_headers(headers) {
                let check = || active.ui.identify(&shown);
                // Tokens are too long to be guessed, and programs behind an address must not lock each other out.
                let who = match shown.name() {
                    Some(name) => {
                        self.throttle
                            .attempt(from, name, CredentialSource::Header, check)
                    }
                    None => Ok(check()),
                };
                return Ok(match who {
                    Ok(Some(who)) => Authentication::Known(came(who, AuthMethod::Key)),
                    Ok(None) => Authentication::Unknown,
                    Err(wait) => Authentication::Throttled(wait),
                });
            }
            if let Some(secret) = session(headers)
                && let Some(session) = engine.session(Hash::of(secret), None).await?
                && let Some(who) = active
                    .ui
                    .session_user(&session.name, secret, &session.proof)
            {
                return Ok(Authentication::Known(came(who, AuthMethod::Session)));
            }
        }
        let method = if self.has_keys {
            AuthMethod::Guest
        } else {
            AuthMethod::Open
        };
        let name = ANYBODY.to_owned();
        Ok(match self.guests {
            Some(role) => Authentication::Known(came(&Identity { name, role }, method)),
            None => Authentication::Unknown,
        })
    }
}

/// Who sends a request.
#[derive(Debug)]
pub enum Authentication {
    /// Somebody who may look around.
    Known(Principal),
    /// The request has no credentials, or wrong ones.
    Unknown,
    /// Credentials were not checked, because there were too many wrong ones; and for how long they will not be.
    Throttled(Duration),
}

/// The secret of the session that a browser is in, as far as it says.
pub fn session(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    cookie(cookies, visit::SESSION_COOKIE).filter(|secret| !secret.is_empty())
}

/// What a handler knows of the request, besides its form.
#[derive(Clone, Debug)]
pub struct Asked {
    pub uri: Uri,
    pub headers: HeaderMap,
    pub from: Option<IpAddr>,
    pub https: bool,
    pub principal: Option<Principal>,
    pub noted: Option<Noted>,
    pub request_id: Option<RequestId>,
}

impl Asked {
    pub fn by(request: &Request) -> Asked {
        let extensions = request.extensions();
        Asked {
            uri: request.uri().clone(),
            headers: request.headers().clone(),
            from: ClientAddress::of(extensions),
            https: Https::is_set(extensions),
            principal: extensions.get().cloned(),
            noted: extensions.get().cloned(),
            request_id: extensions.get().cloned(),
        }
    }

    /// The engine in the hands of whoever asks.
    pub fn engine(&self, dashboard: &Dashboard) -> Engine {
        match &self.noted {
            Some(noted) => noted.engine(&dashboard.engine),
            None => dashboard.engine.clone(),
        }
    }

    /// What became of it, for the audit.
    pub fn say(&self, done: bool, text: &str) {
        if let Some(noted) = &self.noted {
            noted.say(done, text);
        }
    }

    /// Whether the principal has at least this role.
    pub fn may(&self, least: Role) -> bool {
        let principal = self.principal.as_ref();
        principal.is_some_and(|principal| principal.identity.role >= least)
    }

    /// Whether a page refreshes itself.
    pub fn is_refresh(&self) -> bool {
        self.headers.contains_key(REFRESH)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Asked, Self::Rejection> {
        let mut request = Request::new(());
        *request.uri_mut() = parts.uri.clone();
        *request.headers_mut() = parts.headers.clone();
        *request.extensions_mut() = parts.extensions.clone();
        Ok(Asked::by(&request.map(|()| axum::body::Body::empty())))
    }
}

/// Lets in whoever may, and nobody do what takes another role.
pub async fn enter(
    State(dashboard): State<Dashboard>,
    mut request: Request,
    next: Next,
) -> Response {
    let from = ClientAddress::of(request.extensions());
    let found = dashboard
        .entry
        .principal(&dashboard.engine, request.headers(), from)
        .await;
    let principal = match found {
        Ok(Authentication::Known(principal)) => Some(principal),
        Ok(Authentication::Unknown) => None,
        Ok(Authentication::Throttled(wait)) => {
            drain(request).await;
            let later = [(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1))];
            let why = "Too many failed sign-in attempts. Try again later.\n";
            return (StatusCode::TOO_MANY_REQUESTS, later, why).into_response();
        }
        Err(error) => {
            tracing::error!(%error, "failed to look up a session");
            let why = "The database is unavailable. Try again in a moment.\n";
            return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        }
    };
    let path = request.uri().path().to_owned();
    let Some(principal) = principal else {
        if path == LOGIN {
            return next.run(request).await;
        }
        return turn_away(dashboard, request).await;
    };
    if path == LOGIN && !dashboard.entry.has_keys {
        return Redirect::to("/ui").into_response();
    }
    let role = principal.identity.role;
    request.extensions_mut().insert(principal);
    if is_safe(request.method()) {
        let least = roles::to_see(&path);
        if role >= least {
            return next.run(request).await;
        }
        return forbid(dashboard, Asked::by(&request), least).await;
    }
    let least = roles::to_do(&path);
    if least == Role::Viewer {
        return next.run(request).await;
    }
    audit::note(dashboard, request, least, next).await
}

/// The page that says which role it takes.
pub async fn forbid(dashboard: Dashboard, asked: Asked, least: Role) -> Response {
    let has = asked
        .principal
        .as_ref()
        .map(|principal| principal.identity.role);
    let why = roles::forbidden(least, has.unwrap_or_default());
    let is_refresh = asked.is_refresh();
    let mut response = forms::page(dashboard, asked, Trouble::Forbidden(why)).await;
    if is_refresh {
        // Browsers log every other one as an error.
        *response.status_mut() = StatusCode::OK;
    }
    response
}

/// The answer to whoever is not let in. A person is led to where one signs in, and back from there; a program is
/// challenged.
async fn turn_away(dashboard: Dashboard, request: Request) -> Response {
    if PresentedCredentials::from_headers(request.headers()).is_some() {
        log_wrong_credentials(&request);
    }
    let asked = Asked::by(&request);
    let (is_get, accepts) = (
        request.method() == Method::GET,
        accepts(&asked.headers).to_owned(),
    );
    drain(request).await;
    if asked.is_refresh() {
        // With a challenge the browser itself would ask for a password, in the midst of reading.
        let next = here(&asked.uri);
        return login::page(dashboard, asked, next, None, StatusCode::UNAUTHORIZED).await;
    }
    if accepts.contains("text/event-stream") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if !accepts.contains("text/html") {
        return guard::refuse();
    }
    // A form that was filled in when the session had ended is gone; its page can be gone back to.
    let next = if is_get {
        here(&asked.uri)
    } else {
        here(&forms::origin_page(&asked.headers))
    };
    let mut address = format!("{LOGIN}?next=");
    visit::encode(&next, &mut address);
    match HeaderValue::from_str(&address) {
        Ok(address) => (StatusCode::SEE_OTHER, [(header::LOCATION, address)]).into_response(),
        Err(_) => guard::refuse(),
    }
}

fn accepts(headers: &HeaderMap) -> &str {
    let value = headers.get(header::ACCEPT);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// The page at this address, as something to go back to.
fn here(uri: &Uri) -> String {
    let address = uri.path_and_query().map(PathAndQuery::as_str);
    let is_page = |address: &&str| is_ours(address) && !address.starts_with("/ui/fn");
    address.filter(is_page).unwrap_or("/ui").to_owned()
}
