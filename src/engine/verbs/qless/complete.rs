//! Complete: ends a run successfully, and optionally moves the job to another queue.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::events::LogEvent;
use crate::engine::model::body::Body;
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{Job, JobKey, QueueKey, State};
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::leases::{LeaseHolder, leased_job};
use crate::engine::verbs::lifecycle::enter_queue;
use crate::engine::verbs::qless::depend::{release_dependents, unmet_dependencies};
use crate::engine::worker_results::RunResult;

/// The queue that a completed job moves to.
#[derive(Clone, Debug)]
pub struct NextQueue {
    pub queue: QueueKey,
    /// Seconds before it becomes available there; 0 or less means now.
    pub delay: f64,
    /// IDs of jobs it depends on there.
    pub depends: Vec<String>,
}

impl Engine {
    /// Completes jobs with their new bodies, optionally moving each to another queue. Returns each job's new state.
    ///
    /// # Errors
    /// [`TooMany`](crate::engine::Error) queues: no job is completed.
    pub async fn complete(
        &self,
        jobs: Vec<(JobKey, String, Option<NextQueue>)>,
        holder: LeaseHolder,
        now: Option<Time>,
    ) -> ItemResults<State> {
        let next = jobs.iter().filter_map(|(_, _, next)| next.as_ref());
        let room = self.reserve_room(next.map(|next| &next.queue))?;
        // A long body is not copied in the transaction, because other writes wait for it.
        let jobs = jobs.into_iter();
        let jobs = jobs.map(|(key, body, next)| (key, Body::from(body), next));
        let need = |needs: &mut Needs, (key, body, next): &(JobKey, Body, Option<NextQueue>)| {
            needs.job(key);
            needs.bytes += body.bytes();
            match next {
                Some(next) => needs.depends(&next.depends),
                None => needs.releases_dependents = true,
            }
        };
        let verb = move |work: &mut UnitOfWork,
                         (key, body, next): &(JobKey, Body, Option<NextQueue>)| {
            let state = complete(work, key, &holder, body, next.as_ref())?;
            Ok((state, work.number_if_released_later(key)))
        };
        let writes = || self.apply_in_batches(jobs.collect(), now, need, verb);
        let done = room.hold(writes).await?;
        let later = done.iter().flatten().filter_map(|(_, later)| *later);
        self.release_dependents(later.collect(), now).await;
        let states = done.into_iter().map(|done| done.map(|(state, _)| state));
        Ok(states.collect())
    }
}

/// Completes the job, optionally moving it to another queue, and returns its new state. Clears its failure and resets
/// its retries. Its dependents are released only if it does not move on.
///
/// # Errors
/// Those of [`leased_job`], and [`DependencyCycle`, `TooMany`](crate::engine::Error) dependencies.
pub fn complete(
    work: &mut UnitOfWork,
    key: &JobKey,
    holder: &LeaseHolder,
    body: &Body,
    next: Option<&NextQueue>,
) -> Result<State> {
    let job = leased_job(work, key, holder)?;
    let (queue, ran, now) = (job.queue, work.now.seconds_since(job.since), work.now);
    let depends = match next {
        Some(next) => unmet_dependencies(work, key, &next.depends)?,
        None => Vec::new(),
    };
    work.counters.duration(queue, Kind::Run, ran, now);
    let result = RunResult::Completed(ran);
    work.counters.run_ended(queue, &holder.worker, result, now);
    if let Some(job) = work.job_mut(key) {
        job.body = body.clone();
        become_complete(job, now);
    }
    let (id, from) = (key.id.as_str(), work.queue_name(queue));
    work.publish_tracked("completed", key);
    let Some(next) = next else {
        work.events.log(&LogEvent::Completed { id, queue: &from });
        work.has_final_completion = true;
        release_dependents(work, key);
        return Ok(State::Complete);
    };
    work.events.log(&LogEvent::Advanced {
        id,
        queue: &from,
        to: &next.queue.name,
    });
    let queue = work.get_or_create_queue(&next.queue);
    work.set_dependencies(key, &depends);
    if let Some(job) = work.job_mut(key) {
        job.queue = queue;
    }
    enter_queue(work, key, &next.queue.name, next.delay);
    Ok(work.job(key).map_or(State::Waiting, |job| job.state))
}

/// Completes a job: clears its failure, ends its lease and resets its retries.
pub fn become_complete(job: &mut Job, now: Time) {
    job.history.push(EventKind::Done, now, None, None);
    job.failure = None;
    job.lease = None;
    job.remaining = job.retries;
    job.since = now;
    job.state = State::Complete;
}
