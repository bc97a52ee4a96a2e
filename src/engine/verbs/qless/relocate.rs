//! Relocate: moves a job to another queue, in any state.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{JobKey, QueueKey};
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::needs_of_jobs;
use crate::engine::verbs::qless::unfail::requeue_job;

impl Engine {
    /// Moves a job, in any state, to `queue`, as if it were put there again with its current options.
    ///
    /// # Errors
    /// [`Error::NoSuchJob`]; [`Error::TooMany`] queues.
    pub async fn relocate(&self, key: JobKey, queue: QueueKey, now: Option<Time>) -> Result<()> {
        let room = self.reserve_room([&queue])?;
        let write = || {
            self.write(needs_of_jobs([&key]), now, 1, move |work| {
                relocate(work, &key, &queue)
            })
        };
        room.hold(write).await
    }
}

/// Moves a job, in any state, to `queue`, as if it were put there again with its current options.
///
/// # Errors
/// [`Error::NoSuchJob`].
pub fn relocate(work: &mut UnitOfWork, key: &JobKey, queue: &QueueKey) -> Result<()> {
    if work.job(key).is_none() {
        return Err(Error::NoSuchJob { id: key.id.clone() });
    }
    requeue_job(work, key, Some(queue));
    Ok(())
}
