//! Tag: adds and removes tags of a job.
//!
//! Each item returns all tags of its job, so a small request can have large results. Memory for those over 64 KiB is
//! reserved before the transaction that makes them: an item without space is left to the next transaction.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::clock::Time;
use crate::engine::error::{Error, RESPONSE_BYTES_MAX, Result};
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::batches::next_needs;
use crate::engine::verbs::{EACH_MAX, ItemResults};
use crate::engine::{BYTES_PER_WEIGHT, Engine};
use crate::memory::{SMALL_MAX, reserve};
use crate::store::WEIGHT_MAX;

/// Tags per job. Each is a row of its own, and to add or delete all of them takes one transaction.
const TAGS_MAX: usize = 2_000;

/// The size of a tag in memory in addition to its text, in bytes.
const TAG_BYTES: usize = 32;

/// Bytes of results for which a request reserves memory at once, unless a single result has more.
const RESERVED_AT_ONCE: usize = 1 << 20;

/// Bytes of results of all requests in a transaction, unless a single result has more.
const RETURNED_MAX: usize = 4 << 20;

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
        let all = jobs.len();
        let changes = TagChanges {
            space: ResultSpace::new(all),
            jobs: Arc::new(jobs),
            change,
        };
        let (mut results, mut max) = (Vec::with_capacity(all), EACH_MAX);
        while results.len() < all {
            let some = self.change_some_tags(&changes, results.len(), &mut max, now);
            match some.await {
                Ok(some) => results.extend(some),
                Err(error) if results.is_empty() => return Err(error),
                // The remaining items have the same error.
                Err(error) => results.resize_with(all, || Err(error.clone())),
            }
        }
        Ok(results)
    }

    /// Changes the tags of the jobs of the next items, up to `max`: of as many as one transaction has space for. If it
    /// has none, the next call has.
    async fn change_some_tags(
        &self,
        changes: &TagChanges,
        done: usize,
        max: &mut usize,
        now: Option<Time>,
    ) -> ItemResults<Vec<String>> {
        let left = changes.jobs.len().saturating_sub(done);
        let weight = changes.space.make_room(left).await?;
        let (needs, items) = next_needs(&changes.jobs, done, *max, need_of_tagged);
        let (count, changes) = (items.len(), changes.clone());
        let verbs = move |work: &mut UnitOfWork| Ok(changes.run(work, items.clone()));
        match self.write(needs, now, count + weight, verbs).await {
            Err(Error::Oversized) if count > 1 => {
                *max = count / 2;
                Ok(Vec::new())
            }
            outcome => outcome,
        }
    }
}

/// What happens to tags of jobs.
#[derive(Clone, Copy)]
enum Change {
    Add,
    Remove,
}

/// The items of a request, and the space for their results.
#[derive(Clone)]
struct TagChanges {
    jobs: Arc<Vec<(JobKey, Vec<String>)>>,
    change: Change,
    space: ResultSpace,
}

impl TagChanges {
    /// Changes the tags of the jobs of these items, in order, until there is no space for the next result.
    fn run(&self, work: &mut UnitOfWork, items: Range<usize>) -> Vec<Result<Vec<String>>> {
        self.space.lock().refused = None;
        let jobs = self.jobs.get(items.clone()).unwrap_or_default();
        let results = items.zip(jobs).map_while(|(n, (key, tags))| {
            let new = match self.change {
                Change::Add => tags.as_slice(),
                Change::Remove => &[],
            };
            match self.space.take(n, work, key, new) {
                Ok(false) => None,
                Ok(true) => Some(self.change(work, key, tags)),
                Err(error) => Some(Err(error)),
            }
        });
        results.collect()
    }

    fn change(&self, work: &mut UnitOfWork, key: &JobKey, tags: &[String]) -> Result<Vec<String>> {
        match self.change {
            Change::Add => tag(work, key, tags)?,
            Change::Remove => untag(work, key, tags)?,
        }
        Ok(tags_of(work, key))
    }
}

/// The space for the results of one request. Many items may name the same job, whose tags are returned as often.
#[derive(Clone)]
struct ResultSpace(Arc<Mutex<Space>>);

struct Space {
    /// The bytes that each item has taken, because a transaction may be repeated.
    taken: Vec<usize>,
    /// The bytes that all items together have taken.
    used: usize,
    /// The bytes that they may take: for more, memory must be reserved.
    allowed: usize,
    /// The bytes of the item that had no space in the last transaction.
    refused: Option<usize>,
    /// The additional weight of the next transaction.
    weight: usize,
}

impl ResultSpace {
    fn new(items: usize) -> ResultSpace {
        let space = Space {
            taken: vec![0; items],
            used: 0,
            allowed: SMALL_MAX,
            refused: None,
            weight: 0,
        };
        ResultSpace(Arc::new(Mutex::new(space)))
    }

    fn lock(&self) -> MutexGuard<'_, Space> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the space for the tags of the job of item `n` and for `new` ones. Returns whether there was space.
    ///
    /// # Errors
    /// [`Error::ResponseTooLarge`].
    fn take(&self, n: usize, work: &mut UnitOfWork, key: &JobKey, new: &[String]) -> Result<bool> {
        let tags = work.job(key).map(|job| &job.tags).into_iter().flatten();
        let bytes: usize = tags.chain(new).map(|tag| tag.len() + TAG_BYTES).sum();
        let all = work.returned_bytes + bytes;
        // A result that is too large for any transaction has one of its own.
        let fits = work.returned_bytes == 0 || all <= RETURNED_MAX;
        let is_taken = self.lock().take(n, bytes, fits)?;
        if is_taken {
            work.returned_bytes = all;
        }
        Ok(is_taken)
    }

    /// If an item had no space, reserves memory for it and for the `left` ones from it on, if they are like it. Returns
    /// the additional weight of the next transaction.
    ///
    /// # Errors
    /// [`Error::Busy`].
    async fn make_room(&self, left: usize) -> Result<usize> {
        let missing = self.lock().missing(left);
        if missing > 0 {
            reserve(missing).await?;
        }
        let mut space = self.lock();
        space.allowed += missing;
        Ok(space.weight)
    }
}

impl Space {
    /// Takes `bytes` for item `n`. `fits`: whether the transaction has space, too.
    fn take(&mut self, n: usize, bytes: usize, fits: bool) -> Result<bool> {
        let Some(taken) = self.taken.get_mut(n) else {
            return Err(Error::ResponseTooLarge);
        };
        self.used -= std::mem::take(taken);
        let used = self.used + bytes;
        if used > RESPONSE_BYTES_MAX {
            return Err(Error::ResponseTooLarge);
        }
        if used > self.allowed || !fits {
            self.refused = Some(bytes);
            return Ok(false);
        }
        (self.used, *taken) = (used, bytes);
        Ok(true)
    }

    /// The bytes that must be reserved, if an item had no space. Sets the weight of the next transaction, so that it
    /// shares its space with few others. If it had none nevertheless, the weight grows until it is alone.
    fn missing(&mut self, left: usize) -> usize {
        let Some(bytes) = self.refused.take() else {
            self.weight = 0;
            return 0;
        };
        let wanted = bytes.saturating_mul(left);
        let wanted = wanted.min(RESERVED_AT_ONCE).max(bytes);
        let weight = wanted / BYTES_PER_WEIGHT;
        let is_reserved = self.used + bytes <= self.allowed;
        let (missing, weight) = match is_reserved {
            true => (0, weight.max(2 * self.weight + 1)),
            false => ((self.used + wanted).saturating_sub(self.allowed), weight),
        };
        self.weight = weight.min(WEIGHT_MAX);
        missing
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
    use crate::engine::{Put, QueueKey, engine_without_tasks};

    fn key() -> JobKey {
        JobKey::qless("j")
    }

    /// An engine with a job that has 2,000 tags of 5 bytes, which count as 74,000 bytes.
    async fn engine_with_tags() -> Engine {
        let engine = engine_without_tasks().await;
        let job = Put {
            id: Some(key().id),
            body: "1".to_owned(),
            tags: Some((0..2_000).map(|n| format!("{n:05}")).collect()),
            ..Put::default()
        };
        let put = engine.put(QueueKey::qless("q"), vec![job], String::new(), None);
        put.await.unwrap().remove(0).unwrap();
        engine
    }

    /// Items that remove no tag.
    fn items(count: usize) -> Vec<(JobKey, Vec<String>)> {
        vec![(key(), Vec::new()); count]
    }

    #[test]
    fn an_item_takes_its_space_once_even_if_its_transaction_is_repeated() {
        let space = ResultSpace::new(2);
        for _ in 0..3 {
            assert_eq!(space.lock().take(0, SMALL_MAX - 4, true), Ok(true));
            assert_eq!(space.lock().take(1, 4, true), Ok(true));
        }
        assert_eq!(space.lock().used, SMALL_MAX);
        assert_eq!(space.lock().take(0, SMALL_MAX - 3, true), Ok(false));
        assert_eq!(space.lock().used, 4);
        let too_large = space.lock().take(0, RESPONSE_BYTES_MAX - 3, true);
        assert_eq!(too_large, Err(Error::ResponseTooLarge));
    }

    #[tokio::test]
    async fn memory_is_reserved_for_the_items_that_are_left_up_to_1_mib() {
        let space = ResultSpace::new(100);
        assert_eq!(space.make_room(100).await, Ok(0));
        let take = |n: usize| space.lock().take(n, 100_000, true);
        assert_eq!(take(0), Ok(false));
        // One per KiB.
        assert_eq!(space.make_room(3).await, Ok(292));
        let taken = [0, 1, 2, 3].map(|n| take(n).unwrap());
        assert_eq!(taken, [true, true, true, false]);
        assert_eq!(space.make_room(97).await, Ok(1_024));
        assert_eq!(space.lock().allowed, 300_000 + RESERVED_AT_ONCE);
        // A single result can have more.
        let large = 2 * RESERVED_AT_ONCE;
        assert_eq!(space.lock().take(3, large, true), Ok(false));
        assert_eq!(space.make_room(97).await, Ok(2_048));
        assert_eq!(space.lock().take(3, large, true), Ok(true));
        assert_eq!(space.make_room(96).await, Ok(0));
    }

    #[tokio::test]
    async fn an_item_that_has_no_space_beside_others_is_alone_in_the_end() {
        let space = ResultSpace::new(1);
        let mut weight = 0;
        for _ in 0..12 {
            assert_eq!(space.lock().take(0, 10_000, false), Ok(false));
            let next = space.make_room(1).await.unwrap();
            assert!(next > weight || next == WEIGHT_MAX, "{next} after {weight}");
            weight = next;
        }
        assert_eq!(weight, WEIGHT_MAX);
        assert_eq!(space.lock().allowed, SMALL_MAX, "nothing is missing");
    }

    #[tokio::test]
    async fn the_requests_of_a_transaction_together_return_4_mib_of_tags() {
        let engine = engine_with_tags().await;
        let changes = || {
            let changes = TagChanges {
                jobs: Arc::new(items(250)),
                change: Change::Remove,
                space: ResultSpace::new(250),
            };
            changes.space.lock().allowed = RESPONSE_BYTES_MAX;
            changes
        };
        let (one, other) = (changes(), changes());
        let needs = Needs {
            jobs: vec![key()],
            keeps_dependencies: true,
            ..Needs::default()
        };
        let counts = engine.write(needs, None, 1, move |work| {
            Ok([&one, &other].map(|changes| changes.run(work, 0..250).len()))
        });
        assert_eq!(counts.await.unwrap(), [56, 0]);
        engine.close().await;
    }

    #[tokio::test]
    async fn items_that_need_several_transactions_are_done_in_order() {
        let engine = engine_with_tags().await;
        let untag = |from: usize| {
            let some = (from..from + 30).map(|n| (key(), vec![format!("{n:05}")]));
            engine.untag(some.collect(), None)
        };
        let (one, other) = tokio::join!(untag(0), untag(30));
        for done in [one, other] {
            let counts = done.unwrap().into_iter().map(|tags| tags.unwrap().len());
            let counts: Vec<usize> = counts.collect();
            assert_eq!(counts.len(), 30);
            assert!(counts.is_sorted_by(|a, b| a > b), "{counts:?}");
        }
        let left = engine.job(&key()).await.unwrap().unwrap().tags;
        assert_eq!((left.len(), left[0].as_str()), (1_940, "00060"));
        assert_eq!(engine.check(None).await.unwrap(), []);
        engine.close().await;
    }
}
