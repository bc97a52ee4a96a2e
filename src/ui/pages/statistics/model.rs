//! The view model of the statistics.

use serde::{Deserialize, Serialize};

use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::series::Series;

/// The statistics of a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeView {
    /// `None` for all together.
    pub queue_ref: Option<QueueRef>,
    /// Queues to choose from.
    pub places: Vec<QueueRef>,
    /// What is wrong with the range that was asked for; another one is shown.
    pub flaw: Option<String>,
    /// The range, and whether it goes on.
    pub from: i64,
    pub to: i64,
    pub goes_on: bool,
    pub series: Series,
    /// The same time before that, if it was asked for and is known.
    pub before: Option<Series>,
    /// Why the time before is not shown though it was asked for.
    pub unknown: bool,
}
