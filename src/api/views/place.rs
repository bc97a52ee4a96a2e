//! Which queue is meant. Links, forms and server functions all name a queue by its [`Place`], whatever its protocol.

use serde::{Deserialize, Serialize};

use super::Stand;

/// The API through which a queue is worked on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    #[default]
    Qless,
    Lmstfy,
    Relay,
    Jobq,
}

impl Api {
    pub const ALL: [Api; 4] = [Api::Qless, Api::Lmstfy, Api::Relay, Api::Jobq];

    /// As it stands in addresses and forms, and on the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Api::Qless => "qless",
            Api::Lmstfy => "lmstfy",
            Api::Relay => "relay",
            Api::Jobq => "jobq",
        }
    }

    /// Whether its jobs can be in this state.
    pub fn has(self, stand: Stand) -> bool {
        match self {
            Api::Qless => !matches!(stand, Stand::Dead | Stand::Record),
            Api::Lmstfy | Api::Relay => matches!(
                stand,
                Stand::Waiting | Stand::Scheduled | Stand::Running | Stand::Dead
            ),
            Api::Jobq => stand == Stand::Record,
        }
    }
}

/// A queue's full name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Forms from before there was another one do not name it.
    #[serde(default, rename = "protocol")]
    pub api: Api,
    /// Empty where the protocol has none.
    #[serde(default)]
    pub namespace: String,
    #[serde(rename = "queue")]
    pub name: String,
}

impl Place {
    pub fn qless(name: impl Into<String>) -> Place {
        Place {
            api: Api::Qless,
            namespace: String::new(),
            name: name.into(),
        }
    }

    pub fn lmstfy(namespace: impl Into<String>, name: impl Into<String>) -> Place {
        Place {
            api: Api::Lmstfy,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub fn jobq(name: impl Into<String>) -> Place {
        Place {
            api: Api::Jobq,
            namespace: String::new(),
            name: name.into(),
        }
    }

    pub fn relay(name: impl Into<String>) -> Place {
        Place {
            api: Api::Relay,
            namespace: String::new(),
            name: name.into(),
        }
    }

    /// What a person calls the queue; its protocol stands beside it.
    pub fn label(&self) -> String {
        match self.api {
            // Relay has queues without a name, and others a name of which nothing is seen.
            Api::Qless | Api::Relay | Api::Jobq if self.name.trim().is_empty() => {
                format!("“{}”", self.name)
            }
            Api::Qless | Api::Relay | Api::Jobq => self.name.clone(),
            Api::Lmstfy => format!("{}/{}", self.namespace, self.name),
        }
    }

    /// As fields of a form.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("protocol", self.api.as_str().to_owned()),
            ("namespace", self.namespace.clone()),
            ("queue", self.name.clone()),
        ]
    }
}
