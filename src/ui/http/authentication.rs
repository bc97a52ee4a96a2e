//! Authenticates every request under `/ui` except those for static files: by the key in the `Authorization` header, by
//! the session, or as a guest. Then checks the role for the path (`access.rs`).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use tokio::time::timeout;

use crate::auth::{
    ActionLimit, Auth, AuthMethod, CredentialSource, Identity, Keyring, LoginThrottle,
    PresentedCredentials, Role, log_wrong_credentials,
};
use crate::engine::{AUDIT_ANONYMOUS, Engine, Error, Result, Session};
use crate::request::{BasePath, ClientAddress, Https, RequestId, drain, network_of};
use crate::secret::Hash;
use crate::ui::access::{self, role_to_post, role_to_read};
use crate::ui::cookies;
use crate::ui::error::PageError;
use crate::ui::http::LOGIN_BYTES_MAX;
use crate::ui::http::audit::{self, PendingEntry};
use crate::ui::http::client_slots::ClientSlots;
use crate::ui::http::guard::{self, is_safe};
use crate::ui::http::page_slots::busy;
use crate::ui::http::rejections::Rejections;
use crate::ui::http::{Dashboard, REFRESH, database_unavailable, forms, login};
use crate::ui::urls::LOGIN;
use crate::ui::urls::encoding::{encode, is_dashboard_page};

/// The credentials of the dashboard, and the access without them.
pub struct Authenticator {
    pub keyring: Keyring,
    /// Whether any keys are configured. A reload cannot change this.
    has_keys: bool,
    /// The role of requests without credentials, if they have access.
    guest_role: Option<Role>,
    /// The name of this server on every page; can be empty.
    pub environment: String,
    pub throttle: Arc<LoginThrottle>,
    pub rejections: Rejections,
    /// Lookups of sessions, by network.
    lookups: ClientSlots<IpAddr>,
    pub action_limit: ActionLimit,
}

/// Maximum number of sessions that are looked up for one address at the same time, and of lookups that run or wait.
const OWN_LOOKUPS_MAX: usize = 1;
const OWN_LOOKUPS_WAITING_MAX: usize = 2_000;

/// How long a lookup waits for others of its address.
const LOOKUP_WAIT_MAX: Duration = Duration::from_secs(4);

/// An authenticated user.
#[derive(Clone, Debug)]
pub struct Principal {
    pub identity: Identity,
    pub method: AuthMethod,
}

impl Principal {
    /// Whether the user has presented credentials. All others have the name [`AUDIT_ANONYMOUS`].
    pub fn has_credentials(&self) -> bool {
        self.method.has_credentials()
    }
}

impl Authenticator {
    pub fn new(auth: &Auth, environment: Option<&str>) -> Authenticator {
        Authenticator {
            keyring: auth.keyring.clone(),
            has_keys: auth.ui_has_keys(),
            guest_role: auth.guest_role(),
            environment: environment.unwrap_or_default().to_owned(),
            throttle: Arc::clone(&auth.throttle),
            rejections: Rejections::default(),
            lookups: ClientSlots::new(OWN_LOOKUPS_MAX, OWN_LOOKUPS_WAITING_MAX),
            action_limit: ActionLimit::default(),
        }
    }

    /// Authenticates a request by its headers.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub async fn authenticate(
        &self,
        engine: &Engine,
        headers: &HeaderMap,
        from: Option<IpAddr>,
    ) -> Result<Authentication> {
        let principal = |identity: &Identity, method| Principal {
            identity: identity.clone(),
            method,
        };
        if self.has_keys {
            let active = self.keyring.active();
            if let Some(presented) = PresentedCredentials::from_headers(headers) {
                let check = || active.ui.identify(&presented);
                // Only passwords are throttled. Tokens are too long to guess, and clients behind the same address must
                // not lock each other out.
                let found = match presented.name() {
                    Some(name) => {
                        self.throttle
                            .attempt(from, name, CredentialSource::Header, check)
                    }
                    None => Ok(check()),
                };
                return Ok(match found {
                    Ok(Some(user)) => Authentication::Known(principal(user, AuthMethod::Key)),
                    Ok(None) => Authentication::Unknown,
                    Err(wait) => Authentication::Throttled(wait),
                });
            }
            if let Some(secret) = session(headers)
                && let Some(session) = self.look_up(engine, secret, from).await?
                && let Some(user) = active
                    .ui
                    .session_user(&session.name, secret, &session.proof)
            {
                return Ok(Authentication::Known(principal(user, AuthMethod::Session)));
            }
        }
        let method = if self.has_keys {
            AuthMethod::Guest
        } else {
            AuthMethod::Open
        };
        let name = AUDIT_ANONYMOUS.to_owned();
        Ok(match self.guest_role {
            Some(role) => Authentication::Known(principal(&Identity { name, role }, method)),
            None => Authentication::Unknown,
        })
    }

    /// The session with this secret. Clients can invent secrets, so the lookups of an address wait for each other.
    ///
    /// # Errors
    /// [`Error::Busy`], if the address has too many lookups; [`Error::Store`].
    pub async fn look_up(
        &self,
        engine: &Engine,
        secret: &str,
        from: Option<IpAddr>,
    ) -> Result<Option<Session>> {
        let request = self.lookups.begin(network_of(from)).ok_or(Error::Busy)?;
        let waiting = timeout(LOOKUP_WAIT_MAX, request.slot()).await;
        let slot = waiting.map_err(|_| Error::Busy)?;
        engine
            .session(Hash::of(secret), None, (slot, request))
            .await
    }
}

/// The result of an authentication.
#[derive(Debug)]
pub enum Authentication {
    Known(Principal),
    /// The request has no credentials, or wrong ones.
    Unknown,
    /// The credentials were not checked because of too many failures. Contains the time to wait.
    Throttled(Duration),
}

/// The secret in the session cookie.
pub fn session(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(header::COOKIE)?.to_str().ok()?;
    cookies::get(header, cookies::SESSION).filter(|secret| !secret.is_empty())
}

/// A request without its form.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    pub uri: Uri,
    pub headers: HeaderMap,
    pub from: Option<IpAddr>,
    pub https: bool,
    pub base_path: Option<BasePath>,
    pub principal: Option<Principal>,
    pub audit: Option<PendingEntry>,
    pub request_id: Option<RequestId>,
}

impl RequestInfo {
    pub fn of(request: &Request) -> RequestInfo {
        let extensions = request.extensions();
        RequestInfo {
            uri: request.uri().clone(),
            headers: request.headers().clone(),
            from: ClientAddress::of(extensions),
            https: Https::is_set(extensions),
            base_path: extensions.get().cloned(),
            principal: extensions.get().cloned(),
            audit: extensions.get().cloned(),
            request_id: extensions.get().cloned(),
        }
    }

    /// The engine, which adds its changes to the audit entry of the request.
    pub fn engine(&self, dashboard: &Dashboard) -> Engine {
        match &self.audit {
            Some(entry) => entry.engine(&dashboard.engine),
            None => dashboard.engine.clone(),
        }
    }

    /// Sets the outcome in the audit entry.
    pub fn set_outcome(&self, is_done: bool, text: &str) {
        if let Some(entry) = &self.audit {
            entry.set_outcome(is_done, text);
        }
    }

    /// The name of the user.
    pub fn user(&self) -> &str {
        let principal = self.principal.as_ref();
        principal.map_or("", |principal| &principal.identity.name)
    }

    /// Whether the user has at least this role.
    pub fn may(&self, least: Role) -> bool {
        let principal = self.principal.as_ref();
        principal.is_some_and(|principal| principal.identity.role >= least)
    }

    /// Whether this is the refresh of a live page.
    pub fn is_refresh(&self) -> bool {
        self.headers.contains_key(REFRESH)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestInfo {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<RequestInfo, Self::Rejection> {
        let mut request = Request::new(());
        *request.uri_mut() = parts.uri.clone();
        *request.headers_mut() = parts.headers.clone();
        *request.extensions_mut() = parts.extensions.clone();
        Ok(RequestInfo::of(
            &request.map(|()| axum::body::Body::empty()),
        ))
    }
}

/// Authenticates a request, and checks the role for its path.
pub async fn authenticate(
    State(dashboard): State<Dashboard>,
    mut request: Request,
    next: Next,
) -> Response {
    let from = ClientAddress::of(request.extensions());
    let authentication = dashboard
        .authenticator
        .authenticate(&dashboard.engine, request.headers(), from)
        .await;
    let principal = match authentication {
        Ok(Authentication::Known(principal)) => Some(principal),
        Ok(Authentication::Unknown) => None,
        Ok(Authentication::Throttled(wait)) => {
            drain(request).await;
            let later = [(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1))];
            let why = "Too many failed sign-in attempts. Try again later.\n";
            return (StatusCode::TOO_MANY_REQUESTS, later, why).into_response();
        }
        Err(Error::Busy) => return busy(),
        Err(error) => {
            if dashboard.may_log(from) {
                tracing::error!(%error, "failed to look up a session");
            }
            return database_unavailable();
        }
    };
    let path = request.uri().path().to_owned();
    let Some(principal) = principal else {
        if path == LOGIN {
            return match audit::buffered(request, LOGIN_BYTES_MAX).await {
                Ok(request) => next.run(request).await,
                Err(status) => status.into_response(),
            };
        }
        return reject(dashboard, request).await;
    };
    if path == LOGIN && !dashboard.authenticator.has_keys {
        return Redirect::to("/ui").into_response();
    }
    let role = principal.identity.role;
    request.extensions_mut().insert(principal);
    if is_safe(request.method()) {
        let least = role_to_read(&path);
        if role >= least {
            return next.run(request).await;
        }
        return forbid(dashboard, RequestInfo::of(&request), least).await;
    }
    let least = role_to_post(&path);
    if least == Role::Viewer {
        return audit::run_valid(dashboard, request, next).await;
    }
    audit::audit(dashboard, request, least, next).await
}

/// The error page that names the required role.
pub async fn forbid(dashboard: Dashboard, info: RequestInfo, least: Role) -> Response {
    let principal = info.principal.as_ref();
    let has = principal.map(|principal| principal.identity.role);
    let why = access::forbidden(least, has.unwrap_or_default());
    let is_refresh = info.is_refresh();
    let mut response = forms::error_page(dashboard, info, PageError::Forbidden(why)).await;
    if is_refresh {
        // Browsers log every other status as an error.
        *response.status_mut() = StatusCode::OK;
    }
    response
}

/// The response to a request without authentication: a redirect to the sign-in page for browsers, a challenge for
/// programs.
async fn reject(dashboard: Dashboard, request: Request) -> Response {
    if PresentedCredentials::from_headers(request.headers()).is_some() {
        log_wrong_credentials(&dashboard.authenticator.throttle, &request);
    }
    let info = RequestInfo::of(&request);
    let (is_get, accepts) = (
        request.method() == Method::GET,
        accepts(&info.headers).to_owned(),
    );
    drain(request).await;
    if info.is_refresh() {
        // A challenge would make the browser open a password dialog.
        let next = next_page(&info.uri);
        return login::page(dashboard, info, next, None, StatusCode::UNAUTHORIZED).await;
    }
    if accepts.contains("text/event-stream") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if !accepts.contains("text/html") {
        return guard::challenge();
    }
    // A form that is posted after the session has ended is lost. After the sign-in, the user returns to its page.
    let next = if is_get {
        next_page(&info.uri)
    } else {
        next_page(&forms::origin_page(&info))
    };
    let mut address = format!("{LOGIN}?next=");
    encode(&next, &mut address);
    match HeaderValue::from_str(&address) {
        Ok(address) => (StatusCode::SEE_OTHER, [(header::LOCATION, address)]).into_response(),
        Err(_) => guard::challenge(),
    }
}

/// Bytes of the address of a page to which a user returns after the sign-in. The response repeats it, encoded, to clients
/// without credentials.
const NEXT_BYTES_MAX: usize = 4 << 10;

/// The page to which the user returns after the sign-in: this one, or the overview if its address is long.
fn next_page(uri: &Uri) -> String {
    let address = page_address(uri);
    match address.len() <= NEXT_BYTES_MAX {
        true => address,
        false => "/ui".to_owned(),
    }
}

/// The value of the header `Accept`.
pub fn accepts(headers: &HeaderMap) -> &str {
    let value = headers.get(header::ACCEPT);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// The address if it is a page, otherwise the overview.
fn page_address(uri: &Uri) -> String {
    let address = uri.path_and_query().map(PathAndQuery::as_str);
    let is_page = |address: &&str| is_dashboard_page(address) && !address.starts_with("/ui/fn");
    address.filter(is_page).unwrap_or("/ui").to_owned()
}
