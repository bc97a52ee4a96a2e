//! Claim: gives jobs to a worker. All protocols with leases share it: `pop` of qless, `consume` of lmstfy, `next` of Relay.

pub mod take;
pub mod turns;
pub mod wait;

use std::collections::HashSet;
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{RESPONSE_BYTES_MAX, Result};
use crate::engine::model::job::{Job, QueueKey};
use crate::engine::subscriptions::timer::QUEUES_PER_STATEMENT;
use crate::engine::tokens::Grant;
use crate::engine::unit_of_work::{Needs, UnitOfWork, Wanted};
use crate::engine::verbs::claim::take::Claimed;

/// How many bytes the bodies of the jobs of one claim may have, before the last: an answer must have room for all that is
/// leased.
pub const CLAIM_BYTES_MAX: usize = RESPONSE_BYTES_MAX / 2;

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
    pub(in crate::engine) fn demand(&self) -> Vec<Wanted> {
        let wanted = |queue: &QueueKey| Wanted {
            queue: queue.clone(),
            count: self.count,
            include_paused: false,
        };
        self.queues.iter().map(wanted).collect()
    }
}

/// How often, and after what time, a claim is tried again that got nothing though there is something.
const LOOKS_MAX: u32 = 3;

const LOOK_AGAIN: Duration = Duration::from_millis(4);

/// Queues that one transaction claims from.
const QUEUES_MAX: usize = 8;

/// Jobs that are claimed in one transaction.
const CLAIM_MAX: usize = 250;

/// Whether an answer has no room for more jobs.
fn is_full(jobs: &[Job]) -> bool {
    jobs.iter().map(|job| job.body.bytes()).sum::<usize>() >= CLAIM_BYTES_MAX
}

impl Engine {
    /// Gives a worker jobs; see `engine/claim.rs` for the order. If the caller hangs up meanwhile, none. Many are claimed
    /// in several transactions.
    pub async fn claim(&self, claim: Claim, now: Option<Time>) -> Result<Vec<Job>> {
        if claim.order == Order::Ordered && claim.queues.len() > QUEUES_MAX {
            return self.claim_from_many(&claim, now).await;
        }
        self.claim_from_few(claim, now).await
    }

    /// A claim that names many queues looks first in which of them there is something: a transaction that asked each of
    /// them would be long, and on Postgres as many calls.
    async fn claim_from_many(&self, claim: &Claim, now: Option<Time>) -> Result<Vec<Job>> {
        self.refresh_cache().await?;
        let mut jobs = Vec::new();
        for queues in claim.queues.chunks(QUEUES_PER_STATEMENT) {
            let found = self.available(queues, self.now(now)).await?;
            let found = found.into_iter().filter(|(_, n)| *n > 0);
            let found: HashSet<QueueKey> = found.map(|(queue, _)| queue).collect();
            let there: Vec<_> = queues
                .iter()
                .filter(|queue| found.contains(*queue))
                .collect();
            for few in there.chunks(QUEUES_MAX) {
                let few = Claim {
                    queues: few.iter().copied().cloned().collect(),
                    count: claim.count - jobs.len(),
                    ..claim.clone()
                };
                match self.claim_from_few(few, now).await {
                    Err(error) if jobs.is_empty() => return Err(error),
                    some => jobs.extend(some.unwrap_or_default()),
                }
                if jobs.len() >= claim.count || is_full(&jobs) {
                    return Ok(jobs);
                }
            }
        }
        if jobs.is_empty() {
            // That the worker was there is noted, and its token looked at, though there is nothing for it.
            let first = claim.queues.iter().take(1).cloned().collect();
            let queues = Claim {
                queues: first,
                ..claim.clone()
            };
            return self.claim_from_few(queues, now).await;
        }
        Ok(jobs)
    }

    async fn claim_from_few(&self, mut claim: Claim, now: Option<Time>) -> Result<Vec<Job>> {
        let count = claim.count;
        let mut jobs = Vec::new();
        let mut looks = 0;
        while jobs.len() < count && !is_full(&jobs) {
            claim.count = (count - jobs.len()).min(CLAIM_MAX);
            let some = match self.claim_batch(claim.clone(), now).await {
                Ok(some) => some,
                Err(error) if jobs.is_empty() => return Err(error),
                // The jobs claimed so far belong to the caller.
                Err(_) => break,
            };
            let is_all = some.jobs.len() < claim.count && !some.is_cut;
            jobs.extend(some.jobs);
            if is_all && !(jobs.is_empty() && self.is_locked_by_peers(&claim, &mut looks).await) {
                break;
            }
        }
        Ok(jobs)
    }

    /// Whether a claim that got nothing is to be tried again after a moment: claims of other servers lock more jobs
    /// than they take (lost leases, of which it is not known yet whether they are handed on), and others pass over
    /// what is locked.
    async fn is_locked_by_peers(&self, claim: &Claim, looks: &mut u32) -> bool {
        if *looks >= LOOKS_MAX || !self.peers().any() {
            return false;
        }
        *looks += 1;
        let available = self.available(&claim.queues, self.now(None)).await;
        let are_there = available.is_ok_and(|found| found.iter().any(|(_, n)| *n > 0));
        if are_there {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        are_there
    }

    async fn claim_batch(&self, claim: Claim, now: Option<Time>) -> Result<Claimed> {
        let needs = Needs {
            claim: claim.demand(),
            ..Needs::default()
        };
        let items = claim.count;
        let in_turn = (claim.order == Order::RoundRobin).then(|| claim.clone());
        let first = in_turn.as_ref().map_or(0, |claim| self.0.turns.next(claim));
        let verb = move |work: &mut UnitOfWork| take::claim(work, &claim, first);
        let claimed = self.write(needs, now, items, verb).await?;
        if let Some(claim) = in_turn {
            self.0.turns.set(&claim, claimed.next);
        }
        Ok(claimed)
    }
}
