//! The jobs that the claims of a transaction may lease, in the order in which they are claimed.
//!
//! For each kind of job, the statements read as many jobs of a queue as the claims request, because only a loaded job
//! shows whether it can be leased. A row without its long parts can still have 100 KiB or more, so if the claims
//! request many jobs, the database adds up the sizes and returns only the first rows.

mod statements;

use std::collections::{HashSet, VecDeque};

use crate::engine::model::job::{JobKey, Protocol, QueueId, State};
use crate::engine::model::recurring::{self, Due};
use crate::engine::unit_of_work::spawn::Spawned;
use crate::engine::unit_of_work::{UnitOfWork, WantedJobs};
use crate::store::{Statement, StatementResult, StoreError};

use statements::{OF_OTHERS, OF_QLESS};

/// Jobs that the claims of a transaction want, up to which the sizes of the candidates are not added up.
const FEW_WANTED: usize = 64;

/// Bytes of candidates that a transaction reads for more than [`FEW_WANTED`], not counting the last one of each queue.
const CANDIDATES_BYTES_MAX: usize = 8 << 20;

/// Jobs that maintenance has not processed yet: due jobs, of which a transaction looks for those with the highest
/// priority, and waiting jobs whose time to live has ended, which it passes over.
const UNPROCESSED_MAX: usize = 10_000;

/// Jobs that a claim may lease, in claim order.
#[derive(Default)]
pub struct Candidates {
    pub(super) expired: VecDeque<JobKey>,
    pub(super) waiting: VecDeque<JobKey>,
    /// How many more jobs may run, if the queue has a limit.
    pub(super) free_capacity: Option<usize>,
    /// There are more candidates than the transaction has memory for.
    pub(super) has_more: bool,
    /// As many were loaded as requested, so there may be more.
    is_cut: bool,
    spawned: Spawned,
}

impl UnitOfWork {
    /// The statements that read, for each queue, the next jobs, the number of running jobs if that is limited, and the
    /// due recurring jobs if there are any.
    pub fn candidate_statements(
        &self,
        wanted: &[WantedJobs],
        recurring: &HashSet<QueueId>,
    ) -> Vec<Statement> {
        let mut batch = Vec::with_capacity(wanted.len());
        let bytes_max = bytes_max(wanted);
        for WantedJobs {
            queue,
            count,
            limit,
        } in wanted
        {
            let arguments = [
                (*queue).into(),
                self.now.0.into(),
                (*count as i64).into(),
                unprocessed_max(wanted.len(), *count).into(),
            ];
            let is_qless = self
                .queue_by_id(*queue)
                .is_some_and(|queue| queue.key.protocol == Protocol::Qless);
            let statements = if is_qless { OF_QLESS } else { OF_OTHERS };
            batch.push(match bytes_max {
                None => Statement::new(statements.all, arguments),
                Some(max) => Statement::new(statements.first, arguments).with(max),
            });
            if let Some(max) = limit {
                let max = i64::try_from(*max).unwrap_or(i64::MAX);
                let arguments = [(*queue).into(), self.now.0.into(), max.into()];
                batch.push(Statement::new(RUNNING, arguments));
            }
            if recurring.contains(queue) || self.recurring_in.contains(queue) {
                batch.push(recurring::due(*queue, self.now, *count));
            }
        }
        batch
    }

    /// The statement that locks the queues with a concurrency limit, so that claims of other servers wait; `None` if no
    /// queue has one.
    pub fn lock_limited_queues(wanted: &[WantedJobs]) -> Option<Statement> {
        let limited = wanted.iter().filter(|wanted| wanted.limit.is_some());
        let mut rows: Vec<_> = limited.map(|wanted| (wanted.queue,)).collect();
        rows.sort_unstable();
        (!rows.is_empty()).then(|| Statement::of_rows(LOCK_QUEUES, &rows))
    }

    /// Stores the result of [`UnitOfWork::candidate_statements`], in claim order. Returns the due recurring jobs.
    pub fn take_candidates(
        &mut self,
        wanted: &[WantedJobs],
        recurring: &HashSet<QueueId>,
        mut answers: impl Iterator<Item = StatementResult>,
    ) -> Result<Vec<Due>, StoreError> {
        let mut due = Vec::new();
        let bytes_max = bytes_max(wanted);
        for WantedJobs { queue, limit, .. } in wanted {
            let (mut expired, mut waiting, mut has_more) = (Vec::new(), Vec::new(), false);
            for row in answers.next().unwrap_or_default().rows {
                if let Some(max) = bytes_max {
                    has_more |= row.int(row.columns() - 1)? >= max;
                }
                let key = self.add_row(&row)?;
                let Some(job) = self.job(&key) else { continue };
                match &job.lease {
                    Some(lease) => expired.push((lease.until, job.seq, key)),
                    None => waiting.push(key),
                }
            }
            expired.sort_by_key(|(until, seq, _)| (*until, *seq));
            let expired = expired.into_iter().map(|(.., key)| key).collect();
            let free_capacity = match limit {
                Some(max) => {
                    let answer = answers.next().unwrap_or_default();
                    let running = answer.rows.first().map_or(Ok(0), |row| row.int(0))?;
                    Some(max.saturating_sub(usize::try_from(running).unwrap_or(usize::MAX)))
                }
                None => None,
            };
            if recurring.contains(queue) || self.recurring_in.contains(queue) {
                for row in answers.next().unwrap_or_default().rows {
                    due.push(recurring::read_due(&row)?);
                }
            }
            let waiting = self.in_order(waiting);
            self.candidates.insert(
                *queue,
                Candidates {
                    expired,
                    waiting,
                    free_capacity,
                    has_more,
                    is_cut: false,
                    spawned: Spawned::default(),
                },
            );
        }
        Ok(due)
    }

    /// Adds jobs to the waiting candidates of the queue.
    pub fn add_waiting(&mut self, queue: QueueId, more: Vec<JobKey>) {
        if more.is_empty() {
            return;
        }
        if let Some(mut candidates) = self.candidates.remove(&queue) {
            let waiting = candidates.waiting.drain(..).chain(more).collect();
            candidates.waiting = self.in_order(waiting);
            self.candidates.insert(queue, candidates);
        }
    }

    /// How many more jobs of the queue may run; `usize::MAX` if it has no limit.
    pub fn free_capacity(&self, queue: QueueId) -> usize {
        let candidates = self.candidates.get(&queue);
        candidates
            .and_then(|candidates| candidates.free_capacity)
            .unwrap_or(usize::MAX)
    }

    /// Whether more jobs of the queue could be claimed, which were too large for this transaction.
    pub fn has_more(&self, queue: QueueId) -> bool {
        let candidates = self.candidates.get(&queue);
        candidates
            .is_some_and(|candidates| candidates.has_more && candidates.free_capacity != Some(0))
    }

    /// Leaves the jobs of a queue to a later transaction.
    pub fn leave_for_later(&mut self, queue: QueueId) {
        let mut candidates = Candidates {
            has_more: true,
            ..Candidates::default()
        };
        candidates.spawned.has_more = true;
        self.candidates.insert(queue, candidates);
    }

    /// Notes that more jobs of the queue could be claimed.
    pub fn note_more(&mut self, queue: QueueId) {
        if let Some(candidates) = self.candidates.get_mut(&queue) {
            candidates.has_more = true;
        }
    }

    /// The number of candidates of the queue with an expired lease.
    pub fn expired_leases(&self, queue: QueueId) -> usize {
        let candidates = self.candidates.get(&queue);
        candidates.map_or(0, |candidates| candidates.expired.len())
    }

    /// Notes that more children of recurring jobs are due in the queue, and could be claimed.
    pub fn note_more_children(&mut self, queue: QueueId) {
        if let Some(candidates) = self.candidates.get_mut(&queue) {
            (candidates.has_more, candidates.spawned.has_more) = (true, true);
        }
    }

    /// Notes that the transaction created `count` children in the queue, each with a body of `body_bytes` bytes.
    pub fn note_spawned(&mut self, queue: QueueId, count: usize, body_bytes: usize) {
        if let Some(candidates) = self.candidates.get_mut(&queue) {
            candidates.spawned.count += count;
            candidates.spawned.bytes += count * body_bytes;
        }
    }

    /// The children that the transaction created in the queue.
    pub fn spawned(&self, queue: QueueId) -> Spawned {
        let candidates = self.candidates.get(&queue);
        candidates.map_or_else(Spawned::default, |candidates| candidates.spawned)
    }

    /// Notes the queues of which as many candidates were loaded as requested.
    pub fn note_cut(&mut self, wanted: &[WantedJobs]) {
        for wanted in wanted {
            if let Some(candidates) = self.candidates.get_mut(&wanted.queue) {
                let loaded = candidates.expired.len() + candidates.waiting.len();
                candidates.is_cut = loaded >= wanted.count || candidates.has_more;
            }
        }
    }

    /// Whether the queue may have more jobs to claim than were loaded.
    pub fn is_cut(&self, queue: QueueId) -> bool {
        let candidates = self.candidates.get(&queue);
        candidates
            .is_some_and(|candidates| candidates.is_cut && candidates.free_capacity != Some(0))
    }

    /// Whether more jobs of the queue can be claimed, loaded or not.
    pub fn may_have_more(&self, queue: QueueId) -> bool {
        let candidates = self.candidates.get(&queue);
        let has_loaded = candidates.is_some_and(|candidates| {
            let count = candidates.expired.len() + candidates.waiting.len();
            count > 0 && candidates.free_capacity != Some(0)
        });
        has_loaded || self.is_cut(queue) || self.has_more(queue)
    }

    /// Counts one more running job of the queue.
    pub fn use_capacity(&mut self, queue: QueueId) {
        if let Some(room) = self
            .candidates
            .get_mut(&queue)
            .and_then(|it| it.free_capacity.as_mut())
        {
            *room = room.saturating_sub(1);
        }
    }

    /// The next job of the queue with an expired lease.
    pub fn next_expired_lease(&mut self, queue: QueueId) -> Option<JobKey> {
        self.candidates.get_mut(&queue)?.expired.pop_front()
    }

    /// The next timed-out, waiting or due job of the queue.
    pub fn next_waiting(&mut self, queue: QueueId) -> Option<JobKey> {
        self.candidates.get_mut(&queue)?.waiting.pop_front()
    }

    /// Sorts waiting jobs in claim order.
    fn in_order(&self, mut waiting: Vec<JobKey>) -> VecDeque<JobKey> {
        let claim_order = |key: &JobKey| {
            let job = self.job(key)?;
            let priority = match job.state {
                State::TimedOut => None,
                _ => Some(rank(job.priority)),
            };
            Some((priority, job.ready_at, job.seq))
        };
        waiting.sort_by_cached_key(claim_order);
        waiting.into()
    }
}

/// How many bytes of candidates to read of each queue; `None` if the claims want few jobs.
fn bytes_max(wanted: &[WantedJobs]) -> Option<i64> {
    let count: usize = wanted.iter().map(|wanted| wanted.count).sum();
    (count > FEW_WANTED).then(|| (CANDIDATES_BYTES_MAX / wanted.len()) as i64)
}

/// How many such jobs of a queue to look through if claims want `count` of it, and jobs of this many queues.
fn unprocessed_max(queues: usize, count: usize) -> i64 {
    (UNPROCESSED_MAX / queues).max(count) as i64
}

/// Maps a number to an integer with the same ordering.
fn rank(number: f64) -> i64 {
    // Adding 0 turns -0 into 0. The bits of negative numbers sort in reverse.
    let bits = (number + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// The number of jobs of a queue that run with an unexpired lease, up to `$3`.
const RUNNING: &str = "
SELECT count(*) FROM (
    SELECT seq FROM jobs WHERE queue = $1 AND state = {running} AND lease_until > $2 LIMIT $3 + 0) AS r";

/// Changes nothing, but locks the rows until the end of the transaction.
const LOCK_QUEUES: &str = "
UPDATE queues SET paused = paused FROM rows($1) AS k WHERE queues.id = k.int(0)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::verbs::claim::Claim;
    use crate::engine::{Engine, Put, QueueKey, engine_without_tasks};

    async fn put(engine: &Engine, id: &str, priority: f64, delay_s: f64) {
        let job = Put {
            id: Some(id.to_owned()),
            body: "1".repeat(1_000),
            priority: Some(priority),
            delay: Some(delay_s),
            ..Put::default()
        };
        let put = engine.put(QueueKey::qless("q"), vec![job], String::new(), None);
        put.await.unwrap().remove(0).unwrap();
    }

    /// The jobs that a claim of ten reads if it may read this many bytes, in the order of their IDs.
    async fn read(engine: &Engine, bytes: i64) -> Vec<String> {
        let queue = engine.known_queues().get(&QueueKey::qless("q")).unwrap().id;
        let soon = engine.now(None).plus_seconds(100.0);
        let arguments = [
            queue.into(),
            soon.0.into(),
            10.into(),
            10.into(),
            bytes.into(),
        ];
        let load = Statement::new(OF_QLESS.first, arguments);
        let answers = engine.readers().read(vec![load]).await.unwrap();
        let rows = answers.iter().flat_map(|answer| &answer.rows);
        let mut ids: Vec<_> = rows.map(|row| row.text(2).unwrap().clone()).collect();
        ids.sort();
        ids
    }

    /// Expired leases come first, then waiting and due jobs by priority.
    #[tokio::test]
    async fn of_the_candidates_the_first_to_be_claimed_are_read() {
        let engine = engine_without_tasks().await;
        put(&engine, "1-expired", 0.0, 0.0).await;
        let claim = Claim {
            lease_s: Some(1.0),
            ..Claim::of(QueueKey::qless("q"), "w", 1)
        };
        assert_eq!(engine.claim(claim, None).await.unwrap().len(), 1);
        put(&engine, "4-waiting", 3.0, 0.0).await;
        put(&engine, "2-waiting", 1.0, 0.0).await;
        put(&engine, "3-due", 2.0, 10.0).await;
        put(&engine, "5-due", 4.0, 20.0).await;
        let all = ["1-expired", "2-waiting", "3-due", "4-waiting", "5-due"];
        // Each has a little more than 1,000 bytes.
        for (bytes, expected) in [
            (0, &all[..0]),
            (1, &all[..1]),
            (1_000, &all[..1]),
            (1_500, &all[..2]),
            (2_500, &all[..3]),
            (3_500, &all[..4]),
            (4_500, &all),
            (1 << 20, &all),
        ] {
            assert_eq!(read(&engine, bytes).await, expected, "{bytes} bytes");
        }
        engine.close().await;
    }

    #[test]
    fn all_queues_of_a_transaction_share_10_000_due_jobs() {
        for (queues, count, expected) in [
            (1, 1, 10_000),
            (8, 1, 1_250),
            (100, 2, 100),
            (100, 250, 250),
            (20_000, 1, 1),
        ] {
            assert_eq!(unprocessed_max(queues, count), expected, "{queues} queues");
        }
    }

    #[test]
    fn more_than_64_jobs_share_8_mib() {
        let wanted = |count: usize| WantedJobs {
            queue: 1,
            count,
            limit: None,
        };
        assert_eq!(bytes_max(&[wanted(64)]), None);
        assert_eq!(bytes_max(&[wanted(65)]), Some(8_388_608));
        assert_eq!(bytes_max(&[wanted(32), wanted(32)]), None);
        assert_eq!(bytes_max(&[wanted(32), wanted(33)]), Some(4_194_304));
    }
}
