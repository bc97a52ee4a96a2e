//! Maintenance and administrative tasks. Each runs in a transaction of its own.

pub mod cursors;
pub mod deletions;
pub mod empty_queues;
pub mod flush;
pub mod fold_series;
pub mod prune;
pub mod releases;
pub mod sample_waiting;
pub mod tasks;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::engine::cache::refresh::Refresh;
use crate::engine::consistency;
use crate::engine::error::Result;
use crate::engine::maintenance::tasks::MaintenanceTask;
use crate::engine::operations;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::unit_of_work::transaction::{Runner, Task};
use crate::store::{Connection, Statement, StoreError};

/// A transaction that is not a verb: a task of the server, or the rest of a client's request.
#[derive(Clone, Debug)]
pub enum SystemTask {
    /// Checks for changes by other servers, and tries to become or stay leader.
    CheckPeers,
    /// Stores statistics and events that were deferred (`unit_of_work/deferred.rs`).
    StoreDeferred,
    /// A maintenance task. Only the leader runs it.
    Maintain(MaintenanceTask),
    /// Releases a bounded batch of the dependents of the completed job with this number.
    ReleaseDependents(i64),
    /// Deletes a bounded part of everything.
    FlushPart,
    /// Deletes all jobs, queues, options and statistics. Tokens, sessions, alert rules and the audit log remain.
    Flush,
    /// Deletes a bounded batch of a queue's jobs.
    DeleteJobs(deletions::DeleteJobs),
    /// Runs a statement that changes no jobs, and counts the rows that it changed.
    Run(Statement),
    /// Repairs inconsistencies.
    Repair(
        consistency::CheckParameters,
        Arc<[consistency::Inconsistency]>,
    ),
}

impl SystemTask {
    /// Whether statistics and events that were deferred are stored first: because it is time, because the task deletes
    /// them, or because its result depends on them.
    pub fn stores_deferred(&self) -> bool {
        matches!(
            self,
            SystemTask::CheckPeers
                | SystemTask::StoreDeferred
                | SystemTask::Flush
                | SystemTask::Maintain(MaintenanceTask::DeleteEmptyQueues)
        )
    }

    /// Whether it continues a client's request, so that it runs in the clients' lane.
    pub fn is_for_request(&self) -> bool {
        matches!(
            self,
            SystemTask::DeleteJobs(_) | SystemTask::ReleaseDependents(_)
        )
    }

    /// Whether the task deletes and aggregates old statistics.
    pub fn cleans_up_statistics(&self) -> bool {
        matches!(
            self,
            SystemTask::Maintain(MaintenanceTask::CleanUpStatistics)
        )
    }
}

/// A system task as a request to the writer.
pub struct SystemRequest {
    pub system_task: SystemTask,
    pub done: Done,
    pub sender: oneshot::Sender<Result<Done>>,
}

/// What a system task has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// As [`UnitOfWork::affected_rows`].
    pub affected_rows: usize,
    /// As [`UnitOfWork::has_more_work`].
    pub has_more_work: bool,
}

impl Task for SystemRequest {
    fn run(&mut self, work: &mut UnitOfWork) {
        self.done = Done {
            affected_rows: work.affected_rows,
            has_more_work: work.has_more_work,
        };
    }

    fn system_task(&self) -> Option<SystemTask> {
        Some(self.system_task.clone())
    }

    fn respond(self: Box<Self>, outcome: Result<()>) {
        drop(self.sender.send(outcome.map(|()| self.done)));
    }
}

impl Runner {
    /// Runs a task. Returns the statements to run with the commit.
    pub async fn run_system_task(
        &mut self,
        system_task: &SystemTask,
        connection: &mut Connection,
        work: &mut UnitOfWork,
    ) -> Result<Vec<Statement>, StoreError> {
        match system_task {
            SystemTask::ReleaseDependents(seq) => {
                releases::release(connection, work, Some(*seq)).await?;
            }
            SystemTask::FlushPart => flush::part(connection, work).await?,
            SystemTask::Flush => {
                work.flushes = true;
                return Ok(flush::everything());
            }
            SystemTask::Repair(parameters, problems) => {
                consistency::repair(connection, *parameters, problems).await?;
                work.audit_repair(problems.len());
            }
            SystemTask::CheckPeers => {
                let noticed = self.check_revision(connection).await?;
                let is_leader =
                    !self.peers.is_shared() || self.peers.renew(connection, work.now).await?;
                self.is_leader.store(is_leader, Ordering::Relaxed);
                return Ok(noticed.into_iter().collect());
            }
            SystemTask::Maintain(MaintenanceTask::DeleteEmptyQueues) => {
                work.has_more_work = self.empty_queues.check(connection, work).await?;
            }
            SystemTask::Maintain(MaintenanceTask::DeleteOldOperations) => {
                work.affected_rows += operations::delete_old(connection, work.now).await?;
            }
            SystemTask::Maintain(MaintenanceTask::DeleteExpiredTokens) => {
                work.delete_expired_tokens();
            }
            SystemTask::Maintain(task) => {
                let (cursors, by_clients) = (&mut self.cursors, self.trust_client_clock);
                tasks::run_task(connection, work, cursors, *task, by_clients).await?;
            }
            SystemTask::StoreDeferred => {}
            SystemTask::Run(statement) => {
                let answers = connection.run(vec![statement.clone()]).await?;
                let changed: u64 = answers.iter().map(|answer| answer.affected).sum();
                work.affected_rows += usize::try_from(changed).unwrap_or(usize::MAX);
            }
            SystemTask::DeleteJobs(what) => deletions::delete_jobs(connection, work, what).await?,
        }
        Ok(Vec::new())
    }

    /// Applies the task's commit to the caches and to the number of this server.
    pub async fn after_system_task(
        &mut self,
        system_task: &SystemTask,
        connection: &mut Connection,
    ) -> Result<(), StoreError> {
        match system_task {
            SystemTask::Flush => self.job_cache.clear(),
            SystemTask::Repair(_, problems) => {
                self.job_cache.clear();
                if consistency::change_queues(problems) {
                    self.refresh(connection, Refresh::of_everything()).await?;
                }
                // Repaired jobs can be available now, in any queue.
                self.subscriptions.wake_all();
                self.peers.announce_all();
            }
            SystemTask::CheckPeers => self.peers.renewed(),
            SystemTask::StoreDeferred
            | SystemTask::Run(_)
            | SystemTask::Maintain(_)
            | SystemTask::FlushPart
            | SystemTask::ReleaseDependents(_)
            | SystemTask::DeleteJobs(_) => {}
        }
        Ok(())
    }
}

/// The interval of maintenance.
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(500);

/// Infrequent tasks, and storing the last use of tokens, run once per this many rounds.
const INFREQUENT_EVERY: u64 = 20;

/// Batches of one task per round; then the other tasks run.
const BATCHES_MAX: usize = 50;

impl Engine {
    /// Runs maintenance until the server stops.
    pub(in crate::engine) async fn run_maintenance(self) {
        let mut ticks = tokio::time::interval(MAINTENANCE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for round in 0_u64.. {
            ticks.tick().await;
            // The writer has logged the error; the next round retries.
            drop(self.run_system_task(SystemTask::CheckPeers).await);
            self.operation_runner().wake();
            let include_infrequent = round.is_multiple_of(INFREQUENT_EVERY);
            if include_infrequent {
                // Each server stores the token uses that it has seen. Errors are logged, and the next round retries.
                drop(self.save_token_uses().await);
            }
            if self.operation_runner().is_leader().load(Ordering::Relaxed) {
                self.run_maintenance_round(include_infrequent).await;
            }
        }
    }

    /// Runs one round of all maintenance tasks, and the bulk operations to their ends: for an engine without background
    /// tasks.
    ///
    /// # Errors
    /// [`Error::Store`](crate::engine::Error::Store), if the operations cannot be read or written.
    pub async fn maintain(&self) -> Result<()> {
        self.run_maintenance_round(true).await;
        self.finish_operations().await
    }

    /// Whether the pause of a queue has ended and has not been removed.
    fn has_ended_pauses(&self) -> bool {
        let ended = self.known_queues().ended_pauses(self.now(None), 1);
        !ended.is_empty()
    }

    /// Runs each task repeatedly while it has more to do, so that a backlog is cleared in one round. Client writes run
    /// between the batches.
    async fn run_maintenance_round(&self, include_infrequent: bool) {
        // With the clients' clock, statistics belong to their time.
        if !self.trusts_client_clock() {
            // Errors are logged, and the next minute has another sample.
            drop(self.sample_waiting().await);
        }
        let tasks = MaintenanceTask::all(self.trusts_client_clock());
        for task in tasks.filter(|task| include_infrequent || !task.is_infrequent()) {
            if task == MaintenanceTask::EndPauses && !self.has_ended_pauses() {
                continue;
            }
            // An error is that of the task, too.
            if task == MaintenanceTask::DeleteSurplusComplete
                && matches!(self.has_surplus_complete().await, Ok(false))
            {
                continue;
            }
            for _ in 0..BATCHES_MAX {
                match self
                    .submit_system_task(SystemTask::Maintain(task), None)
                    .await
                {
                    Ok(done) if done.has_more_work || task.may_have_more(done.affected_rows) => {}
                    _ => break,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
