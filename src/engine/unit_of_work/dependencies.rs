//! Dependencies between jobs.

use std::collections::HashSet;

use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::UnitOfWork;

impl UnitOfWork {
    /// Removes a job and its dependencies in both directions.
    pub fn remove(&mut self, key: &JobKey) {
        self.set_dependencies(key, Vec::new());
        self.take_dependents(key);
        let Some(loaded) = self.jobs.remove(key) else {
            return;
        };
        if let Some(version) = loaded.version {
            self.removed
                .push((loaded.before.unwrap_or(loaded.job), version));
        }
    }

    /// Replaces the dependencies of a job. The jobs in `needs` must be loaded.
    pub fn set_dependencies(&mut self, key: &JobKey, needs: Vec<String>) {
        let Some(job) = self.job(key) else { return };
        if job.dependencies.is_empty() && needs.is_empty() {
            return;
        }
        let (seq, scope) = (job.seq, key.scope);
        let missing_in = |list: &[String], other: &[String]| -> Vec<String> {
            let list: HashSet<&String> = list.iter().collect();
            other
                .iter()
                .filter(|id| !list.contains(id))
                .cloned()
                .collect()
        };
        let gone = missing_in(&needs, &job.dependencies);
        let new = missing_in(&job.dependencies, &needs);
        for id in gone {
            self.forget_dependent(seq, key, &JobKey { scope, id });
        }
        for id in new {
            let need = JobKey { scope, id };
            // With several servers the other job's version is written too: it detects a concurrent completion that has
            // not seen this dependency.
            if let Some(loaded) = self.jobs.get_mut(&need) {
                loaded.has_new_dependent = true;
                loaded.job.dependents.push(key.id.clone());
                self.edges.insert((seq, loaded.job.seq), true);
                // A job that was loaded only as a dependency has no dependents; the walk over dependencies has read
                // them.
                if loaded.is_partial {
                    let known = self.dependents.entry(need.id).or_default();
                    known.push(key.id.clone());
                }
            }
        }
        if let Some(job) = self.job_mut(key) {
            job.dependencies = needs;
        }
    }

    /// Removes the dependencies on this job, and returns its former dependents. Its version stays, because only its
    /// list of dependents has changed.
    pub fn take_dependents(&mut self, key: &JobKey) -> Vec<JobKey> {
        let Some(loaded) = self.jobs.get_mut(key) else {
            return Vec::new();
        };
        let seq = loaded.job.seq;
        let ids = std::mem::take(&mut loaded.job.dependents).into_iter();
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

    /// Removes a dependent from the job `need`, whose version stays, because only its list of dependents has changed.
    fn forget_dependent(&mut self, seq: i64, key: &JobKey, need: &JobKey) {
        if let Some(other) = self.jobs.get_mut(need) {
            other.job.dependents.retain(|id| *id != key.id);
            if let Some(known) = self.dependents.get_mut(&need.id) {
                known.retain(|id| *id != key.id);
            }
            self.edges.insert((seq, other.job.seq), false);
        }
    }
}
