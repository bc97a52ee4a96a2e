//! Runs bulk operations, in one task on the server that leads maintenance. It looks ahead for matching jobs and
//! processes them in batches (`batch.rs`), taking turns between a few operations and sharing the writer with other
//! requests. The transaction checks again whether each job still matches.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, Notify};

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::JobKey;
use crate::engine::operations::batch::Batch;
use crate::engine::operations::lookahead::{BATCH, Lookahead, Target};
use crate::engine::operations::undo::{self, RemovedJob};
use crate::engine::operations::{Operation, OperationState, Subject, rows};
use crate::engine::queries::search::{Hit, SearchLimits};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::search::Search;
use crate::store::{Row, Statement};

/// Operations that run at the same time, alternating; others wait until one has ended.
const AT_ONCE_MAX: i64 = 4;

/// Limits of one look-ahead.
const LOOKAHEAD_LIMITS: SearchLimits = SearchLimits {
    jobs: 20_000,
    scanned: 250_000,
    time: Duration::from_secs(1),
};

/// Signals that there may be work, and whether this server leads.
#[derive(Default)]
pub struct OperationRunner {
    notify: Notify,
    is_leader: Arc<AtomicBool>,
    /// Held while an operation is added, so that each request counts those of the others.
    adding: Mutex<()>,
}

impl OperationRunner {
    /// Signals that there may be work.
    pub fn wake(&self) {
        if self.is_leader.load(Ordering::Relaxed) {
            self.notify.notify_one();
        }
    }

    /// Waits until no other request of this server adds an operation.
    pub async fn lock_additions(&self) -> MutexGuard<'_, ()> {
        self.adding.lock().await
    }

    /// Whether this server runs operations. Maintenance sets it.
    pub fn is_leader(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_leader)
    }
}

impl Engine {
    /// Runs operations until the server stops.
    pub(in crate::engine) async fn run_operations(self) {
        let mut ahead = HashMap::new();
        loop {
            self.operation_runner().notify.notified().await;
            while self.operation_runner().is_leader.load(Ordering::Relaxed) {
                match self.run_operation_round(&mut ahead).await {
                    Ok(true) => tokio::task::yield_now().await,
                    Ok(false) => break,
                    Err(error) => {
                        // The next round of maintenance tries again.
                        tracing::warn!(%error, "operations are waiting for the database");
                        ahead.clear();
                        break;
                    }
                }
            }
        }
    }

    /// Runs all operations to their ends.
    pub(in crate::engine) async fn finish_operations(&self) -> Result<()> {
        let mut ahead = HashMap::new();
        while self.run_operation_round(&mut ahead).await? {}
        Ok(())
    }

    /// Runs one batch of each running operation. Returns whether there were any.
    pub(super) async fn run_operation_round(
        &self,
        ahead: &mut HashMap<i64, Lookahead>,
    ) -> Result<bool> {
        let active = Statement::new(rows::ACTIVE, [AT_ONCE_MAX.into()]);
        let active = self.readers().rows(active).await?;
        let mut operations = Vec::new();
        for row in &active {
            operations.push(rows::operation(row)?);
        }
        ahead.retain(|id, _| operations.iter().any(|(operation, _)| operation.id == *id));
        for (operation, version) in &operations {
            let done = match operation.state {
                OperationState::Undoing => self.undo_operation_batch(operation, *version).await,
                _ => self.run_operation_batch(operation, *version, ahead).await,
            };
            match done {
                // It would fail again, along with other writes of the same transaction.
                Err(Error::Store(error)) => self.fail_operation(operation.id, error).await?,
                // Searches of others occupy the threads that match payloads. The other operations continue.
                Err(Error::Busy) => {}
                done => done?,
            }
        }
        Ok(!operations.is_empty())
    }

    async fn run_operation_batch(
        &self,
        operation: &Operation,
        version: i64,
        ahead: &mut HashMap<i64, Lookahead>,
    ) -> Result<()> {
        let id = operation.id;
        let search = match &operation.subject {
            Subject::Jobs(_) => None,
            Subject::Search(text) => match Search::parse(text) {
                Ok(search) => Some(search),
                Err(mistake) => return self.fail_operation(id, mistake.to_string()).await,
            },
        };
        let known = ahead
            .remove(&id)
            .filter(|it| it.from == operation.processed_down_to);
        let mut found = match (known, &operation.subject, &search) {
            (Some(known), ..) => known,
            (None, Subject::Jobs(numbers), _) => self.listed_targets(operation, numbers).await?,
            (None, _, Some(search)) => self.find_targets(operation, search).await?,
            (None, _, None) => return Ok(()),
        };
        let targets = found.take();
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
            targets.push_back(Target {
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
        let target = |row: &Row| -> Result<(i64, Target)> {
            let key = JobKey {
                scope: row.int(1)?,
                id: row.text(2)?,
            };
            let queue = queues.get(&row.int(3)?).map(|queue| queue.key.clone());
            let target = Target {
                seq: row.int(0)?,
                bytes: row.int(4)?,
                key_and_queue: queue.map(|queue| (key, queue)),
            };
            Ok((target.seq, target))
        };
        let found: Result<HashMap<i64, Target>> = rows.await?.iter().map(target).collect();
        let mut found = found?;
        let gone = |seq| Target {
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

    async fn undo_operation_batch(&self, operation: &Operation, version: i64) -> Result<()> {
        let id = operation.id;
        let list = Statement::new(rows::LIST_REMOVED, [id.into(), (BATCH as i64).into()]);
        let rows = self.readers().rows(list).await?;
        let (mut removed, mut size) = (Vec::new(), undo::Size::default());
        for row in &rows {
            let (n, text) = (row.int(0)?, row.text(1)?);
            let job = RemovedJob::from_text(&text);
            if !size.add(text.len(), job.as_ref()) {
                break;
            }
            removed.push((n, job));
        }
        let is_last = removed.len() == rows.len() && rows.len() < BATCH;
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
