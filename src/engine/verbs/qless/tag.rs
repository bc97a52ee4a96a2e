//! Tag: adds and removes tags of a job.

use std::collections::HashSet;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::Each;

/// Tags per job.
const TAGS_MAX: usize = 10_000;

impl Engine {
    /// Adds tags to jobs. Returns each job's tags.
    pub async fn tag(
        &self,
        jobs: Vec<(JobKey, Vec<String>)>,
        now: Option<Time>,
    ) -> Each<Vec<String>> {
        self.each(jobs, now, need_of_tagged, |work, (key, tags)| {
            tag(work, key, tags)
        })
        .await
    }

    /// Removes tags from jobs. Returns each job's remaining tags.
    pub async fn untag(
        &self,
        jobs: Vec<(JobKey, Vec<String>)>,
        now: Option<Time>,
    ) -> Each<Vec<String>> {
        self.each(jobs, now, need_of_tagged, |work, (key, tags)| {
            untag(work, key, tags)
        })
        .await
    }
}

pub fn need_of_tagged(needs: &mut Needs, (key, tags): &(JobKey, Vec<String>)) {
    needs.job(key);
    needs.keeps_edges = true;
    needs.tags(tags);
}

/// Appends tags to a job's. Returns all of them.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::DamagedTags`], [`Error::TooMany`].
pub fn tag(work: &mut UnitOfWork, key: &JobKey, tags: &[String]) -> Result<Vec<String>> {
    let all = added(&find(work, key)?.tags, tags)?;
    Ok(set(work, key, all))
}

/// Removes tags from a job, ignoring those it does not have. Returns the remaining ones.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::DamagedTags`].
pub fn untag(work: &mut UnitOfWork, key: &JobKey, tags: &[String]) -> Result<Vec<String>> {
    let mut left = find(work, key)?.tags.clone();
    remove(&mut left, tags);
    Ok(set(work, key, left))
}

/// Appends the tags that the list does not have yet.
pub fn add(list: &mut Vec<String>, tags: &[String]) {
    let mut known: HashSet<String> = list.iter().cloned().collect();
    let new = tags.iter().filter(|tag| known.insert((*tag).clone()));
    list.extend(new.cloned());
}

/// A job's tags, followed by the new ones among `tags`.
///
/// # Errors
/// [`Error::TooMany`].
pub fn added(had: &[String], tags: &[String]) -> Result<Vec<String>> {
    let mut all = had.to_vec();
    add(&mut all, tags);
    if all.len() > TAGS_MAX {
        return Err(Error::TooMany {
            what: "tags on one job",
            max: TAGS_MAX,
        });
    }
    Ok(all)
}

pub fn remove(list: &mut Vec<String>, tags: &[String]) {
    let gone: HashSet<&String> = tags.iter().collect();
    list.retain(|tag| !gone.contains(tag));
}

fn find<'w>(work: &'w UnitOfWork, key: &JobKey) -> Result<&'w Job> {
    let id = || key.id.clone();
    let job = work.job(key).ok_or_else(|| Error::NoSuchJob { id: id() })?;
    match job.damaged_tags {
        None => Ok(job),
        Some(_) => Err(Error::DamagedTags { id: id() }),
    }
}

fn set(work: &mut UnitOfWork, key: &JobKey, tags: Vec<String>) -> Vec<String> {
    if let Some(job) = work.job_mut(key) {
        job.set_tags(tags.clone());
    }
    tags
}
