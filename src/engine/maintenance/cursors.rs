//! The positions at which maintenance tasks continue when no index leads to the rows that they need: in the queues with
//! jobs in a state, and in the workers. A transaction looks at a bounded part, so that requests do not wait for the
//! whole table.

use std::collections::HashMap;

use crate::engine::clock::Time;
use crate::engine::maintenance::prune;
use crate::engine::maintenance::tasks::{BATCH, MaintenanceTask};
use crate::engine::model::job::QueueId;
use crate::engine::unit_of_work::UnitOfWork;
use crate::store::{Connection, Row, Statement, StoreError};

/// Queues of a part.
pub const QUEUES_MAX: usize = 1_000;

/// Batches are halved at most this often: from 2,000 jobs to 31.
const HALVINGS_MAX: u32 = 6;

/// The beginnings of the next parts, and the sizes of batches.
#[derive(Debug, Default)]
pub struct Cursors {
    queues: HashMap<MaintenanceTask, QueueId>,
    worker: (String, String),
    /// The task whose last batch has begun and not been committed.
    begun: Option<MaintenanceTask>,
    /// How many times the batches of a task are halved.
    halvings: HashMap<MaintenanceTask, u32>,
}

/// Some of the queues that have jobs in a state, in the order of their IDs.
pub struct QueuePart {
    pub queues: Vec<QueueId>,
    /// The first ID after this part; `None` if it is the last part.
    next: Option<QueueId>,
}

impl Cursors {
    /// The maximum number of jobs in the next batch of the task. It is halved after a batch that was not committed,
    /// because that may have taken the database too long.
    pub fn begin_batch(&mut self, task: MaintenanceTask) -> i64 {
        if let Some(failed) = self.begun.replace(task) {
            let halvings = self.halvings.entry(failed).or_default();
            *halvings = (*halvings + 1).min(HALVINGS_MAX);
        }
        let halvings = self.halvings.get(&task).copied().unwrap_or_default();
        task.batch() >> halvings
    }

    /// Notes that the batch of the task was committed. The next one may be twice as large.
    pub fn end_batch(&mut self, task: MaintenanceTask) {
        if self.begun == Some(task) {
            self.begun = None;
        }
        if let Some(halvings) = self.halvings.get_mut(&task) {
            *halvings -= 1;
            if *halvings == 0 {
                self.halvings.remove(&task);
            }
        }
    }

    /// The next queues for the task. `find` is one of the statements below.
    pub async fn queues(
        &self,
        connection: &mut Connection,
        task: MaintenanceTask,
        find: &'static str,
    ) -> Result<QueuePart, StoreError> {
        let from = self.queues.get(&task).copied().unwrap_or(QueueId::MIN);
        let find = Statement::new(find, [from, QUEUES_MAX as i64].map(Into::into));
        let answers = connection.run(vec![find]).await?;
        let rows = answers.iter().flat_map(|answer| &answer.rows);
        let queues = rows.map(|row| row.int(0)).collect::<Result<Vec<_>, _>>()?;
        let last = queues.last().filter(|_| queues.len() >= QUEUES_MAX);
        let next = last.map(|last| last + 1);
        Ok(QueuePart { queues, next })
    }

    /// Notes that the task has nothing more to do in this part. The next transaction continues with the next one.
    pub fn end_part(&mut self, work: &mut UnitOfWork, task: MaintenanceTask, part: &QueuePart) {
        match part.next {
            Some(next) => self.queues.insert(task, next),
            None => self.queues.remove(&task),
        };
        work.has_more_work |= part.next.is_some();
    }

    /// Deletes the workers of the next part that were last seen at `oldest` or before.
    pub async fn forget_workers(
        &mut self,
        connection: &mut Connection,
        work: &mut UnitOfWork,
        oldest: Time,
    ) -> Result<(), StoreError> {
        let (protocol, name) = std::mem::take(&mut self.worker);
        let from = || [protocol.as_str().into(), name.as_str().into()];
        let part = Statement::new(WORKERS, from()).with(BATCH);
        let key = |row: &Row| Ok((row.text(0)?, row.text(2)?));
        let Some((last, is_full)) = prune::last_of(connection, part, BATCH, key).await? else {
            return Ok(());
        };
        let forget = Statement::new(FORGET_WORKERS, from())
            .with(last.0.as_str())
            .with(last.1.as_str())
            .with(oldest.0);
        let answers = connection.run(vec![forget]).await?;
        let forgotten: u64 = answers.iter().map(|answer| answer.affected).sum();
        work.affected_rows += usize::try_from(forgotten).unwrap_or(usize::MAX);
        if is_full {
            self.worker = last;
            work.has_more_work = true;
        }
        Ok(())
    }
}

/// The first `$2` queues from the ID `$1` that have jobs in a state: one search of the state's index for each.
macro_rules! queues_with {
    ($state:literal) => {
        concat!(
            "WITH RECURSIVE part (queue, place) AS (
    SELECT (SELECT queue FROM jobs WHERE state = ",
            $state,
            " AND queue >= $1 ORDER BY queue LIMIT 1), CAST(1 AS BIGINT)
    UNION ALL
    SELECT (SELECT j.queue FROM jobs AS j WHERE j.state = ",
            $state,
            " AND j.queue > part.queue ORDER BY j.queue LIMIT 1), part.place + 1
    FROM part WHERE part.queue IS NOT NULL AND part.place < $2
)
SELECT queue FROM part WHERE queue IS NOT NULL ORDER BY queue"
        )
    };
}

pub const QUEUES_WITH_SCHEDULED: &str = queues_with!("{scheduled}");
pub const QUEUES_WITH_RUNNING: &str = queues_with!("{running}");
pub const QUEUES_WITH_DEAD: &str = queues_with!("{dead}");
pub const QUEUES_WITH_RECORDS: &str = queues_with!("{record}");

/// The key of the last of the first `$3` workers after `$1` and `$2`, and their number.
const WORKERS: &str = "
WITH slice AS (
    SELECT protocol, name FROM workers WHERE (protocol, name) > ($1, $2) ORDER BY protocol, name LIMIT $3 + 0
)
SELECT protocol, (SELECT count(*) FROM slice), name FROM slice ORDER BY protocol DESC, name DESC LIMIT 1";

const FORGET_WORKERS: &str = "
DELETE FROM workers WHERE (protocol, name) > ($1, $2) AND (protocol, name) <= ($3, $4) AND last_seen <= $5";

#[cfg(test)]
mod tests;
