//! The view model of an lmstfy job.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{JobRow, JobTimes};

/// An lmstfy job with all its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LmstfyJobView {
    pub row: JobRow,
    pub times: JobTimes,
    /// The body.
    pub bytes: Vec<u8>,
    /// The body in base64, as stored.
    pub base64: String,
    /// Whether the body is JSON.
    pub is_json: bool,
    /// The attributes that the publisher set.
    pub attributes: Vec<(String, String)>,
}
