//! The wake-up timer: wakes subscribers when jobs become available over time, and finds out when that is.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::sleep;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::QueueKey;
use crate::store::{Row, Statement};

/// The longest that the alarm sleeps: clocks of machines are set, and sleeps do not notice.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Queues that one statement looks at.
pub const QUEUES_PER_STATEMENT: usize = 200;

/// After an alarm that could not be looked up, the next try.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How long to sleep until a moment, or until the clock is read again.
pub fn pause(now: Time, until: Time) -> Duration {
    let micros = until.0.saturating_sub(now.0).max(0);
    Duration::from_micros(micros.unsigned_abs()).min(SLEEP_MAX)
}

impl Engine {
    /// NextWakeUp whenever something becomes available by itself in a queue at which somebody waits.
    pub(in crate::engine) async fn watch(self) {
        loop {
            let pause = match self.waiters().next() {
                Some(next) => pause(self.now(None), next),
                None => SLEEP_MAX,
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.waiters().earlier.notified() => continue,
                () = self.resting() => return,
            }
            let ringing = self.waiters().ringing(self.now(None));
            self.ring_where_there_is_work(ringing).await;
        }
    }

    /// Wakes as many at these queues as there are jobs to be had by now, and sets the alarm for what comes
    /// next.
    pub(in crate::engine) async fn ring_where_there_is_work(&self, queues: Vec<QueueKey>) {
        let looked_at = self.now(None);
        for queues in queues.chunks(QUEUES_PER_STATEMENT) {
            match self.available(queues, self.now(None)).await {
                Ok(found) => (found.iter()).for_each(|(queue, n)| self.waiters().wake(queue, *n)),
                Err(error) => self.try_again(queues, &error),
            }
        }
        self.set_alarm(&queues, looked_at).await;
    }

    /// Sets the alarm for what becomes available in the queues after the moment at which a waiter began to look for
    /// jobs: it may not have seen what has become available since. If the database cannot be read, the alarm rings
    /// soon to try again.
    pub(in crate::engine) async fn set_alarm(&self, queues: &[QueueKey], looked_at: Time) {
        for queues in queues.chunks(QUEUES_PER_STATEMENT) {
            match self.ahead(queues, looked_at).await {
                Ok(found) => {
                    let set = |(queue, at): &(QueueKey, Time)| self.waiters().will_be(queue, *at);
                    found.iter().for_each(set);
                }
                Err(error) => self.try_again(queues, &error),
            }
        }
    }

    fn try_again(&self, queues: &[QueueKey], error: &Error) {
        tracing::error!(%error, "failed to set a wake-up timer");
        let again = self.now(None).plus_seconds(TRY_AGAIN.as_secs_f64());
        for queue in queues {
            self.waiters().will_be(queue, again);
        }
    }

    /// When something becomes available after this moment, of those queues in which something does.
    async fn ahead(&self, queues: &[QueueKey], after: Time) -> Result<Vec<(QueueKey, Time)>> {
        let mut ahead = Vec::new();
        for (queue, row) in self.look_at(AHEAD, queues, after).await? {
            let at = [
                row.int_or_null(1)?,
                row.int_or_null(2)?,
                row.int_or_null(3)?,
            ];
            if let Some(at) = at.into_iter().flatten().min() {
                ahead.push((queue, Time(at)));
            }
        }
        Ok(ahead)
    }

    /// How many jobs are to be had by then, up to some thousands of each queue.
    pub(in crate::engine) async fn available(
        &self,
        queues: &[QueueKey],
        at: Time,
    ) -> Result<Vec<(QueueKey, usize)>> {
        // In a paused queue there are none; when it is resumed its waiters are woken.
        let is_paused = |key: &&QueueKey| self.known_queues().get(key).is_some_and(|it| it.paused);
        let queues: Vec<_> = queues
            .iter()
            .filter(|key| !is_paused(key))
            .cloned()
            .collect();
        let mut available = Vec::new();
        for (queue, row) in self.look_at(AVAILABLE, &queues, at).await? {
            let n = usize::try_from(row.int(1)?).unwrap_or_default();
            available.push((queue, n));
        }
        Ok(available)
    }

    /// Runs a statement on the queues that are known; with each the row that it gives.
    async fn look_at(
        &self,
        sql: &'static str,
        queues: &[QueueKey],
        at: Time,
    ) -> Result<Vec<(QueueKey, Row)>> {
        let known = |key: &QueueKey| Some((self.known_queues().get(key)?.id, key.clone()));
        let known: HashMap<_, _> = queues.iter().filter_map(known).collect();
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = known.keys().map(|id| (*id,)).collect();
        let statement = Statement::of_rows(sql, &ids).with(at.0);
        let mut found = Vec::with_capacity(ids.len());
        for row in self.readers().rows(statement).await? {
            if let Some(queue) = known.get(&row.int(0)?) {
                found.push((queue.clone(), row));
            }
        }
        Ok(found)
    }
}

const AHEAD: &str = "
SELECT k.int(0),
    (SELECT min(j.ready_at) FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = 2 AND j.ready_at > $2),
    (SELECT min(j.lease_until) FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = 4 AND j.lease_until > $2),
    (SELECT min(r.next_at) FROM recurring AS r WHERE r.queue = k.int(0) AND r.next_at > $2)
FROM rows($1) AS k";

// What is due may have been made waiting by upkeep before the alarm rang, so the waiting count too. One state each:
// no index holds two.
const AVAILABLE: &str = "
SELECT k.int(0),
    (SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = 2 AND j.ready_at <= $2
                           LIMIT 1000) AS due)
    + (SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = 4
                             AND j.lease_until <= $2 LIMIT 1000) AS lost)
    + (SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = 1 LIMIT 1000) AS waiting)
    + (SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = 7 LIMIT 1000) AS taken)
    + (SELECT count(*) FROM (SELECT 1 FROM recurring AS r WHERE r.queue = k.int(0) AND r.next_at <= $2
                             LIMIT 1000) AS children)
FROM rows($1) AS k";
