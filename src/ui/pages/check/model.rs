//! The view model of the consistency check.

use crate::ui::error::PageError;

/// The outcome of the check that this request has run.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckOutcome(pub Result<CheckView, PageError>);

/// The result of the consistency check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckView {
    /// The start of the check.
    pub when: i64,
    pub kinds: Vec<CheckedKind>,
}

/// Inconsistencies of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedKind {
    pub kind: String,
    pub total: usize,
    /// The first inconsistencies, as sentences.
    pub sentences: Vec<String>,
}

impl CheckView {
    /// The number of inconsistencies.
    pub fn total(&self) -> usize {
        self.kinds.iter().map(|kind| kind.total).sum()
    }
}
