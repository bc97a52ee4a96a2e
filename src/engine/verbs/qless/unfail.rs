//! Unfail: puts failed jobs back into a queue.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{JobKey, QueueKey, State};
use crate::engine::unit_of_work::{Oldest, UnitOfWork};
use crate::engine::verbs::batches::{Batches, MOVE_BATCH};
use crate::engine::verbs::lifecycle::{enter_queue, leave_queue};
use crate::engine::verbs::qless::put::announce_put;
use crate::engine::verbs::{needs_of_jobs, needs_of_oldest};

/// Bytes of a failure group. All stored groups are shorter.
const GROUP_BYTES_MAX: usize = 8 << 10;

impl Engine {
    /// Requeues the oldest `count` failed jobs of a failure group, into `queue` or else each into its own. Returns how
    /// many. Large numbers are split over several transactions.
    ///
    /// # Errors
    /// [`Error::TooMany`] queues.
    pub async fn unfail(
        &self,
        group: &str,
        queue: Option<QueueKey>,
        count: usize,
        now: Option<Time>,
    ) -> Result<usize> {
        if group.len() > GROUP_BYTES_MAX {
            return Ok(0);
        }
        let room = self.reserve_room(&queue)?;
        // A job that fails again meanwhile is not requeued again. Clocks of clients may differ.
        let until = match now.is_some() || self.trusts_client_clock() {
            true => Time(i64::MAX),
            false => self.shared_now().await?,
        };
        let writes = async || {
            let mut batches = Batches::of(count, MOVE_BATCH);
            while let Some(batch) = batches.next() {
                let oldest = Oldest::Failed {
                    group: group.to_owned(),
                    count: batch,
                    until,
                };
                let queue = queue.clone();
                let verb = move |work: &mut UnitOfWork| {
                    let keys = work.take_oldest();
                    Ok(unfail(work, &keys, queue.as_ref()))
                };
                let moved = self.write(needs_of_oldest(oldest), now, batch, verb);
                batches.found_within_bytes(moved.await?);
            }
            Ok(batches.done)
        };
        room.hold(writes).await
    }

    /// Requeues one failed job in its own queue.
    pub async fn retry_failed(&self, key: JobKey, now: Option<Time>) -> Result<()> {
        self.write(needs_of_jobs([&key]), now, 1, move |work| {
            retry_failed(work, &key)
        })
        .await
    }
}

/// Requeues failed jobs, into `queue` or else each into its own, with all their retries. Ignores jobs that are no
/// longer failed. Returns how many were requeued.
pub fn unfail(work: &mut UnitOfWork, keys: &[JobKey], queue: Option<&QueueKey>) -> usize {
    let failed: Vec<&JobKey> = keys.iter().filter(|key| is_failed(work, key)).collect();
    for key in &failed {
        requeue_job(work, key, queue);
    }
    failed.len()
}

/// Requeues one failed job in its own queue.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotFailed`].
pub fn retry_failed(work: &mut UnitOfWork, key: &JobKey) -> Result<()> {
    let job = work
        .job(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })?;
    if job.state != State::Failed {
        return Err(Error::NotFailed {
            id: key.id.clone(),
            state: job.effective_state(work.now),
        });
    }
    requeue_job(work, key, None);
    Ok(())
}

fn is_failed(work: &UnitOfWork, key: &JobKey) -> bool {
    work.job(key).is_some_and(|job| job.state == State::Failed)
}

pub fn requeue_job(work: &mut UnitOfWork, key: &JobKey, queue: Option<&QueueKey>) {
    requeue_job_after(work, key, queue, 0.0);
}

/// Like [`requeue_job`]; the job becomes available after `delay` seconds.
pub fn requeue_job_after(
    work: &mut UnitOfWork,
    key: &JobKey,
    queue: Option<&QueueKey>,
    delay: f64,
) {
    let Some(job) = work.job(key) else { return };
    let (id, name) = match queue {
        Some(queue) => (work.get_or_create_queue(queue), queue.name.clone()),
        None => (job.queue, work.queue_name(job.queue)),
    };
    let loser = leave_queue(work, key);
    if let Some(job) = work.job_mut(key) {
        job.queue = id;
    }
    enter_queue(work, key, &name, delay);
    announce_put(work, key, &name, loser.as_deref());
}

#[cfg(test)]
mod tests;
