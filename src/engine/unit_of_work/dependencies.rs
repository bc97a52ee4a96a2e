//! Dependencies between jobs.

use std::collections::HashSet;

use crate::engine::model::dependency_rows;
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Extent, UnitOfWork};
use crate::engine::verbs::qless::tag;
use crate::store::Statement;

/// Dependencies to remove that [`UnitOfWork::changed_dependencies`] does not name.
#[derive(Default)]
pub struct RemovedDependencies {
    /// Jobs of which all dependencies are removed.
    jobs: Vec<(i64,)>,
    /// Jobs of which all dependents are removed.
    dependencies: Vec<(i64,)>,
    /// Dependencies on jobs that are not loaded: job, and scope and ID of the other one.
    on_unloaded_jobs: Vec<(i64, i64, String)>,
}

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
        let loaded = self.jobs.get(key);
        let is_complete = loaded.is_some_and(|it| it.extent == Extent::Whole && !it.omitted.edges);
        let Some(job) = self.job_mut(key) else { return };
        let all: HashSet<&String> = gone.iter().collect();
        job.dependencies.retain(|id| !all.contains(id));
        let (seq, scope) = (job.seq, key.scope);
        let removes_all = is_complete && job.dependencies.is_empty();
        if removes_all {
            self.removed_dependencies.jobs.push((seq,));
        }
        for id in gone.iter().cloned() {
            self.forget_dependent(seq, key, JobKey { scope, id }, removes_all);
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
                self.changed_dependencies.insert((seq, other.job.seq), true);
                // Of a job that was loaded only as a dependency, the search for cycles has read the dependents.
                if other.extent != Extent::Whole {
                    let known = self.dependents.entry(dependency.id).or_default();
                    known.push(key.id.clone());
                }
            }
        }
        if let Some(job) = self.job_mut(key) {
            job.dependencies.extend(new);
        }
    }

    /// Removes the dependencies on this job, and returns those of its former dependents that are loaded, unless they
    /// are released later. Its version stays, because only its list of dependents has changed.
    pub fn take_dependents(&mut self, key: &JobKey) -> Vec<JobKey> {
        let Some(loaded) = self.jobs.get_mut(key) else {
            return Vec::new();
        };
        let seq = loaded.job.seq;
        let ids = std::mem::take(&mut loaded.job.dependents);
        loaded.omitted.dependents = 0;
        let later = self.releases.is_released_later(seq);
        let removes_all = later || (loaded.extent == Extent::Whole && !loaded.omitted.edges);
        if later {
            self.releases.release_later(seq);
        } else if removes_all && !ids.is_empty() {
            self.removed_dependencies.dependencies.push((seq,));
        }
        let scope = key.scope;
        let mut free = Vec::new();
        for id in ids {
            let dependent = JobKey { scope, id };
            let Some(loaded) = self.jobs.get_mut(&dependent) else {
                continue;
            };
            let dependency = (loaded.job.seq, seq);
            let is_checked = loaded.extent == Extent::Checked;
            let was_added = self.remove_dependency(dependency, removes_all);
            // Of a checked job, too little is loaded to write it.
            if is_checked || (later && !was_added) {
                continue;
            }
            if let Some(loaded) = self.jobs.get_mut(&dependent) {
                let counted = &mut loaded.omitted.dependencies;
                *counted = counted.saturating_sub(1);
            }
            if let Some(job) = self.job_mut(&dependent) {
                job.dependencies.retain(|id| *id != key.id);
            }
            free.push(dependent);
        }
        free
    }

    /// Whether the job has dependencies, loaded or counted.
    pub fn has_dependencies(&self, key: &JobKey) -> bool {
        let loaded = self.jobs.get(key);
        loaded.is_some_and(|it| !it.job.dependencies.is_empty() || it.omitted.dependencies > 0)
    }

    /// The statements that write the changed dependencies.
    pub fn dependency_writes(&mut self) -> Vec<Statement> {
        let changed = self.changed_dependencies.drain();
        let (added, cut) = changed.partition::<Vec<_>, _>(|(_, add)| *add);
        let sorted = |changed: Vec<((i64, i64), bool)>| {
            let mut dependencies: Vec<_> = changed.into_iter().map(|(pair, _)| pair).collect();
            dependencies.sort_unstable();
            dependencies
        };
        let (added, cut) = (sorted(added), sorted(cut));
        let mut removed = std::mem::take(&mut self.removed_dependencies);
        let mut later = self.releases.take_completed_later();
        for jobs in [&mut removed.jobs, &mut removed.dependencies, &mut later] {
            jobs.sort_unstable();
            jobs.dedup();
        }
        removed.on_unloaded_jobs.sort_unstable();
        let mut writes = Vec::new();
        if !removed.jobs.is_empty() {
            writes.push(dependency_rows::remove_all_dependencies(&removed.jobs));
        }
        if !removed.dependencies.is_empty() {
            writes.push(dependency_rows::remove_all_dependents(
                &removed.dependencies,
            ));
        }
        if !removed.on_unloaded_jobs.is_empty() {
            writes.push(dependency_rows::remove_dependencies_on(
                &removed.on_unloaded_jobs,
            ));
        }
        if !cut.is_empty() {
            writes.push(dependency_rows::remove_dependencies(&cut));
        }
        // After the statements that remove dependencies: a dependency that this transaction removes must not become a
        // satisfied one. Before the statement that adds dependencies: if the completed job is put again, dependencies
        // on it are new ones.
        if !later.is_empty() {
            writes.push(dependency_rows::satisfy_all_dependents(&later));
            writes.push(dependency_rows::remove_all_dependents(&later));
        }
        if !added.is_empty() {
            writes.push(dependency_rows::add_dependencies(&added));
        }
        writes
    }

    /// Removes a dependency `(job, needs)`. `removes_all` if a statement for all dependencies or dependents of a job
    /// removes it, unless it was added in this transaction. Returns whether it was.
    fn remove_dependency(&mut self, dependency: (i64, i64), removes_all: bool) -> bool {
        let known = match removes_all {
            true => self.changed_dependencies.remove(&dependency),
            false => self.changed_dependencies.insert(dependency, false),
        };
        known == Some(true)
    }

    /// Removes a dependent from the job `need`, which need not be loaded. Its version stays, because only its list of
    /// dependents has changed. `removes_all` if the statement for all dependencies of the dependent removes this one.
    fn forget_dependent(&mut self, seq: i64, key: &JobKey, need: JobKey, removes_all: bool) {
        if let Some(known) = self.dependents.get_mut(&need.id) {
            known.retain(|id| *id != key.id);
        }
        let Some(other) = self.jobs.get_mut(&need) else {
            // Its version does not show that its dependents have changed.
            self.forget_cached(need.clone());
            if !removes_all {
                self.removed_dependencies
                    .on_unloaded_jobs
                    .push((seq, need.scope, need.id));
            }
            return;
        };
        other.job.dependents.retain(|id| *id != key.id);
        let dependency = (seq, other.job.seq);
        self.remove_dependency(dependency, removes_all);
    }
}
