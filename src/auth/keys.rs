//! The keys of the dashboard and the admin. Presented credentials are compared with all keys, each in constant time, so
//! that the response time reveals nothing.

use std::fmt;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use subtle::Choice;

use super::credentials::Secrets;
use super::role::Role;
use crate::secret::{Hash, last_match};

/// The user name of the admin token.
const ADMIN: &str = "admin";

/// A user of the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub role: Role,
}

/// A key of one user of the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UiKey {
    pub identity: Identity,
    pub secret: Hash,
}

/// The credentials of the admin.
#[derive(Clone, Debug, Default)]
pub struct Admin {
    pub token: Secrets,
    /// Name and password.
    pub login: Option<(String, Secrets)>,
}

/// The user names with which a key is accepted as a password.
#[derive(Clone, Copy, Debug)]
enum UserName {
    /// None: the key is a bearer token only.
    None,
    Any,
    Exactly(Hash),
}

#[derive(Clone, Debug)]
struct Key {
    identity: Identity,
    secret: Hash,
    user: UserName,
    /// Whether the key is accepted as a bearer token.
    is_bearer: bool,
}

impl Key {
    fn accept(&self, presented: &PresentedCredentials) -> Choice {
        match (presented, self.user) {
            (PresentedCredentials::Bearer(token), _) if self.is_bearer => {
                self.secret.matches(token)
            }
            (PresentedCredentials::Basic(user, password), UserName::Exactly(name)) => {
                name.matches(user) & self.secret.matches(password)
            }
            (PresentedCredentials::Basic(_, password), UserName::Any) => {
                self.secret.matches(password)
            }
            _ => Choice::from(0),
        }
    }
}

/// Keys that give access to the same API.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// The credentials of the admin. Browsers cannot send a bearer token, only a name and a password. So if only a
    /// token is configured, it is also the password of any name.
    pub fn of_admin(admin: &Admin) -> Keys {
        let role = Role::Admin;
        let tokens = admin.token.iter().map(|secret| Key {
            identity: Identity {
                name: ADMIN.to_owned(),
                role,
            },
            secret: *secret,
            user: match admin.login {
                Some(_) => UserName::None,
                None => UserName::Any,
            },
            is_bearer: true,
        });
        let logins = admin.login.iter();
        let logins = logins.flat_map(|(name, secrets)| secrets.iter().map(move |it| (name, it)));
        let logins = logins.map(|(name, secret)| Key {
            identity: Identity {
                name: name.clone(),
                role,
            },
            secret: *secret,
            user: UserName::Exactly(Hash::of(name)),
            is_bearer: false,
        });
        Keys(tokens.chain(logins).collect())
    }

    /// Adds these keys.
    pub fn with<'a>(mut self, keys: impl IntoIterator<Item = &'a UiKey>) -> Keys {
        self.0.extend(keys.into_iter().map(|key| Key {
            identity: key.identity.clone(),
            secret: key.secret,
            user: UserName::Exactly(Hash::of(&key.identity.name)),
            is_bearer: true,
        }));
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name, if a key has it.
    pub fn known_name(&self, name: &str) -> Option<&str> {
        let mut names = self.0.iter().map(|key| key.identity.name.as_str());
        names.find(|known| *known == name)
    }

    /// The user of these credentials, if they are valid.
    pub fn identify(&self, presented: &PresentedCredentials) -> Option<&Identity> {
        self.key(presented).map(|key| &key.identity)
    }

    pub fn accept(&self, presented: &PresentedCredentials) -> bool {
        self.key(presented).is_some()
    }

    /// The user of these credentials, and the proof that is stored with a session: it shows later whether the key is
    /// still configured, and cannot be tested against guesses without the session's secret.
    pub fn proof(
        &self,
        presented: &PresentedCredentials,
        session: &str,
    ) -> Option<(&Identity, Hash)> {
        let key = self.key(presented)?;
        Some((&key.identity, proof(session, &key.secret)))
    }

    /// The user of a session, if the key that opened it is still configured.
    pub fn session_user(&self, name: &str, session: &str, expected: &Hash) -> Option<&Identity> {
        let keys = self.0.iter().filter(|key| key.identity.name == name);
        let mut found = keys.filter(|key| proof(session, &key.secret) == *expected);
        found.next().map(|key| &key.identity)
    }

    fn key(&self, presented: &PresentedCredentials) -> Option<&Key> {
        let index = last_match(self.0.iter().map(|key| key.accept(presented)))?;
        self.0.get(index)
    }
}

fn proof(session: &str, secret: &Hash) -> Hash {
    Hash::of(format!("{session}:{}", secret.hex()))
}

/// The credentials of a request, as hashes.
pub enum PresentedCredentials {
    Bearer(Hash),
    Basic(Hash, Hash),
}

impl fmt::Debug for PresentedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresentedCredentials(…)")
    }
}

impl PresentedCredentials {
    /// Name and password from the sign-in form.
    pub fn from_form(name: &str, secret: &str) -> PresentedCredentials {
        PresentedCredentials::Basic(Hash::of(name), Hash::of(secret))
    }

    /// The hash of the user name, if the credentials have one.
    pub fn name(&self) -> Option<Hash> {
        match self {
            PresentedCredentials::Basic(name, _) => Some(*name),
            PresentedCredentials::Bearer(_) => None,
        }
    }

    pub fn from_headers(headers: &HeaderMap) -> Option<PresentedCredentials> {
        let value = headers.get(header::AUTHORIZATION)?.as_bytes();
        let space = value.iter().position(|byte| *byte == b' ')?;
        let (scheme, rest) = value.split_at(space);
        let rest = rest.trim_ascii();
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Some(PresentedCredentials::Bearer(Hash::of(rest)));
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let decoded = STANDARD
            .decode(rest)
            .or_else(|_| STANDARD_NO_PAD.decode(rest));
        let decoded = decoded.ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let (user, password) = decoded.split_at(colon);
        let password = password.get(1..).unwrap_or_default();
        Some(PresentedCredentials::Basic(
            Hash::of(user),
            Hash::of(password),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let key = |role, name: &str, secret: &str| UiKey {
            identity: Identity {
                name: name.to_owned(),
                role,
            },
            secret: Hash::of(secret),
        };
        let admin = Admin {
            token: [Hash::of("token")].into_iter().collect(),
            login: Some((
                "ada".to_owned(),
                [Hash::of("password")].into_iter().collect(),
            )),
        };
        Keys::of_admin(&admin).with(&[
            key(Role::Viewer, "vera", "looks"),
            key(Role::Operator, "olga", "acts"),
            key(Role::Operator, "olga", "acts too"),
        ])
    }

    #[test]
    fn a_key_identifies_its_user() {
        let keys = keys();
        let who = |presented: PresentedCredentials| {
            keys.identify(&presented)
                .map(|identity| (identity.name.as_str(), identity.role.as_str()))
        };
        let bearer = |token: &str| PresentedCredentials::Bearer(Hash::of(token));
        assert_eq!(who(bearer("token")), Some(("admin", "admin")));
        assert_eq!(
            who(PresentedCredentials::from_form("ada", "password")),
            Some(("ada", "admin"))
        );
        assert_eq!(who(bearer("looks")), Some(("vera", "viewer")));
        assert_eq!(
            who(PresentedCredentials::from_form("olga", "acts")),
            Some(("olga", "operator"))
        );
        assert_eq!(
            who(PresentedCredentials::from_form("olga", "acts too")),
            Some(("olga", "operator")),
            "both secrets are valid during a rotation"
        );
        for presented in [
            bearer("password"),
            bearer(""),
            PresentedCredentials::from_form("vera", "acts"),
            PresentedCredentials::from_form("anybody", "token"),
            PresentedCredentials::from_form("", "looks"),
        ] {
            assert_eq!(who(presented), None);
        }
    }

    #[test]
    fn a_session_is_valid_while_its_key_is_configured() {
        let all = keys();
        let presented = PresentedCredentials::from_form("olga", "acts");
        let (_, proof) = all.proof(&presented, "session").unwrap();
        let role = |keys: &Keys, name, session| {
            let identity = keys.session_user(name, session, &proof);
            identity.map(|identity| identity.role)
        };
        assert_eq!(role(&all, "olga", "session"), Some(Role::Operator));
        assert_eq!(role(&all, "vera", "session"), None);
        assert_eq!(role(&all, "olga", "another"), None);
        let without = Keys(
            all.0
                .iter()
                .filter(|key| key.secret != Hash::of("acts"))
                .cloned()
                .collect(),
        );
        assert_eq!(role(&without, "olga", "session"), None, "another secret");
    }
}
