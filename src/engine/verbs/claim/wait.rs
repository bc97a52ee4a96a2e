//! A claim that waits for jobs (long poll).

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, QueueKey};
use crate::engine::subscriptions::PendingWakeUp;
use crate::engine::subscriptions::timer::pause;
use crate::engine::verbs::claim::Claim;

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
        let mut woken = PendingWakeUp {
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
}

#[cfg(test)]
mod tests;
