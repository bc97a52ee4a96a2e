//! The view model of a qless job.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{JobRow, Life};
use crate::ui::model::state::EffectiveState;

/// A qless job with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    pub row: JobRow,
    pub life: Life,
    /// The payload as it was written.
    pub body: String,
    pub dependencies: Relatives,
    pub dependents: Relatives,
    pub graph: Graph,
    pub tracked: bool,
    /// The recurring job that made it.
    pub origin: Option<Origin>,
}

/// The recurring job that made a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    pub id: String,
    /// Whether it goes on.
    pub lives: bool,
}

/// Jobs that a job waits for, or that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Relatives {
    pub total: usize,
    /// The first of them.
    pub jobs: Vec<Relative>,
}

/// A job beside another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relative {
    pub id: String,
    /// `None` if the job has gone in the same moment.
    pub job: Option<JobRow>,
}

/// The jobs that wait for each other around one job, which is the first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// There are more than are shown.
    pub is_cut: bool,
}

/// A job among those that wait for each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub id: String,
    pub klass: Option<String>,
    /// `None` if it is not there.
    pub stand: Option<EffectiveState>,
    /// A job stands right of all that it waits for.
    pub layer: usize,
    /// The jobs that it waits for, as places in the list of nodes.
    pub needs: Vec<usize>,
}
