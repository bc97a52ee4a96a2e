//! Waiting for jobs: thousands may wait at once, and cost nothing while nothing happens.
//!
//! Whoever waits takes a seat at each of its queues first and looks afterwards, so that no job falls
//! between. A commit wakes as many at a queue as jobs became available there. What becomes available by
//! itself (a due job, a lost lease, the next child of a recurring job) is watched by one alarm for all.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, sleep, timeout_at};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, QueueKey};
use crate::engine::verbs::claim::Claim;
use crate::store::{Row, Statement};

/// The longest that the alarm sleeps: clocks of machines are set, and sleeps do not notice.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Queues that one statement looks at.
pub const LOOKED_AT_MAX: usize = 200;

/// After an alarm that could not be looked up, the next try.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Those who wait.
#[derive(Debug, Default)]
pub struct Waiters {
    queues: Mutex<HashMap<QueueKey, Bench>>,
    /// How many seats are taken, in all queues.
    seated: AtomicUsize,
    /// Told when the alarm has to ring earlier.
    earlier: Notify,
}

/// Those who wait at one queue.
#[derive(Debug, Default)]
struct Bench {
    bell: Arc<Notify>,
    seated: usize,
    /// When something will become available by itself.
    ahead: Option<Time>,
    /// Whether somebody looks when that is, or has looked.
    looked: bool,
}

impl Waiters {
    /// Whether anybody waits.
    pub fn any(&self) -> bool {
        self.seated.load(Ordering::Acquire) > 0
    }

    /// Takes a seat at each of the queues.
    pub fn sit(self: &Arc<Self>, queues: &[QueueKey]) -> Seat {
        let mut benches = self.benches();
        let bells = queues.iter().map(|queue| {
            let bench = benches.entry(queue.clone()).or_default();
            bench.seated += 1;
            Arc::clone(&bench.bell)
        });
        let bells: Vec<_> = bells.collect();
        self.seated.fetch_add(queues.len(), Ordering::AcqRel);
        Seat {
            waiters: Arc::clone(self),
            queues: queues.to_vec(),
            bells,
        }
    }

    /// Wakes `n` waiters of the queue, usually because as many jobs became available there.
    pub fn wake(&self, queue: &QueueKey, n: usize) {
        if let Some(bench) = self.benches().get(queue) {
            (0..n.min(bench.seated)).for_each(|_| bench.bell.notify_one());
        }
    }

    /// Everybody should look.
    pub fn wake_all(&self) {
        for bench in self.benches().values() {
            (0..bench.seated).for_each(|_| bench.bell.notify_one());
        }
    }

    /// Something will become available in the queue.
    pub fn will_be(&self, queue: &QueueKey, at: Time) {
        if let Some(bench) = self.benches().get_mut(queue)
            && bench.ahead.is_none_or(|ahead| at < ahead)
        {
            bench.ahead = Some(at);
            self.earlier.notify_one();
        }
    }

    /// Those of the queues for which no waiter has read yet when something becomes available there. The caller
    /// must read it; if it is dropped first, the next waiter does.
    fn unlooked(&self, queues: &[QueueKey]) -> Unlooked<'_> {
        let mut benches = self.benches();
        let mut unlooked = Vec::new();
        for queue in queues {
            if let Some(bench) = benches.get_mut(queue)
                && !std::mem::replace(&mut bench.looked, true)
            {
                unlooked.push(queue.clone());
            }
        }
        Unlooked {
            waiters: self,
            queues: unlooked,
        }
    }

    /// The queues at which somebody waits.
    pub fn queues(&self) -> Vec<QueueKey> {
        self.benches().keys().cloned().collect()
    }

    /// When the alarm has to ring next.
    fn next(&self) -> Option<Time> {
        self.benches()
            .values()
            .filter_map(|bench| bench.ahead)
            .min()
    }

    /// The queues for which the alarm rings at `now`; each has to be looked at again.
    fn ringing(&self, now: Time) -> Vec<QueueKey> {
        let mut benches = self.benches();
        let due = benches
            .iter_mut()
            .filter(|(_, bench)| bench.ahead.is_some_and(|ahead| ahead <= now));
        due.map(|(queue, bench)| {
            bench.ahead = None;
            queue.clone()
        })
        .collect()
    }

    fn benches(&self) -> MutexGuard<'_, HashMap<QueueKey, Bench>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among those who wait, given up when it is dropped.
pub struct Seat {
    waiters: Arc<Waiters>,
    queues: Vec<QueueKey>,
    bells: Vec<Arc<Notify>>,
}

impl Seat {
    /// Begins to listen: whatever happens from now on will be heard.
    fn listen(&self) -> Rings {
        let mut rings: Vec<_> = self
            .bells
            .iter()
            .map(|bell| Box::pin(Arc::clone(bell).notified_owned()))
            .collect();
        for ring in &mut rings {
            ring.as_mut().enable();
        }
        Rings(rings)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut benches = self.waiters.benches();
        for queue in &self.queues {
            if let Some(bench) = benches.get_mut(queue) {
                bench.seated -= 1;
                if bench.seated == 0 {
                    benches.remove(queue);
                }
            }
        }
        drop(benches);
        self.waiters
            .seated
            .fetch_sub(self.queues.len(), Ordering::AcqRel);
    }
}

/// Ends with the number of the first queue whose bell rings. A bell that rang for us unheard rings for the
/// next one.
struct Rings(Vec<Pin<Box<OwnedNotified>>>);

impl Future for Rings {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        let rung = self
            .0
            .iter_mut()
            .position(|ring| ring.as_mut().poll(context).is_ready());
        rung.map_or(Poll::Pending, Poll::Ready)
    }
}

/// Queues whose alarm one waiter is about to set for all of them. Other waiters rely on it, so if this is dropped
/// before [`Unlooked::done`], because the caller hung up, one of them takes over.
struct Unlooked<'a> {
    waiters: &'a Waiters,
    queues: Vec<QueueKey>,
}

impl Unlooked<'_> {
    /// The alarm is set.
    fn done(mut self) {
        self.queues.clear();
    }
}

impl Drop for Unlooked<'_> {
    fn drop(&mut self) {
        for queue in &self.queues {
            if let Some(bench) = self.waiters.benches().get_mut(queue) {
                bench.looked = false;
            }
            self.waiters.wake(queue, 1);
        }
    }
}

/// A wake-up that has not led to a claim yet. If the caller hangs up or its claim fails, the next waiter of the
/// queue gets it: the job is still there.
struct Woken<'a> {
    seat: &'a Seat,
    /// The number of the queue among those of the seat, while the wake-up is unused.
    queue: Option<usize>,
}

impl Woken<'_> {
    /// The queue of the wake-up, which the caller has used.
    fn used(&mut self) -> Option<&QueueKey> {
        let queue = self.queue.take()?;
        self.seat.queues.get(queue)
    }
}

impl Drop for Woken<'_> {
    fn drop(&mut self) {
        let seat = self.seat;
        if let Some(queue) = self.used() {
            seat.waiters.wake(queue, 1);
        }
    }
}

/// How long to sleep until a moment, or until the clock is read again.
fn pause(now: Time, until: Time) -> Duration {
    let micros = until.0.saturating_sub(now.0).max(0);
    Duration::from_micros(micros.unsigned_abs()).min(SLEEP_MAX)
}

impl Engine {
    /// Claims jobs, and if there are none waits until there are, or `wait` is over, or the server is about
    /// to stop. Dropping this takes no job.
    pub async fn claim_or_wait(
        &self,
        claim: Claim,
        wait: Duration,
        now: Option<Time>,
    ) -> Result<Vec<Job>> {
        if wait.is_zero() {
            return self.claim(claim, now).await;
        }
        let until = Instant::now() + wait;
        let expiry = claim.grant.as_ref().and_then(|grant| grant.expires_at);
        let seat = self.waiters().sit(&claim.queues);
        let mut woken = Woken {
            seat: &seat,
            queue: None,
        };
        loop {
            let rings = seat.listen();
            let looked_at = self.now(None);
            let jobs = self.claim(claim.clone(), now).await?;
            let queue = woken.used();
            if !jobs.is_empty() {
                self.pass_on(queue, &jobs);
                return Ok(jobs);
            }
            if now.is_none() {
                let unlooked = self.waiters().unlooked(&seat.queues);
                self.set_alarm(&unlooked.queues, looked_at).await;
                unlooked.done();
            }
            let rung = tokio::select! {
                rung = timeout_at(until, rings) => rung,
                // The next claim is refused.
                () = self.reached(expiry) => continue,
                () = self.resting() => return Ok(jobs),
            };
            match rung {
                Ok(queue) => woken.queue = Some(queue),
                Err(_) => return Ok(jobs),
            }
        }
    }

    /// Ends when the server's clock has reached this moment; never without one.
    async fn reached(&self, moment: Option<Time>) {
        let Some(moment) = moment else {
            return std::future::pending().await;
        };
        loop {
            let now = self.now(None);
            if now >= moment {
                return;
            }
            sleep(pause(now, moment)).await;
        }
    }

    /// Whoever was woken for one queue and found enough in others wakes the next one there.
    fn pass_on(&self, woken_for: Option<&QueueKey>, jobs: &[Job]) {
        let Some(queue) = woken_for else {
            return;
        };
        let id = self.known_queues().get(queue).map(|queue| queue.id);
        if !jobs.iter().any(|job| Some(job.queue) == id) {
            self.waiters().wake(queue, 1);
        }
    }

    /// Rings whenever something becomes available by itself in a queue at which somebody waits.
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
        for queues in queues.chunks(LOOKED_AT_MAX) {
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
    async fn set_alarm(&self, queues: &[QueueKey], looked_at: Time) {
        for queues in queues.chunks(LOOKED_AT_MAX) {
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

#[cfg(test)]
mod tests;
