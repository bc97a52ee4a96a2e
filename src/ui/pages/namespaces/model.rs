//! What only lmstfy has: bodies of bytes, dead letters, namespaces and their tokens.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue::QueueRow;
use crate::ui::model::state::Counts;

/// A namespace and what is in it.
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
    /// Whether they stand open to everybody, without a token.
    pub open: bool,
}

/// One namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamespaceView {
    pub name: String,
    pub queues: Vec<QueueRow>,
    pub tokens: Vec<TokenRow>,
    /// Whether it stands open to everybody, without a token.
    pub open: bool,
}

/// What became of a form that makes a token. It goes into the page that answers the form and nowhere else, for
/// the secret is shown once.
#[derive(Clone, Debug, PartialEq)]
pub struct NewToken {
    pub namespace: String,
    pub description: String,
    /// When it expires, as it was typed.
    pub expires: String,
    /// The secret, or why there is none.
    pub made: Result<String, String>,
}

/// A token, as far as it may be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenRow {
    /// By which it is revoked.
    pub name: String,
    pub description: String,
    pub created: i64,
    pub expires: Option<i64>,
    pub expired: bool,
    /// The hour of the last use.
    pub last_used: Option<i64>,
}
