//! Loads the dependency graph around a job.

use std::collections::HashMap;

use crate::engine::{Engine, Job, JobKey, Result};
use crate::ui::pages::job::model::{Graph, Node};

/// Maximum number of jobs in a graph.
const NODES_MAX: usize = 60;

/// The jobs found so far, by ID, in the order of discovery.
struct Found {
    indices: HashMap<String, usize>,
    jobs: Vec<(String, Option<Job>)>,
    is_truncated: bool,
}

impl Found {
    /// Adds the IDs that are new, up to the limit. Returns them.
    fn add_new<'a>(&mut self, ids: impl Iterator<Item = &'a String>) -> Vec<String> {
        let mut new = Vec::new();
        for id in ids {
            if self.indices.contains_key(id) {
                continue;
            }
            if self.jobs.len() >= NODES_MAX {
                self.is_truncated = true;
                break;
            }
            self.indices.insert(id.clone(), self.jobs.len());
            self.jobs.push((id.clone(), None));
            new.push(id.clone());
        }
        new
    }

    fn set_job(&mut self, job: Job) {
        let index = self.indices.get(&job.key.id);
        if let Some((_, slot)) = index.and_then(|index| self.jobs.get_mut(*index)) {
            *slot = Some(job);
        }
    }
}

/// The transitive dependencies and dependents of `job`.
pub async fn graph(engine: &Engine, job: &Job) -> Result<Graph> {
    if job.dependencies.is_empty() && job.dependents.is_empty() {
        return Ok(Graph::default());
    }
    let mut found = Found {
        indices: HashMap::from([(job.key.id.clone(), 0)]),
        jobs: vec![(job.key.id.clone(), Some(job.clone()))],
        is_truncated: false,
    };
    let ways: [fn(&Job) -> &[String]; 2] = [|job| &job.dependencies, |job| &job.dependents];
    for way in ways {
        let mut next = found.add_new(way(job).iter());
        while !next.is_empty() {
            let keys: Vec<JobKey> = next.iter().map(JobKey::qless).collect();
            let jobs: Vec<Job> = engine
                .short_jobs_by_key(&keys)
                .await?
                .into_iter()
                .flatten()
                .collect();
            next = found.add_new(jobs.iter().flat_map(|job| way(job).iter()));
            jobs.into_iter().for_each(|job| found.set_job(job));
        }
    }
    Ok(to_graph(engine, found))
}

fn to_graph(engine: &Engine, found: Found) -> Graph {
    let now = engine.now(None);
    let Found {
        indices,
        jobs,
        is_truncated,
    } = found;
    let dependencies: Vec<Vec<usize>> = jobs
        .iter()
        .map(|(_, job)| {
            let ids = job.iter().flat_map(|job| job.dependencies.iter());
            ids.filter_map(|id| indices.get(id).copied()).collect()
        })
        .collect();
    let layers = layers(&dependencies);
    let nodes = jobs.into_iter().zip(dependencies).zip(layers);
    let nodes = nodes.map(|(((id, job), dependencies), layer)| Node {
        id,
        state: job.as_ref().map(|job| job.listed_state(now)),
        klass: job.and_then(|job| job.klass),
        layer,
        dependencies,
    });
    Graph {
        nodes: nodes.collect(),
        is_truncated,
    }
}

/// The layer of each job: the length of the longest path to a job without dependencies.
fn layers(dependencies: &[Vec<usize>]) -> Vec<usize> {
    let mut layers = vec![0; dependencies.len()];
    // There are no cycles, so no path is longer than the number of jobs.
    for _ in 0..dependencies.len() {
        let next: Vec<usize> = dependencies
            .iter()
            .map(|dependencies| {
                let before = dependencies.iter().filter_map(|index| layers.get(*index));
                before.max().map_or(0, |layer| layer + 1)
            })
            .collect();
        if next == layers {
            break;
        }
        layers = next;
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_is_after_its_dependencies() {
        // 0 depends on 1 and 2, 1 on 2, and 3 on 0.
        assert_eq!(
            layers(&[vec![1, 2], vec![2], vec![], vec![0]]),
            [2, 1, 0, 3]
        );
        assert_eq!(layers(&[]), [0; 0]);
        assert_eq!(
            layers(&[vec![7]]),
            [0],
            "a dependency outside of the graph is ignored"
        );
    }
}
