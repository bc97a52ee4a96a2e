//! Pages of lists by key.

use serde::{Deserialize, Serialize};

/// Which page of a list: the texts of the positions after which it begins, or before which it ends. Both are empty for
/// the first page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PagePlace {
    pub after: String,
    pub before: String,
}

impl PagePlace {
    /// The page after this position.
    pub fn after(position: String) -> PagePlace {
        PagePlace {
            after: position,
            ..PagePlace::default()
        }
    }

    /// Whether this is the first page.
    pub fn is_first(&self) -> bool {
        self.after.is_empty() && self.before.is_empty()
    }
}

/// The positions of the neighboring pages, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbors {
    /// `None` on the first page.
    pub previous: Option<String>,
    /// `None` on the last page.
    pub next: Option<String>,
}
