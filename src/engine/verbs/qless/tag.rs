//! Tag: adds and removes tags of a job.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, RESPONSE_BYTES_MAX, Result};
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::{EACH_MAX, ItemResults};
use crate::memory::{SMALL_MAX, reserve};

/// Tags per job. Each is a row of its own, and to add or delete all of them takes one transaction.
const TAGS_MAX: usize = 2_000;

/// The size of a tag in memory in addition to its text, in bytes.
const TAG_BYTES: usize = 32;

impl Engine {
    /// Adds tags to jobs. Returns each job's tags. Once these are too large for one response, the remaining jobs stay
    /// unchanged and get [`Error::ResponseTooLarge`].
    pub async fn tag(
        &self,
        jobs: Vec<(JobKey, Vec<String>)>,
        now: Option<Time>,
    ) -> ItemResults<Vec<String>> {
        self.change_tags(jobs, now, Change::Add).await
    }

    /// Removes tags from jobs. Returns each job's remaining tags, under the same limit as [`Engine::tag`].
    pub async fn untag(
        &self,
        jobs: Vec<(JobKey, Vec<String>)>,
        now: Option<Time>,
    ) -> ItemResults<Vec<String>> {
        self.change_tags(jobs, now, Change::Remove).await
    }

    async fn change_tags(
        &self,
        jobs: Vec<(JobKey, Vec<String>)>,
        now: Option<Time>,
        change: Change,
    ) -> ItemResults<Vec<String>> {
        let mut left = RESPONSE_BYTES_MAX;
        let (mut results, mut bytes) = (Vec::with_capacity(jobs.len()), 0);
        for some in jobs.chunks(EACH_MAX) {
            let space = ResultSpace::new(left, some.len());
            let done = self.change_some_tags(some.to_vec(), now, change, space.clone());
            let failure = match done.await {
                Err(error) if results.is_empty() => return Err(error),
                Err(error) => Some(error),
                Ok(done) => {
                    let tags = done.iter().flatten().flatten();
                    let more: usize = tags.map(|tag| tag.len() + TAG_BYTES).sum();
                    results.extend(done);
                    bytes += more;
                    left = space.lock().left;
                    match bytes > SMALL_MAX {
                        true => reserve(more).await.err().map(Error::from),
                        false => None,
                    }
                }
            };
            if let Some(error) = failure {
                // The remaining items have the same error.
                results.resize_with(jobs.len(), || Err(error.clone()));
                break;
            }
        }
        Ok(results)
    }

    async fn change_some_tags(
        &self,
        jobs: Vec<(JobKey, Vec<String>)>,
        now: Option<Time>,
        change: Change,
        space: ResultSpace,
    ) -> ItemResults<Vec<String>> {
        let jobs = jobs.into_iter().enumerate().collect();
        let need = |needs: &mut Needs, (_, job): &(usize, _)| need_of_tagged(needs, job);
        self.apply_in_batches(jobs, now, need, move |work, (n, (key, tags))| {
            match change {
                Change::Add => {
                    space.take(*n, work, key, tags)?;
                    tag(work, key, tags)?;
                }
                Change::Remove => {
                    space.take(*n, work, key, &[])?;
                    untag(work, key, tags)?;
                }
            }
            Ok(tags_of(work, key))
        })
        .await
    }
}

/// What happens to tags of jobs.
#[derive(Clone, Copy)]
enum Change {
    Add,
    Remove,
}

/// How many bytes of tags the results of one request may still return. Many items may name the same job, whose tags
/// would be returned as often.
#[derive(Clone)]
struct ResultSpace(Arc<Mutex<Space>>);

struct Space {
    left: usize,
    /// The bytes that each item has taken, because a transaction may be repeated.
    taken: Vec<usize>,
}

impl ResultSpace {
    fn new(left: usize, items: usize) -> ResultSpace {
        let taken = vec![0; items];
        ResultSpace(Arc::new(Mutex::new(Space { left, taken })))
    }

    fn lock(&self) -> MutexGuard<'_, Space> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the space for the tags of the job of item `n` and for `new` ones.
    ///
    /// # Errors
    /// [`Error::ResponseTooLarge`].
    fn take(&self, n: usize, work: &UnitOfWork, key: &JobKey, new: &[String]) -> Result<()> {
        let tags = work.job(key).map(|job| &job.tags).into_iter().flatten();
        self.take_bytes(n, tags.chain(new).map(|tag| tag.len() + TAG_BYTES).sum())
    }

    fn take_bytes(&self, n: usize, bytes: usize) -> Result<()> {
        let mut space = self.lock();
        let Space { left, taken } = &mut *space;
        let Some(taken) = taken.get_mut(n) else {
            return Err(Error::ResponseTooLarge);
        };
        *left += std::mem::take(taken);
        *left = left.checked_sub(bytes).ok_or(Error::ResponseTooLarge)?;
        *taken = bytes;
        Ok(())
    }
}

fn tags_of(work: &UnitOfWork, key: &JobKey) -> Vec<String> {
    let job = work.job(key);
    job.map(|job| job.tags.clone()).unwrap_or_default()
}

pub fn need_of_tagged(needs: &mut Needs, (key, tags): &(JobKey, Vec<String>)) {
    needs.job(key);
    needs.keeps_dependencies = true;
    needs.tags(tags);
}

/// Appends tags to a job's.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::DamagedTags`], [`Error::TooMany`].
pub fn tag(work: &mut UnitOfWork, key: &JobKey, tags: &[String]) -> Result<()> {
    let new = missing_in_job(readable_tags(work, key)?, tags)?;
    if new.is_empty() {
        return Ok(());
    }
    if let Some(job) = work.job_mut(key) {
        job.tags.extend(new);
    }
    Ok(())
}

/// Removes tags from a job, ignoring those it does not have.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::DamagedTags`].
pub fn untag(work: &mut UnitOfWork, key: &JobKey, tags: &[String]) -> Result<()> {
    let gone: HashSet<&String> = tags.iter().collect();
    if !readable_tags(work, key)?
        .iter()
        .any(|tag| gone.contains(tag))
    {
        return Ok(());
    }
    if let Some(job) = work.job_mut(key) {
        job.tags.retain(|tag| !gone.contains(tag));
    }
    Ok(())
}

/// Replaces the tag `from` of a job with `to`, in its place. Returns whether the job had it.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::DamagedTags`].
pub fn rename(work: &mut UnitOfWork, key: &JobKey, from: &str, to: &str) -> Result<bool> {
    let had = readable_tags(work, key)?;
    let Some(place) = had.iter().position(|tag| tag == from) else {
        return Ok(false);
    };
    let has_both = had.iter().any(|tag| tag == to);
    if from == to {
        return Ok(true);
    }
    if let Some(job) = work.job_mut(key) {
        if has_both {
            job.tags.remove(place);
        } else if let Some(tag) = job.tags.get_mut(place) {
            to.clone_into(tag);
        }
    }
    Ok(true)
}

/// Those of `tags` that a job with the tags `had` does not have.
///
/// # Errors
/// [`Error::TooMany`].
fn missing_in_job(had: &[String], tags: &[String]) -> Result<Vec<String>> {
    let new = missing(had, tags);
    // Jobs of earlier versions may have more.
    if !new.is_empty() && had.len() + new.len() > TAGS_MAX {
        return Err(Error::TooMany {
            what: "tags on one job",
            max: TAGS_MAX,
        });
    }
    Ok(new)
}

/// The tags of a new job, without duplicates.
///
/// # Errors
/// [`Error::TooMany`].
pub fn of_new_job(tags: &[String]) -> Result<Vec<String>> {
    missing_in_job(&[], tags)
}

/// A job's tags after adding some and then removing some.
///
/// # Errors
/// [`Error::TooMany`].
pub fn changed(had: &[String], added: &[String], removed: &[String]) -> Result<Vec<String>> {
    let new = missing_in_job(had, added)?;
    let tags: Vec<String> = had.iter().cloned().chain(new).collect();
    Ok(missing(removed, &tags))
}

/// Those of `texts` that the list does not have, without duplicates.
pub fn missing(list: &[String], texts: &[String]) -> Vec<String> {
    let mut new: HashSet<&String> = texts.iter().collect();
    for text in list {
        new.remove(text);
    }
    let new = texts.iter().filter(|text| new.remove(text));
    new.cloned().collect()
}

/// The tags of a job.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::DamagedTags`].
fn readable_tags<'w>(work: &'w UnitOfWork, key: &JobKey) -> Result<&'w [String]> {
    let id = || key.id.clone();
    let job = work.job(key).ok_or_else(|| Error::NoSuchJob { id: id() })?;
    match job.damaged_tags {
        None => Ok(&job.tags),
        Some(_) => Err(Error::DamagedTags { id: id() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_takes_its_space_once_even_if_its_transaction_is_repeated() {
        let space = ResultSpace::new(10, 2);
        for _ in 0..3 {
            space.take_bytes(0, 6).unwrap();
            space.take_bytes(1, 4).unwrap();
        }
        assert_eq!(space.lock().left, 0);
        space.take_bytes(0, 5).unwrap();
        assert!(matches!(
            space.take_bytes(1, 6),
            Err(Error::ResponseTooLarge)
        ));
        assert_eq!(space.lock().left, 5);
    }
}
