//! The engine: one durable job store behind every protocol and the dashboard.
//!
//! [`Engine`] is the list of verbs. Verbs that change something become steps of a group
//! (`engine/group.rs`): they run in memory on the jobs they need (`engine/work.rs`), and return after
//! the commit; then the change is as durable as the database was opened for. Verbs that only look
//! (`engine/look.rs`) read what has been committed.
//!
//! Time is an argument: `now` is the client's time where that decides (`--trust-client-clock`), else
//! `None`, and the server's clock decides. The engine knows neither HTTP nor any protocol's JSON.

mod claim;
mod clock;
mod config;
mod error;
mod finish;
mod group;
mod held;
mod history;
mod job;
mod keep;
mod lease;
mod look;
mod mend;
mod put;
mod queues;
mod rows;
mod stats;
mod tally;
mod work;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use clock::{Clock, Time};
pub use config::Config;
pub use error::{Error, Result};
pub use finish::Next;
use group::{Chore, Duty, Runner, Seen, Step, Verb};
pub use history::{Event, History, What};
pub use job::{
    Failure, Job, JobKey, Lease, NAME_BYTES_MAX, Protocol, QLESS_SCOPE, QueueId, QueueKey, State,
};
pub use lease::Holder;
pub use look::{Counts, FailureGroup, Page, QueueCounts, Standing, WorkerCounts};
pub use put::Put;
pub use queues::{Queue, Queues};
pub use stats::{Durations, Stats};
pub use tally::{Moments, SLOTS};
use work::{Needs, Work};

use crate::store::{Durability, Readers, Statement, Store, Writer};

/// Failures that are moved in one transaction; more are moved in several.
const UNFAIL_BATCH: usize = 1_000;

/// How often upkeep looks for what is due or old.
const UPKEEP_EVERY: Duration = Duration::from_millis(500);

/// How an engine is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `sqlite://FILE` or `sqlite::memory:`.
    pub database: String,
    pub durability: Durability,
    /// Clients tell the time. Then nothing happens of its own accord.
    pub trust_client_clock: bool,
}

/// The handle of the engine; cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    writer: Writer<Step>,
    readers: Readers,
    queues: Arc<Queues>,
    config: Arc<Config>,
    clock: Arc<Clock>,
    seen: Arc<Seen>,
    changes: watch::Receiver<u64>,
    trust_client_clock: bool,
    stop: CancellationToken,
    _scratch: Option<tempfile::TempDir>,
}

impl Engine {
    /// Opens the database, making it if it is new, and starts the writer and (unless clients tell the
    /// time) the upkeep.
    pub async fn open(options: &Options) -> Result<Engine> {
        let store = Store::open(&options.database, options.durability).await?;
        let (readers, connection, scratch) = store.split();
        let queues = Arc::new(Queues::load(&readers).await?);
        let config = Arc::new(Config::load(&readers).await?);
        let clock = Arc::new(Clock::default());
        let seen = Arc::new(Seen::default());
        let (changed, changes) = watch::channel(0);
        let highest = readers
            .rows(Statement::new("SELECT coalesce(max(seq), 0) FROM jobs", []))
            .await?;
        let runner = Runner {
            queues: Arc::clone(&queues),
            config: Arc::clone(&config),
            clock: Arc::clone(&clock),
            seen: Arc::clone(&seen),
            changes: changed,
            clients_tell_time: options.trust_client_clock,
            server: 0,
            next_seq: highest.first().map_or(Ok(0), |row| row.int(0))?,
            held: held::Held::default(),
        };
        let engine = Engine(Arc::new(Inner {
            writer: Writer::start(connection, runner),
            readers,
            queues,
            config,
            clock,
            seen,
            changes,
            trust_client_clock: options.trust_client_clock,
            stop: CancellationToken::new(),
            _scratch: scratch,
        }));
        if !options.trust_client_clock {
            tokio::spawn(engine.clone().keep_up());
        }
        Ok(engine)
    }

    /// Finishes what is queued, and closes the database.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.writer.close().await;
        self.0.readers.close().await;
    }

    // ---- verbs that change something; each returns after the commit ----

    /// Puts jobs into `queue` one after the other, each for itself. Per job, its id.
    pub async fn put(
        &self,
        queue: QueueKey,
        jobs: Vec<Put>,
        now: Option<Time>,
    ) -> Result<Vec<Result<String>>> {
        let mut needs = Needs::default();
        for job in &jobs {
            needs.jobs.extend(job.id.iter().map(JobKey::qless));
            if let Some(depends) = &job.depends {
                needs.jobs.extend(depends.iter().map(JobKey::qless));
                needs.reach.extend(depends.iter().cloned());
            }
        }
        self.write(needs, now, jobs.len(), move |work| {
            Ok(jobs.iter().map(|job| put::put(work, &queue, job)).collect())
        })
        .await
    }

    /// Gives `worker` up to `count` jobs of `queue`; see `engine/claim.rs` for the order.
    pub async fn claim(
        &self,
        queue: QueueKey,
        worker: String,
        count: usize,
        now: Option<Time>,
    ) -> Result<Vec<Job>> {
        let needs = Needs {
            claim: Some((queue.clone(), count)),
            ..Needs::default()
        };
        self.write(needs, now, count, move |work| {
            Ok(claim::claim(work, &queue, &worker, count))
        })
        .await
    }

    /// Renews leases. Each job may get a new body. Per job, the seconds until the next heartbeat.
    pub async fn heartbeat(
        &self,
        jobs: Vec<(JobKey, Option<String>)>,
        holder: Holder,
        now: Option<Time>,
    ) -> Result<Vec<Result<f64>>> {
        self.write(
            Self::named(jobs.iter().map(|(key, _)| key)),
            now,
            jobs.len(),
            move |work| {
                let one = |(key, body): &(JobKey, Option<String>)| {
                    lease::heartbeat(work, key, &holder, body.as_deref())
                };
                Ok(jobs.iter().map(one).collect())
            },
        )
        .await
    }

    /// Completes jobs with their bodies, each for good or to go on elsewhere. Per job, its state now.
    pub async fn complete(
        &self,
        jobs: Vec<(JobKey, String, Option<Next>)>,
        holder: Holder,
        now: Option<Time>,
    ) -> Result<Vec<Result<State>>> {
        let mut needs = Self::named(jobs.iter().map(|(key, ..)| key));
        for next in jobs.iter().filter_map(|(_, _, next)| next.as_ref()) {
            needs.jobs.extend(next.depends.iter().map(JobKey::qless));
            needs.reach.extend(next.depends.iter().cloned());
        }
        self.write(needs, now, jobs.len(), move |work| {
            let one = |(key, body, next): &(JobKey, String, Option<Next>)| {
                finish::complete(work, key, &holder, body, next.as_ref())
            };
            Ok(jobs.iter().map(one).collect())
        })
        .await
    }

    /// Fails jobs.
    pub async fn fail(
        &self,
        jobs: Vec<Fail>,
        holder: Holder,
        now: Option<Time>,
    ) -> Result<Vec<Result<()>>> {
        self.write(
            Self::named(jobs.iter().map(|job| &job.key)),
            now,
            jobs.len(),
            move |work| {
                let one = |job: &Fail| {
                    finish::fail(
                        work,
                        &job.key,
                        &holder,
                        &job.group,
                        &job.message,
                        job.body.as_deref(),
                    )
                };
                Ok(jobs.iter().map(one).collect())
            },
        )
        .await
    }

    /// Gives jobs back to be tried again. Per job, the retries left; negative if it was failed instead.
    pub async fn retry(
        &self,
        jobs: Vec<Retry>,
        holder: Holder,
        now: Option<Time>,
    ) -> Result<Vec<Result<i64>>> {
        self.write(
            Self::named(jobs.iter().map(|job| &job.key)),
            now,
            jobs.len(),
            move |work| {
                let one = |job: &Retry| {
                    let reason = job
                        .reason
                        .as_ref()
                        .map(|(group, message)| (group.as_str(), message.as_str()));
                    finish::retry(work, &job.key, &holder, job.delay, reason)
                };
                Ok(jobs.iter().map(one).collect())
            },
        )
        .await
    }

    /// Cancels all of these jobs, or none.
    pub async fn cancel(&self, keys: Vec<JobKey>, now: Option<Time>) -> Result<()> {
        self.write(Self::named(&keys), now, keys.len(), move |work| {
            mend::cancel(work, &keys)
        })
        .await
    }

    /// Puts the oldest `count` failures of `group` back to work, into `queue` or else each into its
    /// own. Returns how many. Large numbers go in several transactions.
    pub async fn unfail(
        &self,
        group: &str,
        queue: Option<QueueKey>,
        count: usize,
        now: Option<Time>,
    ) -> Result<usize> {
        let mut moved = 0;
        while moved < count {
            let batch = UNFAIL_BATCH.min(count - moved);
            let needs = Needs {
                failures: Some((group.to_owned(), batch)),
                ..Needs::default()
            };
            let queue = queue.clone();
            let verb = move |work: &mut Work| {
                let keys = work.take_failures();
                Ok(mend::unfail(work, &keys, queue.as_ref()))
            };
            let found = self.write(needs, now, batch, verb).await?;
            moved += found;
            if found < batch {
                break;
            }
        }
        Ok(moved)
    }

    /// Puts one failed job back to work in its own queue.
    pub async fn unfail_one(&self, key: JobKey, now: Option<Time>) -> Result<()> {
        self.write(Self::named([&key]), now, 1, move |work| {
            mend::unfail_one(work, &key)
        })
        .await
    }

    /// Moves a job, whatever its state, to `queue`, where it is put anew with what it has.
    pub async fn relocate(&self, key: JobKey, queue: QueueKey, now: Option<Time>) -> Result<()> {
        self.write(Self::named([&key]), now, 1, move |work| {
            mend::relocate(work, &key, &queue)
        })
        .await
    }

    /// Gives jobs other priorities.
    pub async fn prioritize(
        &self,
        jobs: Vec<(JobKey, f64)>,
        now: Option<Time>,
    ) -> Result<Vec<Result<()>>> {
        self.write(
            Self::named(jobs.iter().map(|(key, _)| key)),
            now,
            jobs.len(),
            move |work| {
                Ok(jobs
                    .iter()
                    .map(|(key, priority)| mend::prioritize(work, key, *priority))
                    .collect())
            },
        )
        .await
    }

    /// Sets an option to a value, which is JSON text, or forgets it (`None`), so that its default is in
    /// force again.
    pub async fn configure(
        &self,
        option: &str,
        value: Option<String>,
        now: Option<Time>,
    ) -> Result<()> {
        let option = option.to_owned();
        self.write(Needs::default(), now, 1, move |work| {
            work.configure(&option, value.clone());
            Ok(())
        })
        .await
    }

    /// Forgets everything.
    pub async fn flush(&self) -> Result<()> {
        self.chore(Chore::Flush).await
    }

    // ---- the rest ----

    /// The moment at which something happens: the client's, where that decides, else the server's.
    pub fn now(&self, client: Option<Time>) -> Time {
        client.unwrap_or_else(|| self.0.clock.now())
    }

    /// Whether clients tell the time.
    pub fn trusts_client_clock(&self) -> bool {
        self.0.trust_client_clock
    }

    /// Changes with every commit that changed something. A hint to look again, never data.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.clone()
    }

    /// The options in force.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The queues that are known.
    pub fn known_queues(&self) -> &Queues {
        &self.0.queues
    }

    fn readers(&self) -> &Readers {
        &self.0.readers
    }

    fn seen(&self) -> &Seen {
        &self.0.seen
    }

    fn named<'a>(keys: impl IntoIterator<Item = &'a JobKey>) -> Needs {
        Needs {
            jobs: keys.into_iter().cloned().collect(),
            ..Needs::default()
        }
    }

    async fn write<T: Send + 'static>(
        &self,
        needs: Needs,
        now: Option<Time>,
        items: usize,
        verb: impl FnMut(&mut Work) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tell, told) = oneshot::channel();
        let task = Box::new(Verb {
            verb,
            result: None,
            tell,
        });
        self.0
            .writer
            .submit(Step {
                needs,
                now,
                items,
                task,
            })
            .await?;
        told.await.map_err(|_| crate::store::StoreError::Stopped)?
    }

    async fn chore(&self, chore: Chore) -> Result<()> {
        let (tell, told) = oneshot::channel();
        let task = Box::new(Duty { chore, tell });
        self.0
            .writer
            .submit(Step {
                needs: Needs::default(),
                now: None,
                items: 1,
                task,
            })
            .await?;
        told.await.map_err(|_| crate::store::StoreError::Stopped)?
    }

    async fn keep_up(self) {
        let mut ticks = tokio::time::interval(UPKEEP_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.0.stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            // A failure has been logged by the writer; the next round tries again.
            drop(self.chore(Chore::Upkeep).await);
        }
    }
}

/// A job to be failed.
#[derive(Clone, Debug)]
pub struct Fail {
    pub key: JobKey,
    pub group: String,
    pub message: String,
    /// Replaces the job's body, if given.
    pub body: Option<String>,
}

/// A job to be given back.
#[derive(Clone, Debug)]
pub struct Retry {
    pub key: JobKey,
    /// Seconds before it becomes available again; 0 or less means now.
    pub delay: f64,
    /// A failure's group and message.
    pub reason: Option<(String, String)>,
}
