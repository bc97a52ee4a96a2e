//! The wake-up timer: wakes subscribers when jobs become available without a commit, and finds out when that is.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::QueueKey;
use crate::store::{Row, Statement};

/// The longest sleep. The machine's clock can be set, and a sleep does not notice.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Queues that one statement reads.
pub const QUEUES_PER_STATEMENT: usize = 200;

/// Jobs of a queue that are counted to wake subscribers.
const WAKE_MAX: i64 = 1_000;

/// Reads by queue for claims at once. They do not wait for lists, because they decide when a poll gets its job, but leave
/// connections for other reads by key. Those for timers need no permit: few tasks run them, one after the other.
static FOR_CLAIMS: Semaphore = Semaphore::const_new(2);

/// How long a read by queue waits for others.
const READ_WAIT_MAX: Duration = Duration::from_secs(5);

/// The delay before the next attempt when the database cannot be read.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long to sleep from `now` until `until`, at most [`SLEEP_MAX`].
pub fn sleep_time(now: Time, until: Time) -> Duration {
    let micros = until.0.saturating_sub(now.0).max(0);
    Duration::from_micros(micros.unsigned_abs()).min(SLEEP_MAX)
}

impl Engine {
    /// Wakes subscribers whenever jobs become available without a commit, until the engine stops.
    pub(in crate::engine) async fn run_wake_up_timer(self) {
        loop {
            let time = match self.subscriptions().next_available() {
                Some(next) => sleep_time(self.now(None), next),
                None => SLEEP_MAX,
            };
            tokio::select! {
                () = sleep(time) => {}
                () = self.subscriptions().timer_moved.notified() => continue,
                () = self.polls_stopped() => return,
            }
            let due = self.subscriptions().take_due(self.now(None));
            self.wake_where_available(due).await;
        }
    }

    /// Wakes as many subscribers of each queue as it has available jobs, and sets the timer for what comes next.
    pub(in crate::engine) async fn wake_where_available(&self, queues: Vec<QueueKey>) {
        let checked_at = self.now(None);
        for queues in queues.chunks(QUEUES_PER_STATEMENT) {
            match self.available(queues, self.now(None), WAKE_MAX).await {
                Ok(found) => {
                    let wake =
                        |(queue, n): &(QueueKey, usize)| self.subscriptions().wake(queue, *n);
                    found.iter().for_each(wake);
                }
                Err(error) => self.retry_timer(queues, &error),
            }
            // Queues that do not exist take no read.
            yield_now().await;
        }
        self.set_timers(&queues, checked_at).await;
    }

    /// Sets the timer for jobs that become available in the queues after `checked_at`, the time at which a poll began
    /// its claim: the claim may have missed what became available since. If the database cannot be read, the timer
    /// fires soon to try again.
    pub(in crate::engine) async fn set_timers(&self, queues: &[QueueKey], checked_at: Time) {
        for queues in queues.chunks(QUEUES_PER_STATEMENT) {
            match self.next_available(queues, checked_at).await {
                Ok(found) => {
                    for (queue, at) in &found {
                        self.subscriptions().available_at(queue, *at);
                    }
                }
                Err(error) => self.retry_timer(queues, &error),
            }
            yield_now().await;
        }
    }

    fn retry_timer(&self, queues: &[QueueKey], error: &Error) {
        tracing::error!(%error, "failed to read which jobs are available");
        let at = self.now(None).plus_seconds(RETRY_DELAY.as_secs_f64());
        for queue in queues {
            self.subscriptions().available_at(queue, at);
        }
    }

    /// When the next job becomes available after this time, or a pause ends, for each queue in which one does.
    async fn next_available(
        &self,
        queues: &[QueueKey],
        after: Time,
    ) -> Result<Vec<(QueueKey, Time)>> {
        let mut found = Vec::new();
        for (queue, row) in self.read_queues(NEXT_AVAILABLE, queues, &[after.0]).await? {
            let pause = self
                .known_queues()
                .get(&queue)
                .and_then(|it| it.pause_at(after)?.until);
            let times = [
                row.int_or_null(1)?,
                row.int_or_null(2)?,
                row.int_or_null(3)?,
                pause.map(|until| until.0),
            ];
            if let Some(at) = times.into_iter().flatten().min() {
                found.push((queue, Time(at)));
            }
        }
        Ok(found)
    }

    /// How many jobs are available at this time in each queue. Counts up to `max` each of the jobs that are due,
    /// waiting or timed out or have an expired lease, and of the recurring jobs with a due child.
    async fn available(
        &self,
        queues: &[QueueKey],
        at: Time,
        max: i64,
    ) -> Result<Vec<(QueueKey, usize)>> {
        // A paused queue has none. Resuming it wakes its subscribers, and the timer fires when its pause ends.
        let known = self.known_queues();
        let is_paused = |key: &&QueueKey| known.get(key).is_some_and(|it| it.is_paused(at));
        let queues: Vec<_> = queues
            .iter()
            .filter(|key| !is_paused(key))
            .cloned()
            .collect();
        let mut available = Vec::new();
        for (queue, row) in self.read_queues(AVAILABLE, &queues, &[at.0, max]).await? {
            let n = usize::try_from(row.int(1)?).unwrap_or_default();
            available.push((queue, n));
        }
        Ok(available)
    }

    /// Which of the queues have a job at this time, for a claim.
    ///
    /// # Errors
    /// [`Error::Busy`], if many claims read this.
    pub(in crate::engine) async fn non_empty(
        &self,
        queues: &[QueueKey],
        at: Time,
    ) -> Result<HashSet<QueueKey>> {
        let reading = timeout(READ_WAIT_MAX, FOR_CLAIMS.acquire()).await;
        let Ok(Ok(_reading)) = reading else {
            return Err(Error::Busy);
        };
        let found = self.available(queues, at, 1).await?;
        let found = found.into_iter().filter(|(_, n)| *n > 0);
        Ok(found.map(|(queue, _)| queue).collect())
    }

    /// Runs a statement that returns one row per queue. Queues that do not exist are left out.
    async fn read_queues(
        &self,
        sql: &'static str,
        queues: &[QueueKey],
        args: &[i64],
    ) -> Result<Vec<(QueueKey, Row)>> {
        let known = |key: &QueueKey| Some((self.known_queues().get(key)?.id, key.clone()));
        let known: HashMap<_, _> = queues.iter().filter_map(known).collect();
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = known.keys().map(|id| (*id,)).collect();
        let statement = Statement::of_rows(sql, &ids);
        let statement = args.iter().fold(statement, |it, arg| it.with(*arg));
        let mut found = Vec::with_capacity(ids.len());
        for row in self.readers().keyed_rows(statement).await? {
            if let Some(queue) = known.get(&row.int(0)?) {
                found.push((queue.clone(), row));
            }
        }
        Ok(found)
    }
}

const NEXT_AVAILABLE: &str = "
SELECT k.int(0),
    (SELECT min(j.ready_at) FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = {scheduled} AND j.ready_at > $2),
    (SELECT min(j.lease_until) FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = {running} AND j.lease_until > $2),
    (SELECT min(r.next_at) FROM recurring AS r WHERE r.queue = k.int(0) AND r.next_at > $2)
FROM rows($1) AS k";

// Maintenance may have moved due jobs to waiting before the timer fired, so waiting jobs count too. One subselect for
// each state, because no index covers two.
const AVAILABLE: &str = "
SELECT k.int(0),
    (SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = {scheduled}
                           AND j.ready_at <= $2 LIMIT $3 + 0) AS due)
    + (SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = {running}
                             AND j.lease_until <= $2 LIMIT $3 + 0) AS expired)
    + (SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = {waiting}
                             LIMIT $3 + 0) AS waiting)
    + (SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE j.queue = k.int(0) AND j.state = {timed_out}
                             LIMIT $3 + 0) AS timed_out)
    + (SELECT count(*) FROM (SELECT 1 FROM recurring AS r WHERE r.queue = k.int(0) AND r.next_at <= $2
                             LIMIT $3 + 0) AS children)
FROM rows($1) AS k";
