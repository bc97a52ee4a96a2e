//! The view model of a qless job.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{JobRow, JobTimes};
use crate::ui::model::state::EffectiveState;

/// A qless job with all its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    pub row: JobRow,
    pub times: JobTimes,
    /// The payload as it was put.
    pub body: String,
    pub dependencies: RelatedJobs,
    pub dependents: RelatedJobs,
    pub graph: Graph,
    pub tracked: bool,
    /// The recurring job that created it.
    pub origin: Option<Origin>,
}

/// The recurring job that created a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    pub id: String,
    /// Whether it still exists.
    pub exists: bool,
}

/// The dependencies or the dependents of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelatedJobs {
    pub total: usize,
    /// The first of them.
    pub jobs: Vec<RelatedJob>,
}

/// A dependency or a dependent of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelatedJob {
    pub id: String,
    /// `None` if the job no longer exists.
    pub job: Option<JobRow>,
}

/// The dependency graph around one job, which is the first node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// Whether jobs are missing because of the limit.
    pub is_truncated: bool,
}

/// A job in the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub id: String,
    pub klass: Option<String>,
    /// `None` if the job does not exist.
    pub state: Option<EffectiveState>,
    /// The layer, which is higher than that of all dependencies.
    pub layer: usize,
    /// The dependencies, as indices into the list of nodes.
    pub dependencies: Vec<usize>,
}
