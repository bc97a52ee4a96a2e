//! Which queue is meant. Links, forms and server functions all name a queue by its [`QueueRef`], whatever its protocol.

use serde::{Deserialize, Serialize};

pub use crate::engine::Protocol;

/// A queue's full name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueRef {
    /// Forms from before there was another one do not name it.
    #[serde(default, rename = "protocol")]
    pub protocol: Protocol,
    /// Empty where the protocol has none.
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

    /// What a person calls the queue; its protocol stands beside it.
    pub fn label(&self) -> String {
        match self.protocol {
            // Relay has queues without a name, and others a name of which nothing is seen.
            Protocol::Qless | Protocol::Relay | Protocol::Jobq if self.name.trim().is_empty() => {
                format!("“{}”", self.name)
            }
            Protocol::Qless | Protocol::Relay | Protocol::Jobq => self.name.clone(),
            Protocol::Lmstfy => format!("{}/{}", self.namespace, self.name),
        }
    }

    /// As fields of a form.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("protocol", self.protocol.as_str().to_owned()),
            ("namespace", self.namespace.clone()),
            ("queue", self.name.clone()),
        ]
    }
}
