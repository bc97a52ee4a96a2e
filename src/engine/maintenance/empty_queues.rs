//! Deletes lmstfy and Relay queues that have been empty and inactive for some time. Clients often create a queue for
//! each reply, so there may be many. Also deletes the rows of deleted Jobq queues without records.
//!
//! A queue is marked as forgotten first. A put removes the mark, and every server has seen the mark before the queue is
//! deleted.

use std::collections::HashMap;
use std::time::Duration;

use crate::engine::cache::refresh::list_deleted;
use crate::engine::clock::Time;
use crate::engine::model::job::QueueId;
use crate::engine::model::queue::Queue;

use crate::engine::maintenance::{fold_series, prune};
use crate::engine::unit_of_work::UnitOfWork;
use crate::store::{Connection, Statement, StoreError};

/// The default time of inactivity after which an empty queue is deleted.
pub const DEFAULT_AGE: Duration = Duration::from_secs(600);

const DAY_S: u64 = 86_400;

/// The limit on the days whose claims are counted.
const DAYS_MAX: i64 = 366;

/// Checks within the age after which an empty queue is deleted.
const CHECKS: u32 = 10;

/// The time between mark and deletion: longer than any transaction.
const MARK_AGE: Duration = Duration::from_secs(5);

/// Queues that are checked in a transaction.
const CHECKED_MAX: i64 = 200;

/// Queues that are deleted in a transaction.
const DELETED_MAX: usize = 200;

/// The empty queues found so far.
#[derive(Debug)]
pub struct EmptyQueues {
    age_s: f64,
    /// Days before today whose claims are counted. Older ones are no activity within the age.
    days: i64,
    /// When the last check began.
    checked_at: Option<Time>,
    /// The first queue of the next part of the check that is running.
    next: Option<QueueId>,
    queues: HashMap<QueueId, EmptyQueue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EmptyQueue {
    /// The last day with claims, and how many ([`EMPTY`]). A change means activity. 0 if the day is longer ago than the
    /// age.
    last_claims: i64,
    forgotten: bool,
    since: Time,
}

impl EmptyQueues {
    /// `age` is the time of inactivity before deletion.
    pub fn after(age: Duration) -> EmptyQueues {
        EmptyQueues {
            age_s: age.as_secs_f64(),
            days: i64::try_from(age.as_secs() / DAY_S + 1)
                .map_or(DAYS_MAX, |days| days.min(DAYS_MAX)),
            checked_at: None,
            next: None,
            queues: HashMap::new(),
        }
    }

    /// If a check is due or running: marks queues that have been empty and inactive, and deletes those that were marked
    /// before. Checks a bounded number of queues. Returns whether queues are left to check.
    pub async fn check(
        &mut self,
        connection: &mut Connection,
        work: &mut UnitOfWork,
    ) -> Result<bool, StoreError> {
        let now = work.now;
        let is_early = |at: Time| now.seconds_from(at) < self.age_s / f64::from(CHECKS);
        let from = match self.next {
            Some(next) => next,
            None if self.checked_at.is_some_and(is_early) => return Ok(false),
            None => QueueId::MIN,
        };
        if self.next.is_none() {
            self.checked_at = Some(now);
        }
        let Some((mut last, has_more)) = prune::last_queue(connection, from, CHECKED_MAX).await?
        else {
            self.next = None;
            return Ok(false);
        };
        self.next = has_more.then_some(last + 1);
        let days: Vec<_> = (now.day() - self.days..=now.day()).collect();
        let part = Statement::of_rows(EMPTY, &days).with(from).with(last);
        let answers = connection.run(vec![part]).await?;
        let (mut queues, mut deleted) = (HashMap::new(), Vec::new());
        for row in answers.into_iter().flat_map(|answer| answer.rows) {
            let id = row.int(0)?;
            let (last_claims, forgotten) = (row.int(1)?, row.int(2)? != 0);
            let before = self.queues.get(&id).filter(|before| {
                let has_claims = last_claims != 0 && last_claims != before.last_claims;
                before.forgotten == forgotten && !has_claims
            });
            let found = EmptyQueue {
                last_claims,
                forgotten,
                since: before.map_or(now, |before| before.since),
            };
            let empty_s = now.seconds_from(found.since);
            if found.forgotten && empty_s >= MARK_AGE.as_secs_f64() {
                if deleted.len() == DELETED_MAX {
                    // The next part begins with this queue.
                    (self.next, last) = (Some(id), id - 1);
                    break;
                }
                deleted.push((id, found));
                continue;
            }
            if !found.forgotten && empty_s >= self.age_s {
                work.mark_forgotten(id);
            }
            queues.insert(id, found);
        }
        let ids: Vec<_> = deleted.iter().map(|(id, _)| (*id,)).collect();
        if fold_series::move_to_deleted_queues(connection, &ids).await? {
            ids.iter().for_each(|(id,)| work.delete_queue(*id));
        } else {
            // They have too many statistics for a transaction. The next one continues with them.
            self.next = deleted.first().map(|(id, _)| *id);
            queues.extend(deleted);
        }
        self.queues.retain(|id, _| *id < from || *id > last);
        self.queues.extend(queues);
        Ok(self.next.is_some())
    }
}

impl UnitOfWork {
    fn mark_forgotten(&mut self, id: QueueId) {
        if let Some(queue) = self.queue_by_id(id) {
            self.change_queue(Queue {
                forgotten: true,
                ..(*queue).clone()
            });
        }
    }
}

/// The statements that delete queues and their counters. If other servers use the database, lists them for these with
/// the new revision.
pub fn delete_queues(queues: &[QueueId], revision: Option<i64>) -> Vec<Statement> {
    if queues.is_empty() {
        return Vec::new();
    }
    let rows: Vec<_> = queues.iter().map(|id| (*id,)).collect();
    let mut writes = vec![
        Statement::of_rows(DROP, &rows).exactly(rows.len()),
        fold_series::keep_deleted_queues(&rows),
        Statement::of_rows(DROP_COUNTERS, &rows),
        Statement::of_rows(SAVE_LAST_DELETED, &rows),
    ];
    writes.extend(
        revision
            .into_iter()
            .flat_map(|revision| list_deleted(&rows, revision)),
    );
    writes
}

// qless queues stay until they are forgotten, Jobq queues until they are deleted.
const EMPTY: &str = "
SELECT q.id, CAST(coalesce((SELECT t.day * 1000000000000 + sum(t.n) FROM tallies AS t
                            WHERE t.kind = {kind_wait} AND t.queue = q.id AND t.slot = {summary}
                                AND t.day IN (SELECT CAST(item() AS BIGINT) FROM rows($1))
                            GROUP BY t.day ORDER BY t.day DESC LIMIT 1), 0) AS BIGINT),
    q.forgotten
FROM queues AS q
WHERE q.id >= $2 AND q.id <= $3 AND q.protocol <> 'qless' AND (q.protocol <> 'jobq' OR q.forgotten = 1) AND q.paused = 0
    AND coalesce((SELECT sum(t.n) FROM tallies AS t WHERE t.kind = {kind_state} AND t.queue = q.id), 0) = 0
ORDER BY q.id";

const DROP: &str = "DELETE FROM queues WHERE forgotten = 1 AND id IN (SELECT int(0) FROM rows($1))";

const DROP_COUNTERS: &str = "
DELETE FROM tallies
WHERE kind IN ({kind_state}, {kind_wait}, {kind_run}, {kind_outcome}, {kind_minute}, {kind_hour})
    AND queue IN (SELECT int(0) FROM rows($1))";

/// IDs of deleted queues are not used again.
const SAVE_LAST_DELETED: &str = "
UPDATE state SET last_gone_queue = (SELECT max(int(0)) FROM rows($1))
WHERE id = 1 AND last_gone_queue < (SELECT max(int(0)) FROM rows($1))";
