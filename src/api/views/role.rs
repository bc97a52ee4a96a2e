//! What somebody may do in the dashboard.

use serde::{Deserialize, Serialize};

/// Each may do what those before it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees everything but secrets, and changes nothing.
    #[default]
    Viewer,
    /// Does everything with jobs, queues and workers.
    Operator,
    /// Also sets options and tokens, deletes queues, mends the database, and reads the audit.
    Admin,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    /// As it stands on the command line, in the database and on pages.
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

/// How somebody has come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Entrance {
    /// There is no key, so that nobody shows one.
    Open,
    /// Without a key, though there are some.
    Guest,
    /// With a key that comes with every request.
    Key,
    /// By a session, which can be ended.
    Session,
    /// Not at all.
    #[default]
    Outside,
}
