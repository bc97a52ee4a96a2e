//! The view model of the options.

use serde::{Deserialize, Serialize};

/// The options in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigView {
    /// Options of the server, most important first.
    pub of_server: Vec<Setting>,
    /// Options of queues.
    pub of_queues: Vec<Setting>,
    /// The first 200 options that the server does not use.
    pub others: Vec<Setting>,
    /// The number of all of them.
    pub others_total: usize,
    /// The names of the options that a queue can have.
    pub kinds: Vec<String>,
    /// Suggested names of queues.
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
    /// Whether the value differs from the default.
    pub fn is_changed(&self) -> bool {
        self.default.as_ref() != Some(&self.value)
    }
}
