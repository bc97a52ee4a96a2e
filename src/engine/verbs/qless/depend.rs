//! Depend: changes which jobs a job waits for.

use std::collections::HashSet;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey, State};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::Each;

/// How the dependencies of a job are to change.
#[derive(Clone, Debug)]
pub enum Depend {
    /// It waits for these too; ids that are complete or not there are passed over.
    On(Vec<String>),
    /// It waits for these no longer.
    Off(Vec<String>),
    /// It waits for none any longer.
    OffAll,
}

impl Engine {
    /// Changes what jobs wait for.
    pub async fn depend(&self, jobs: Vec<(JobKey, Depend)>, now: Option<Time>) -> Each<()> {
        let need = |needs: &mut Needs, (key, change): &(JobKey, Depend)| {
            needs.job(key);
            match change {
                Depend::On(ids) => needs.depends(ids),
                Depend::Off(ids) => needs.links += ids.len(),
                Depend::OffAll => {}
            }
        };
        self.each(jobs, now, need, |work, (key, change)| {
            depend(work, key, change)
        })
        .await
    }
}

/// Changes what a job waits for. One that then waits for nothing becomes available, at once or when its
/// delay is over.
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
        });
    }
    let mut needs = job.dependencies.clone();
    match change {
        Depend::On(ids) => {
            let more = unmet_dependencies(work, key, ids)?;
            let old: HashSet<&str> = job.dependencies.iter().map(String::as_str).collect();
            needs.extend(more.into_iter().filter(|id| !old.contains(id.as_str())));
            check_edges(needs.len(), "dependencies of one job")?;
        }
        Depend::Off(ids) => {
            let off: HashSet<&str> = ids.iter().map(String::as_str).collect();
            needs.retain(|id| !off.contains(id.as_str()));
        }
        Depend::OffAll => needs.clear(),
    }
    work.set_dependencies(key, needs);
    release_if_ready(work, key);
    Ok(())
}

/// Frees the jobs that waited for this one. Whoever waits for nothing more becomes available.
pub fn release_dependents(work: &mut UnitOfWork, key: &JobKey) {
    for dependent in work.take_dependents(key) {
        release_if_ready(work, &dependent);
    }
}

/// Makes a job available that has nothing left to wait for; at once, or when its delay is over.
fn release_if_ready(work: &mut UnitOfWork, key: &JobKey) {
    let now = work.now;
    let is_free = |job: &Job| job.state == State::Depends && job.dependencies.is_empty();
    if !work.job(key).is_some_and(is_free) {
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

/// Jobs that one job may wait for, and that may wait for one. What changes all of them shares a transaction.
const EDGES_MAX: usize = 10_000;

/// Of the jobs that `key` is to wait for, those that are there and not complete.
///
/// # Errors
/// [`Error::DependencyCycle`]; [`Error::TooMany`] of them, or one that has too many dependents already.
pub fn unmet_dependencies(work: &UnitOfWork, key: &JobKey, ids: &[String]) -> Result<Vec<String>> {
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
    check_edges(unmet.len(), "dependencies of one job")?;
    for id in &unmet {
        let need = JobKey {
            scope: key.scope,
            id: id.clone(),
        };
        let dependents = work.job(&need).map(|job| job.dependents.as_slice());
        let dependents = dependents.unwrap_or_default();
        // Most have far fewer, and need no search for one that is there already.
        if dependents.len() >= EDGES_MAX && !dependents.contains(&key.id) {
            check_edges(dependents.len() + 1, "dependents of one job")?;
        }
    }
    Ok(unmet)
}

/// Refuses more edges at a job than [`EDGES_MAX`].
pub fn check_edges(edges: usize, what: &'static str) -> Result<()> {
    if edges > EDGES_MAX {
        return Err(Error::TooMany {
            what,
            max: EDGES_MAX,
        });
    }
    Ok(())
}
