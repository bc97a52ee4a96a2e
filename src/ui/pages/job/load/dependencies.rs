//! Loads the dependency graph around a job.

use std::collections::HashMap;

use crate::engine::{Engine, Job, JobKey, Result};
use crate::ui::pages::job::model::{Graph, Node};

/// Maximum number of jobs in a graph.
const NODES_MAX: usize = 60;

/// The jobs found so far, by ID, in the order of discovery.
struct Gathered {
    places: HashMap<String, usize>,
    jobs: Vec<(String, Option<Job>)>,
    is_cut: bool,
}

impl Gathered {
    /// Adds the IDs that are new, up to the limit. Returns them.
    fn note<'a>(&mut self, ids: impl Iterator<Item = &'a String>) -> Vec<String> {
        let mut new = Vec::new();
        for id in ids {
            if self.places.contains_key(id) {
                continue;
            }
            if self.jobs.len() >= NODES_MAX {
                self.is_cut = true;
                break;
            }
            self.places.insert(id.clone(), self.jobs.len());
            self.jobs.push((id.clone(), None));
            new.push(id.clone());
        }
        new
    }

    fn found(&mut self, job: Job) {
        let index = self.places.get(&job.key.id);
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
    let mut gathered = Gathered {
        places: HashMap::from([(job.key.id.clone(), 0)]),
        jobs: vec![(job.key.id.clone(), Some(job.clone()))],
        is_cut: false,
    };
    let ways: [fn(&Job) -> &[String]; 2] = [|job| &job.dependencies, |job| &job.dependents];
    for way in ways {
        let mut next = gathered.note(way(job).iter());
        while !next.is_empty() {
            let keys: Vec<JobKey> = next.iter().map(JobKey::qless).collect();
            let jobs: Vec<Job> = engine
                .list_jobs_by_key(&keys)
                .await?
                .into_iter()
                .flatten()
                .collect();
            next = gathered.note(jobs.iter().flat_map(|job| way(job).iter()));
            jobs.into_iter().for_each(|job| gathered.found(job));
        }
    }
    Ok(drawn(engine, gathered))
}

fn drawn(engine: &Engine, gathered: Gathered) -> Graph {
    let now = engine.now(None);
    let Gathered {
        places,
        jobs,
        is_cut,
    } = gathered;
    let needs: Vec<Vec<usize>> = jobs
        .iter()
        .map(|(_, job)| {
            let ids = job.iter().flat_map(|job| job.dependencies.iter());
            ids.filter_map(|id| places.get(id).copied()).collect()
        })
        .collect();
    let layers = layers(&needs);
    let nodes = jobs.into_iter().zip(needs).zip(layers);
    let nodes = nodes.map(|(((id, job), needs), layer)| Node {
        id,
        state: job.as_ref().map(|job| job.effective_state(now)),
        klass: job.and_then(|job| job.klass),
        layer,
        needs,
    });
    Graph {
        nodes: nodes.collect(),
        is_cut,
    }
}

/// The layer of each job: the length of the longest path to a job without dependencies.
fn layers(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut layers = vec![0; needs.len()];
    // There are no cycles, so no path is longer than the number of jobs.
    for _ in 0..needs.len() {
        let next: Vec<usize> = needs
            .iter()
            .map(|needs| {
                let before = needs.iter().filter_map(|need| layers.get(*need));
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
        assert_eq!(layers(&[vec![7]]), [0], "what is not shown has no place");
    }
}
