//! The verbs of Relay.

use super::{Batches, Each, MOVE_BATCH};
use crate::engine::Engine;
use crate::engine::dead;
use crate::engine::enqueue::{self, Enqueue, Mode, Run};
use crate::engine::error::{Error, Result};
use crate::engine::job::{Job, JobKey, QueueKey};
use crate::engine::work::Needs;

/// What became of dead jobs that were to be enqueued anew; those that are counted in neither were dead no longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revived {
    pub done: usize,
    /// They stay dead, for there is a job of the same id in the queue.
    pub taken: usize,
}

impl Revived {
    pub fn of(each: &[Result<()>]) -> Revived {
        let is_taken = |done: &Result<()>| matches!(done, Err(Error::AlreadyThere { .. }));
        Revived {
            done: each.iter().filter(|done| done.is_ok()).count(),
            taken: each.iter().filter(|done| is_taken(done)).count(),
        }
    }
}

fn bytes(job: &Enqueue) -> usize {
    job.payload.len() + job.state.as_ref().map_or(0, String::len)
}

impl Engine {
    /// Enqueues jobs, all of them or none.
    ///
    /// # Errors
    /// [`Error::AlreadyThere`](crate::engine::Error).
    pub async fn enqueue(&self, jobs: Vec<Enqueue>, mode: Mode) -> Result<()> {
        let needs = Needs {
            bytes: jobs.iter().map(bytes).sum(),
            adds: true,
            ..named(jobs.iter().map(|job| (&job.queue, &job.id)))
        };
        self.write(needs, None, jobs.len(), move |work| {
            enqueue::enqueue(work, &jobs, mode)
        })
        .await
    }

    /// Ends a run, its job with it, and enqueues others: all of it or nothing. Whether there was that run;
    /// without it nothing happens.
    ///
    /// # Errors
    /// [`Error::AlreadyThere`](crate::engine::Error).
    pub async fn run_again(&self, run: Run, jobs: Vec<Enqueue>, mode: Mode) -> Result<bool> {
        let others = jobs.iter().map(|job| (&job.queue, &job.id));
        let needs = named(others.chain([(&run.queue, &run.id)]));
        self.write(needs, None, jobs.len() + 1, move |work| {
            enqueue::requeue(work, &run, &jobs, mode)
        })
        .await
    }

    /// Renews the lease of a run; `state`, if given, takes the place of what the job has.
    ///
    /// # Errors
    /// [`Error::NoSuchJob`](crate::engine::Error) if there is no such run.
    pub async fn beat(&self, run: Run, state: Option<Option<String>>) -> Result<()> {
        let needs = named([(&run.queue, &run.id)]);
        self.write(needs, None, 1, move |work| {
            enqueue::beat(work, &run, state.as_ref())
        })
        .await
    }

    /// Ends a run, and its job with it. Whether there was that run.
    pub async fn finish(&self, run: Run) -> Result<bool> {
        let needs = named([(&run.queue, &run.id)]);
        self.write(needs, None, 1, move |work| Ok(enqueue::finish(work, &run)))
            .await
    }

    /// Deletes jobs of a queue, whatever their state. How many there were.
    pub async fn delete(&self, queue: QueueKey, ids: Vec<String>) -> Result<usize> {
        let needs = named(ids.iter().map(|id| (&queue, id)));
        self.write(needs, None, ids.len(), move |work| {
            let gone = ids.iter().filter(|id| enqueue::delete(work, &queue, id));
            Ok(gone.count())
        })
        .await
    }

    /// Enqueues a dead job anew, with its payload and its last state.
    ///
    /// # Errors
    /// [`NoSuchJob`, `NotDead`, `AlreadyThere`](crate::engine::Error).
    pub async fn revive(&self, queue: QueueKey, dead: JobKey) -> Result<()> {
        let needs = Needs {
            jobs: vec![dead.clone()],
            ..named([(&queue, &dead.id)])
        };
        self.write(needs, None, 1, move |work| {
            enqueue::revive(work, &queue, &dead)
        })
        .await
    }

    /// Enqueues dead jobs anew, as [`Engine::revive`] does, one after the other.
    pub async fn revive_jobs(&self, queue: QueueKey, dead: Vec<JobKey>) -> Each<()> {
        let of = queue.clone();
        let need = move |needs: &mut Needs, key: &JobKey| {
            needs.job(key);
            needs.in_queues.push((of.clone(), key.id.clone()));
        };
        self.each(dead, None, need, move |work, key| {
            enqueue::revive(work, &queue, key)
        })
        .await
    }

    /// Enqueues up to `count` dead jobs of the queue anew, oldest first. Large numbers go in several transactions.
    pub async fn revive_oldest(&self, queue: QueueKey, count: usize) -> Result<Revived> {
        let until = self.now(None);
        let mut batches = Batches::of(count, MOVE_BATCH);
        let (mut all, mut after) = (Revived::default(), None);
        while let Some(batch) = batches.next() {
            let (keys, last) = self.dead_keys(&queue, after, until, batch).await?;
            after = last;
            batches.found(keys.len());
            let some = Revived::of(&self.revive_jobs(queue.clone(), keys).await?);
            all.done += some.done;
            all.taken += some.taken;
        }
        Ok(all)
    }

    /// Deletes these jobs, as far as they are in the queue's dead letter. How many there were.
    pub async fn drop_dead_jobs(&self, queue: QueueKey, dead: Vec<JobKey>) -> Result<usize> {
        let needs = Needs {
            jobs: dead.clone(),
            ..Needs::default()
        };
        self.write(needs, None, dead.len(), move |work| {
            let gone = dead.iter().filter(|key| dead::bury(work, &queue, key));
            Ok(gone.count())
        })
        .await
    }

    /// The job of this queue; `None` if it is not there.
    pub async fn job_in(&self, queue: &QueueKey, id: &str) -> Result<Option<Job>> {
        self.freshen().await?;
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(None);
        };
        let (scope, id) = (queue.id, id.to_owned());
        self.job_as_known(&JobKey { scope, id }).await
    }
}

fn named<'a>(jobs: impl IntoIterator<Item = (&'a QueueKey, &'a String)>) -> Needs {
    let jobs = jobs.into_iter();
    Needs {
        in_queues: jobs
            .map(|(queue, id)| (queue.clone(), id.clone()))
            .collect(),
        ..Needs::default()
    }
}
