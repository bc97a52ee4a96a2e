//! Claim: handing jobs to a worker.

use super::clock::Time;
use super::history::What;
use super::job::{Failure, Job, JobKey, Lease, QueueId, QueueKey, State};
use super::tally::Kind;
use super::work::Work;

/// Gives `worker` up to `count` jobs of `queue`: first those whose lease is lost, oldest first, each at
/// the cost of one retry; then those that wait, in order. A lost job without retries left is failed
/// instead. The worker counts as seen, even if there is nothing for it.
pub(super) fn claim(work: &mut Work, queue: &QueueKey, worker: &str, count: usize) -> Vec<Job> {
    work.saw(worker);
    let Some(id) = work.queue(queue) else {
        return Vec::new();
    };
    let lease_s = lease_s(work, &queue.name);
    let mut taken = Vec::new();
    for _ in 0..count {
        let Some(key) = work.next_lost(id) else { break };
        if lose(work, &key, &queue.name) {
            taken.extend(give(work, &key, id, worker, lease_s));
        }
    }
    while taken.len() < count {
        let Some(key) = work.next_ready(id) else {
            break;
        };
        taken.extend(give(work, &key, id, worker, lease_s));
    }
    taken
}

/// Takes a lost lease away. Whether the job may be tried again.
fn lose(work: &mut Work, key: &JobKey, queue_name: &str) -> bool {
    let now = work.now;
    let Some(job) = work.job_mut(key) else {
        return false;
    };
    let queue = job.queue;
    job.history.push(What::TimedOut, now, None, None);
    job.remaining -= 1;
    let again = job.remaining >= 0;
    if !again {
        let worker = job
            .lease
            .take()
            .map(|lease| lease.worker)
            .unwrap_or_default();
        exhaust(job, queue_name, worker, now);
        work.tally.failure(queue, now);
    }
    work.tally.lost(queue, now);
    again
}

/// Fails a job that has no retries left.
pub(super) fn exhaust(job: &mut Job, queue_name: &str, worker: String, now: Time) {
    let group = format!("failed-retries-{queue_name}");
    let message = format!("Job exhausted retries in queue \"{queue_name}\"");
    let failure = Failure {
        group,
        message,
        worker,
        at: now,
    };
    become_failed(job, failure, None);
}

/// Ends the job's turn with a failure. `by` is the worker that said so, if one did.
pub(super) fn become_failed(job: &mut Job, failure: Failure, by: Option<&str>) {
    job.history
        .push(What::Failed, failure.at, Some(&failure.group), by);
    job.lease = None;
    job.state = State::Failed;
    job.since = failure.at;
    job.failure = Some(failure);
}

/// For how many seconds a lease is given: until the next heartbeat is due, or until the cutoff.
fn lease_s(work: &Work, queue_name: &str) -> f64 {
    let heartbeat_s = work.config.heartbeat_s(queue_name);
    work.config
        .cutoff_s(queue_name)
        .map_or(heartbeat_s, |cutoff_s| heartbeat_s.min(cutoff_s))
}

fn give(work: &mut Work, key: &JobKey, queue: QueueId, worker: &str, lease_s: f64) -> Option<Job> {
    let now = work.now;
    let job = work.job_mut(key)?;
    let waited = now.seconds_since(job.since);
    job.history.push(What::Popped, now, Some(worker), None);
    job.state = State::Running;
    job.since = now;
    job.lease = Some(Lease {
        worker: worker.to_owned(),
        id: uuid::Uuid::new_v4().simple().to_string(),
        until: now.plus_seconds(lease_s),
    });
    let job = job.clone();
    work.tally.duration(queue, Kind::Wait, waited, now);
    Some(job)
}
