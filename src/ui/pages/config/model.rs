//! Options.

use serde::{Deserialize, Serialize};

/// The options in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigView {
    /// In the order of their table.
    pub of_server: Vec<Setting>,
    /// What has been set for single queues.
    pub of_queues: Vec<Setting>,
    /// What else has been set.
    pub others: Vec<Setting>,
    /// What can be set for a queue.
    pub kinds: Vec<String>,
    /// Names of queues to choose from.
    pub queues: Vec<String>,
}

/// An option in force; values are JSON text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    pub option: String,
    pub value: String,
    pub default: Option<String>,
}

impl Setting {
    /// Whether something else than the default is in force.
    pub fn is_changed(&self) -> bool {
        self.default.as_ref() != Some(&self.value)
    }
}
