//! What the consistency check tells.

use serde::{Deserialize, Serialize};

/// What the consistency check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckView {
    /// When it began to look.
    pub when: i64,
    pub kinds: Vec<CheckedKind>,
}

/// Problems of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedKind {
    pub kind: String,
    pub total: usize,
    /// The first of them, as sentences.
    pub sentences: Vec<String>,
}
