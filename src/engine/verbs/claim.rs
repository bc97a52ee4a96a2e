//! Claim: handing jobs to a worker.

pub mod request;
pub mod wait;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use crate::engine::clock::Time;
use crate::engine::error::{ANSWER_BYTES_MAX, Error, Result};
use crate::engine::events::Said;
use crate::engine::model::history::What;
use crate::engine::model::job::{
    Failure, Job, JobKey, Lease, Protocol, QLESS_SCOPE, QueueId, QueueKey, State,
};
use crate::engine::tokens::Grant;
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::unit_of_work::{Wanted, Work};
use crate::engine::verbs::lmstfy::respawn;
use crate::engine::verbs::qless::put::lock_lost;

/// How many bytes the bodies of the jobs of one claim may have, before the last: an answer must have room for all that is
/// leased.
pub const CLAIM_BYTES_MAX: usize = ANSWER_BYTES_MAX / 2;

/// Workers and lists of queues of which is remembered whose turn it is.
const TURNS_MAX: usize = 10_000;

/// How a claim goes through several queues (qless-core, Queue Popping Order).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// A queue's turn comes when there is nothing in those before it.
    #[default]
    Ordered,
    /// One job of each queue after the other, going on where the worker's last claim ended.
    RoundRobin,
}

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Empty where the protocol's workers have no names.
    pub worker: String,
    /// At least one; none twice, all of one protocol.
    pub queues: Vec<QueueKey>,
    pub count: usize,
    pub order: Order,
    /// What the worker has shown a token for; it must still be one when jobs are given.
    pub grant: Option<Grant>,
    /// For how many seconds each lease is given, where the worker says that (lmstfy's `ttr`).
    pub lease_s: Option<f64>,
}

impl Claim {
    /// Of one queue.
    pub fn of(queue: QueueKey, worker: impl Into<String>, count: usize) -> Claim {
        Claim {
            worker: worker.into(),
            queues: vec![queue],
            count,
            order: Order::Ordered,
            grant: None,
            lease_s: None,
        }
    }

    /// What the group should have at hand.
    pub(in crate::engine) fn wanted(&self) -> Vec<Wanted> {
        let wanted = |queue: &QueueKey| Wanted {
            queue: queue.clone(),
            count: self.count,
            paused_too: false,
        };
        self.queues.iter().map(wanted).collect()
    }
}

/// Whose turn it is where workers take from several queues in turn, by a hash of the worker and the queues, which may
/// be long. Kept in memory: after a restart, or when there are too many to remember, the first queue is the first
/// again.
#[derive(Debug, Default)]
pub struct Turns {
    hashes: RandomState,
    turns: Mutex<HashMap<u64, usize>>,
}

impl Turns {
    /// The number of the queue that the worker's next claim begins with.
    pub fn next(&self, claim: &Claim) -> usize {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.get(&self.hash(claim)).copied().unwrap_or_default()
    }

    /// Remembers it.
    pub fn set(&self, claim: &Claim, next: usize) {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= TURNS_MAX {
            turns.clear();
        }
        turns.insert(self.hash(claim), next);
    }

    fn hash(&self, claim: &Claim) -> u64 {
        self.hashes.hash_one((&claim.worker, &claim.queues))
    }
}

/// Gives the worker up to `count` jobs. Those that it gets in turn begin with the queue numbered `first`.
/// Returns them, and whose turn it is next.
///
/// # Errors
/// [`Error::Revoked`].
pub fn claim(work: &mut Work, claim: &Claim, first: usize) -> Result<(Vec<Job>, usize)> {
    let (mut taken, mut turn) = (Vec::<Job>::new(), first);
    if claim.grant.as_ref().is_some_and(|grant| !work.holds(grant)) {
        return Err(Error::Revoked);
    }
    match claim.order {
        Order::Ordered => {
            let mut room = CLAIM_BYTES_MAX;
            for queue in &claim.queues {
                let rest = claim.count - taken.len();
                taken.extend(take(work, claim, queue, rest, &mut room));
            }
        }
        Order::RoundRobin => {
            let (mut empty, mut room) = (0, CLAIM_BYTES_MAX);
            while taken.len() < claim.count && empty < claim.queues.len() {
                let Some(queue) = claim.queues.get(turn % claim.queues.len()) else {
                    break;
                };
                let got = take(work, claim, queue, 1, &mut room);
                empty = if got.is_empty() { empty + 1 } else { 0 };
                turn = (turn + 1) % claim.queues.len();
                taken.extend(got);
            }
        }
    }
    Ok((taken, turn))
}

/// Gives the worker up to `count` jobs of `queue`, unless it is paused.
///
/// By qless's rules first those whose lease is lost, oldest first, each at the cost of one retry; then those
/// that wait, in order. A lost job without retries left is failed instead. The worker counts as seen, even if
/// there is nothing for it. By lmstfy's rules those whose lease is lost wait among the others.
/// `room` is how many bytes their bodies may have; the last one may have more.
fn take(
    work: &mut Work,
    claim: &Claim,
    queue: &QueueKey,
    count: usize,
    room: &mut usize,
) -> Vec<Job> {
    let worker = claim.worker.as_str();
    let by_qless = queue.protocol == Protocol::Qless;
    let known = work.queue(queue);
    if known.as_ref().is_some_and(|queue| queue.paused) {
        return Vec::new();
    }
    if by_qless {
        work.saw(worker);
    }
    let Some(id) = known.map(|queue| queue.id) else {
        return Vec::new();
    };
    let count = count.min(work.room(id));
    let lease_s = claim
        .lease_s
        .or_else(|| by_qless.then(|| lease_s(work, &queue.name)));
    if !by_qless {
        respawn::lapse_lost(work, id);
    }
    let mut taken = Vec::new();
    let pay = |job: &Job, room: &mut usize| *room = room.saturating_sub(job.body.len());
    for _ in 0..count {
        if *room == 0 {
            return taken;
        }
        let Some(key) = work.next_lost(id) else { break };
        if lose(work, &key, &queue.name) {
            let given = give(work, &key, id, worker, lease_s);
            taken.extend(given.inspect(|job| pay(job, room)));
        } else {
            // The next expired job was not loaded, because this one took its place, and nothing else announces it.
            work.wake(id, 1);
        }
    }
    while taken.len() < count && *room > 0 {
        let Some(key) = work.next_ready(id) else {
            break;
        };
        let given = give(work, &key, id, worker, lease_s);
        taken.extend(given.inspect(|job| pay(job, room)));
    }
    taken
}

/// Takes a lost lease away; where there is a grace period, only the second time. Whether the job may be
/// given to somebody now.
fn lose(work: &mut Work, key: &JobKey, queue_name: &str) -> bool {
    let now = work.now;
    let grace_s = work.config.known("grace-period");
    let Some(lease) = work.job(key).and_then(|job| job.lease.clone()) else {
        return false;
    };
    if grace_s > 0.0 && !lease.warned {
        if let Some(job) = work.job_mut(key)
            && let Some(lease) = &mut job.lease
        {
            lease.warned = true;
            lease.until = now.plus_seconds(grace_s);
        }
        warn(work, key, &lease.worker);
        return false;
    }
    if grace_s <= 0.0 {
        warn(work, key, &lease.worker);
    }
    let Some(job) = work.job_mut(key) else {
        return false;
    };
    job.remaining -= 1;
    if job.remaining >= 0 {
        return true;
    }
    let queue = job.queue;
    exhaust(job, queue_name, lease.worker, now);
    let failure = job.failure.clone();
    work.tally.failure(queue, now);
    work.tell("failed", key);
    if let Some(failure) = failure {
        work.events.log(&Said::Failed {
            id: &key.id,
            group: &failure.group,
            message: &failure.message,
            worker: &failure.worker,
        });
    }
    false
}

/// Notes that the lease was lost, and says so.
fn warn(work: &mut Work, key: &JobKey, worker: &str) {
    let now = work.now;
    work.tell("stalled", key);
    if let Some(job) = work.job_mut(key) {
        job.history.push(What::TimedOut, now, None, None);
        let queue = job.queue;
        work.tally.lost(queue, now);
    }
    lock_lost(work, key, worker);
}

/// Fails a job that has no retries left.
pub fn exhaust(job: &mut Job, queue_name: &str, worker: String, now: Time) {
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
pub fn become_failed(job: &mut Job, failure: Failure, by: Option<&str>) {
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

/// Gives the job to the worker, for so many seconds, or else for as long as the job says.
fn give(
    work: &mut Work,
    key: &JobKey,
    queue: QueueId,
    worker: &str,
    lease_s: Option<f64>,
) -> Option<Job> {
    let (now, history_max) = (work.now, work.history_max);
    let job = work.job_mut(key)?;
    // Another server may have put it a moment after this group began: nothing is taken before it is there.
    let now = match key.scope {
        QLESS_SCOPE => now,
        _ => now.max(job.ready_at),
    };
    let waited = match key.scope {
        QLESS_SCOPE => now.seconds_since(job.since),
        // A delay is no waiting.
        _ => now.seconds_since(job.ready_at.max(job.since)),
    };
    let named = (!worker.is_empty()).then_some(worker);
    job.history.push(What::Popped, now, named, None);
    job.history.shorten(history_max);
    job.state = State::Running;
    job.since = now;
    job.updated_at = job.updated_at.map(|_| now);
    let lease_s = lease_s.unwrap_or(job.timeout_s.unwrap_or_default() as f64);
    job.lease = Some(Lease {
        worker: worker.to_owned(),
        id: uuid::Uuid::new_v4().simple().to_string(),
        until: now.plus_seconds(lease_s),
        warned: false,
    });
    let job = job.clone();
    work.tally.duration(queue, Kind::Wait, waited, now);
    work.take_room(queue);
    work.tell("popped", key);
    Some(job)
}
