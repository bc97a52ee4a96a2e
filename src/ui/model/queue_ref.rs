//! A reference to a queue of any protocol, for links, forms and server functions.

use serde::{Deserialize, Serialize};

pub use crate::engine::Protocol;

/// A queue's full name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueRef {
    /// Optional: forms of pages from before an upgrade do not contain it.
    #[serde(default, rename = "protocol")]
    pub protocol: Protocol,
    /// Empty if the protocol has no namespaces.
    #[serde(default)]
    pub namespace: String,
    #[serde(rename = "queue")]
    pub name: String,
}

impl QueueRef {
    pub fn qless(name: impl Into<String>) -> QueueRef {
        QueueRef {
            protocol: Protocol::Qless,
            namespace: String::new(),
            name: name.into(),
        }
    }

    pub fn lmstfy(namespace: impl Into<String>, name: impl Into<String>) -> QueueRef {
        QueueRef {
            protocol: Protocol::Lmstfy,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub fn jobq(name: impl Into<String>) -> QueueRef {
        QueueRef {
            protocol: Protocol::Jobq,
            namespace: String::new(),
            name: name.into(),
        }
    }

    pub fn relay(name: impl Into<String>) -> QueueRef {
        QueueRef {
            protocol: Protocol::Relay,
            namespace: String::new(),
            name: name.into(),
        }
    }

    /// The displayed name, without the protocol.
    pub fn label(&self) -> String {
        match self.protocol {
            // Relay queues can have blank names.
            Protocol::Qless | Protocol::Relay | Protocol::Jobq if self.name.trim().is_empty() => {
                format!("“{}”", self.name)
            }
            Protocol::Qless | Protocol::Relay | Protocol::Jobq => self.name.clone(),
            Protocol::Lmstfy => format!("{}/{}", self.namespace, self.name),
        }
    }

    /// The fields of a form.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("protocol", self.protocol.as_str().to_owned()),
            ("namespace", self.namespace.clone()),
            ("queue", self.name.clone()),
        ]
    }
}
