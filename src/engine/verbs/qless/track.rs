//! Track: publishes the events of a job also on one channel per kind of event.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::JobKey;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::qless::tag;
use crate::engine::verbs::qless::tag::need_of_tagged;

/// Tracked jobs, all of which are kept in memory.
pub const TRACKED_MAX: usize = 10_000;

impl Engine {
    /// Tracks jobs, and tags them.
    pub async fn track(
        &self,
        jobs: Vec<(JobKey, Vec<String>)>,
        now: Option<Time>,
    ) -> ItemResults<()> {
        self.apply_in_batches(jobs, now, need_of_tagged, |work, (key, tags)| {
            track(work, key, tags)
        })
        .await
    }

    /// Stops tracking jobs, which need not exist.
    pub async fn untrack(&self, keys: Vec<JobKey>, now: Option<Time>) -> ItemResults<()> {
        self.apply_in_batches(
            keys,
            now,
            |_, _| {},
            |work, key| {
                untrack(work, key);
                Ok(())
            },
        )
        .await
    }
}

/// Tracks and tags a job. If it is tracked already, only adds the tags.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::DamagedTags`], [`Error::TooMany`] tags or tracked jobs.
pub fn track(work: &mut UnitOfWork, key: &JobKey, tags: &[String]) -> Result<()> {
    if work.job(key).is_none() {
        return Err(Error::NoSuchJob { id: key.id.clone() });
    }
    let is_new = !work.is_tracked(&key.id);
    if is_new && work.tracked_count() >= TRACKED_MAX {
        return Err(Error::TooMany {
            what: "tracked jobs",
            max: TRACKED_MAX,
        });
    }
    // First, because it can fail.
    tag::tag(work, key, tags)?;
    if is_new {
        work.set_tracked(&key.id, Some(work.now));
        work.events.tracked("track", &key.id);
    }
    Ok(())
}

/// Stops tracking a job, which need not exist.
pub fn untrack(work: &mut UnitOfWork, key: &JobKey) {
    if work.is_tracked(&key.id) {
        work.set_tracked(&key.id, None);
        work.events.tracked("untrack", &key.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Put, QueueKey, engine_without_tasks};

    #[tokio::test]
    async fn up_to_10000_jobs_are_tracked() {
        let engine = engine_without_tasks().await;
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
        // A job that is tracked already does not count again.
        assert_eq!(track("a").await, Ok(()));
        engine
            .untrack(vec![JobKey::qless("a")], None)
            .await
            .unwrap();
        assert_eq!(track("c").await, Ok(()));
        engine.close().await;
    }
}
