//! Requeue: ends a run and enqueues jobs in one transaction.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::relay::complete::{Run, end, running};
use crate::engine::verbs::relay::enqueue::{Enqueue, Mode, check_atomic, check_unique, need, put};
use crate::engine::verbs::relay::named;

impl Engine {
    /// Ends a run, its job with it, and enqueues others, at most [`ATOMIC_MAX`]: all of it or nothing. Whether there
    /// was that run; without it nothing happens.
    ///
    /// # Errors
    /// [`JobExists`, `TooMany`](crate::engine::Error).
    pub async fn requeue_run(&self, run: Run, jobs: Vec<Enqueue>, mode: Mode) -> Result<bool> {
        check_atomic(&jobs)?;
        let mut needs = named([(&run.queue, &run.id)]);
        jobs.iter().for_each(|job| need(&mut needs, job));
        // A job in place of the one that ends takes no more space.
        needs.adds_jobs = jobs.len() > 1;
        self.write(needs, None, jobs.len() + 1, move |work| {
            requeue(work, &run, &jobs, mode)
        })
        .await
    }
}

/// Ends a run and the job with it, and enqueues others, or nothing of both. Whether there was that run.
///
/// # Errors
/// [`Error::JobExists`].
pub fn requeue(work: &mut UnitOfWork, run: &Run, jobs: &[Enqueue], mode: Mode) -> Result<bool> {
    let Some(key) = running(work, run) else {
        return Ok(false);
    };
    if mode == Mode::Unique {
        check_unique(work, jobs, Some(&key))?;
    }
    end(work, &key);
    for job in jobs {
        put(work, job, mode);
    }
    Ok(true)
}
