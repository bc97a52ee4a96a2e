//! Destroy: deletes the ready or the dead jobs of a queue.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::deletions::{DeleteJobs, JobSet};
use crate::engine::model::job::QueueKey;

impl Engine {
    /// Deletes the ready jobs of the queue, but not delayed, running or dead ones. Returns how many.
    pub async fn destroy(&self, queue: QueueKey) -> Result<usize> {
        self.delete_in_batches(queue, JobSet::Ready, usize::MAX)
            .await
    }

    /// Deletes up to `count` dead jobs of the queue, oldest first. Returns how many.
    pub async fn delete_dead_letter(&self, queue: QueueKey, count: usize) -> Result<usize> {
        self.delete_in_batches(queue, JobSet::Dead, count).await
    }

    async fn delete_in_batches(&self, queue: QueueKey, set: JobSet, count: usize) -> Result<usize> {
        let until = self.shared_now().await?;
        let mut done = 0;
        while done < count {
            let what = DeleteJobs {
                queue: queue.clone(),
                set,
                count: count - done,
                until,
            };
            match self.run_system_task(SystemTask::DeleteJobs(what)).await? {
                0 => break,
                deleted => done += deleted,
            }
        }
        Ok(done)
    }
}
