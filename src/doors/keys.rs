//! Who comes in by what it shows. Keys are kept as hashes. What is shown is compared with all of them, each in constant
//! time, so that the time an answer takes does not tell which came close.

use std::fmt;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use subtle::Choice;

use super::credentials::Secrets;
use crate::api::views::Role;
use crate::secret::{Hash, last_match};

/// The name of whoever shows the administrator's token.
const ADMIN: &str = "admin";

/// Who came in, and what it may do in the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    pub name: String,
    pub role: Role,
}

/// A key of the dashboard, for somebody by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UiKey {
    pub who: Who,
    pub secret: Hash,
}

/// The administrator's keys.
#[derive(Clone, Debug, Default)]
pub struct Admin {
    pub token: Secrets,
    /// A user's name and password.
    pub login: Option<(String, Secrets)>,
}

/// Which names belong to a key where a name and a password are shown.
#[derive(Clone, Copy, Debug)]
enum Named {
    /// None: it is shown by itself.
    Never,
    Anyhow,
    Exactly(Hash),
}

#[derive(Clone, Debug)]
struct Key {
    who: Who,
    secret: Hash,
    named: Named,
    /// Whether it may be shown by itself.
    alone: bool,
}

impl Key {
    fn opens_for(&self, shown: &Shown) -> Choice {
        match (shown, self.named) {
            (Shown::Bearer(token), _) if self.alone => self.secret.matches(token),
            (Shown::Basic(user, password), Named::Exactly(name)) => {
                name.matches(user) & self.secret.matches(password)
            }
            (Shown::Basic(_, password), Named::Anyhow) => self.secret.matches(password),
            _ => Choice::from(0),
        }
    }
}

/// Keys that open the same door.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// The administrator's.
    ///
    /// A browser cannot show a token by itself: it sends what its user typed, a name and a password. Where only a
    /// token is set it is the password, whatever the name.
    pub fn of_admin(admin: &Admin) -> Keys {
        let role = Role::Admin;
        let tokens = admin.token.iter().map(|secret| Key {
            who: Who {
                name: ADMIN.to_owned(),
                role,
            },
            secret: *secret,
            named: match admin.login {
                Some(_) => Named::Never,
                None => Named::Anyhow,
            },
            alone: true,
        });
        let logins = admin.login.iter();
        let logins = logins.flat_map(|(name, secrets)| secrets.iter().map(move |it| (name, it)));
        let logins = logins.map(|(name, secret)| Key {
            who: Who {
                name: name.clone(),
                role,
            },
            secret: *secret,
            named: Named::Exactly(Hash::of(name)),
            alone: false,
        });
        Keys(tokens.chain(logins).collect())
    }

    /// These too.
    pub fn and<'a>(mut self, keys: impl IntoIterator<Item = &'a UiKey>) -> Keys {
        self.0.extend(keys.into_iter().map(|key| Key {
            who: key.who.clone(),
            secret: key.secret,
            named: Named::Exactly(Hash::of(&key.who.name)),
            alone: true,
        }));
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name as a key has it, if one does.
    pub fn named(&self, name: &str) -> Option<&str> {
        let mut names = self.0.iter().map(|key| key.who.name.as_str());
        names.find(|known| *known == name)
    }

    /// Who shows this, if it is a key.
    pub fn who(&self, shown: &Shown) -> Option<&Who> {
        self.key(shown).map(|key| &key.who)
    }

    pub fn opens_for(&self, shown: &Shown) -> bool {
        self.key(shown).is_some()
    }

    /// What is kept with a session to know later whether the key still is one by which it was opened: nothing that
    /// could be tried out without the session's own secret.
    pub fn proof(&self, shown: &Shown, session: &str) -> Option<(&Who, Hash)> {
        let key = self.key(shown)?;
        Some((&key.who, proof(session, &key.secret)))
    }

    /// Who comes in by a session that was opened with one of the keys.
    pub fn in_session(&self, name: &str, session: &str, expected: &Hash) -> Option<&Who> {
        let keys = self.0.iter().filter(|key| key.who.name == name);
        let mut found = keys.filter(|key| proof(session, &key.secret) == *expected);
        found.next().map(|key| &key.who)
    }

    fn key(&self, shown: &Shown) -> Option<&Key> {
        let index = last_match(self.0.iter().map(|key| key.opens_for(shown)))?;
        self.0.get(index)
    }
}

fn proof(session: &str, secret: &Hash) -> Hash {
    Hash::of(format!("{session}:{}", secret.hex()))
}

/// What somebody shows at a door, as hashes.
pub enum Shown {
    Bearer(Hash),
    Basic(Hash, Hash),
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown(…)")
    }
}

impl Shown {
    /// What a person has typed: the same as a browser would send.
    pub fn typed(name: &str, secret: &str) -> Shown {
        Shown::Basic(Hash::of(name), Hash::of(secret))
    }

    /// The hash of the name that comes with a password.
    pub fn name(&self) -> Option<Hash> {
        match self {
            Shown::Basic(name, _) => Some(*name),
            Shown::Bearer(_) => None,
        }
    }

    pub fn by(headers: &HeaderMap) -> Option<Shown> {
        let value = headers.get(header::AUTHORIZATION)?.as_bytes();
        let space = value.iter().position(|byte| *byte == b' ')?;
        let (scheme, rest) = value.split_at(space);
        let rest = rest.trim_ascii();
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Some(Shown::Bearer(Hash::of(rest)));
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
        Some(Shown::Basic(Hash::of(user), Hash::of(password)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let key = |role, name: &str, secret: &str| UiKey {
            who: Who {
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
        Keys::of_admin(&admin).and(&[
            key(Role::Viewer, "vera", "looks"),
            key(Role::Operator, "olga", "acts"),
            key(Role::Operator, "olga", "acts too"),
        ])
    }

    #[test]
    fn a_key_tells_who_comes() {
        let keys = keys();
        let who = |shown: Shown| {
            keys.who(&shown)
                .map(|who| (who.name.as_str(), who.role.as_str()))
        };
        let bearer = |token: &str| Shown::Bearer(Hash::of(token));
        assert_eq!(who(bearer("token")), Some(("admin", "admin")));
        assert_eq!(who(Shown::typed("ada", "password")), Some(("ada", "admin")));
        assert_eq!(who(bearer("looks")), Some(("vera", "viewer")));
        assert_eq!(
            who(Shown::typed("olga", "acts")),
            Some(("olga", "operator"))
        );
        assert_eq!(
            who(Shown::typed("olga", "acts too")),
            Some(("olga", "operator")),
            "both hold while one takes the place of the other"
        );
        for shown in [
            bearer("password"),
            bearer(""),
            Shown::typed("vera", "acts"),
            Shown::typed("anybody", "token"),
            Shown::typed("", "looks"),
        ] {
            assert_eq!(who(shown), None);
        }
    }

    #[test]
    fn a_session_holds_as_long_as_its_key() {
        let all = keys();
        let shown = Shown::typed("olga", "acts");
        let (_, proof) = all.proof(&shown, "session").unwrap();
        let role = |keys: &Keys, name, session| {
            let who = keys.in_session(name, session, &proof);
            who.map(|who| who.role)
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
