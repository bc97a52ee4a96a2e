//! What helps with a search.

use serde::{Deserialize, Serialize};

/// A search that somebody has saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRow {
    pub name: String,
    pub text: String,
    pub who: String,
}

/// What stands beside the box of the search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchesView {
    pub saved: Vec<SavedRow>,
    /// Searches that the box suggests.
    pub suggested: Vec<String>,
}
