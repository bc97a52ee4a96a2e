//! What a user may do in the dashboard, and how a request was authenticated.

use serde::{Deserialize, Serialize};

/// A role of the dashboard. Each role includes the ones before it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads jobs, queues, workers, failures, statistics and options.
    #[default]
    Viewer,
    /// Also changes jobs, queues and workers.
    Operator,
    /// Also sets options, manages tokens and alert rules, deletes queues, completes jobs by hand, checks and repairs
    /// the database, and reads the audit log.
    Admin,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    /// The name on the command line, in the database and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// How a request to the dashboard was authenticated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// No keys are configured, so every request is accepted.
    Open,
    /// Without credentials, although keys are configured (`--ui-open-as`).
    Guest,
    /// With a key in the `Authorization` header.
    Key,
    /// With the cookie of a session.
    Session,
    /// Not authenticated.
    #[default]
    Unauthenticated,
}

impl AuthMethod {
    /// Whether the client has presented credentials.
    pub fn has_credentials(self) -> bool {
        matches!(self, AuthMethod::Key | AuthMethod::Session)
    }
}
