//! The view model of an lmstfy job.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{JobRow, JobTimes};

/// An lmstfy job with all its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LmstfyJobView {
    pub row: JobRow,
    pub times: JobTimes,
    pub bytes: Vec<u8>,
    /// The same bytes in base64, as stored.
    pub base64: String,
    /// Whether the bytes are JSON.
    pub is_json: bool,
    /// The attributes of the publisher.
    pub attributes: Vec<(String, String)>,
}
