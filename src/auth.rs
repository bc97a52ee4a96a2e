//! Authentication and authorization: credentials, users and roles, sessions' proofs, the login throttle, the limit
//! on actions, allowed hosts, and protection against requests of other sites.
//!
//! An [`AuthLayer`] in front of the routes of an API accepts requests with valid credentials; the API itself writes the
//! response to all others. An API without configured credentials is open. The admin's credentials are valid for every
//! API but lmstfy. Credentials are stored as hashes and compared in constant time.
//!
//! [`AuthLayer`]: crate::auth::AuthLayer

mod action_limit;
mod credentials;
mod hosts;
mod keys;
mod origin;
mod role;
mod stream;
mod throttle;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;

use crate::request::{ClientAddress, drain};
pub use action_limit::ActionLimit;
pub use credentials::{ActiveCredentials, Api, Credentials, Keyring, SECRETS_MAX, Secrets};
pub use hosts::Hosts;
pub use keys::{Admin, Identity, Keys, PresentedCredentials, UiKey};
pub use origin::RequestOrigin;
pub use role::{AuthMethod, Role};
use stream::end_with_credentials;
pub use throttle::{CredentialSource, LoginThrottle};

/// The challenge of APIs that people use with browsers.
pub const BASIC: &str = r#"Basic realm="Switchyard", charset="UTF-8""#;

/// The challenge of APIs that only programs use.
pub const BEARER: &str = r#"Bearer realm="Switchyard""#;

/// The credentials in force, and the access without credentials.
#[derive(Clone, Debug, Default)]
pub struct Auth {
    pub keyring: Keyring,
    /// The role of dashboard users without credentials (`--ui-open-as`).
    pub ui_open_as: Option<Role>,
    /// Counts wrong credentials of all APIs together.
    pub throttle: Arc<LoginThrottle>,
}

impl Auth {
    pub fn new(credentials: Credentials, ui_open_as: Option<Role>) -> Auth {
        Auth {
            keyring: Keyring::new(credentials),
            ui_open_as,
            throttle: Arc::default(),
        }
    }

    /// Whether the dashboard has keys. A reload cannot change that: files with keys cannot be empty, and a changed
    /// configuration file that would add the first key or remove the last one is refused.
    pub fn ui_has_keys(&self) -> bool {
        !self.keyring.active().ui.is_empty()
    }

    /// Whether the API has a token of its own. A reload cannot change that.
    pub fn has_token(&self, api: Api) -> bool {
        self.keyring.active().has_token(api)
    }

    /// The role of dashboard users without credentials; `None` if they have no access.
    pub fn guest_role(&self) -> Option<Role> {
        let open = (!self.ui_has_keys()).then_some(Role::Admin);
        self.ui_open_as.or(open)
    }

    /// The layer in front of the admin API (`/token`, `/metrics`). It is open only if every dashboard user is an admin,
    /// so that a guest with a lesser role cannot do more there.
    pub fn admin(&self, unauthorized: UnauthorizedResponse) -> AuthLayer {
        self.layer(Api::Admin, self.admin_is_open(), unauthorized)
    }

    /// Whether `/token` and `/metrics` need no credentials.
    pub fn admin_is_open(&self) -> bool {
        !self.ui_has_keys() && self.guest_role() == Some(Role::Admin)
    }

    /// The layer in front of qless.
    pub fn qless(&self, unauthorized: UnauthorizedResponse) -> AuthLayer {
        self.protocol(Api::Qless, unauthorized)
    }

    /// The layer in front of Relay.
    pub fn relay(&self, unauthorized: UnauthorizedResponse) -> AuthLayer {
        self.protocol(Api::Relay, unauthorized)
    }

    /// The layer in front of Jobq.
    pub fn jobq(&self, unauthorized: UnauthorizedResponse) -> AuthLayer {
        self.protocol(Api::Jobq, unauthorized)
    }

    fn protocol(&self, api: Api, unauthorized: UnauthorizedResponse) -> AuthLayer {
        self.layer(api, !self.has_token(api), unauthorized)
    }

    fn layer(&self, api: Api, is_open: bool, unauthorized: UnauthorizedResponse) -> AuthLayer {
        AuthLayer(Arc::new(Inner {
            is_open,
            api,
            keyring: self.keyring.clone(),
            throttle: Arc::clone(&self.throttle),
            unauthorized,
        }))
    }

    /// The APIs that accept unauthenticated requests, each with the flag that changes that. `no_auth` opens lmstfy,
    /// whose namespaces have tokens of their own.
    pub fn open_apis(&self, no_auth: bool) -> Vec<&'static str> {
        let all = [
            (
                self.admin_is_open(),
                "/ui, /token and /metrics (set --admin-token to require credentials)",
            ),
            (
                !self.admin_is_open() && self.ui_open_as.is_some(),
                "/ui (with the role of --ui-open-as)",
            ),
            (
                !self.has_token(Api::Qless),
                "qless (set --qless-token to require a token)",
            ),
            (
                !self.has_token(Api::Relay),
                "Relay (set --relay-token to require a token)",
            ),
            (
                !self.has_token(Api::Jobq),
                "Jobq (set --jobq-token to require a token)",
            ),
            (no_auth, "lmstfy (because of --no-auth)"),
        ];
        let open = all.into_iter().filter(|(is_open, _)| *is_open);
        open.map(|(_, api)| api).collect()
    }

    /// Whether any credentials are configured.
    pub fn has_credentials(&self) -> bool {
        let protocols = [Api::Qless, Api::Relay, Api::Jobq];
        self.ui_has_keys() || protocols.into_iter().any(|api| self.has_token(api))
    }
}

/// Whether the address is reachable from this machine only.
pub fn is_loopback(address: SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.to_canonical().is_loopback(),
    }
}

/// Why a request is rejected before it reaches an API. Each API has its own form of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// An HTTP/1.1 request without a host.
    NoHost,
    /// More than one `Host` header.
    SeveralHosts,
    /// A host that is not this server's; see [`Hosts`].
    UnknownHost,
    /// A page of another site caused a browser to send the request.
    CrossSite,
    /// Requests and responses occupy all of their memory; see [`memory`](crate::memory).
    Busy,
}

impl Rejected {
    pub fn status(self) -> StatusCode {
        match self {
            Rejected::NoHost | Rejected::SeveralHosts => StatusCode::BAD_REQUEST,
            Rejected::UnknownHost => StatusCode::MISDIRECTED_REQUEST,
            Rejected::CrossSite => StatusCode::FORBIDDEN,
            Rejected::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The code in responses and logs.
    pub fn code(self) -> &'static str {
        match self {
            Rejected::NoHost | Rejected::SeveralHosts => "bad_host",
            Rejected::UnknownHost => "unknown_host",
            Rejected::CrossSite => "cross_site",
            Rejected::Busy => "busy",
        }
    }

    pub fn message(self) -> &'static str {
        match self {
            Rejected::NoHost => "the request has no Host header",
            Rejected::SeveralHosts => "the request has more than one Host header",
            Rejected::UnknownHost => {
                "the Host header names a host that this server does not serve; to allow it, start the server with \
                 --allowed-host NAME"
            }
            Rejected::CrossSite => "the request comes from a page of another site",
            Rejected::Busy => "the server is busy with other requests; try again",
        }
    }
}

/// Creates an API's response to a request without valid credentials.
pub type UnauthorizedResponse = fn() -> Response;

/// Requires credentials of one API.
#[derive(Clone)]
pub struct AuthLayer(Arc<Inner>);

struct Inner {
    is_open: bool,
    api: Api,
    keyring: Keyring,
    throttle: Arc<LoginThrottle>,
    unauthorized: UnauthorizedResponse,
}

impl AuthLayer {
    /// The routes with this layer in front of them.
    pub fn protect<S: Clone + Send + Sync + 'static>(self, routes: Router<S>) -> Router<S> {
        if self.0.is_open {
            return routes;
        }
        routes.layer(middleware::from_fn_with_state(self, authenticate))
    }

    /// Whether the credentials are valid. Passwords are subject to the login throttle. Tokens are not: they are too
    /// long to guess, and clients behind the same address must not lock each other out.
    ///
    /// # Errors
    /// How long the client has to wait before it can send another password.
    fn check(&self, request: &Request, presented: &PresentedCredentials) -> Result<bool, Duration> {
        let active = self.0.keyring.active();
        let check = || active.accept(self.0.api, presented);
        let has_passwords = active.has_passwords(self.0.api);
        let Some(name) = presented.name().filter(|_| has_passwords) else {
            return Ok(check());
        };
        let from = ClientAddress::of(request.extensions());
        let throttle = &self.0.throttle;
        let found = throttle.attempt(from, name, CredentialSource::Header, || {
            check().then_some(())
        })?;
        Ok(found.is_some())
    }
}

async fn authenticate(State(layer): State<AuthLayer>, request: Request, next: Next) -> Response {
    let wait = match PresentedCredentials::from_headers(request.headers()) {
        None => None,
        Some(presented) => match layer.check(&request, &presented) {
            Ok(true) => {
                let response = next.run(request).await;
                let Inner { keyring, api, .. } = &*layer.0;
                return end_with_credentials(response, keyring, *api, presented);
            }
            Ok(false) => {
                log_wrong_credentials(&layer.0.throttle, &request);
                None
            }
            Err(wait) => Some(wait),
        },
    };
    drain(request).await;
    let mut response = (layer.0.unauthorized)();
    if let Some(wait) = wait {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        let headers = response.headers_mut();
        headers.remove(header::WWW_AUTHENTICATE);
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    }
    response
}

/// Logs a rejection, but not too many of one address.
pub fn log_wrong_credentials(throttle: &LoginThrottle, request: &Request) {
    let from = ClientAddress::of(request.extensions());
    if throttle.may_log(from) {
        let from = from.map(|from| from.to_string());
        tracing::warn!(from, "rejected a request with wrong credentials");
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use axum::response::IntoResponse;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::secret::Hash;

    const TOKEN: &str = "the-admins-token";
    const QLESS: &str = "the-token-of-qless";

    fn secrets(secret: &str) -> Secrets {
        [Hash::of(secret)].into_iter().collect()
    }

    fn credentials(token: bool, login: bool, qless: bool) -> Credentials {
        let set = |is_set: bool, secret| {
            if is_set {
                secrets(secret)
            } else {
                Secrets::default()
            }
        };
        Credentials {
            admin: Admin {
                token: set(token, TOKEN),
                login: login.then(|| ("ada".to_owned(), secrets("pass:word é"))),
            },
            qless: set(qless, QLESS),
            ..Credentials::default()
        }
    }

    fn auth(token: bool, login: bool, qless: bool) -> Auth {
        Auth::new(credentials(token, login, qless), None)
    }

    fn accepts(layer: &AuthLayer, authorization: &str) -> bool {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(authorization.as_bytes()).unwrap();
        headers.insert(header::AUTHORIZATION, value);
        let active = layer.0.keyring.active();
        PresentedCredentials::from_headers(&headers)
            .is_some_and(|shown| active.accept(layer.0.api, &shown))
    }

    fn basic(user: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    }

    fn unauthorized() -> Response {
        "no".into_response()
    }

    #[test]
    fn an_api_accepts_its_own_token_and_the_credentials_of_the_admin() {
        let bearer = |token: &str| format!("Bearer {token}");
        for (token, login, qless) in [
            (true, false, true),
            (false, true, true),
            (true, true, true),
            (true, false, false),
        ] {
            let auth = auth(token, login, qless);
            for (shown, admin, own) in [
                (bearer(TOKEN), token, false),
                (format!("bEARER   {TOKEN} "), token, false),
                (bearer(QLESS), false, qless),
                (basic("ada", "pass:word é"), login, false),
                (basic("anybody", TOKEN), token && !login, false),
                (basic("", TOKEN), token && !login, false),
                (basic("ada", TOKEN), token && !login, false),
                (basic("bob", "pass:word é"), false, false),
                (basic("ada", "password"), false, false),
                (basic("ada", ""), false, false),
                (basic("x", QLESS), false, false),
                (bearer(""), false, false),
                (bearer("the-admins-toke"), false, false),
                (bearer("THE-ADMINS-TOKEN"), false, false),
                (TOKEN.to_owned(), false, false),
                (format!("Token {TOKEN}"), false, false),
                ("Basic !!".to_owned(), false, false),
                (format!("Basic {}", STANDARD.encode(TOKEN)), false, false),
                ("Basic ".to_owned(), false, false),
                (String::new(), false, false),
            ] {
                let accepted = accepts(&auth.admin(unauthorized), &shown);
                assert_eq!(accepted, admin, "{shown} at the admin API of {auth:?}");
                let accepted = accepts(&auth.qless(unauthorized), &shown);
                assert_eq!(accepted, admin || own, "{shown} at qless of {auth:?}");
            }
        }
    }

    #[test]
    fn the_admin_api_is_open_only_if_guests_are_admins() {
        for (ui_open_as, is_open) in [
            (None, true),
            (Some(Role::Admin), true),
            (Some(Role::Operator), false),
            (Some(Role::Viewer), false),
        ] {
            let auth = Auth {
                ui_open_as,
                ..Auth::default()
            };
            assert_eq!(
                auth.admin(unauthorized).0.is_open,
                is_open,
                "{ui_open_as:?}"
            );
            let closed = Auth::new(credentials(true, false, false), ui_open_as);
            assert!(!closed.admin(unauthorized).0.is_open, "{ui_open_as:?}");
        }
    }

    #[test]
    fn loopback_addresses_are_recognized() {
        for (address, expected) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("10.0.0.1:1", false),
            ("[::ffff:10.0.0.1]:1", false),
        ] {
            assert_eq!(is_loopback(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn open_apis_are_listed() {
        let none = Auth::default();
        assert!(none.open_apis(true).len() == 5 && none.open_apis(false).len() == 4);
        assert!(!none.has_credentials());
        let closed = Credentials {
            relay: secrets("the-token-of-relay"),
            jobq: secrets("the-token-of-jobq"),
            ..credentials(true, false, true)
        };
        let auth = Auth::new(closed.clone(), None);
        assert!(auth.has_credentials());
        assert_eq!(auth.open_apis(false), [""; 0]);
        assert_eq!(auth.open_apis(true).len(), 1);
        for name in ["Relay", "Jobq", "qless", "/ui"] {
            let mut credentials = closed.clone();
            match name {
                "Relay" => credentials.relay = Secrets::default(),
                "Jobq" => credentials.jobq = Secrets::default(),
                "qless" => credentials.qless = Secrets::default(),
                _ => credentials.admin = Admin::default(),
            }
            let auth = Auth::new(credentials, None);
            let open = auth.open_apis(false);
            assert!(open.len() == 1 && open[0].starts_with(name), "{open:?}");
        }
    }

    #[test]
    fn while_a_token_is_rotated_both_are_accepted_and_then_only_the_new_one() {
        let both = Credentials {
            qless: ["old", "new"].map(Hash::of).into_iter().collect(),
            ..Credentials::default()
        };
        let auth = Auth::new(both, None);
        let layer = auth.qless(unauthorized);
        let opened = |layer: &AuthLayer| {
            ["Bearer old", "Bearer new", "Bearer other"].map(|shown| accepts(layer, shown))
        };
        assert_eq!(opened(&layer), [true, true, false]);
        let mut replacements = auth.keyring.replacements();
        auth.keyring.replace(Credentials {
            qless: secrets("new"),
            ..Credentials::default()
        });
        assert_eq!(opened(&layer), [false, true, false]);
        assert!(replacements.has_changed().unwrap());
        replacements.mark_unchanged();
    }
}
