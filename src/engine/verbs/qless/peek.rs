//! Peek: the next jobs of a queue, in claim order.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{RESPONSE_BYTES_MAX, Result};
use crate::engine::model::job::{EffectiveState, Job, QueueKey};
use crate::engine::model::page::OffsetPage;
use crate::engine::model::recurring::due;
use crate::engine::unit_of_work::spawn::Spawned;
use crate::engine::unit_of_work::{Needs, NextJobs, UnitOfWork};
use crate::engine::verbs::claim::{CLAIM_MAX, EMPTY_MAX};

impl Engine {
    /// The first `count` jobs in claim order. Like a claim, spawns the due children of recurring jobs; changes nothing
    /// else.
    pub async fn peek(
        &self,
        queue: &QueueKey,
        count: usize,
        now: Option<Time>,
    ) -> Result<Vec<Job>> {
        let (mut left, mut bytes, mut empty) = (count, 0, 0);
        while left > 0
            && bytes < RESPONSE_BYTES_MAX
            && empty < EMPTY_MAX
            && self.has_due_child(queue, self.now(now)).await?
        {
            let count = left.min(CLAIM_MAX);
            let needs = Needs {
                claim: vec![NextJobs {
                    queue: queue.clone(),
                    count,
                    include_paused: true,
                }],
                ..Needs::default()
            };
            let key = queue.clone();
            let spawned = move |work: &mut UnitOfWork| {
                let queue = work.queue(&key);
                Ok(queue.map_or_else(Spawned::default, |queue| work.spawned(queue.id)))
            };
            let spawned = self.write(needs, now, count, spawned).await?;
            if spawned.count == 0 && !spawned.has_more {
                break;
            }
            empty = if spawned.count == 0 { empty + 1 } else { 0 };
            left = left.saturating_sub(spawned.count);
            bytes += spawned.bytes;
        }
        self.next_jobs(queue, count, now).await
    }

    /// The first `count` jobs in claim order.
    ///
    /// # Errors
    /// [`ResponseTooLarge`, `Busy`](crate::engine::Error).
    pub(in crate::engine) async fn next_jobs(
        &self,
        queue: &QueueKey,
        count: usize,
        now: Option<Time>,
    ) -> Result<Vec<Job>> {
        let page = |limit| OffsetPage { offset: 0, limit };
        let mut jobs = self
            .jobs(EffectiveState::Stalled, Some(queue), page(count), now)
            .await?;
        let rest = count - jobs.len();
        if rest > 0 {
            jobs.extend(
                self.jobs(EffectiveState::Waiting, Some(queue), page(rest), now)
                    .await?,
            );
        }
        Ok(jobs)
    }

    /// Whether a child of a recurring job is due in the queue.
    pub(in crate::engine) async fn has_due_child(
        &self,
        queue: &QueueKey,
        now: Time,
    ) -> Result<bool> {
        self.refresh_cache().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(false);
        };
        let statement = due(queue.id, now, 1);
        Ok(!self.readers().rows(statement).await?.is_empty())
    }
}
