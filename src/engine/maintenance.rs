//! What the server does of its own accord, or for the operator: each chore is a group of its own.

pub mod empty_queues;
pub mod fold_series;
pub mod prune;
pub mod tasks;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::engine::consistency;
use crate::engine::error::Result;
use crate::engine::maintenance::tasks::MaintenanceTask;
use crate::engine::operations;
use crate::engine::unit_of_work::transaction::{Runner, Task};
use crate::engine::unit_of_work::{REVISE, UnitOfWork};
use crate::store::{Connection, Statement, StoreError};

/// What the server does of its own accord.
#[derive(Clone, Debug)]
pub enum SystemTask {
    /// See what others have changed, and ask for the upkeep.
    CheckPeers,
    /// A part of the upkeep, if it is ours to do.
    Maintain(MaintenanceTask),
    /// Forget everything.
    Flush,
    /// Drop jobs of a queue: a bounded batch.
    DeleteJobs(tasks::Drop),
    /// Set right what is kept twice and does not agree.
    Repair(consistency::Moment, Arc<[consistency::Inconsistency]>),
}

impl SystemTask {
    /// Whether old statistics are deleted and folded with it.
    pub fn ages_statistics(&self) -> bool {
        matches!(self, SystemTask::Maintain(MaintenanceTask::AgeStatistics))
    }
}

/// A chore as a task; tells how many jobs it has changed or dropped.
pub struct SystemRequest {
    pub system_task: SystemTask,
    pub concerned: usize,
    pub tell: oneshot::Sender<Result<usize>>,
}

impl Task for SystemRequest {
    fn run(&mut self, work: &mut UnitOfWork) {
        self.concerned = work.affected;
    }

    fn system_task(&self) -> Option<SystemTask> {
        Some(self.system_task.clone())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        drop(self.tell.send(outcome.map(|()| self.concerned)));
    }
}

impl Runner {
    /// Does a chore, except for what is written with the commit, which it gives.
    pub async fn run_system_task(
        &mut self,
        system_task: &SystemTask,
        connection: &mut Connection,
        work: &mut UnitOfWork,
    ) -> Result<Vec<Statement>, StoreError> {
        match system_task {
            SystemTask::Flush => return Ok(tasks::flush()),
            SystemTask::Repair(moment, problems) => {
                consistency::mend(connection, *moment, problems).await?;
                return Ok(vec![Statement::new(REVISE, [])]);
            }
            SystemTask::CheckPeers => {
                let noticed = self.check_revision(connection).await?;
                let leads =
                    !self.peers.is_shared() || self.peers.renew(connection, work.now).await?;
                self.leads.store(leads, Ordering::Relaxed);
                return Ok(noticed.into_iter().collect());
            }
            SystemTask::Maintain(MaintenanceTask::DeleteEmptyQueues) => {
                self.empty_queues.look(connection, work).await?;
            }
            SystemTask::Maintain(MaintenanceTask::DeleteOldOperations) => {
                work.affected += operations::tidy(connection, work.now).await?;
            }
            SystemTask::Maintain(MaintenanceTask::DeleteExpiredTokens) => {
                work.forget_expired_tokens();
            }
            SystemTask::Maintain(part) => {
                tasks::run_task(connection, work, *part, self.clients_tell_time).await?;
            }
            SystemTask::DeleteJobs(what) => tasks::drop_of(connection, work, what).await?,
        }
        Ok(Vec::new())
    }

    /// What is in memory follows a chore that has been committed.
    pub async fn after_system_task(
        &mut self,
        system_task: &SystemTask,
        connection: &mut Connection,
    ) -> Result<(), StoreError> {
        match system_task {
            SystemTask::Flush => {
                self.shared.queues.clear();
                self.shared.config.clear();
                self.shared.tracked.clear();
                self.recurring_in.clear();
                self.job_cache.clear();
            }
            SystemTask::Repair(..) => {
                self.job_cache.clear();
                self.reload_cache(connection).await?;
            }
            SystemTask::CheckPeers | SystemTask::Maintain(_) | SystemTask::DeleteJobs(_) => {}
        }
        Ok(())
    }
}

/// How often upkeep looks for what is due or old.
const UPKEEP_EVERY: Duration = Duration::from_millis(500);

/// Old operations and tokens are looked for, and the last uses of tokens stored, in the first of so many rounds.
const SELDOM: u64 = 20;

/// Batches of one part of the upkeep in one round: then the other parts have their turn.
const BATCHES_MAX: usize = 50;

impl Engine {
    /// The upkeep, as long as the server runs.
    pub(in crate::engine) async fn run_maintenance(self) {
        let mut ticks = tokio::time::interval(UPKEEP_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for round in 0_u64.. {
            ticks.tick().await;
            // A failure has been logged by the writer; the next round tries again.
            drop(self.run_system_task(SystemTask::CheckPeers).await);
            self.operation_runner().wake();
            let is_seldom = round.is_multiple_of(SELDOM);
            if is_seldom {
                // Each server stores what it has seen. A failure has been logged, and the next round tries again.
                drop(self.save_token_uses().await);
            }
            if self.operation_runner().leads().load(Ordering::Relaxed) {
                self.run_maintenance_round(is_seldom).await;
            }
        }
    }

    /// Each part of the upkeep, again while there is more to do, so that what is due at once is done at once; other
    /// writes come in between.
    async fn run_maintenance_round(&self, seldom_too: bool) {
        let parts = MaintenanceTask::all(self.trusts_client_clock());
        for part in parts.filter(|part| seldom_too || !part.is_infrequent()) {
            for _ in 0..BATCHES_MAX {
                match self.run_system_task(SystemTask::Maintain(part)).await {
                    Ok(jobs) if part.may_have_more(jobs) => {}
                    _ => break,
                }
            }
        }
    }
}
