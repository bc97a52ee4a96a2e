//! Depends: what a job waits for, changed while it waits.

use std::collections::HashSet;

use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey, State};
use crate::engine::unit_of_work::Work;
use crate::engine::verbs::qless::put::{check_edges, unmet};

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

/// Changes what a job waits for. One that then waits for nothing becomes available, at once or when its
/// delay is over.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotDepending`], [`Error::DependencyCycle`], [`Error::TooMany`].
pub fn depend(work: &mut Work, key: &JobKey, change: &Depend) -> Result<()> {
    let job = work
        .job(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })?;
    if job.state != State::Depends {
        return Err(Error::NotDepending {
            id: key.id.clone(),
            state: job.standing(work.now),
        });
    }
    let mut needs = job.dependencies.clone();
    match change {
        Depend::On(ids) => {
            let more = unmet(work, key, ids)?;
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
    free(work, key);
    Ok(())
}

/// Frees the jobs that waited for this one. Whoever waits for nothing more becomes available.
pub fn release_dependents(work: &mut Work, key: &JobKey) {
    for dependent in work.take_dependents(key) {
        free(work, &dependent);
    }
}

/// Makes a job available that has nothing left to wait for; at once, or when its delay is over.
fn free(work: &mut Work, key: &JobKey) {
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
