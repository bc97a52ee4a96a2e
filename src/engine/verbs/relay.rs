//! The verbs of Relay.

pub mod enqueue;

use std::collections::HashSet;

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey, QueueKey};
use crate::engine::unit_of_work::{Needs, Work};
use crate::engine::verbs::lmstfy::respawn;
use crate::engine::verbs::relay::enqueue::{Enqueue, Mode, Run};
use crate::engine::verbs::{Batches, Each, MOVE_BATCH};

/// Jobs that one request enqueues all together or not at all, and the queues that it names. They share a transaction,
/// for which all others wait.
const ATOMIC_MAX: usize = 6_400;
const ATOMIC_QUEUES_MAX: usize = 1_000;

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

fn check_atomic(jobs: &[Enqueue]) -> Result<()> {
    let too_many = |what, max| Err(Error::TooMany { what, max });
    if jobs.len() > ATOMIC_MAX {
        return too_many("jobs in one atomic request", ATOMIC_MAX);
    }
    // Most requests have fewer jobs than that: their queues need no counting.
    let queues = || jobs.iter().map(|job| &job.queue).collect::<HashSet<_>>();
    if jobs.len() > ATOMIC_QUEUES_MAX && queues().len() > ATOMIC_QUEUES_MAX {
        let what = "queues in one atomic request";
        return too_many(what, ATOMIC_QUEUES_MAX);
    }
    Ok(())
}

fn need(needs: &mut Needs, job: &Enqueue) {
    needs.in_queues.push((job.queue.clone(), job.id.clone()));
    needs.bytes += job.payload.len() + job.state.as_ref().map_or(0, String::len);
    needs.adds = true;
}

impl Engine {
    /// Enqueues jobs. In mode [`Mode::Unique`] all of them or none, at most [`ATOMIC_MAX`]; in the other modes, where
    /// each job is independent, many go in several transactions.
    ///
    /// # Errors
    /// [`AlreadyThere`, `TooMany`](crate::engine::Error).
    pub async fn enqueue(&self, jobs: Vec<Enqueue>, mode: Mode) -> Result<()> {
        if mode != Mode::Unique {
            let put = move |work: &mut Work, job: &Enqueue| {
                enqueue::put(work, job, mode);
                Ok(())
            };
            let done = self.each(jobs, None, need, put).await?;
            return done.into_iter().collect();
        }
        check_atomic(&jobs)?;
        let mut needs = Needs::default();
        jobs.iter().for_each(|job| need(&mut needs, job));
        self.write(needs, None, jobs.len(), move |work| {
            enqueue::enqueue(work, &jobs)
        })
        .await
    }

    /// Ends a run, its job with it, and enqueues others, at most [`ATOMIC_MAX`]: all of it or nothing. Whether there
    /// was that run; without it nothing happens.
    ///
    /// # Errors
    /// [`AlreadyThere`, `TooMany`](crate::engine::Error).
    pub async fn run_again(&self, run: Run, jobs: Vec<Enqueue>, mode: Mode) -> Result<bool> {
        check_atomic(&jobs)?;
        let mut needs = named([(&run.queue, &run.id)]);
        jobs.iter().for_each(|job| need(&mut needs, job));
        // A job in place of the one that ends takes no more space.
        needs.adds = jobs.len() > 1;
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
        let mut needs = named([(&run.queue, &run.id)]);
        needs.bytes = state.iter().flatten().map(String::len).sum();
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
        let of = queue.clone();
        let need = move |needs: &mut Needs, id: &String| {
            needs.in_queues.push((of.clone(), id.clone()));
        };
        let delete = move |work: &mut Work, id: &String| Ok(enqueue::delete(work, &queue, id));
        let gone = self.each(ids, None, need, delete).await?;
        Ok(gone.iter().filter(|gone| matches!(gone, Ok(true))).count())
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
        let bury = move |work: &mut Work, key: &JobKey| Ok(respawn::bury(work, &queue, key));
        let gone = self.each(dead, None, Needs::job, bury).await?;
        Ok(gone.iter().filter(|gone| matches!(gone, Ok(true))).count())
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
