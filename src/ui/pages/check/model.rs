//! The view model of the consistency check.

use serde::{Deserialize, Serialize};

/// The result of the consistency check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckView {
    /// The start of the check.
    pub when: i64,
    pub kinds: Vec<CheckedKind>,
}

/// Inconsistencies of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedKind {
    pub kind: String,
    pub total: usize,
    /// The first inconsistencies, as sentences.
    pub sentences: Vec<String>,
}
