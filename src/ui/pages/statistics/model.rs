//! The view model of the statistics.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::series::Series;

/// The statistics of a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeView {
    /// `None` for all queues together.
    pub queue_ref: Option<QueueRef>,
    /// The queues in the selection.
    pub queues: Vec<QueueRef>,
    /// The error of the requested range. The default range is shown instead.
    pub range_error: Option<String>,
    /// The range, and whether its last period is in progress.
    pub from: i64,
    pub to: i64,
    pub is_in_progress: bool,
    pub series: Series,
    /// The previous period, if it was requested and is stored.
    pub before: Option<Series>,
    /// Whether the previous period was requested but is not stored.
    pub is_previous_missing: bool,
}
