//! What the server does of its own accord, or for the operator: each chore is a group of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::check;
use super::error::Result;
use super::group::{Runner, Task};
use super::keep;
use super::operations;
use super::work::{REVISE, Work};
use crate::store::{Connection, Statement, StoreError};

/// What the server does of its own accord.
#[derive(Clone, Debug)]
pub enum Chore {
    /// Start what is due, drop what is old: a bounded batch of each.
    Upkeep,
    /// Forget everything.
    Flush,
    /// Drop jobs of a queue: a bounded batch.
    Drop(keep::Drop),
    /// Set right what is kept twice and does not agree.
    Mend(check::Moment, Arc<[check::Problem]>),
}

/// A chore as a task; tells how many jobs it has dropped.
pub struct Duty {
    pub chore: Chore,
    pub dropped: usize,
    pub tell: oneshot::Sender<Result<usize>>,
}

impl Task for Duty {
    fn run(&mut self, work: &mut Work) {
        self.dropped = work.dropped;
    }

    fn chore(&self) -> Option<Chore> {
        Some(self.chore.clone())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        drop(self.tell.send(outcome.map(|()| self.dropped)));
    }
}

impl Runner {
    /// Does a chore, except for what is written with the commit, which it gives; and whether it was upkeep, and
    /// ours to do.
    pub async fn attend_to(
        &mut self,
        chore: &Chore,
        connection: &mut Connection,
        work: &mut Work,
    ) -> Result<(Vec<Statement>, bool), StoreError> {
        match chore {
            Chore::Flush => return Ok((keep::flush(), false)),
            Chore::Mend(moment, problems) => {
                check::mend(connection, *moment, problems).await?;
                return Ok((vec![Statement::new(REVISE, [])], false));
            }
            Chore::Upkeep => {
                let noticed = self.notice(connection).await?;
                let leads = !self.peers.share() || self.peers.attend(connection, work.now).await?;
                self.leads.store(leads, Ordering::Relaxed);
                if leads {
                    keep::upkeep(connection, work, self.clients_tell_time).await?;
                    self.idle.look(connection, work).await?;
                    operations::tidy(connection, work.now).await?;
                }
                return Ok((noticed.into_iter().collect(), leads));
            }
            Chore::Drop(what) => keep::drop_of(connection, work, what).await?,
        }
        Ok((Vec::new(), false))
    }

    /// What is in memory follows a chore that has been committed.
    pub async fn attended(
        &mut self,
        chore: &Chore,
        connection: &mut Connection,
    ) -> Result<(), StoreError> {
        match chore {
            Chore::Flush => {
                self.shared.queues.clear();
                self.shared.config.clear();
                self.shared.tracked.clear();
                self.recurring_in.clear();
                self.held.clear();
            }
            Chore::Mend(..) => {
                self.held.clear();
                self.take_over(connection).await?;
            }
            Chore::Upkeep | Chore::Drop(_) => {}
        }
        Ok(())
    }
}
