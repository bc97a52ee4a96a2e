//! Dead jobs: enqueues them again, or deletes them.

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{JobKey, QueueKey, State, UNLIMITED};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::batches::{Batches, MOVE_BATCH};
use crate::engine::verbs::lifecycle::check_dead;
use crate::engine::verbs::lmstfy::acknowledge::is_in;
use crate::engine::verbs::relay::enqueue::{Enqueue, enqueue};
use crate::engine::verbs::relay::needs_of_jobs;

/// The assumed size in bytes of a dead job that is enqueued again. The actual size is not known before it is loaded.
const REQUEUED_BYTES: usize = 128 * 1024;

/// The result of enqueueing dead jobs again. Jobs in neither count were no longer dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequeueResult {
    pub done: usize,
    /// Jobs that stay dead because the queue has a job with the same ID.
    pub conflicts: usize,
}

impl RequeueResult {
    pub fn of(each: &[Result<()>]) -> RequeueResult {
        let is_conflict = |done: &Result<()>| matches!(done, Err(Error::JobExists { .. }));
        RequeueResult {
            done: each.iter().filter(|done| done.is_ok()).count(),
            conflicts: each.iter().filter(|done| is_conflict(done)).count(),
        }
    }
}

impl Engine {
    /// Enqueues a dead job again, with its payload and last state.
    ///
    /// # Errors
    /// [`NoSuchJob`, `NotDead`, `JobExists`, `TooMany`](crate::engine::Error).
    pub async fn requeue_dead(&self, queue: QueueKey, dead: JobKey) -> Result<()> {
        let room = self.reserve_room([&queue])?;
        let needs = Needs {
            jobs: vec![dead.clone()],
            bodies: true,
            ..needs_of_jobs([(&queue, &dead.id)])
        };
        let write = || {
            self.write(needs, None, 1, move |work| {
                requeue_dead(work, &queue, &dead)
            })
        };
        room.hold(write).await
    }

    /// Enqueues dead jobs again, each as [`Engine::requeue_dead`] does.
    pub async fn requeue_dead_jobs(&self, queue: QueueKey, dead: Vec<JobKey>) -> ItemResults<()> {
        let room = self.reserve_room([&queue])?;
        let of = queue.clone();
        let need = move |needs: &mut Needs, key: &JobKey| {
            needs.job(key);
            needs.bodies = true;
            needs.bytes += REQUEUED_BYTES;
            needs.in_queues.push((of.clone(), key.id.clone()));
        };
        let writes = || {
            self.apply_in_batches(dead, None, need, move |work, key| {
                requeue_dead(work, &queue, key)
            })
        };
        room.hold(writes).await
    }

    /// Enqueues up to `count` dead jobs of the queue again, oldest first. Large numbers are split over several
    /// transactions.
    pub async fn requeue_oldest_dead(
        &self,
        queue: QueueKey,
        count: usize,
    ) -> Result<RequeueResult> {
        let until = self.shared_now().await?;
        let mut batches = Batches::of(count, MOVE_BATCH);
        let (mut all, mut after) = (RequeueResult::default(), None);
        while let Some(batch) = batches.next() {
            let (keys, last) = self.dead_keys(&queue, after, until, batch).await?;
            after = last;
            batches.found(keys.len());
            let batch_result =
                RequeueResult::of(&self.requeue_dead_jobs(queue.clone(), keys).await?);
            all.done += batch_result.done;
            all.conflicts += batch_result.conflicts;
        }
        Ok(all)
    }

    /// Deletes those of the jobs that are dead jobs of the queue. Returns how many.
    pub async fn delete_dead_jobs(&self, queue: QueueKey, dead: Vec<JobKey>) -> Result<usize> {
        let delete = move |work: &mut UnitOfWork, key: &JobKey| Ok(delete_dead(work, &queue, key));
        let need = |needs: &mut Needs, key: &JobKey| {
            needs.job(key);
            needs.deletes = true;
        };
        let deleted = self.apply_in_batches(dead, None, need, delete).await?;
        Ok(deleted
            .iter()
            .filter(|deleted| matches!(deleted, Ok(true)))
            .count())
    }
}

/// Enqueues a dead job again, with its payload and last state.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotDead`], [`Error::JobExists`].
pub fn requeue_dead(work: &mut UnitOfWork, queue: &QueueKey, dead: &JobKey) -> Result<()> {
    let now = work.now;
    let job = work.job(dead).ok_or_else(|| Error::NoSuchJob {
        id: dead.id.clone(),
    })?;
    check_dead(job, now)?;
    let (history, created_at) = (job.history.clone(), job.created_at);
    let again = Enqueue {
        queue: queue.clone(),
        id: dead.id.clone(),
        timeout_s: job.timeout_s.unwrap_or_default(),
        max_retries: (job.retries != UNLIMITED).then_some(job.retries),
        payload: job.body.to_string(),
        state: job.work_state.clone(),
        run_at: None,
    };
    enqueue(work, &[again])?;
    work.remove(dead);
    if let Some(key) = work.key_in(queue, &dead.id)
        && let Some(job) = work.job_mut(&key)
    {
        job.history = history;
        job.history.push(EventKind::Respawned, now, None, None);
        job.created_at = created_at;
    }
    Ok(())
}

/// Deletes a job if it is a dead job of this queue. Returns whether it was.
pub fn delete_dead(work: &mut UnitOfWork, queue: &QueueKey, key: &JobKey) -> bool {
    let is_dead = work.job(key).is_some_and(|job| job.state == State::Dead);
    let found = is_dead && is_in(work, queue, key);
    if found {
        work.remove(key);
    }
    found
}
