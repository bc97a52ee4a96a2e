//! Tracked jobs: those whose events are public. A copy of the table `tracked` in memory, for every verb
//! asks for it. A job stays tracked when it is gone, and is tracked again when it comes back.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey};
use crate::engine::unit_of_work::Work;
use crate::engine::verbs::qless::tag;
use crate::store::{Row, Statement, StoreError};

/// How many jobs may be tracked: each costs memory, and people follow a handful.
pub const TRACKED_MAX: usize = 10_000;

/// The ids that are tracked, each since when.
#[derive(Debug, Default)]
pub struct Tracked(RwLock<HashMap<String, Time>>);

impl Tracked {
    /// Takes over what [`ALL`] has read, instead of what is there.
    pub fn take_over(&self, rows: &[Row]) -> Result<(), StoreError> {
        let since = rows.iter().map(|row| Ok((row.text(0)?, Time(row.int(1)?))));
        let since: HashMap<_, _> = since.collect::<Result<_, StoreError>>()?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = since;
        Ok(())
    }

    pub fn contains(&self, id: &str) -> bool {
        let tracked = self.0.read().unwrap_or_else(PoisonError::into_inner);
        !tracked.is_empty() && tracked.contains_key(id)
    }

    /// How many jobs are tracked.
    pub fn count(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The ids, by the time of tracking.
    pub fn ids(&self) -> Vec<String> {
        let tracked = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut ids: Vec<_> = tracked.iter().map(|(id, since)| (*since, id)).collect();
        ids.sort();
        ids.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// Takes over what has been committed.
    pub fn apply(&self, id: &str, since: Option<Time>) {
        let mut tracked = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match since {
            Some(since) => tracked.insert(id.to_owned(), since),
            None => tracked.remove(id),
        };
    }

    /// Everything has been emptied.
    pub fn clear(&self) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Tracks a job, and tags it. Tracking it again changes nothing.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::TooMany`].
pub fn track(work: &mut Work, key: &JobKey, tags: &[String]) -> Result<()> {
    if work.job(key).is_none() {
        return Err(Error::NoSuchJob { id: key.id.clone() });
    }
    if !work.is_tracked(&key.id) {
        if work.tracked_count() >= TRACKED_MAX {
            return Err(Error::TooMany {
                what: "tracked jobs",
                max: TRACKED_MAX,
            });
        }
        work.set_tracked(&key.id, Some(work.now));
        work.events.tracked("track", &key.id);
    }
    tag::tag(work, key, tags).map(drop)
}

/// Tracks a job, there or not, no longer.
pub fn untrack(work: &mut Work, key: &JobKey) {
    if work.is_tracked(&key.id) {
        work.set_tracked(&key.id, None);
        work.events.tracked("untrack", &key.id);
    }
}

impl Engine {
    /// The tracked jobs by the time of tracking, and the ids of those that are gone.
    ///
    /// # Errors
    /// [`Error::AnswerTooLarge`].
    pub async fn tracked(&self) -> Result<(Vec<Job>, Vec<String>)> {
        self.freshen().await?;
        let keys = self.tracked_keys();
        let found = self.jobs_by_key(&keys).await?;
        Ok(there_and_gone(keys, found))
    }

    /// The same, as a list shows them.
    pub async fn brief_tracked(&self) -> Result<(Vec<Job>, Vec<String>)> {
        self.freshen().await?;
        let keys = self.tracked_keys();
        let found = self.brief_jobs_by_key(&keys).await?;
        Ok(there_and_gone(keys, found))
    }

    fn tracked_keys(&self) -> Vec<JobKey> {
        self.known_tracked()
            .ids()
            .iter()
            .map(JobKey::qless)
            .collect()
    }
}

fn there_and_gone(keys: Vec<JobKey>, found: Vec<Option<Job>>) -> (Vec<Job>, Vec<String>) {
    let (mut jobs, mut gone) = (Vec::new(), Vec::new());
    for (key, job) in keys.into_iter().zip(found) {
        match job {
            Some(job) => jobs.push(job),
            None => gone.push(key.id),
        }
    }
    (jobs, gone)
}

/// The statement that stores what is tracked since when, or is so no longer.
pub fn save(id: &str, since: Option<Time>) -> Statement {
    match since {
        Some(since) => Statement::new(ADD, [id.into(), since.0.into()]),
        None => Statement::new(REMOVE, [id.into()]),
    }
}

/// The statement that reads what is tracked.
pub const ALL: &str = "SELECT id, since FROM tracked";

const ADD: &str = "
INSERT INTO tracked (id, since) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET since = excluded.since";

const REMOVE: &str = "DELETE FROM tracked WHERE id = $1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Options, Put, QueueKey};

    #[tokio::test]
    async fn up_to_10000_jobs_are_tracked() {
        let options = Options {
            database: "sqlite::memory:".to_owned(),
            brief: true,
            ..Options::default()
        };
        let engine = Engine::open(&options).await.unwrap();
        let job = |id: &str| Put {
            id: Some(id.to_owned()),
            body: "1".to_owned(),
            ..Put::default()
        };
        let jobs = ["a", "b", "c"].map(job).into();
        let put = engine.put(QueueKey::qless("q"), jobs, String::new(), None);
        put.await.unwrap();
        for n in 0..9_998 {
            engine.known_tracked().apply(&n.to_string(), Some(Time(n)));
        }
        let track = async |id: &str| {
            let jobs = vec![(JobKey::qless(id), Vec::new())];
            engine.track(jobs, None).await.unwrap().remove(0)
        };
        let too_many = Err(Error::TooMany {
            what: "tracked jobs",
            max: 10_000,
        });
        assert_eq!((track("a").await, track("b").await), (Ok(()), Ok(())));
        assert_eq!(track("c").await, too_many);
        // One that is tracked already is not one more.
        assert_eq!(track("a").await, Ok(()));
        engine
            .untrack(vec![JobKey::qless("a")], None)
            .await
            .unwrap();
        assert_eq!(track("c").await, Ok(()));
        engine.close().await;
    }
}
