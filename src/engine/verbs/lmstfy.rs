//! The verbs of lmstfy.

pub mod publish;
pub mod respawn;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::maintenance::Chore;
use crate::engine::maintenance::tasks::{self, Heap};
use crate::engine::model::job::{JobKey, QueueKey};
use crate::engine::unit_of_work::{Needs, Oldest, Work};
use crate::engine::verbs::lmstfy::publish::Publish;
use crate::engine::verbs::{Batches, Each, MOVE_BATCH, named, of};

impl Engine {
    /// Publishes jobs, all of them or none. Their ids.
    pub async fn publish(&self, queue: QueueKey, jobs: Vec<Publish>) -> Result<Vec<String>> {
        let needs = Needs {
            bytes: jobs.iter().map(|job| job.body.len()).sum(),
            adds: true,
            ..Needs::default()
        };
        self.write(needs, None, jobs.len(), move |work| {
            let publish = |job| publish::publish(work, &queue, job);
            Ok(jobs.iter().map(publish).collect())
        })
        .await
    }

    /// Publishes a job in the place of another one, there or not, which is gone. Its id.
    pub async fn republish(&self, queue: QueueKey, id: &str, job: Publish) -> Result<String> {
        let key = JobKey::lmstfy(id);
        let mut needs = named([&key]);
        needs.bytes = job.body.len();
        self.write(needs, None, 1, move |work| {
            publish::acknowledge(work, &queue, &key);
            Ok(publish::publish(work, &queue, &job))
        })
        .await
    }

    /// These jobs of the queue, whatever their state, will never be consumed again; they are gone. How many
    /// there were.
    pub async fn acknowledge(&self, queue: QueueKey, ids: Vec<String>) -> Result<usize> {
        let keys: Vec<_> = ids.into_iter().map(JobKey::lmstfy).collect();
        self.write(named(&keys), None, keys.len(), move |work| {
            let gone = keys
                .iter()
                .filter(|key| publish::acknowledge(work, &queue, key));
            Ok(gone.count())
        })
        .await
    }

    /// Takes up to `count` jobs out of the queue's dead letter, oldest first, each for one try and with so
    /// many seconds to live (0: for ever). How many. Large numbers go in several transactions.
    pub async fn respawn(&self, queue: QueueKey, count: usize, ttl_s: u32) -> Result<usize> {
        let until = self.now(None);
        let mut batches = Batches::of(count, MOVE_BATCH);
        while let Some(batch) = batches.next() {
            let oldest = Oldest::Dead {
                queue: queue.clone(),
                count: batch,
                until,
            };
            let verb = move |work: &mut Work| {
                let keys = work.take_oldest();
                let respawned = keys
                    .iter()
                    .filter(|key| respawn::respawn(work, key, ttl_s).is_ok());
                Ok(respawned.count())
            };
            batches.found(self.write(of(oldest), None, batch, verb).await?);
        }
        Ok(batches.done)
    }

    /// Takes these jobs out of the dead letter, as [`Engine::respawn`] does.
    pub async fn respawn_jobs(&self, keys: Vec<JobKey>, ttl_s: u32) -> Each<()> {
        self.each(keys, None, Needs::job, move |work, key| {
            respawn::respawn(work, key, ttl_s)
        })
        .await
    }

    /// Deletes up to `count` jobs of the queue's dead letter, oldest first. How many.
    pub async fn drop_dead(&self, queue: QueueKey, count: usize) -> Result<usize> {
        self.drop_of(queue, Heap::Dead, count).await
    }

    /// Deletes the jobs of the queue that are ready; those that are delayed, running or dead stay. How many.
    pub async fn destroy(&self, queue: QueueKey) -> Result<usize> {
        self.drop_of(queue, Heap::Ready, usize::MAX).await
    }

    async fn drop_of(&self, queue: QueueKey, heap: Heap, count: usize) -> Result<usize> {
        let until = self.now(None);
        let mut batches = Batches::of(count, tasks::DROP_BATCH);
        while let Some(count) = batches.next() {
            let queue = queue.clone();
            let what = tasks::Drop {
                queue,
                heap,
                count,
                until,
            };
            batches.found(self.chore(Chore::Drop(what)).await?);
        }
        Ok(batches.done)
    }
}
