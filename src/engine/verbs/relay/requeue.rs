//! Requeue: ends a run and enqueues jobs in one transaction.

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::unit_of_work::long_parts::LONG_PARTS_MAX;
use crate::engine::verbs::relay::complete::{Run, current_run, end_run};
use crate::engine::verbs::relay::enqueue::{Enqueue, Mode, check_atomic, check_unique, need, put};
use crate::engine::verbs::relay::needs_of_jobs;

impl Engine {
    /// Ends a run, deletes its job, and enqueues at most 1,600 others; all or nothing. Jobs that they replace have at
    /// most 16 MiB together. Returns whether the run existed; otherwise nothing is changed.
    ///
    /// # Errors
    /// [`JobExists`, `TooMany`, `NameTooLong`](crate::engine::Error).
    pub async fn requeue_run(&self, run: Run, jobs: Vec<Enqueue>, mode: Mode) -> Result<bool> {
        check_atomic(&jobs)?;
        self.check_indexable(&jobs)?;
        let room = self.reserve_room(jobs.iter().map(|job| &job.queue))?;
        let mut needs = needs_of_jobs([(&run.queue, &run.id)]);
        jobs.iter().for_each(|job| need(&mut needs, job, mode));
        // Replaced jobs are loaded with their histories and states.
        needs.divisible = mode == Mode::Replace && jobs.len() > 1;
        // One job in place of the deleted one needs no extra disk space.
        needs.adds_jobs = jobs.len() > 1;
        let write = || {
            self.write(needs, None, jobs.len() + 1, move |work| {
                requeue(work, &run, &jobs, mode)
            })
        };
        room.hold(write).await.map_err(|error| match error {
            Error::Oversized => Error::TooMany {
                what: "bytes of jobs to replace in one atomic request",
                max: LONG_PARTS_MAX,
            },
            error => error,
        })
    }
}

/// Ends a run, deletes its job, and enqueues others; all or nothing. Returns whether the run existed.
///
/// # Errors
/// [`JobExists`](crate::engine::Error::JobExists).
pub fn requeue(work: &mut UnitOfWork, run: &Run, jobs: &[Enqueue], mode: Mode) -> Result<bool> {
    let Some(key) = current_run(work, run) else {
        return Ok(false);
    };
    if mode == Mode::Unique {
        check_unique(work, jobs, Some(&key))?;
    }
    end_run(work, &key);
    for job in jobs {
        put(work, job, mode);
    }
    Ok(true)
}
