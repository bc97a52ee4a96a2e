//! What only lmstfy has: bodies of bytes, dead letters, namespaces and their tokens.

use serde::{Deserialize, Serialize};

use super::{JobRow, Life, Place, QueueRow, Tally};

/// An lmstfy job with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LmstfyJobView {
    pub row: JobRow,
    pub life: Life,
    pub bytes: Vec<u8>,
    /// The same bytes in base64, as they are kept.
    pub base64: String,
    /// Whether the bytes are JSON.
    pub is_json: bool,
    /// What its publisher gave along with the bytes.
    pub attributes: Vec<(String, String)>,
}

/// A queue's dead letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadRow {
    pub place: Place,
    pub size: i64,
    /// The job that has been there longest; `None` if it has gone in the same moment.
    pub head: Option<JobRow>,
}

/// A page of the dead letters that are not empty, fullest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadView {
    pub rows: Vec<DeadRow>,
    /// How many there are of those that were asked for.
    pub letters: usize,
    /// The jobs in all of them.
    pub jobs: i64,
    /// Namespaces with a dead letter that is not empty.
    pub namespaces: Vec<String>,
}

/// A namespace and what is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamespaceRow {
    pub name: String,
    pub queues: usize,
    pub tally: Tally,
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
