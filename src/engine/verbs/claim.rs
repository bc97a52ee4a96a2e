//! Claim: leases jobs to a worker. Shared by qless (`pop`), lmstfy (`consume`) and Relay (`next`).

pub mod lease;
pub mod round_robin;
pub mod wait;

use std::time::Duration;

use tokio::time::timeout;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, RESPONSE_BYTES_MAX, Result};
use crate::engine::model::job::{Job, QueueKey};
use crate::engine::subscriptions::timer::QUEUES_PER_STATEMENT;
use crate::engine::tokens::Grant;
use crate::engine::unit_of_work::{Needs, NextJobs, UnitOfWork};
use crate::engine::verbs::claim::lease::{Claimed, TransactionLimits};
use crate::engine::verbs::claim::round_robin::Turns;
use crate::memory;
use crate::traces;

/// Bytes that the texts of a claim's jobs may have, not counting the last job, because a response must have room for
/// all leased jobs.
pub const CLAIM_BYTES_MAX: usize = RESPONSE_BYTES_MAX / 2;

/// The order in which a claim visits several queues (qless-core, Queue Popping Order).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// A queue is used only if those before it are empty.
    #[default]
    Ordered,
    /// One job from each queue in turn, starting after the queue where the worker's last claim ended.
    RoundRobin,
}

/// A worker's request for jobs.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Empty if the protocol's workers have no names.
    pub worker: String,
    /// At least one queue, without duplicates, all of one protocol.
    pub queues: Vec<QueueKey>,
    pub count: usize,
    pub order: Order,
    /// The worker's token. It must still be valid when the jobs are leased.
    pub grant: Option<Grant>,
    /// The duration of each lease in seconds, if the worker specifies it (lmstfy's `ttr`).
    pub lease_s: Option<f64>,
    /// The grace period in seconds if the option `grace-period` is not set.
    pub grace_s: f64,
}

impl Claim {
    /// A claim on one queue.
    pub fn of(queue: QueueKey, worker: impl Into<String>, count: usize) -> Claim {
        Claim {
            worker: worker.into(),
            queues: vec![queue],
            count,
            order: Order::Ordered,
            grant: None,
            lease_s: None,
            grace_s: 0.0,
        }
    }

    /// The candidates that the transaction must load.
    pub(in crate::engine) fn wanted(&self) -> Vec<NextJobs> {
        let wanted = |queue: &QueueKey| NextJobs {
            queue: queue.clone(),
            count: self.count_per_queue(),
            include_paused: false,
        };
        self.queues.iter().map(wanted).collect()
    }

    /// The number of jobs that a transaction loads from each queue. Round robin shares [`CLAIM_MAX`] among the queues,
    /// and continues in the next transaction where a queue has more.
    fn count_per_queue(&self) -> usize {
        match self.order {
            Order::Ordered => self.count,
            Order::RoundRobin => {
                let share = CLAIM_MAX / self.queues.len().max(1);
                self.count.min(share.max(1))
            }
        }
    }
}

/// Maximum number of retries of a claim that got nothing although jobs are available.
const RETRIES_MAX: u32 = 3;

/// How long such a claim waits to find out whether jobs are available.
const LOCKED_WAIT_MAX: Duration = Duration::from_millis(100);

/// What each further queue adds to the weight of a claim on Postgres, which takes one to three statements per queue.
const WEIGHT_OF_QUEUE: usize = 8;

/// The delay between these retries.
const RETRY_DELAY: Duration = Duration::from_millis(4);

/// Maximum number of consecutive transactions of a claim that lease no job although more are available. This happens
/// if other claims lease the loaded jobs, or if jobs with the IDs of the due children already exist.
pub const EMPTY_MAX: u32 = 64;

/// Seconds until a poll that got nothing after [`EMPTY_MAX`] transactions tries again.
const EMPTY_DELAY_S: f64 = 0.1;

/// Queues that one transaction claims from.
const QUEUES_MAX: usize = 8;

/// Jobs that one transaction claims.
pub const CLAIM_MAX: usize = 250;

/// How many more bytes of jobs the response has room for.
fn room_after(jobs: &[Job]) -> usize {
    let bytes = jobs.iter().map(Job::text_bytes).sum();
    CLAIM_BYTES_MAX.saturating_sub(bytes)
}

impl Engine {
    /// Leases jobs to a worker, in the order described at [`Order`]. Large claims use several transactions. If
    /// the caller disconnects, the remaining transactions lease no jobs.
    pub async fn claim(&self, claim: Claim, now: Option<Time>) -> Result<Vec<Job>> {
        self.note_claim(&claim, now);
        let claimed = if claim.order == Order::Ordered && claim.queues.len() > QUEUES_MAX {
            Box::pin(self.claim_from_many(&claim, now)).await
        } else {
            self.claim_from_few(claim, now, CLAIM_BYTES_MAX).await
        };
        if let Ok(jobs) = &claimed {
            traces::claimed(|| {
                jobs.iter()
                    .map(|job| job.history.traceparent().unwrap_or_default())
            });
        }
        claimed
    }

    /// A claim on many queues first checks which of them have jobs: a transaction that queries every queue would be
    /// long, and on Postgres would take a statement per queue.
    async fn claim_from_many(&self, claim: &Claim, now: Option<Time>) -> Result<Vec<Job>> {
        // Their names, and a copy. They are not counted while a poll waits, which has a limit of its own.
        let bytes = claim.queues.iter().map(QueueKey::bytes).sum::<usize>();
        let reserved = memory::reserve_with_copy(bytes).await;
        let _reserved = reserved.map_err(|memory::Busy| Error::Busy)?;
        self.refresh_cache().await?;
        let mut jobs = Vec::new();
        for queues in claim.queues.chunks(QUEUES_PER_STATEMENT) {
            let found = self.non_empty(queues, self.now(now)).await?;
            let non_empty: Vec<_> = queues
                .iter()
                .filter(|queue| found.contains(*queue))
                .collect();
            for few in non_empty.chunks(QUEUES_MAX) {
                let few = Claim {
                    queues: few.iter().copied().cloned().collect(),
                    count: claim.count - jobs.len(),
                    ..claim.clone()
                };
                match self.claim_from_few(few, now, room_after(&jobs)).await {
                    Err(error) if jobs.is_empty() => return Err(error),
                    batch => jobs.extend(batch.unwrap_or_default()),
                }
                if jobs.len() >= claim.count || room_after(&jobs) == 0 {
                    return Ok(jobs);
                }
            }
        }
        if jobs.is_empty() {
            // Records the worker's activity and checks its token although there are no jobs.
            let first = claim.queues.iter().take(1).cloned().collect();
            let queues = Claim {
                queues: first,
                ..claim.clone()
            };
            return self.claim_from_few(queues, now, CLAIM_BYTES_MAX).await;
        }
        Ok(jobs)
    }

    /// `room`: bytes of jobs that are claimed before the last one.
    async fn claim_from_few(
        &self,
        mut claim: Claim,
        now: Option<Time>,
        mut room: usize,
    ) -> Result<Vec<Job>> {
        let count = claim.count;
        let mut jobs = Vec::new();
        let (mut retries, mut empty) = (0, 0);
        let round_robin = Turns::begin(&self.0.round_robin, &mut claim);
        while jobs.len() < count && room > 0 {
            claim.count = (count - jobs.len()).min(CLAIM_MAX);
            let is_last = empty + 1 >= EMPTY_MAX;
            let limits = TransactionLimits { room, is_last };
            let batch = match self.claim_batch(claim.clone(), now, limits).await {
                Ok(batch) => batch,
                Err(error) if jobs.is_empty() => return Err(error),
                Err(_) => break,
            };
            let left = batch.left.as_ref().map(Vec::len);
            let leaves_queues = left.is_some_and(|left| left < claim.queues.len());
            let is_empty = batch.jobs.is_empty() && !leaves_queues;
            empty = if is_empty { empty + 1 } else { 0 };
            if batch.has_more && empty >= EMPTY_MAX {
                // Nothing else wakes a poll for the jobs that it did not get.
                let soon = self.now(None).plus_seconds(EMPTY_DELAY_S);
                let queues = claim.queues.iter();
                queues.for_each(|queue| self.subscriptions().available_at(queue, soon));
            }
            let has_more = batch.has_more && empty < EMPTY_MAX;
            let is_all = batch.jobs.len() < claim.count && !has_more;
            let bytes = batch.jobs.iter().map(Job::text_bytes).sum::<usize>();
            room = room.saturating_sub(bytes);
            jobs.extend(batch.jobs);
            if let Some(turns) = &round_robin {
                turns.set_last(batch.last.as_ref());
            }
            if let Some(left) = batch.left {
                claim.queues = left;
            }
            // These jobs are leased, so they are returned, but without memory no more are claimed.
            let is_busy = memory::reserve_large(bytes).await.is_err();
            if is_busy
                || claim.queues.is_empty()
                || is_all
                    && !(jobs.is_empty()
                        && !batch.is_full
                        && Box::pin(self.is_locked_by_peers(&claim, &mut retries)).await)
            {
                break;
            }
        }
        Ok(jobs)
    }

    /// Whether a claim that got nothing should be retried shortly: claims skip jobs that another server has locked, and
    /// other servers also lock jobs that they do not lease.
    async fn is_locked_by_peers(&self, claim: &Claim, retries: &mut u32) -> bool {
        if *retries >= RETRIES_MAX || !self.peers().any() {
            return false;
        }
        *retries += 1;
        let found = self.non_empty(&claim.queues, self.now(None));
        let found = timeout(LOCKED_WAIT_MAX, found).await;
        let has_jobs = found.is_ok_and(|read| read.is_ok_and(|found| !found.is_empty()));
        if has_jobs {
            tokio::time::sleep(RETRY_DELAY).await;
        }
        has_jobs
    }

    async fn claim_batch(
        &self,
        claim: Claim,
        now: Option<Time>,
        limits: TransactionLimits,
    ) -> Result<Claimed> {
        let needs = Needs {
            claim: claim.wanted(),
            ..Needs::default()
        };
        let items = claim.count_per_queue() * claim.queues.len();
        let statements = match self.readers().is_shared() {
            true => claim.queues.len().saturating_sub(1) * WEIGHT_OF_QUEUE,
            false => 0,
        };
        let verb = move |work: &mut UnitOfWork| lease::claim(work, &claim, limits);
        self.write(needs, now, items + statements, verb).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_loads_250_jobs_for_a_round_robin_claim_or_one_of_each_queue() {
        for (queues, count, expected) in [
            (1, 1, 1),
            (1, 250, 250),
            (3, 250, 83),
            (3, 10, 10),
            (100, 1, 1),
            (100, 250, 2),
            (300, 250, 1),
        ] {
            let keys = (0..queues).map(|n| QueueKey::qless(format!("q{n}")));
            let claim = Claim {
                queues: keys.collect(),
                order: Order::RoundRobin,
                ..Claim::of(QueueKey::qless("q"), "w", count)
            };
            let wanted: Vec<usize> = claim.wanted().iter().map(|it| it.count).collect();
            assert_eq!(wanted, vec![expected; queues], "{queues} queues");
        }
    }
}
