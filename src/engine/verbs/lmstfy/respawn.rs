//! Respawn: puts dead jobs back into their queue.

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{JobKey, QueueKey, State};
use crate::engine::unit_of_work::{Needs, Oldest, UnitOfWork};
use crate::engine::verbs::batches::{Batches, MOVE_BATCH};
use crate::engine::verbs::lifecycle::check_dead;
use crate::engine::verbs::lmstfy::publish::expires_at_for;
use crate::engine::verbs::{ItemResults, needs_of_oldest};

impl Engine {
    /// Respawns up to `count` dead jobs of the queue, oldest first, each with one attempt and a time to live of `ttl_s`
    /// seconds (0: no limit). Returns how many. Large numbers are split over several transactions.
    pub async fn respawn(&self, queue: QueueKey, count: usize, ttl_s: u32) -> Result<usize> {
        let until = self.shared_now().await?;
        let mut batches = Batches::of(count, MOVE_BATCH);
        while let Some(batch) = batches.next() {
            let oldest = Oldest::Dead {
                queue: queue.clone(),
                count: batch,
                until,
            };
            let verb = move |work: &mut UnitOfWork| {
                let keys = work.take_oldest();
                let respawned = keys.iter().filter(|key| respawn(work, key, ttl_s).is_ok());
                Ok(respawned.count())
            };
            batches.found_within_bytes(
                self.write(needs_of_oldest(oldest), None, batch, verb)
                    .await?,
            );
        }
        Ok(batches.done)
    }

    /// Respawns these jobs, as [`Engine::respawn`] does.
    pub async fn respawn_jobs(&self, keys: Vec<JobKey>, ttl_s: u32) -> ItemResults<()> {
        self.apply_in_batches(keys, None, Needs::job, move |work, key| {
            respawn(work, key, ttl_s)
        })
        .await
    }
}

/// Puts a dead job at the end of its queue, with one attempt.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::NotDead`].
pub fn respawn(work: &mut UnitOfWork, key: &JobKey, ttl_s: u32) -> Result<()> {
    let (now, expires_at) = (work.now, expires_at_for(work, ttl_s));
    let place = work.next_tick();
    let job = work
        .job_mut(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })?;
    check_dead(job, now)?;
    job.history.push(EventKind::Respawned, now, None, None);
    job.state = State::Waiting;
    job.ready_at = place;
    job.since = now;
    job.retries = 0;
    job.remaining = 0;
    job.expires_at = expires_at;
    let queue = job.queue;
    work.counters.put(queue, now);
    Ok(())
}
