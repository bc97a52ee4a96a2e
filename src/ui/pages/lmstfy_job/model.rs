//! The view model of an lmstfy job.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{JobRow, Life};

/// An lmstfy job with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LmstfyJobView {
    pub row: JobRow,
    pub life: Life,
    pub bytes: Vec<u8>,
    /// The same bytes in base64, as they are kept.
    pub base64: String,
    /// Whether the bytes are JSON.
    pub is_json: bool,
    /// What its publisher gave along with the bytes.
    pub attributes: Vec<(String, String)>,
}
