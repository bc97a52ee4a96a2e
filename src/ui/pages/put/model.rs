//! The view model of the form for a new job.

use serde::{Deserialize, Serialize};

/// The fields of a new qless job. All are text, so that the page can explain mistakes.
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
    /// Separated by commas or line breaks.
    pub tags: String,
    /// IDs of dependencies, separated by whitespace.
    pub depends: String,
}

/// The form for a new job, and suggestions for the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewJobView {
    pub form: NewJob,
    pub queues: Vec<String>,
    /// Whether the form is a copy of the job that the address names.
    pub is_copy: bool,
    /// Whether the payload of the copied job was left out, because it is too long.
    pub is_without_payload: bool,
}

/// A rejected form, and why it was rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedJob {
    pub typed: NewJob,
    pub why: String,
}
