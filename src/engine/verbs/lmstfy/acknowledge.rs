//! Acknowledge: deletes a job, usually because its consumer is done with it.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::{JobKey, QueueKey, State};
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::needs_of_jobs;

impl Engine {
    /// Deletes jobs of the queue, in any state, so that they are not consumed again. Returns how many existed.
    pub async fn acknowledge(&self, queue: QueueKey, ids: Vec<String>) -> Result<usize> {
        let keys: Vec<_> = ids.into_iter().map(JobKey::lmstfy).collect();
        let needs = Needs {
            deletes: true,
            ..needs_of_jobs(&keys)
        };
        self.write(needs, None, keys.len(), move |work| {
            let gone = keys.iter().filter(|key| acknowledge(work, &queue, key));
            Ok(gone.count())
        })
        .await
    }
}

/// Deletes the job, in any state. Returns whether it was in this queue.
pub fn acknowledge(work: &mut UnitOfWork, queue: &QueueKey, key: &JobKey) -> bool {
    if !is_in(work, queue, key) {
        return false;
    }
    if let Some(job) = work.job(key)
        && job.state == State::Running
    {
        let (queue, ran) = (job.queue, work.now.seconds_since(job.since));
        work.counters.duration(queue, Kind::Run, ran, work.now);
    }
    work.remove(key);
    true
}

/// Whether the job exists and is in this queue.
pub fn is_in(work: &UnitOfWork, queue: &QueueKey, key: &JobKey) -> bool {
    let queue = work.queue(queue);
    let job = work.job(key);
    job.is_some_and(|job| queue.is_some_and(|queue| queue.id == job.queue))
}
