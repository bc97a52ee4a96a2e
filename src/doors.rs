//! Who may come in. A door stands before some of the routes, and opens for whoever shows a key of it; what its
//! front answers to the others is the front's. Where no key is set it is no door at all.
//!
//! The administrator's keys open every door. Keys are kept as hashes, and compared in constant time.

mod credentials;
mod host;
mod keys;
mod sender;
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

use crate::api::views::Role;
use crate::protocol::request::drain;
use crate::server::ClientAddress;
pub use credentials::{Api, Credentials, InForce, Keyring, SECRETS_MAX, Secrets};
pub use host::Hosts;
pub use keys::{Admin, Keys, Shown, UiKey, Who};
pub use sender::Sender;
use stream::ends_with_key;
pub use throttle::{By, Throttle};

/// The challenge of a door that people come to with browsers.
pub const BASIC: &str = r#"Basic realm="Switchyard", charset="UTF-8""#;

/// The challenge of a door that only programs come to.
pub const BEARER: &str = r#"Bearer realm="Switchyard""#;

/// Who may come in: the credentials in force, and what may be done without any.
#[derive(Clone, Debug, Default)]
pub struct Doors {
    pub keyring: Keyring,
    /// What the dashboard lets those do who show no key, if that is said.
    pub ui_open_as: Option<Role>,
    /// Wrong credentials, at all doors together.
    pub throttle: Arc<Throttle>,
}

impl Doors {
    pub fn new(credentials: Credentials, ui_open_as: Option<Role>) -> Doors {
        Doors {
            keyring: Keyring::new(credentials),
            ui_open_as,
            throttle: Arc::default(),
        }
    }

    /// Whether a key opens the dashboard. A reload does not change that: no source of keys can become empty.
    pub fn ui_has_keys(&self) -> bool {
        !self.keyring.in_force().ui.is_empty()
    }

    /// Whether the API has a token of its own. A reload does not change that.
    pub fn has_own(&self, api: Api) -> bool {
        self.keyring.in_force().has_own(api)
    }

    /// What the dashboard lets those do who show no key; `None` if they are not let in.
    pub fn guests(&self) -> Option<Role> {
        let open = (!self.ui_has_keys()).then_some(Role::Admin);
        self.ui_open_as.or(open)
    }

    /// The door of what is the administrator's besides the dashboard. It is open only if the dashboard lets everybody
    /// act as an admin: a guest with a lesser role must not find more there.
    pub fn admin(&self, refuse: Refuse) -> Door {
        self.door(Api::Admin, self.admin_is_open(), refuse)
    }

    fn admin_is_open(&self) -> bool {
        !self.ui_has_keys() && self.guests() == Some(Role::Admin)
    }

    /// The door of qless.
    pub fn qless(&self, refuse: Refuse) -> Door {
        self.of_protocol(Api::Qless, refuse)
    }

    /// The door of Relay.
    pub fn relay(&self, refuse: Refuse) -> Door {
        self.of_protocol(Api::Relay, refuse)
    }

    /// The door of Jobq.
    pub fn jobq(&self, refuse: Refuse) -> Door {
        self.of_protocol(Api::Jobq, refuse)
    }

    /// The door of a protocol that has a token for all its clients.
    fn of_protocol(&self, api: Api, refuse: Refuse) -> Door {
        self.door(api, !self.has_own(api), refuse)
    }

    fn door(&self, api: Api, stands_open: bool, refuse: Refuse) -> Door {
        Door(Arc::new(Inner {
            stands_open,
            api,
            keyring: self.keyring.clone(),
            throttle: Arc::clone(&self.throttle),
            refuse,
        }))
    }

    /// The doors that stand open, each with what would close it; lmstfy's is opened by `no_auth`, for its
    /// namespaces have tokens of their own.
    pub fn open(&self, no_auth: bool) -> Vec<&'static str> {
        let all = [
            (
                self.admin_is_open(),
                "/ui and /token (--admin-token closes them)",
            ),
            (
                !self.admin_is_open() && self.ui_open_as.is_some(),
                "/ui, as far as --ui-open-as says",
            ),
            (!self.has_own(Api::Qless), "qless (--qless-token closes it)"),
            (!self.has_own(Api::Relay), "Relay (--relay-token closes it)"),
            (!self.has_own(Api::Jobq), "Jobq (--jobq-token closes it)"),
            (no_auth, "lmstfy (--no-auth opens it)"),
        ];
        let open = all.into_iter().filter(|(open, _)| *open);
        open.map(|(_, door)| door).collect()
    }

    /// Whether any key is set.
    pub fn any_key(&self) -> bool {
        let protocols = [Api::Qless, Api::Relay, Api::Jobq];
        self.ui_has_keys() || protocols.into_iter().any(|api| self.has_own(api))
    }
}

/// Whether only programs of this machine can reach the address.
pub fn is_loopback(address: SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.to_canonical().is_loopback(),
    }
}

/// Why a request is rejected before any front reads it. Each front answers in its own shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// An HTTP/1.1 request without a host.
    NoHost,
    /// More than one `Host` header.
    SeveralHosts,
    /// A host that is not this server's; see [`Hosts`].
    UnknownHost,
    /// A page of another site made a browser send it.
    CrossSite,
}

impl Rejected {
    /// The status of the response.
    pub fn status(self) -> StatusCode {
        match self {
            Rejected::NoHost | Rejected::SeveralHosts => StatusCode::BAD_REQUEST,
            Rejected::UnknownHost => StatusCode::MISDIRECTED_REQUEST,
            Rejected::CrossSite => StatusCode::FORBIDDEN,
        }
    }

    /// A word for programs.
    pub fn code(self) -> &'static str {
        match self {
            Rejected::NoHost | Rejected::SeveralHosts => "bad_host",
            Rejected::UnknownHost => "unknown_host",
            Rejected::CrossSite => "cross_site",
        }
    }

    /// What happened, and what to do.
    pub fn message(self) -> &'static str {
        match self {
            Rejected::NoHost => "the request has no Host header",
            Rejected::SeveralHosts => "the request has more than one Host header",
            Rejected::UnknownHost => {
                "the Host header names a host that this server does not serve; to allow it, start the server with \
                 --allowed-host NAME"
            }
            Rejected::CrossSite => "the request comes from a page of another site",
        }
    }
}

/// How a front turns away whoever shows no key of its door.
pub type Refuse = fn() -> Response;

/// A door before some routes.
#[derive(Clone)]
pub struct Door(Arc<Inner>);

struct Inner {
    stands_open: bool,
    api: Api,
    keyring: Keyring,
    throttle: Arc<Throttle>,
    refuse: Refuse,
}

impl Door {
    /// The routes behind this door.
    pub fn before<S: Clone + Send + Sync + 'static>(self, routes: Router<S>) -> Router<S> {
        if self.0.stands_open {
            return routes;
        }
        routes.layer(middleware::from_fn_with_state(self, keep))
    }

    /// Whether the door opens. Passwords are subject to the login throttle. Tokens are not: they are too long to be
    /// guessed, and clients behind the same address must not lock each other out.
    ///
    /// # Errors
    /// How long the client has to wait before it may show another password.
    fn check(&self, request: &Request, shown: &Shown) -> Result<bool, Duration> {
        let in_force = self.0.keyring.in_force();
        let check = || in_force.opens_for(self.0.api, shown);
        let has_passwords = in_force.has_passwords(self.0.api);
        let Some(name) = shown.name().filter(|_| has_passwords) else {
            return Ok(check());
        };
        let from = ClientAddress::of(request.extensions());
        let throttle = &self.0.throttle;
        let found = throttle.attempt(from, name, By::Header, || check().then_some(()))?;
        Ok(found.is_some())
    }
}

/// Lets in whoever shows a key.
async fn keep(State(door): State<Door>, request: Request, next: Next) -> Response {
    let wait = match Shown::by(request.headers()) {
        None => None,
        Some(shown) => match door.check(&request, &shown) {
            Ok(true) => {
                let response = next.run(request).await;
                let Inner { keyring, api, .. } = &*door.0;
                return ends_with_key(response, keyring, *api, shown);
            }
            Ok(false) => {
                tell_of_wrong_key(&request);
                None
            }
            Err(wait) => Some(wait),
        },
    };
    drain(request).await;
    let mut response = (door.0.refuse)();
    if let Some(wait) = wait {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        let headers = response.headers_mut();
        headers.remove(header::WWW_AUTHENTICATE);
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    }
    response
}

/// Notes that somebody has shown what is no key.
pub fn tell_of_wrong_key(request: &Request) {
    let from = ClientAddress::of(request.extensions()).map(|from| from.to_string());
    tracing::warn!(from, "rejected a request with wrong credentials");
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

    fn doors(token: bool, login: bool, qless: bool) -> Doors {
        Doors::new(credentials(token, login, qless), None)
    }

    fn opens(door: &Door, authorization: &str) -> bool {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(authorization.as_bytes()).unwrap();
        headers.insert(header::AUTHORIZATION, value);
        let in_force = door.0.keyring.in_force();
        Shown::by(&headers).is_some_and(|shown| in_force.opens_for(door.0.api, &shown))
    }

    fn basic(user: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    }

    fn refuse() -> Response {
        "no".into_response()
    }

    #[test]
    fn a_door_opens_for_its_keys_and_the_administrators() {
        let bearer = |token: &str| format!("Bearer {token}");
        for (token, login, qless) in [
            (true, false, true),
            (false, true, true),
            (true, true, true),
            (true, false, false),
        ] {
            let doors = doors(token, login, qless);
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
                let seen = opens(&doors.admin(refuse), &shown);
                assert_eq!(seen, admin, "{shown} at the administrator's of {doors:?}");
                let seen = opens(&doors.qless(refuse), &shown);
                assert_eq!(seen, admin || own, "{shown} at qless's of {doors:?}");
            }
        }
    }

    #[test]
    fn the_admin_door_is_open_only_where_guests_are_admins() {
        for (ui_open_as, is_open) in [
            (None, true),
            (Some(Role::Admin), true),
            (Some(Role::Operator), false),
            (Some(Role::Viewer), false),
        ] {
            let doors = Doors {
                ui_open_as,
                ..Doors::default()
            };
            assert_eq!(doors.admin(refuse).0.stands_open, is_open, "{ui_open_as:?}");
            let closed = Doors::new(credentials(true, false, false), ui_open_as);
            assert!(!closed.admin(refuse).0.stands_open, "{ui_open_as:?}");
        }
    }

    #[test]
    fn loopback_is_this_machine_and_nothing_else() {
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
    fn open_doors_are_named() {
        let none = Doors::default();
        assert!(none.open(true).len() == 5 && none.open(false).len() == 4);
        assert!(!none.any_key());
        let closed = Credentials {
            relay: secrets("the-token-of-relay"),
            jobq: secrets("the-token-of-jobq"),
            ..credentials(true, false, true)
        };
        let doors = Doors::new(closed.clone(), None);
        assert!(doors.any_key());
        assert_eq!(doors.open(false), [""; 0]);
        assert_eq!(doors.open(true).len(), 1);
        for name in ["Relay", "Jobq", "qless", "/ui"] {
            let mut credentials = closed.clone();
            match name {
                "Relay" => credentials.relay = Secrets::default(),
                "Jobq" => credentials.jobq = Secrets::default(),
                "qless" => credentials.qless = Secrets::default(),
                _ => credentials.admin = Admin::default(),
            }
            let doors = Doors::new(credentials, None);
            let open = doors.open(false);
            assert!(open.len() == 1 && open[0].starts_with(name), "{open:?}");
        }
    }

    #[test]
    fn while_a_token_is_rotated_both_open_and_then_the_new_one_only() {
        let both = Credentials {
            qless: ["old", "new"].map(Hash::of).into_iter().collect(),
            ..Credentials::default()
        };
        let doors = Doors::new(both, None);
        let door = doors.qless(refuse);
        let opened = |door: &Door| {
            ["Bearer old", "Bearer new", "Bearer other"].map(|shown| opens(door, shown))
        };
        assert_eq!(opened(&door), [true, true, false]);
        let mut replacements = doors.keyring.replacements();
        doors.keyring.replace(Credentials {
            qless: secrets("new"),
            ..Credentials::default()
        });
        assert_eq!(opened(&door), [false, true, false]);
        assert!(replacements.has_changed().unwrap());
        replacements.mark_unchanged();
    }
}
