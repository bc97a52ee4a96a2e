//! Claims jobs and starts their work, as many at the same time as there are slots.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::job::Job;
use super::lines::Pool;
use super::outcome::Counts;
use super::pace::Backoff;
use super::shutdown::Shutdown;
use crate::client::Error;
use crate::config::{QueueOrder, Work};

/// How long the server may hold a claim.
const WAIT: Duration = Duration::from_secs(20);

/// Maximum number of jobs of one claim, so that large payloads fit into a response.
const CLAIM_MAX: usize = 25;

/// A worker.
#[derive(Debug)]
pub struct Worker {
    pub options: Work,
    pub api: Api,
    pub shutdown: Shutdown,
    pub pool: Pool,
    /// Environment variables of all programs.
    pub variables: Vec<(&'static str, String)>,
    counts: Counts,
    slots: Arc<Semaphore>,
    slot_count: u32,
    /// Notified when the work on a job has ended.
    ended: Notify,
    running: Mutex<HashMap<(String, String), Running>>,
    /// Why the worker has to end.
    failure: OnceLock<String>,
}

/// A job that this worker works on.
#[derive(Clone, Debug, Default)]
struct Running {
    /// This worker has claimed it again.
    superseded: CancellationToken,
    ended: CancellationToken,
}

impl Worker {
    pub fn new(options: Work, api: Api, shutdown: Shutdown) -> Worker {
        let slot_count = if options.once { 1 } else { options.concurrency };
        let variables = vec![
            ("SWITCHYARD_API", api.name().to_owned()),
            ("SWITCHYARD_SERVER", options.connection.server.clone()),
        ];
        Worker {
            options,
            api,
            shutdown,
            pool: Pool::default(),
            variables,
            counts: Counts::default(),
            slots: Arc::new(Semaphore::new(slot_count.into())),
            slot_count: slot_count.into(),
            ended: Notify::new(),
            running: Mutex::default(),
            failure: OnceLock::new(),
        }
    }

    /// Works until a signal; with `--once` until one job has run, and with `--drain` until no job is available. Returns
    /// when no program runs anymore.
    ///
    /// # Errors
    /// If the server refuses to give jobs, or the program cannot be run.
    pub async fn run(self: &Arc<Self>) -> Result<&Counts, Box<dyn StdError>> {
        tracing::info!(
            server = self.options.connection.server,
            api = self.api.name(),
            queues = self.options.queues.join(","),
            "the worker has started"
        );
        let outcome = self.claim_until_finished().await;
        let all = self.slots.acquire_many(self.slot_count).await;
        drop(all);
        self.pool.close(self.options.kill_after).await;
        outcome?;
        match self.failure.get() {
            Some(why) => Err(why.clone().into()),
            None => Ok(&self.counts),
        }
    }

    /// Claims no more jobs, and ends with this error.
    pub fn abort(&self, why: String) {
        drop(self.failure.set(why));
        self.shutdown.finish();
    }

    async fn claim_until_finished(self: &Arc<Self>) -> Result<(), Error> {
        let (mut backoff, mut is_away, mut first) = (Backoff::new(), false, 0);
        while let Some(slots) = self.free_slots().await {
            let queues = self.queues_from(first);
            let free = slots.len() + self.slots.available_permits();
            let was_idle = free >= self.slot_count as usize;
            first += 1;
            let claimed = tokio::select! {
                claimed = self.api.claim(&queues, slots.len(), self.wait()) => claimed,
                // A claim that does not wait is not abandoned, because it may have got jobs.
                () = self.shutdown.finishing(), if self.api.can_wait() => return Ok(()),
            };
            match claimed {
                Ok(jobs) => {
                    if is_away {
                        tracing::info!("the server is available again");
                    }
                    (backoff, is_away) = (Backoff::new(), false);
                    let has_none = jobs.is_empty();
                    self.start(jobs, slots);
                    if has_none && self.options.drain && was_idle {
                        return Ok(());
                    }
                    if has_none {
                        self.pause().await;
                    } else if self.options.once {
                        return Ok(());
                    }
                }
                Err(error) if error.is_temporary() => {
                    if !is_away {
                        tracing::warn!("cannot claim jobs: {error}; trying again");
                    }
                    is_away = true;
                    drop(slots);
                    tokio::select! {
                        () = backoff.pause(&error) => {}
                        () = self.shutdown.finishing() => {}
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The free slots; waits until there is one. `None` if no more jobs may be claimed.
    async fn free_slots(&self) -> Option<Vec<OwnedSemaphorePermit>> {
        let first = tokio::select! {
            biased;
            () = self.shutdown.finishing() => return None,
            slot = Arc::clone(&self.slots).acquire_owned() => slot.ok()?,
        };
        let mut slots = vec![first];
        while slots.len() < CLAIM_MAX
            && let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned()
        {
            slots.push(slot);
        }
        Some(slots)
    }

    /// The queues in the order in which this claim uses them.
    fn queues_from(&self, number: usize) -> Vec<String> {
        let mut queues = self.options.queues.clone();
        if self.options.order == QueueOrder::RoundRobin {
            let first = number.checked_rem(queues.len()).unwrap_or_default();
            queues.rotate_left(first);
        }
        queues
    }

    fn wait(&self) -> Duration {
        match self.options.drain || !self.api.can_wait() {
            true => Duration::ZERO,
            false => WAIT,
        }
    }

    /// Waits before the next claim after one that returned no job.
    async fn pause(&self) {
        let pause = async {
            match (self.options.drain, self.api.can_wait()) {
                // The jobs that still run can make others available.
                (true, _) => self.ended.notified().await,
                (false, true) => {}
                (false, false) => sleep(self.options.poll_interval).await,
            }
        };
        tokio::select! {
            () = pause => {}
            () = self.shutdown.finishing() => {}
        }
    }

    /// Starts the work on jobs.
    fn start(self: &Arc<Self>, jobs: Vec<Job>, slots: Vec<OwnedSemaphorePermit>) {
        for (job, slot) in jobs.into_iter().zip(slots) {
            let this = Arc::clone(self);
            tokio::spawn(async move {
                let (running, before) = this.register(&job);
                if let Some(before) = before {
                    // The server has taken the job from this worker and given it back.
                    before.superseded.cancel();
                    before.ended.cancelled().await;
                }
                let ending = Box::pin(this.process(&job, &running.superseded)).await;
                this.unregister(&job, &running);
                this.counts.add(ending);
                drop(slot);
                this.ended.notify_one();
            });
        }
    }

    /// Registers the work on a job. Returns also the earlier work on it, if there is any.
    fn register(&self, job: &Job) -> (Running, Option<Running>) {
        let running = Running::default();
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.insert(job.key(), running.clone());
        (running, before)
    }

    fn unregister(&self, job: &Job, running: &Running) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.ended.cancel();
        // Later work on the job has replaced it.
        if !running.superseded.is_cancelled() {
            all.remove(&job.key());
        }
    }
}
