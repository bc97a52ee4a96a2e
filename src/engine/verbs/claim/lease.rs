//! A claim within its transaction: selects the jobs and leases them.

use crate::engine::error::{Error, Result};
use crate::engine::events::{LogEvent, excerpt};
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{
    Job, JobKey, Lease, Protocol, QLESS_SCOPE, QueueId, QueueKey, State,
};
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::verbs::claim::{Claim, Order};
use crate::engine::verbs::leases;
use crate::engine::verbs::leases::announce_lost_lease;
use crate::engine::verbs::qless::fail::fail_exhausted;
use crate::engine::worker_results::RunResult;

/// The result of a claim.
pub struct Claimed {
    pub jobs: Vec<Job>,
    /// More jobs are available, which this transaction did not load.
    pub has_more: bool,
    /// All queues already have as many running jobs as their concurrency limits allow.
    pub is_full: bool,
    /// The queue of the last job of a round-robin claim.
    pub last: Option<QueueKey>,
    /// Where the claim continues: the queues that may have more jobs, in order; for round robin, starting with the one
    /// whose turn it is, and all of them if all were visited and none had a job. `None`: with the same queues.
    pub left: Option<Vec<QueueKey>>,
}

/// The limits of one transaction of a claim.
#[derive(Clone, Copy)]
pub struct TransactionLimits {
    /// Bytes that the texts of its jobs may have, not counting the last one.
    pub room: usize,
    /// The claim ends after it, even without a job.
    pub is_last: bool,
}

/// Leases up to `count` jobs to the worker. Round robin starts with the first queue.
///
/// # Errors
/// [`Error::Revoked`].
pub fn claim(work: &mut UnitOfWork, claim: &Claim, limits: TransactionLimits) -> Result<Claimed> {
    if claim
        .grant
        .as_ref()
        .is_some_and(|grant| !work.is_valid_grant(grant))
    {
        return Err(Error::Revoked);
    }
    let mut claimed = match claim.order {
        Order::Ordered => claim_in_order(work, claim, limits),
        Order::RoundRobin => claim_in_turn(work, claim, limits),
    };
    claimed.is_full = true;
    for queue in &claim.queues {
        if let Some(id) = id_unless_paused(work, queue) {
            claimed.has_more |= work.has_more(id);
            claimed.is_full &= work.free_capacity(id) == 0;
        }
    }
    Ok(claimed)
}

/// Leases jobs of each queue, but of the next one only if none are left in those before it.
fn claim_in_order(work: &mut UnitOfWork, claim: &Claim, limits: TransactionLimits) -> Claimed {
    let TransactionLimits { mut room, is_last } = limits;
    let mut jobs = Vec::<Job>::new();
    let mut left = None;
    for (place, queue) in claim.queues.iter().enumerate() {
        let rest = claim.count - jobs.len();
        jobs.extend(claim_from_queue(work, claim, queue, rest, &mut room));
        // Jobs that the transaction did not load come before those of the next queues. But if the last transaction still
        // got none of this queue, jobs of others are better than no job.
        if has_more(work, queue) && !(is_last && jobs.is_empty()) {
            // If the claim needed no more jobs, it has not come to the end of the queues before.
            if rest > 0 {
                left = claim.queues.get(place..).map(<[_]>::to_vec);
            }
            break;
        }
    }
    Claimed {
        jobs,
        has_more: false,
        is_full: false,
        last: None,
        left,
    }
}

/// Leases one job of each queue in turn. Ends at a queue that has more jobs than the transaction loaded for this claim,
/// because they come before the next jobs of the queues after it.
fn claim_in_turn(work: &mut UnitOfWork, claim: &Claim, limits: TransactionLimits) -> Claimed {
    let TransactionLimits { mut room, is_last } = limits;
    let (count, per_queue) = (claim.queues.len(), claim.count_per_queue());
    let mut jobs = Vec::<Job>::new();
    let (mut next, mut empty, mut last, mut is_stopped) = (0, 0, None, false);
    let mut visits = vec![0; count];
    while jobs.len() < claim.count && empty < count {
        let (Some(queue), Some(visits)) = (claim.queues.get(next), visits.get_mut(next)) else {
            break;
        };
        if *visits >= per_queue && is_cut(work, queue) {
            is_stopped = true;
            break;
        }
        *visits += 1;
        let found = claim_from_queue(work, claim, queue, 1, &mut room);
        if found.is_empty() && has_more(work, queue) && !(is_last && jobs.is_empty()) {
            is_stopped = true;
            break;
        }
        if found.is_empty() {
            empty += 1;
        } else {
            (empty, last) = (0, Some(queue.clone()));
        }
        next = (next + 1) % count;
        jobs.extend(found);
    }
    let (before, after) = claim.queues.split_at_checked(next).unwrap_or_default();
    let left = after.iter().chain(before);
    let is_all = last.is_none() && !is_stopped;
    let left = left.filter(|queue| is_all || may_have_more(work, queue));
    let left = left.cloned().collect();
    Claimed {
        jobs,
        has_more: is_stopped,
        is_full: false,
        last,
        left: Some(left),
    }
}

fn has_more(work: &UnitOfWork, queue: &QueueKey) -> bool {
    id_unless_paused(work, queue).is_some_and(|id| work.has_more(id))
}

fn is_cut(work: &UnitOfWork, queue: &QueueKey) -> bool {
    id_unless_paused(work, queue).is_some_and(|id| work.is_cut(id))
}

fn may_have_more(work: &UnitOfWork, queue: &QueueKey) -> bool {
    id_unless_paused(work, queue).is_some_and(|id| work.may_have_more(id))
}

/// A peek in the same transaction loads jobs of a paused queue too.
fn id_unless_paused(work: &UnitOfWork, queue: &QueueKey) -> Option<QueueId> {
    let queue = work.queue(queue)?;
    (!queue.is_paused(work.now)).then_some(queue.id)
}

/// Leases up to `count` jobs of `queue` to the worker, unless it is paused. `room` is the remaining size for texts in
/// bytes; the last one may exceed it.
///
/// qless: first jobs with expired leases, oldest first, each of which uses up one retry; then jobs that `/timeout` took
/// from their workers; then waiting and due jobs, in order. A job with an expired lease and no retries left fails instead.
/// The worker counts as active even if it gets no job.
/// lmstfy and Relay: jobs with expired leases are queued again among the others.
fn claim_from_queue(
    work: &mut UnitOfWork,
    claim: &Claim,
    queue: &QueueKey,
    count: usize,
    room: &mut usize,
) -> Vec<Job> {
    let worker = claim.worker.as_str();
    let by_qless = queue.protocol == Protocol::Qless;
    let known = work.queue(queue);
    if known
        .as_ref()
        .is_some_and(|queue| queue.is_paused(work.now))
    {
        return Vec::new();
    }
    if by_qless {
        work.worker_seen(worker);
    }
    let Some(id) = known.map(|queue| queue.id) else {
        return Vec::new();
    };
    let count = count.min(work.free_capacity(id));
    let lease_s = claim
        .lease_s
        .or_else(|| by_qless.then(|| lease_s(work, &queue.name)));
    if !by_qless {
        leases::expire_leases(work, id);
    }
    let mut jobs = Vec::new();
    let subtract_size = |job: &Job, room: &mut usize| *room = room.saturating_sub(job.text_bytes());
    for _ in 0..count {
        if *room == 0 {
            return jobs;
        }
        let Some(key) = work.next_expired_lease(id) else {
            break;
        };
        if claim_expired(work, claim, &key, &queue.name) {
            let given = lease_to_worker(work, &key, id, worker, lease_s);
            jobs.extend(given.inspect(|job| subtract_size(job, room)));
        } else {
            // An expired job that this one displaced was not loaded, and nothing else wakes a poll for it.
            work.wake(id, 1);
        }
    }
    while jobs.len() < count && *room > 0 {
        let Some(key) = work.next_waiting(id) else {
            break;
        };
        let given = lease_to_worker(work, &key, id, worker, lease_s);
        jobs.extend(given.inspect(|job| subtract_size(job, room)));
    }
    jobs
}

/// Ends an expired lease; if there is a grace period, only when that has expired too. Returns whether the job can be
/// leased now.
fn claim_expired(work: &mut UnitOfWork, claim: &Claim, key: &JobKey, queue_name: &str) -> bool {
    let now = work.now;
    let grace_s = match work.config.is_set("grace-period") {
        true => work.config.number("grace-period"),
        false => claim.grace_s,
    };
    let Some(lease) = work.job(key).and_then(|job| job.lease.clone()) else {
        return false;
    };
    if grace_s > 0.0 && !lease.in_grace_period {
        if let Some(job) = work.job_mut(key)
            && let Some(lease) = &mut job.lease
        {
            lease.in_grace_period = true;
            lease.until = now.plus_seconds(grace_s);
        }
        announce_expired_lease(work, key, &lease.worker);
        return false;
    }
    // A claim with another grace period may have announced it.
    if !lease.in_grace_period {
        announce_expired_lease(work, key, &lease.worker);
    }
    let Some(job) = work.job_mut(key) else {
        return false;
    };
    job.remaining -= 1;
    if job.remaining >= 0 {
        return true;
    }
    let queue = job.queue;
    fail_exhausted(job, queue_name, lease.worker, now);
    let failure = job.failure.clone();
    work.counters.failure(queue, now);
    work.publish_tracked("failed", key);
    if let Some(failure) = failure {
        work.events.log(&LogEvent::Failed {
            id: &key.id,
            group: &failure.group,
            message: excerpt(&failure.message),
            worker: &failure.worker,
        });
    }
    false
}

/// Records and publishes that the lease expired.
fn announce_expired_lease(work: &mut UnitOfWork, key: &JobKey, worker: &str) {
    let now = work.now;
    work.publish_tracked("stalled", key);
    if let Some(job) = work.job_mut(key) {
        job.history.push(EventKind::TimedOut, now, None, None);
        let queue = job.queue;
        work.counters.lease_expired(queue, now);
        work.counters.run_ended(queue, worker, RunResult::Lost, now);
    }
    announce_lost_lease(work, key, worker);
}

/// The duration of a lease in seconds: until the next heartbeat is due, or until the cutoff if that is earlier.
fn lease_s(work: &UnitOfWork, queue_name: &str) -> f64 {
    let heartbeat_s = work.config.heartbeat_s(queue_name);
    work.config
        .cutoff_s(queue_name)
        .map_or(heartbeat_s, |cutoff_s| heartbeat_s.min(cutoff_s))
}

/// How far the clocks of servers may be apart, in seconds.
const SERVERS_APART_MAX_S: f64 = 5.0;

/// Leases the job to the worker for `lease_s` seconds, or for the job's own timeout.
fn lease_to_worker(
    work: &mut UnitOfWork,
    key: &JobKey,
    queue: QueueId,
    worker: &str,
    lease_s: Option<f64>,
) -> Option<Job> {
    let (now, history_max) = (work.now, work.history_max);
    let job = work.job_mut(key)?;
    // Another server may have put the job just after this transaction began. A job is not claimed before it is due.
    let now = match key.scope {
        QLESS_SCOPE => now,
        // Much later, it was set by a clock that has been corrected since, and the lease would last as long.
        _ if job.ready_at > now.plus_seconds(SERVERS_APART_MAX_S) => now,
        _ => now.max(job.ready_at),
    };
    let waited = match key.scope {
        QLESS_SCOPE => now.seconds_since(job.since),
        // A delay does not count as waiting time.
        _ => now.seconds_since(job.ready_at.max(job.since)),
    };
    let by = (!worker.is_empty()).then_some(worker);
    job.history.push(EventKind::Popped, now, by, None);
    job.history.shorten(history_max);
    job.state = State::Running;
    job.since = now;
    job.updated_at = job.updated_at.map(|_| now);
    let lease_s = lease_s.unwrap_or(job.timeout_s.unwrap_or_default() as f64);
    job.lease = Some(Lease {
        worker: worker.to_owned(),
        id: uuid::Uuid::new_v4().simple().to_string(),
        until: now.plus_seconds(lease_s),
        in_grace_period: false,
    });
    let job = job.clone();
    work.counters.duration(queue, Kind::Wait, waited, now);
    work.use_capacity(queue);
    work.publish_tracked("popped", key);
    Some(job)
}
