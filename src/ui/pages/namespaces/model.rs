//! The view models of the namespaces and their tokens.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue::QueueRow;
use crate::ui::model::state::Counts;

/// A namespace in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamespaceRow {
    pub name: String,
    pub queues: usize,
    pub counts: Counts,
    pub tokens: usize,
}

/// All namespaces that have a queue or a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamespacesView {
    pub rows: Vec<NamespaceRow>,
    /// Whether requests need no token (`--no-auth`).
    pub open: bool,
}

/// One namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamespaceView {
    pub name: String,
    pub queues: Vec<QueueRow>,
    pub tokens: Vec<TokenRow>,
    /// Whether requests need no token (`--no-auth`).
    pub open: bool,
}

/// The result of the form for a new token. Only the response to the form contains it, because the secret is shown once.
#[derive(Clone, Debug, PartialEq)]
pub struct NewToken {
    pub namespace: String,
    pub description: String,
    /// The expiry as typed.
    pub expires: String,
    /// The secret of the new token, or the reason why it was not created.
    pub made: Result<String, String>,
}

/// A token without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenRow {
    /// The token ID, used to revoke it.
    pub name: String,
    pub description: String,
    pub created: i64,
    pub expires: Option<i64>,
    pub expired: bool,
    /// The hour of the last use.
    pub last_used: Option<i64>,
}
