//! Depend: changes a job's dependencies.

use std::collections::HashSet;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey, State};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::qless::tag;

/// A change of a job's dependencies.
#[derive(Clone, Debug)]
pub enum Depend {
    /// Adds these; IDs of complete or missing jobs are ignored.
    On(Vec<String>),
    /// Removes these.
    Off(Vec<String>),
    /// Removes all.
    OffAll,
}

impl Engine {
    /// Changes the dependencies of jobs.
    pub async fn depend(&self, jobs: Vec<(JobKey, Depend)>, now: Option<Time>) -> ItemResults<()> {
        let need = |needs: &mut Needs, (key, change): &(JobKey, Depend)| {
            needs.job(key);
            match change {
                Depend::On(ids) => needs.depends(ids),
                Depend::Off(ids) => needs.relations += ids.len(),
                Depend::OffAll => needs.replaces_dependencies = true,
            }
        };
        self.apply_in_batches(jobs, now, need, |work, (key, change)| {
            depend(work, key, change)
        })
        .await
    }
}

/// Changes a job's dependencies. A job without remaining ones becomes available, at once or when its delay is over.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotDepending`], [`Error::DependencyCycle`], [`Error::TooMany`].
pub fn depend(work: &mut UnitOfWork, key: &JobKey, change: &Depend) -> Result<()> {
    let job = work
        .job(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })?;
    if job.state != State::Depends {
        return Err(Error::NotDepending {
            id: key.id.clone(),
            state: job.effective_state(work.now),
            is_due: job.is_due(work.now),
        });
    }
    match change {
        Depend::On(ids) => {
            let new = tag::missing(&job.dependencies, &unmet_dependencies(work, key, ids)?);
            if !new.is_empty() {
                check_dependencies(job.dependencies.len() + new.len())?;
            }
            work.add_dependencies(key, new);
        }
        Depend::Off(ids) => {
            let off: HashSet<&String> = ids.iter().collect();
            let gone = job.dependencies.iter().filter(|id| off.contains(id));
            let gone: Vec<_> = gone.cloned().collect();
            work.remove_dependencies(key, &gone);
        }
        Depend::OffAll => {
            let gone = job.dependencies.clone();
            work.remove_dependencies(key, &gone);
        }
    }
    release_if_ready(work, key);
    Ok(())
}

/// Removes the job from its dependents' dependencies. Those without remaining ones become available.
pub fn release_dependents(work: &mut UnitOfWork, key: &JobKey) {
    for dependent in work.take_dependents(key) {
        release_if_ready(work, &dependent);
    }
}

/// Makes a job without remaining dependencies available, at once or when its delay is over.
pub fn release_if_ready(work: &mut UnitOfWork, key: &JobKey) {
    let now = work.now;
    let waits = |job: &Job| job.state == State::Depends;
    if !work.job(key).is_some_and(waits) || work.has_dependencies(key) {
        return;
    }
    if let Some(job) = work.job_mut(key) {
        job.state = if job.ready_at > now {
            State::Scheduled
        } else {
            State::Waiting
        };
        job.ready_at = job.ready_at.max(now);
    }
}

/// Dependencies of one job. To add all of them takes one transaction.
pub const DEPENDENCIES_MAX: usize = 2_000;

/// Dependents of one job. To release all of them takes one transaction.
pub const DEPENDENTS_MAX: usize = 2_000;

/// Returns those of the IDs whose jobs exist and are not complete.
///
/// # Errors
/// [`Error::DependencyCycle`]; [`Error::TooMany`] dependencies, or too many dependents at one of the jobs.
pub fn unmet_dependencies(work: &UnitOfWork, key: &JobKey, ids: &[String]) -> Result<Vec<String>> {
    if has_too_many(ids) {
        check_dependencies(ids.len())?;
    }
    work.check_cycle(key, ids)?;
    let is_unmet = |id: &String| {
        work.job(&JobKey {
            scope: key.scope,
            id: id.clone(),
        })
        .is_some_and(|job| job.state != State::Complete)
    };
    let mut seen = HashSet::new();
    let unmet = ids
        .iter()
        .filter(|id| is_unmet(id) && seen.insert(id.as_str()));
    let unmet: Vec<String> = unmet.cloned().collect();
    check_dependencies(unmet.len())?;
    for id in &unmet {
        let need = JobKey {
            scope: key.scope,
            id: id.clone(),
        };
        let (dependents, max) = work.count_dependents(&need);
        let depends = || {
            work.job(key)
                .is_some_and(|job| job.dependencies.contains(id))
        };
        // Searches the list only at the limit, which few jobs reach.
        if dependents >= max && !depends() {
            let what = match max {
                DEPENDENTS_MAX => "dependents of one job",
                _ => "other jobs depend on one of these dependencies",
            };
            return Err(Error::TooMany { what, max });
        }
    }
    Ok(unmet)
}

/// Whether the list has more than [`DEPENDENCIES_MAX`] different IDs. Even those of complete and missing jobs must be
/// looked up.
pub fn has_too_many(ids: &[String]) -> bool {
    ids.len() > DEPENDENCIES_MAX && ids.iter().collect::<HashSet<_>>().len() > DEPENDENCIES_MAX
}

/// Fails if a job would have more dependencies than [`DEPENDENCIES_MAX`].
fn check_dependencies(count: usize) -> Result<()> {
    match count {
        0..=DEPENDENCIES_MAX => Ok(()),
        _ => Err(Error::TooMany {
            what: "dependencies of one job",
            max: DEPENDENCIES_MAX,
        }),
    }
}
