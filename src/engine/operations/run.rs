//! Runs bulk operations, in one task on the server that leads maintenance. It looks ahead for matching jobs and
//! processes them in batches (`batch.rs`), taking turns between a few operations and sharing the writer with other
//! requests. The transaction checks again whether each job still matches.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, Notify, OwnedMutexGuard};

use crate::blocking::block_in_place;
use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::JobKey;
use crate::engine::operations::batch::Batch;
use crate::engine::operations::lookahead::{BATCH, BATCH_BYTES, FoundJob, Lookahead};
use crate::engine::operations::undo::{self, RemovedJob};
use crate::engine::operations::{JobSelection, Operation, OperationState, rows};
use crate::engine::queries::search::{Hit, SearchLimits};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::search::Search;
use crate::store::{Row, Statement};

/// Operations that run at the same time, alternating; others wait until one has ended.
const AT_ONCE_MAX: usize = 4;

/// Limits of one look-ahead.
const LOOKAHEAD_LIMITS: SearchLimits = SearchLimits {
    jobs: 20_000,
    scanned: 250_000,
    time: Duration::from_secs(1),
};

/// The first and the longest delay of an operation after a batch that the database did not accept, such as one that
/// takes too long. Each delay is twice as long as the one before.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const DELAY_MAX: Duration = Duration::from_secs(60);

/// What the runner remembers between the batches of running operations.
#[derive(Default)]
pub(super) struct RunnerState {
    ahead: HashMap<i64, Lookahead>,
    /// Of operations in a state in which a batch has failed.
    failures: HashMap<(i64, OperationState), Failures>,
}

/// The failed batches of an operation. Each successful batch reduces the count by one.
struct Failures {
    count: u32,
    /// Until when the operation is delayed.
    until: Instant,
}

impl RunnerState {
    /// Forgets operations that are not running.
    fn retain(&mut self, is_running: impl Fn(i64) -> bool) {
        self.ahead.retain(|id, _| is_running(*id));
        self.failures.retain(|(id, _), _| is_running(*id));
    }

    fn is_delayed(&self, operation: i64, state: OperationState) -> bool {
        let failures = self.failures.get(&(operation, state));
        failures.is_some_and(|failures| failures.until > Instant::now())
    }

    fn failures(&self, operation: i64, state: OperationState) -> u32 {
        let failures = self.failures.get(&(operation, state));
        failures.map_or(0, |failures| failures.count)
    }

    /// The maximum number of jobs in the next batch: half as many after each failure.
    fn batch_max(&self, operation: i64, state: OperationState) -> usize {
        let halvings = self.failures(operation, state);
        BATCH.checked_shr(halvings).unwrap_or_default().max(1)
    }

    /// Notes that a batch has failed. Returns the delay.
    fn failed(&mut self, operation: i64, state: OperationState) -> Duration {
        let count = self.failures(operation, state);
        let delay = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(count));
        let delay = delay.min(DELAY_MAX);
        let failures = Failures {
            count: count + 1,
            until: Instant::now() + delay,
        };
        self.failures.insert((operation, state), failures);
        delay
    }

    /// Notes that a batch has been processed.
    fn succeeded(&mut self, operation: i64, state: OperationState) {
        if let Some(failures) = self.failures.get_mut(&(operation, state)) {
            failures.count -= 1;
            if failures.count == 0 {
                self.failures.remove(&(operation, state));
            }
        }
    }
}

/// Signals that there may be work, and whether this server leads.
#[derive(Default)]
pub struct OperationRunner {
    notify: Notify,
    is_leader: Arc<AtomicBool>,
    /// Held while an operation is added, so that each request counts those of the others.
    adding: Arc<Mutex<()>>,
}

impl OperationRunner {
    /// Signals that there may be work.
    pub fn wake(&self) {
        if self.is_leader.load(Ordering::Relaxed) {
            self.notify.notify_one();
        }
    }

    /// Waits until no other request of this server adds an operation.
    pub async fn lock_additions(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.adding).lock_owned().await
    }

    /// Whether this server runs operations. Maintenance sets it.
    pub fn is_leader(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_leader)
    }
}

impl Engine {
    /// Runs operations until the server stops.
    pub(in crate::engine) async fn run_operations(self) {
        let mut runner = RunnerState::default();
        loop {
            self.operation_runner().notify.notified().await;
            while self.operation_runner().is_leader.load(Ordering::Relaxed) {
                match self.run_operation_round(&mut runner).await {
                    Ok(true) => tokio::task::yield_now().await,
                    Ok(false) => break,
                    Err(error) => {
                        // The next round of maintenance tries again.
                        tracing::warn!(%error, "operations are waiting for the database");
                        break;
                    }
                }
            }
        }
    }

    /// Runs all operations to their ends.
    pub(in crate::engine) async fn finish_operations(&self) -> Result<()> {
        let mut runner = RunnerState::default();
        while self.run_operation_round(&mut runner).await? {}
        match runner.failures.is_empty() {
            true => Ok(()),
            false => Err(Error::Unavailable),
        }
    }

    /// Runs one batch of each running operation. Returns whether there were any that are not delayed.
    pub(super) async fn run_operation_round(&self, runner: &mut RunnerState) -> Result<bool> {
        // Delayed operations do not count.
        let max = AT_ONCE_MAX + runner.failures.len();
        let active = Statement::new(rows::ACTIVE, [(max as i64).into()]);
        let active = self.readers().rows(active).await?;
        let mut operations = Vec::new();
        for row in &active {
            operations.push(rows::operation(row)?);
        }
        runner.retain(|id| operations.iter().any(|(operation, _)| operation.id == id));
        operations.retain(|(operation, _)| !runner.is_delayed(operation.id, operation.state));
        operations.truncate(AT_ONCE_MAX);
        for (operation, version) in &operations {
            let (id, state) = (operation.id, operation.state);
            let max = runner.batch_max(id, state);
            let done = match state {
                OperationState::Undoing => {
                    self.undo_operation_batch(operation, *version, max).await
                }
                _ => {
                    let ahead = &mut runner.ahead;
                    self.run_operation_batch(operation, *version, max, ahead)
                        .await
                }
            };
            match done {
                // The database may be down, or this batch is too slow for it. The other operations continue.
                Err(error @ Error::Unavailable) => {
                    let delay = runner.failed(id, state);
                    tracing::warn!(operation = id, ?delay, %error, "an operation is delayed");
                }
                // It would fail again, along with other writes of the same transaction.
                Err(Error::Store(error)) => self.fail_operation(id, error).await?,
                // Searches of others occupy the threads that match payloads, or the payloads have grown since the jobs were
                // found. The next round finds them again. The other operations continue.
                Err(Error::Busy) => {}
                done => {
                    done?;
                    runner.succeeded(id, state);
                }
            }
        }
        Ok(!operations.is_empty())
    }

    async fn run_operation_batch(
        &self,
        operation: &Operation,
        version: i64,
        max: usize,
        ahead: &mut HashMap<i64, Lookahead>,
    ) -> Result<()> {
        let id = operation.id;
        let search = match &operation.selection {
            JobSelection::Jobs(_) => None,
            JobSelection::Search(text) => match Search::parse(text) {
                Ok(search) => Some(search),
                Err(mistake) => return self.fail_operation(id, mistake.to_string()).await,
            },
        };
        let known = ahead
            .remove(&id)
            .filter(|it| it.from == operation.processed_down_to);
        let mut found = match (known, &operation.selection, &search) {
            (Some(known), ..) => known,
            (None, JobSelection::Jobs(numbers), _) => {
                self.listed_targets(operation, numbers).await?
            }
            (None, _, Some(search)) => self.find_targets(operation, search).await?,
            (None, _, None) => return Ok(()),
        };
        let targets = found.take(max);
        let is_all = found.targets.is_empty();
        if let Some(last) = targets.last() {
            found.from = last.seq;
        }
        if is_all {
            found.from = found.next.unwrap_or_default().min(found.from);
        }
        let is_last = is_all && found.next.is_none();
        let payloads = match &search {
            Some(search) if search.needs_body() => {
                Some(self.match_payloads_of(search, &targets).await?)
            }
            _ => None,
        };
        let batch = Batch {
            id,
            version,
            search,
            payloads,
            gives_up: found.gives_up(),
            targets,
            processed_down_to: found.from,
            is_last,
        };
        let (needs, jobs) = (batch.needs(operation), batch.targets.len().max(1));
        let batch = Arc::new(batch);
        let run = Arc::clone(&batch);
        let verb = move |work: &mut UnitOfWork| Ok(run.run(work));
        match self.write(needs, None, jobs, verb).await {
            Err(Error::Oversized) => {
                found.put_back(&batch.targets, operation.processed_down_to);
                ahead.insert(id, found);
            }
            done => match done? {
                Some(processed) if processed < batch.targets.len() => {
                    found.look_again(&batch.targets, processed, operation.processed_down_to);
                    ahead.insert(id, found);
                }
                Some(_) if !is_all => {
                    ahead.insert(id, found);
                }
                _ => {}
            },
        }
        Ok(())
    }

    async fn find_targets(&self, operation: &Operation, search: &Search) -> Result<Lookahead> {
        self.refresh_cache().await?;
        let queues = self.visible_queues();
        let mut targets = VecDeque::new();
        let mut on_match = |hit: Hit<'_>| {
            targets.push_back(FoundJob {
                seq: hit.job.seq,
                bytes: hit.bytes,
                key_and_queue: Some((hit.job.key.clone(), hit.queue.key.clone())),
            });
        };
        let (after, now) = (Some(operation.processed_down_to), self.now(None));
        let scan = self.scan_matching(search, &queues, after, LOOKAHEAD_LIMITS, now, &mut on_match);
        let next = scan.await?.next;
        Ok(Lookahead::new(operation.processed_down_to, targets, next))
    }

    async fn listed_targets(&self, operation: &Operation, numbers: &[i64]) -> Result<Lookahead> {
        self.refresh_cache().await?;
        let queues = self.visible_queues();
        let mut left: Vec<i64> = numbers.to_vec();
        left.retain(|seq| *seq < operation.processed_down_to);
        left.sort_unstable_by(|a, b| b.cmp(a));
        left.dedup();
        let set: Vec<_> = left.iter().map(|seq| (*seq,)).collect();
        let rows = self.readers().rows(Statement::of_rows(rows::LISTED, &set));
        let target = |row: &Row| -> Result<(i64, FoundJob)> {
            let key = JobKey {
                scope: row.int(1)?,
                id: row.text(2)?,
            };
            let queue = queues.get(&row.int(3)?).map(|queue| queue.key.clone());
            let target = FoundJob {
                seq: row.int(0)?,
                bytes: row.int(4)?,
                key_and_queue: queue.map(|queue| (key, queue)),
            };
            Ok((target.seq, target))
        };
        let found: Result<HashMap<i64, FoundJob>> = rows.await?.iter().map(target).collect();
        let mut found = found?;
        let gone = |seq| FoundJob {
            seq,
            bytes: 0,
            key_and_queue: None,
        };
        let left = left.into_iter();
        let targets = left.map(|seq| found.remove(&seq).unwrap_or_else(|| gone(seq)));
        Ok(Lookahead::new(
            operation.processed_down_to,
            targets.collect(),
            None,
        ))
    }

    async fn undo_operation_batch(
        &self,
        operation: &Operation,
        version: i64,
        max: usize,
    ) -> Result<()> {
        let id = operation.id;
        let args = [id, max as i64, BATCH_BYTES];
        let list = Statement::new(rows::LIST_REMOVED, args.map(Into::into));
        let rows = self.readers().rows(list).await?;
        let removed = block_in_place(|| undo::removed_jobs(&rows))?;
        let listed = rows.first().map_or(Ok(0), |row| row.int(3))?;
        let is_last = removed.len() as i64 == listed && listed < max as i64;
        let mut needs = Needs {
            operation: Some(id),
            ..Needs::default()
        };
        for RemovedJob { queue, job } in removed.iter().filter_map(|(_, job)| job.as_ref()) {
            needs.jobs.push(job.key.clone());
            needs.in_queues.push((queue.clone(), job.key.id.clone()));
            needs.depends(&job.dependencies);
        }
        let items = removed.len().max(1);
        let verb = move |work: &mut UnitOfWork| {
            undo::undo_batch(work, (id, version), &removed, is_last);
            Ok(())
        };
        let _undo = self.poll_candidates().begin_undo();
        self.write(needs, None, items, verb).await
    }

    /// Ends an operation that cannot continue.
    async fn fail_operation(&self, id: i64, error: String) -> Result<()> {
        tracing::error!(operation = id, why = error, "an operation failed");
        let ended = self.change_operation(id, move |operation, now| {
            operation.end(OperationState::Failed, now);
            operation.error = Some(error.clone());
            Ok(())
        });
        ended.await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_delayed_for_longer_after_each_failure_until_it_succeeds() {
        let mut runner = RunnerState::default();
        let running = OperationState::Running;
        assert!(!runner.is_delayed(1, running));
        assert_eq!(runner.batch_max(1, running), 500);
        let failures = [(); 40].map(|()| {
            let delay = runner.failed(1, running);
            (delay.as_millis(), runner.batch_max(1, running))
        });
        assert_eq!(failures[..3], [(500, 250), (1_000, 125), (2_000, 62)]);
        assert_eq!(failures[8..10], [(60_000, 1), (60_000, 1)]);
        assert_eq!(failures[39], (60_000, 1));
        assert!(runner.is_delayed(1, running));
        assert!(!runner.is_delayed(1, OperationState::Undoing) && !runner.is_delayed(2, running));
        for _ in 0..39 {
            runner.succeeded(1, running);
        }
        assert_eq!(runner.batch_max(1, running), 250);
        runner.retain(|id| id != 1);
        assert!(!runner.is_delayed(1, running));
    }
}
