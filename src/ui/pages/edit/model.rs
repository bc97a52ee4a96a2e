//! The view model of the form that retries a failed job with changes.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;

/// The fields of the form. All are text, so that the page can explain mistakes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EditedJob {
    pub id: String,
    /// The state that the page has shown, and since when the job was in it.
    pub state: String,
    pub since: String,
    /// JSON; `None` if the payload is too large for the form.
    pub data: Option<String>,
    /// Seconds.
    pub delay: String,
}

/// The form, and the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditView {
    pub form: EditedJob,
    pub row: JobRow,
}

/// A rejected form, and why it was rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedEdit {
    pub typed: EditedJob,
    pub why: String,
}
