//! The credentials in force. A reload replaces all of them at once.

use std::sync::Arc;

use subtle::Choice;
use tokio::sync::watch;

use super::keys::{Admin, Keys, PresentedCredentials, UiKey};
use super::role::Role;
use crate::secret::Hash;

/// Values of one secret that are accepted at the same time, for rotation.
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
    fn matches(&self, presented: &Hash) -> Choice {
        let all = self.0.iter().map(|secret| secret.matches(presented));
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
    /// Keys of dashboard users.
    pub ui: Vec<UiKey>,
    pub qless: Secrets,
    pub relay: Secrets,
    pub jobq: Secrets,
}

/// The APIs with credentials of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `/token` and `/metrics`.
    Admin,
    Qless,
    Relay,
    Jobq,
}

/// Credentials, arranged by API.
#[derive(Debug, Default)]
pub struct ActiveCredentials {
    /// Valid for the dashboard.
    pub ui: Keys,
    /// Valid for `/token` and `/metrics`: the admin's credentials, and dashboard keys with the role admin.
    admin_api: Keys,
    /// Valid for qless, Relay and Jobq: the admin's credentials.
    job_apis: Keys,
    credentials: Credentials,
}

impl ActiveCredentials {
    fn new(credentials: Credentials) -> ActiveCredentials {
        let of_admin = Keys::of_admin(&credentials.admin);
        let with_role_admin = credentials
            .ui
            .iter()
            .filter(|key| key.identity.role == Role::Admin);
        ActiveCredentials {
            ui: of_admin.clone().with(&credentials.ui),
            admin_api: of_admin.clone().with(with_role_admin),
            job_apis: of_admin,
            credentials,
        }
    }

    /// The token of the API; the admin API has none.
    pub fn token_of(&self, api: Api) -> Option<&Secrets> {
        match api {
            Api::Admin => None,
            Api::Qless => Some(&self.credentials.qless),
            Api::Relay => Some(&self.credentials.relay),
            Api::Jobq => Some(&self.credentials.jobq),
        }
    }

    /// Whether the API has a token of its own.
    pub fn has_token(&self, api: Api) -> bool {
        self.token_of(api)
            .is_some_and(|secrets| !secrets.is_empty())
    }

    /// Whether the API accepts passwords.
    pub fn has_passwords(&self, api: Api) -> bool {
        !self.keys(api).is_empty()
    }

    /// Whether the credentials are valid for the API.
    pub fn accept(&self, api: Api, presented: &PresentedCredentials) -> bool {
        let token = match (presented, self.token_of(api)) {
            (PresentedCredentials::Bearer(token), Some(secrets)) => secrets.matches(token).into(),
            _ => false,
        };
        // Compares with both, so that the response time does not reveal which one matched.
        let keys = self.keys(api).accept(presented);
        token | keys
    }

    fn keys(&self, api: Api) -> &Keys {
        match api {
            Api::Admin => &self.admin_api,
            Api::Qless | Api::Relay | Api::Jobq => &self.job_apis,
        }
    }
}

/// The credentials in force. Clones are cheap, and all see the same reloads.
#[derive(Clone, Debug)]
pub struct Keyring(Arc<watch::Sender<Arc<ActiveCredentials>>>);

impl Keyring {
    pub fn new(credentials: Credentials) -> Keyring {
        let active = Arc::new(ActiveCredentials::new(credentials));
        Keyring(Arc::new(watch::Sender::new(active)))
    }

    pub fn active(&self) -> Arc<ActiveCredentials> {
        Arc::clone(&self.0.borrow())
    }

    /// Replaces all credentials. Sessions of removed keys end.
    pub fn replace(&self, credentials: Credentials) {
        self.0
            .send_replace(Arc::new(ActiveCredentials::new(credentials)));
    }

    /// Notifies of each replacement from now on.
    pub fn replacements(&self) -> watch::Receiver<Arc<ActiveCredentials>> {
        self.0.subscribe()
    }
}

impl Default for Keyring {
    fn default() -> Keyring {
        Keyring::new(Credentials::default())
    }
}
