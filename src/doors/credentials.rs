//! The credentials in force. A reload replaces all of them at once, and requests that come after it are compared with
//! the new ones only.

use std::sync::Arc;

use subtle::Choice;
use tokio::sync::watch;

use super::keys::{Admin, Keys, Shown, UiKey};
use crate::api::views::Role;
use crate::secret::Hash;

/// The most values of one secret that are accepted at the same time, so that it can be rotated.
pub const SECRETS_MAX: usize = 2;

/// The values of one secret that are accepted, as hashes.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<Hash>);

impl Secrets {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Hash> {
        self.0.iter()
    }

    /// Whether one of them matches. Compares with all of them, each in constant time.
    fn matches(&self, shown: &Hash) -> Choice {
        let all = self.0.iter().map(|secret| secret.matches(shown));
        all.fold(Choice::from(0), |found, matches| found | matches)
    }
}

impl FromIterator<Hash> for Secrets {
    fn from_iter<T: IntoIterator<Item = Hash>>(secrets: T) -> Secrets {
        Secrets(secrets.into_iter().collect())
    }
}

/// All credentials, as configured.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    pub admin: Admin,
    /// More keys of the dashboard, each with a role.
    pub ui: Vec<UiKey>,
    pub qless: Secrets,
    pub relay: Secrets,
    pub jobq: Secrets,
}

/// The APIs with credentials of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `/token`.
    Admin,
    Qless,
    Relay,
    Jobq,
}

/// Credentials, arranged by what they open.
#[derive(Debug, Default)]
pub struct InForce {
    /// Opens the dashboard.
    pub ui: Keys,
    /// Opens `/token`: the administrator's keys, and keys of the dashboard with the role admin.
    admins: Keys,
    /// The administrator's keys, which open every API but lmstfy.
    owner: Keys,
    credentials: Credentials,
}

impl InForce {
    fn new(credentials: Credentials) -> InForce {
        let owner = Keys::of_admin(&credentials.admin);
        let admins = credentials
            .ui
            .iter()
            .filter(|key| key.who.role == Role::Admin);
        InForce {
            ui: owner.clone().and(&credentials.ui),
            admins: owner.clone().and(admins),
            owner,
            credentials,
        }
    }

    /// The token of the API itself; `/token` has none.
    pub fn own(&self, api: Api) -> Option<&Secrets> {
        match api {
            Api::Admin => None,
            Api::Qless => Some(&self.credentials.qless),
            Api::Relay => Some(&self.credentials.relay),
            Api::Jobq => Some(&self.credentials.jobq),
        }
    }

    /// Whether the API has a token of its own.
    pub fn has_own(&self, api: Api) -> bool {
        self.own(api).is_some_and(|own| !own.is_empty())
    }

    /// Whether names and passwords may open the API.
    pub fn has_passwords(&self, api: Api) -> bool {
        !self.keys(api).is_empty()
    }

    pub fn opens_for(&self, api: Api, shown: &Shown) -> bool {
        let own = match (shown, self.own(api)) {
            (Shown::Bearer(token), Some(own)) => own.matches(token).into(),
            _ => false,
        };
        // Both are compared, so the time does not tell which one matched.
        let keys = self.keys(api).opens_for(shown);
        own | keys
    }

    fn keys(&self, api: Api) -> &Keys {
        match api {
            Api::Admin => &self.admins,
            Api::Qless | Api::Relay | Api::Jobq => &self.owner,
        }
    }
}

/// The credentials in force; cheap to clone. All clones see what a reload has replaced.
#[derive(Clone, Debug)]
pub struct Keyring(Arc<watch::Sender<Arc<InForce>>>);

impl Keyring {
    pub fn new(credentials: Credentials) -> Keyring {
        let in_force = Arc::new(InForce::new(credentials));
        Keyring(Arc::new(watch::Sender::new(in_force)))
    }

    pub fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.0.borrow())
    }

    /// Puts these credentials in force instead of the ones before. Sessions hold only while the key that opened them
    /// is in force, so those of a removed key end.
    pub fn replace(&self, credentials: Credentials) {
        self.0.send_replace(Arc::new(InForce::new(credentials)));
    }

    /// Tells of each replacement from now on.
    pub fn replacements(&self) -> watch::Receiver<Arc<InForce>> {
        self.0.subscribe()
    }
}

impl Default for Keyring {
    fn default() -> Keyring {
        Keyring::new(Credentials::default())
    }
}
