//! Queues and the numbers of their jobs.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::blocking::block_in_place_if_many;
use crate::engine::Engine;
use crate::engine::claimants::LastClaims;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{EffectiveState, QueueId, QueueKey, State};
use crate::engine::model::queue::{Pause, Queue};
use crate::memory::{SMALL_MAX, reserve_page};
use crate::store::{Statement, StatementResult};

/// The number of jobs of a queue in each effective state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub waiting: i64,
    pub scheduled: i64,
    pub depends: i64,
    pub running: i64,
    /// Running jobs whose lease has expired. Timed-out jobs count as waiting.
    pub stalled: i64,
    pub failed: i64,
    pub complete: i64,
    pub dead: i64,
    pub records: i64,
}

impl Counts {
    pub fn plus(self, other: Counts) -> Counts {
        Counts {
            waiting: self.waiting + other.waiting,
            scheduled: self.scheduled + other.scheduled,
            depends: self.depends + other.depends,
            running: self.running + other.running,
            stalled: self.stalled + other.stalled,
            failed: self.failed + other.failed,
            complete: self.complete + other.complete,
            dead: self.dead + other.dead,
            records: self.records + other.records,
        }
    }

    pub fn of(&self, state: EffectiveState) -> i64 {
        match state {
            EffectiveState::Waiting => self.waiting,
            EffectiveState::Scheduled => self.scheduled,
            EffectiveState::Depends => self.depends,
            EffectiveState::Running => self.running,
            EffectiveState::Stalled => self.stalled,
            EffectiveState::Failed => self.failed,
            EffectiveState::Complete => self.complete,
            EffectiveState::Dead => self.dead,
            EffectiveState::Record => self.records,
        }
    }

    fn count_mut(&mut self, state: State) -> &mut i64 {
        match state {
            State::Waiting | State::TimedOut => &mut self.waiting,
            State::Scheduled => &mut self.scheduled,
            State::Depends => &mut self.depends,
            State::Running => &mut self.running,
            State::Failed => &mut self.failed,
            State::Complete => &mut self.complete,
            State::Dead => &mut self.dead,
            State::Record => &mut self.records,
        }
    }
}

/// The priorities of a queue in which its oldest waiting job is looked for, and those of all queues together, of which
/// each queue has at least one.
const PRIORITIES_MAX: usize = 100;
const ALL_PRIORITIES_MAX: usize = 100_000;

/// Pages whose queues occupy fewer bytes reserve nothing.
const PAGE_BYTES_MIN: usize = 2 << 20;

/// Bytes that a queue of weight 1 occupies while a response is built: its counts as they are read, as they are listed,
/// and as text.
const QUEUE_BYTES: usize = 768;

#[derive(Clone, Debug, PartialEq)]
pub struct QueueCounts {
    pub queue: Arc<Queue>,
    pub counts: Counts,
    /// The pause that lasts at the time of the read.
    pub pause: Option<Pause>,
    /// When the job that has waited longest became available. With more than [`PRIORITIES_MAX`] priorities in the
    /// queue, only jobs with the lowest [`PRIORITIES_MAX`] priority numbers or the highest number count; fewer numbers
    /// if all of more than 1,000 queues are counted.
    pub oldest_waiting: Option<Time>,
    /// The number of its recurring jobs.
    pub recurring: i64,
    /// The last claims of its jobs; `None` if other servers may have had claims.
    pub claims: Option<LastClaims>,
}

impl Engine {
    /// The bytes that a response with all queues occupies; 0 if they are few.
    pub fn size_of_queues(&self) -> usize {
        let bytes = self.known_queues().weight() * QUEUE_BYTES;
        if bytes > SMALL_MAX { bytes } else { 0 }
    }

    /// Reserves the memory of a page with all queues, if there are thousands.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::engine::Error::Busy).
    pub async fn reserve_page_of_queues(&self) -> Result<()> {
        match self.size_of_queues() {
            0..=PAGE_BYTES_MIN => Ok(()),
            bytes => Ok(reserve_page(bytes, self.is_for_guests()).await?),
        }
    }

    /// All queues, by the time they were first seen, then by name.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::engine::Error::Busy).
    pub async fn queues(&self, now: Option<Time>) -> Result<Arc<Vec<QueueCounts>>> {
        self.refresh_cache().await?;
        self.share(
            |it| &it.queues,
            now,
            move |engine| Box::pin(async move { engine.count_queues(now).await }),
        )
        .await
    }

    async fn count_queues(&self, now: Option<Time>) -> Result<Vec<QueueCounts>> {
        let now = self.now(now);
        let priorities = priorities_max(self.known_queues().count());
        let batch = vec![
            Statement::new(COUNTS, []),
            Statement::new(COUNT_STALLED, [now.0.into()]),
            Statement::new(COUNT_DUE, [now.0.into()]),
            Statement::new(OLDEST_WAITING, [(priorities as i64).into()]),
            Statement::new(RECURRING, []),
        ];
        let answers = self.readers().read(batch).await?;
        block_in_place_if_many(self.known_queues().count(), || {
            let (mut counts, oldest, recurring) = counts(answers)?;
            let with_counts = |queue: Arc<Queue>| QueueCounts {
                counts: counts.remove(&queue.id).unwrap_or_default(),
                pause: queue.pause_at(now).cloned(),
                oldest_waiting: oldest.get(&queue.id).copied(),
                recurring: recurring.get(&queue.id).copied().unwrap_or_default(),
                claims: self.last_claims(queue.id),
                queue,
            };
            let known = self.known_queues().all().into_iter();
            Ok(known.map(with_counts).collect())
        })
    }

    /// One queue; `None` if it does not exist.
    pub async fn queue(&self, key: &QueueKey, now: Option<Time>) -> Result<Option<QueueCounts>> {
        self.refresh_cache().await?;
        let now = self.now(now);
        let Some(queue) = self.known_queues().get(key) else {
            return Ok(None);
        };
        let batch = vec![
            Statement::new(COUNTS_OF, [queue.id.into()]),
            Statement::new(COUNT_STALLED_OF, [queue.id.into(), now.0.into()]),
            Statement::new(COUNT_DUE_OF, [queue.id.into(), now.0.into()]),
            Statement::new(
                OLDEST_WAITING_OF,
                [(PRIORITIES_MAX as i64).into(), queue.id.into()],
            ),
            Statement::new(RECURRING_OF, [queue.id.into()]),
        ];
        let (mut counts, oldest, recurring) = counts(self.readers().read(batch).await?)?;
        let counts = counts.remove(&queue.id).unwrap_or_default();
        Ok(Some(QueueCounts {
            counts,
            pause: queue.pause_at(now).cloned(),
            oldest_waiting: oldest.get(&queue.id).copied(),
            recurring: recurring.get(&queue.id).copied().unwrap_or_default(),
            claims: self.last_claims(queue.id),
            queue,
        }))
    }
}

/// The priorities in which the oldest waiting job is looked for, in each of this many queues.
fn priorities_max(queues: usize) -> usize {
    (ALL_PRIORITIES_MAX / queues.max(1)).clamp(1, PRIORITIES_MAX)
}

type Found = (
    HashMap<QueueId, Counts>,
    HashMap<QueueId, Time>,
    HashMap<QueueId, i64>,
);

/// Counts by queue, when each queue's oldest waiting job became available, and numbers of recurring jobs.
fn counts(answers: Vec<StatementResult>) -> Result<Found> {
    let mut counts: HashMap<QueueId, Counts> = HashMap::new();
    let (mut oldest, mut recurring) = (HashMap::new(), HashMap::new());
    for (index, answer) in answers.into_iter().enumerate() {
        for row in answer.rows {
            let (queue, n) = (row.int(0)?, row.int(1)?);
            let of_queue = counts.entry(queue).or_default();
            match index {
                0 => {
                    if let Some(state) = State::from_code(row.int(2)?) {
                        *of_queue.count_mut(state) += n;
                    }
                }
                1 => {
                    of_queue.stalled = n;
                    of_queue.running -= n;
                }
                2 => {
                    of_queue.waiting += n;
                    of_queue.scheduled -= n;
                }
                3 => {
                    oldest.insert(queue, Time(n));
                }
                _ => {
                    recurring.insert(queue, n);
                }
            }
        }
    }
    Ok((counts, oldest, recurring))
}

pub const COUNTS: &str = "SELECT queue, CAST(sum(n) AS BIGINT), slot FROM tallies WHERE kind = {kind_state} GROUP BY queue, slot";

// The join with `queues` finds expired leases and due jobs at the start of an index, queue by queue.
const COUNT_STALLED: &str = "
SELECT q.id, count(*) FROM queues AS q CROSS JOIN jobs AS j
WHERE j.queue = q.id AND j.state = {running} AND j.lease_until <= $1 GROUP BY q.id";

const COUNT_DUE: &str = "
SELECT q.id, count(*) FROM queues AS q CROSS JOIN jobs AS j
WHERE j.queue = q.id AND j.state = {scheduled} AND j.ready_at <= $1 GROUP BY q.id";

// `jobs_waiting` orders the jobs of a queue by priority, then by age. So the oldest job of each priority is one lookup,
// and so is the next priority; the jobs in between are never read. The last priority is looked up as well, because its
// jobs wait longest.
macro_rules! oldest_waiting {
    ($queues:literal) => {
        concat!(
            "WITH RECURSIVE steps (queue, priority, n) AS (
                 SELECT q.id, (SELECT j.priority FROM jobs AS j WHERE j.queue = q.id AND j.state = {waiting}
                               ORDER BY j.priority LIMIT 1), 1
                 FROM queues AS q",
            $queues,
            "    UNION ALL
                 SELECT s.queue, (SELECT j.priority FROM jobs AS j WHERE j.queue = s.queue AND j.state = {waiting}
                                      AND j.priority > s.priority ORDER BY j.priority LIMIT 1), s.n + 1
                 FROM steps AS s WHERE s.priority IS NOT NULL AND s.n < $1
             ), priorities (queue, priority) AS (
                 SELECT s.queue, s.priority FROM steps AS s WHERE s.priority IS NOT NULL
                 UNION ALL
                 SELECT s.queue, (SELECT j.priority FROM jobs AS j WHERE j.queue = s.queue AND j.state = {waiting}
                                  ORDER BY j.priority DESC LIMIT 1)
                 FROM steps AS s WHERE s.n = $1 AND s.priority IS NOT NULL
             )
             SELECT o.queue, min(o.ready_at) FROM (
                 SELECT p.queue, (SELECT j.ready_at FROM jobs AS j WHERE j.queue = p.queue AND j.state = {waiting}
                                      AND j.priority = p.priority ORDER BY j.ready_at LIMIT 1) AS ready_at
                 FROM priorities AS p) AS o
             WHERE o.ready_at IS NOT NULL GROUP BY o.queue"
        )
    };
}

const OLDEST_WAITING: &str = oldest_waiting!("");

const OLDEST_WAITING_OF: &str = oldest_waiting!(" WHERE q.id = $2");

const RECURRING: &str = "SELECT queue, count(*) FROM recurring GROUP BY queue";

const RECURRING_OF: &str = "SELECT queue, count(*) FROM recurring WHERE queue = $1 GROUP BY queue";

const COUNTS_OF: &str = "SELECT queue, CAST(sum(n) AS BIGINT), slot FROM tallies WHERE kind = {kind_state} AND queue = $1 GROUP BY queue, slot";

const COUNT_STALLED_OF: &str = "SELECT queue, count(*) FROM jobs WHERE queue = $1 AND state = {running} AND lease_until <= $2 GROUP BY queue";

const COUNT_DUE_OF: &str = "SELECT queue, count(*) FROM jobs WHERE queue = $1 AND state = {scheduled} AND ready_at <= $2 GROUP BY queue";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_queues_together_have_a_limit_on_priorities() {
        let counts = [0, 1, 1_000, 1_001, 2_000, 50_001, 100_000, 1_000_000];
        let each = counts.map(priorities_max);
        assert_eq!(each, [100, 100, 100, 99, 50, 1, 1, 1]);
    }
}
