//! A claim that waits for jobs (long poll).

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, QueueKey};
use crate::engine::subscriptions::PendingWakeUp;
use crate::engine::subscriptions::timer::sleep_time;
use crate::engine::verbs::claim::Claim;

impl Engine {
    /// Claims jobs. If there are none, waits until there are, until `wait` has passed, or until the server stops.
    /// Dropping the future ends the wait. A claim that runs at that moment still leases its jobs.
    ///
    /// # Errors
    /// [`Error::Busy`] if there are no jobs, and too many other polls wait, or for too many queues.
    pub async fn claim_or_wait(
        &self,
        claim: Claim,
        wait: Duration,
        now: Option<Time>,
    ) -> Result<Vec<Job>> {
        if wait.is_zero() {
            return self.claim(claim, now).await;
        }
        // In a box, because its future is large, and most claims do not wait.
        Box::pin(self.wait_for_jobs(claim, wait, now)).await
    }

    async fn wait_for_jobs(
        &self,
        claim: Claim,
        wait: Duration,
        now: Option<Time>,
    ) -> Result<Vec<Job>> {
        let until = Instant::now() + wait;
        let expiry = claim.grant.as_ref().and_then(|grant| grant.expires_at);
        // With too many polls, no connections would be left for other requests.
        let has_room = self.0.metrics.polls.get() < self.0.polls_max;
        let _waiting = self.0.metrics.polls.guard();
        let subscription = has_room.then(|| self.subscriptions().subscribe(&claim.queues));
        let Some(subscription) = subscription.flatten() else {
            let jobs = self.claim(claim, now).await?;
            return if jobs.is_empty() {
                Err(Error::Busy)
            } else {
                Ok(jobs)
            };
        };
        let mut pending = PendingWakeUp {
            subscription: &subscription,
            queue: None,
        };
        loop {
            let wake_up = subscription.next_wake_up();
            let checked_at = self.now(None);
            let jobs = self.claim(claim.clone(), now).await?;
            let queue = pending.take();
            if !jobs.is_empty() {
                self.pass_on_wake_up(queue, &jobs);
                return Ok(jobs);
            }
            if now.is_none() {
                self.request_timers(&subscription.queues, checked_at);
            }
            let woken = tokio::select! {
                woken = timeout_at(until, wake_up) => woken,
                // The token has expired: the next claim fails.
                () = self.clock_reaches(expiry) => continue,
                () = self.polls_stopped() => return Ok(jobs),
            };
            match woken {
                Ok(queue) => pending.queue = Some(queue),
                Err(_) => return Ok(jobs),
            }
        }
    }

    /// Sets the timers of those of the queues for which no poll has requested it. One task at a time does that for all
    /// polls, which react to wake-ups meanwhile.
    fn request_timers(&self, queues: &[QueueKey], checked_at: Time) {
        if !self.subscriptions().request_timers(queues, checked_at) {
            return;
        }
        let engine = self.for_task();
        tokio::spawn(async move {
            while let Some((queues, since)) = engine.subscriptions().take_requested_timers() {
                engine.set_timers(&queues, since).await;
            }
        });
    }

    /// Resolves when the server's clock reaches this time; never for `None`.
    async fn clock_reaches(&self, time: Option<Time>) {
        let Some(time) = time else {
            return std::future::pending().await;
        };
        loop {
            let now = self.now(None);
            if now >= time {
                return;
            }
            sleep(sleep_time(now, time)).await;
        }
    }

    /// A poll that was woken for one queue, but found enough jobs in others, wakes the next subscriber of that queue.
    fn pass_on_wake_up(&self, woken_for: Option<&QueueKey>, jobs: &[Job]) {
        let Some(queue) = woken_for else {
            return;
        };
        let id = self.known_queues().get(queue).map(|queue| queue.id);
        if !jobs.iter().any(|job| Some(job.queue) == id) {
            self.subscriptions().wake(queue, 1);
        }
    }
}

#[cfg(test)]
mod tests;
