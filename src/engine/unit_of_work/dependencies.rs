//! Dependencies between jobs.

use std::collections::HashSet;

use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::qless::tag;

impl UnitOfWork {
    /// Removes a job and its dependencies in both directions.
    pub fn remove(&mut self, key: &JobKey) {
        self.set_dependencies(key, &[]);
        self.take_dependents(key);
        let Some(loaded) = self.jobs.remove(key) else {
            return;
        };
        if let Some(version) = loaded.version {
            self.removed
                .push((loaded.before.map_or(loaded.job, |before| *before), version));
        }
    }

    /// Replaces the dependencies of a job. Those in `all` must be loaded.
    pub fn set_dependencies(&mut self, key: &JobKey, all: &[String]) {
        let Some(job) = self.job(key) else { return };
        let gone = tag::missing(all, &job.dependencies);
        let new = tag::missing(&job.dependencies, all);
        self.remove_dependencies(key, &gone);
        self.add_dependencies(key, new);
    }

    /// Removes dependencies that the job has.
    pub fn remove_dependencies(&mut self, key: &JobKey, gone: &[String]) {
        if gone.is_empty() {
            return;
        }
        let Some(job) = self.job_mut(key) else { return };
        let all: HashSet<&String> = gone.iter().collect();
        job.dependencies.retain(|id| !all.contains(id));
        let (seq, scope) = (job.seq, key.scope);
        for id in gone.iter().cloned() {
            self.forget_dependent(seq, key, &JobKey { scope, id });
        }
    }

    /// Adds dependencies that the job does not have, and which must be loaded.
    pub fn add_dependencies(&mut self, key: &JobKey, new: Vec<String>) {
        if new.is_empty() {
            return;
        }
        let Some(seq) = self.job(key).map(|job| job.seq) else {
            return;
        };
        for id in &new {
            let dependency = JobKey {
                scope: key.scope,
                id: id.clone(),
            };
            // With several servers the other job's version is written too: it detects a concurrent completion that has
            // not seen this dependency.
            if let Some(other) = self.jobs.get_mut(&dependency) {
                other.has_new_dependent = true;
                other.job.dependents.push(key.id.clone());
                self.edges.insert((seq, other.job.seq), true);
                // A job that was loaded only as a dependency has no dependents; the walk over dependencies has read them.
                if other.is_partial {
                    let known = self.dependents.entry(dependency.id).or_default();
                    known.push(key.id.clone());
                }
            }
        }
        if let Some(job) = self.job_mut(key) {
            job.dependencies.extend(new);
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
