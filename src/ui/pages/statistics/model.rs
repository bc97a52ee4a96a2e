//! The view model of the statistics.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::series::{Compare, Series};

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
    /// The period with which the range is compared, if it was requested and is stored. Its spans can be longer.
    pub before: Option<Series>,
    pub compared: Compare,
    /// Whether that period was requested but is not stored.
    pub is_previous_missing: bool,
    pub zoom: Zoom,
    /// The busiest queues, if the statistics are those of all queues.
    pub by_queue: Vec<QueueActivity>,
    /// The newest events, newest first, and whether there are more.
    pub events: Vec<ChartEvent>,
    pub has_more_events: bool,
}

/// Other ranges: the parameters `from` and `to`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zoom {
    pub earlier: Option<(String, String)>,
    pub later: Option<(String, String)>,
    pub shorter: Option<(String, String)>,
    pub longer: Option<(String, String)>,
}

/// The completed and failed jobs of a queue in each span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueActivity {
    pub queue_ref: QueueRef,
    pub completed: Vec<i64>,
    pub failed: Vec<i64>,
}

/// A user's action that the charts mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChartEvent {
    pub at: i64,
    pub text: String,
    /// Its page; empty if there is none.
    pub link: String,
}
