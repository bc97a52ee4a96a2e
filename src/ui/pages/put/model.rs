//! A job to be put, as somebody types it.

use serde::{Deserialize, Serialize};

/// What somebody has typed of a new job of qless. All is text, so that a slip of the hand is answered in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewJob {
    pub queue: String,
    pub id: String,
    pub klass: String,
    /// JSON.
    pub data: String,
    pub priority: String,
    pub retries: String,
    /// Seconds.
    pub delay: String,
    /// With commas or line breaks between them.
    pub tags: String,
    /// Ids of jobs to wait for, with blanks or line breaks between them.
    pub depends: String,
}

/// The form for a new job, filled in, and the names of queues to choose from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewJobView {
    pub form: NewJob,
    pub queues: Vec<String>,
}

/// A job that was not put: what was typed, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct NotPut {
    pub typed: NewJob,
    pub why: String,
}
