//! Who waits for whom.

use std::collections::HashSet;

use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::UnitOfWork;

impl UnitOfWork {
    /// Removes a job and its edges.
    pub fn remove(&mut self, key: &JobKey) {
        self.set_dependencies(key, Vec::new());
        self.take_dependents(key);
        let Some(slot) = self.slots.remove(key) else {
            return;
        };
        if let Some(version) = slot.version {
            self.removed
                .push((slot.before.unwrap_or(slot.job), version));
        }
    }

    /// Lets the job wait for just these others, which are all under work.
    pub fn set_dependencies(&mut self, key: &JobKey, needs: Vec<String>) {
        let Some(job) = self.job(key) else { return };
        if job.dependencies.is_empty() && needs.is_empty() {
            return;
        }
        let (seq, scope) = (job.seq, key.scope);
        let kept: HashSet<&str> = needs.iter().map(String::as_str).collect();
        let had: HashSet<String> = job.dependencies.iter().cloned().collect();
        let gone = job.dependencies.iter();
        let gone = gone.filter(|id| !kept.contains(id.as_str())).cloned();
        for id in gone.collect::<Vec<_>>() {
            self.forget_dependent(seq, key, &JobKey { scope, id });
        }
        for id in &needs {
            let need = JobKey {
                scope,
                id: id.clone(),
            };
            // Its own list is shorter than that of a job for which thousands wait.
            if had.contains(id) {
                continue;
            }
            // The other end is written too: its version guards against a completion elsewhere that has
            // not seen this edge.
            if let Some(other) = self.job_mut(&need) {
                other.dependents.push(key.id.clone());
                let edge = (seq, other.seq);
                self.edges.insert(edge, true);
            }
        }
        if let Some(job) = self.job_mut(key) {
            job.dependencies = needs;
        }
    }

    /// Takes away the edges to all that wait for the job, and returns these. The job keeps its version: only its list of
    /// dependents is shorter.
    pub fn take_dependents(&mut self, key: &JobKey) -> Vec<JobKey> {
        let Some(slot) = self.slots.get_mut(key) else {
            return Vec::new();
        };
        let seq = slot.job.seq;
        let ids = std::mem::take(&mut slot.job.dependents).into_iter();
        let scope = key.scope;
        let dependents: Vec<_> = ids.map(|id| JobKey { scope, id }).collect();
        for dependent in &dependents {
            if let Some(job) = self.job_mut(dependent) {
                job.dependencies.retain(|id| *id != key.id);
                let edge = (job.seq, seq);
                self.edges.insert(edge, false);
            }
        }
        dependents
    }

    /// Takes one edge away from the end that others wait for. It keeps its version: only its list is shorter.
    fn forget_dependent(&mut self, seq: i64, key: &JobKey, need: &JobKey) {
        if let Some(other) = self.slots.get_mut(need) {
            other.job.dependents.retain(|id| *id != key.id);
            if let Some(known) = self.dependents.get_mut(&need.id) {
                known.retain(|id| *id != key.id);
            }
            self.edges.insert((seq, other.job.seq), false);
        }
    }
}
