//! The view model of a qless job.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::{JobRow, JobTimes};
use crate::ui::model::state::EffectiveState;

/// A qless job with all its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    pub row: JobRow,
    pub times: JobTimes,
    /// The beginning of the payload as it was put, up to 200,000 bytes.
    pub body: String,
    /// The size of the payload.
    pub bytes: usize,
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

impl Graph {
    /// The IDs of the failed jobs on which the first job depends, directly or through other jobs of the graph.
    pub fn failed_dependencies(&self) -> Vec<&str> {
        let mut failed = Vec::new();
        let mut seen = vec![false; self.nodes.len()];
        let mut next = vec![0];
        while let Some(index) = next.pop() {
            let (Some(node), Some(seen)) = (self.nodes.get(index), seen.get_mut(index)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            if index > 0 && node.state == Some(EffectiveState::Failed) {
                failed.push(node.id.as_str());
            }
            next.extend(node.dependencies.iter().rev());
        }
        failed
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, state: EffectiveState, dependencies: &[usize]) -> Node {
        Node {
            id: id.to_owned(),
            klass: None,
            state: Some(state),
            layer: 0,
            dependencies: dependencies.to_vec(),
        }
    }

    #[test]
    fn failed_dependencies_are_found_through_other_jobs() {
        use EffectiveState::{Depends, Failed, Waiting};
        let nodes = vec![
            node("last", Depends, &[1, 2, 3]),
            node("direct", Failed, &[]),
            node("between", Depends, &[4, 1]),
            node("fine", Waiting, &[]),
            node("deep", Failed, &[]),
            // Depends on the job, not the other way round.
            node("dependent", Failed, &[0]),
        ];
        let graph = Graph {
            nodes,
            is_truncated: false,
        };
        assert_eq!(graph.failed_dependencies(), ["direct", "deep"]);
        assert!(Graph::default().failed_dependencies().is_empty());
    }
}
