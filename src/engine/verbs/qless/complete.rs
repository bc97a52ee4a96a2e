//! How a worker's turn at a job ends: complete, fail or retry.

use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::events::Said;
use crate::engine::model::history::What;
use crate::engine::model::job::{Failure, JobKey, QueueKey, State};
use crate::engine::unit_of_work::Work;
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::verbs::claim::{become_failed, exhaust};
use crate::engine::verbs::qless::depend::release_dependents;
use crate::engine::verbs::qless::heartbeat::{Holder, held};
use crate::engine::verbs::qless::put::{enter, place, unmet};

/// How many bytes of a failure's message are kept: its beginning.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Where a completed job goes on.
#[derive(Clone, Debug)]
pub struct Next {
    pub queue: QueueKey,
    /// Seconds before it becomes available there; 0 or less means now.
    pub delay: f64,
    /// Ids of jobs to wait for there.
    pub depends: Vec<String>,
}

/// A job to be failed.
#[derive(Clone, Debug)]
pub struct Fail {
    pub key: JobKey,
    pub group: String,
    pub message: String,
    /// Replaces the job's body, if given.
    pub body: Option<String>,
}

/// A job to be given back.
#[derive(Clone, Debug)]
pub struct Retry {
    pub key: JobKey,
    /// Seconds before it becomes available again; 0 or less means now.
    pub delay: f64,
    /// A failure's group and message.
    pub reason: Option<(String, String)>,
}

/// Completes the job; for good, or to go on in another queue. Its failure is forgotten, its retries
/// start anew. Jobs that wait for it are released only when it is complete for good.
/// Returns the state it is in now.
///
/// # Errors
/// Those of [`held`], and [`crate::engine::Error::DependencyCycle`].
pub fn complete(
    work: &mut Work,
    key: &JobKey,
    holder: &Holder,
    body: &str,
    next: Option<&Next>,
) -> Result<State> {
    let job = held(work, key, holder)?;
    let (queue, ran, now) = (job.queue, work.now.seconds_since(job.since), work.now);
    let depends = match next {
        Some(next) => unmet(work, key, &next.depends)?,
        None => Vec::new(),
    };
    work.tally.duration(queue, Kind::Run, ran, now);
    if let Some(job) = work.job_mut(key) {
        job.history.push(What::Done, now, None, None);
        body.clone_into(&mut job.body);
        job.failure = None;
        job.lease = None;
        job.remaining = job.retries;
        job.since = now;
        job.state = State::Complete;
    }
    let (id, from) = (key.id.as_str(), work.queue_name(queue));
    work.tell("completed", key);
    let Some(next) = next else {
        work.events.log(&Said::Completed { id, queue: &from });
        work.completed = true;
        release_dependents(work, key);
        return Ok(State::Complete);
    };
    work.events.log(&Said::Advanced {
        id,
        queue: &from,
        to: &next.queue.name,
    });
    let queue = work.queue_for(&next.queue);
    work.set_dependencies(key, depends);
    if let Some(job) = work.job_mut(key) {
        job.queue = queue;
    }
    enter(work, key, &next.queue.name, next.delay);
    Ok(work.job(key).map_or(State::Waiting, |job| job.state))
}

/// Fails the job: it stays, under `group`, until somebody retries or cancels it.
///
/// # Errors
/// Those of [`held`].
pub fn fail(work: &mut Work, holder: &Holder, fail: &Fail) -> Result<()> {
    let (key, group, message) = (&fail.key, &fail.group, kept(&fail.message));
    let queue = held(work, key, holder)?.queue;
    let now = work.now;
    work.tally.failure(queue, now);
    let failure = failure(group, message, holder, now);
    if let Some(job) = work.job_mut(key) {
        if let Some(body) = &fail.body {
            job.body.clone_from(body);
        }
        become_failed(job, failure, Some(&holder.worker));
    }
    work.events.log(&Said::Failed {
        id: &key.id,
        group,
        message,
        worker: &holder.worker,
    });
    work.tell("failed", key);
    Ok(())
}

/// As much of a message as is kept: up to the last character that ends within the limit.
fn kept(message: &str) -> &str {
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
    message.get(..end).unwrap_or_default()
}

fn failure(group: &str, message: &str, holder: &Holder, at: Time) -> Failure {
    let message = kept(message).to_owned();
    let (group, worker) = (group.to_owned(), holder.worker.clone());
    Failure {
        group,
        message,
        worker,
        at,
    }
}

/// Gives the job back to its queue, at the cost of one retry; without one left it is failed. Returns the retries left; negative if it was failed.
///
/// # Errors
/// Those of [`held`].
pub fn retry(work: &mut Work, holder: &Holder, retry: &Retry) -> Result<i64> {
    let key = &retry.key;
    let queue = held(work, key, holder)?.queue;
    let queue_name = work.queue_name(queue);
    let now = work.now;
    let Some(job) = work.job_mut(key) else {
        return Ok(0);
    };
    job.remaining -= 1;
    let remaining = job.remaining;
    let reason = retry.reason.as_ref();
    let failure = reason.map(|(group, message)| failure(group, message, holder, now));
    if remaining >= 0 {
        job.history.push(
            What::Retried,
            now,
            failure.as_ref().map(|failure| failure.group.as_str()),
            None,
        );
        if failure.is_some() {
            job.failure = failure;
        }
        place(job, now, retry.delay);
        return Ok(remaining);
    }
    match failure {
        Some(failure) => become_failed(job, failure, None),
        None => exhaust(job, &queue_name, holder.worker.clone(), now),
    }
    work.tally.failure(queue, now);
    // As in qless-core's retry.lua: a tracked job announces this failure as it does that of `fail`.
    work.tell("failed", key);
    Ok(remaining)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_message_64_kib_are_kept() {
        for (bytes, expected) in [(65_535, 65_535), (65_536, 65_536), (65_537, 65_536)] {
            assert_eq!(kept(&"m".repeat(bytes)).len(), expected, "{bytes} bytes");
        }
        // The last character would end one byte behind the limit.
        let wide = format!("{}é", "m".repeat(65_535));
        assert_eq!(kept(&wide).len(), 65_535);
    }
}
