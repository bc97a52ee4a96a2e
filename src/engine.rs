//! The engine: one durable job store behind every protocol and the dashboard.
//!
//! Verbs that change something (in `engine/verbs/`) are batched into transactions (`engine/unit_of_work.rs`):
//! they run in memory on the jobs they need, and return after the commit, with the durability that the database was
//! opened with. Queries (`engine/queries.rs`) read committed data.
//!
//! Time is an argument: `now` is the client's time with `--trust-client-clock`, otherwise `None`, and the server's
//! clock is used. The engine knows neither HTTP nor any protocol's JSON.

mod audit;
mod background;
mod cache;
pub mod claimants;
mod clock;
mod consistency;
mod error;
mod events;
mod maintenance;
mod metrics;
mod model;
mod operations;
mod peers;
mod queries;
mod requests;
mod subscriptions;
#[cfg(test)]
mod test_support;
mod tokens;
mod unit_of_work;
mod verbs;
mod worker_results;
mod write_timeout;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use audit::{
    AUDIT_ANONYMOUS, AUDIT_DAYS_MAX, AUDIT_DAYS_MIN, AUDIT_ENTRIES_MAX, AUDIT_ENTRIES_OF_NAME_MAX,
    AUDIT_TARGET, AUDIT_TEXT_BYTES_MAX, Actor, AuditEntry, AuditFilter,
};
pub use background::keep_running;
use cache::Caches;
use claimants::LastClaimsByQueue;
pub use clock::{Clock, ManualClock, Time};
pub use consistency::Inconsistency;
pub use error::{Error, RESPONSE_BYTES_MAX, Result};
use maintenance::cursors::Cursors;
use maintenance::empty_queues::{DEFAULT_AGE, EmptyQueues};
pub use maintenance::fold_series::{HOURS_KEPT, MINUTES_KEPT};
use metrics::Metrics;
pub use metrics::{COUNTED_QUEUES, EventTotals, QueueTotals, WriterMetrics};
pub use model::config::{Config, OPTION_BYTES_MAX};
use model::constants::CONSTANTS;
pub use model::cron::{CRON_BYTES_MAX, CRON_INTERVAL_S, CronSchedule, check_zone};
pub use model::history::{Event, EventKind, History, NOTE_BYTES_MAX};
pub use model::job::{
    EffectiveState, FAILURE_GROUP_BYTES_MAX, Failure, Job, JobKey, LMSTFY_SCOPE, Lease,
    NAME_BYTES_MAX, Protocol, QLESS_SCOPE, QueueId, QueueKey, State, UNLIMITED,
    invalid_class_reason, invalid_name_reason, is_plain_name,
};
pub use model::page::{OffsetPage, PageOf, PageStart, Position, page_of_newest};
pub use model::queue::{PAUSE_REASON_CHARS_MAX, Pause, Queue, Queues};
pub use model::record::Record;
pub use model::recurring::{RECURRING_ID_BYTES_MAX, Recurring};
pub use model::tracked::Tracked;
pub use operations::{
    JobAction, JobSelection, NewOperation, Operation, OperationError, OperationEstimate,
    OperationState, SELECTED_JOBS_MAX, Skip, UNDO_JOBS_MAX,
};
use peers::Peers;
use queries::LongReads;
pub use queries::about::{Opened, ServerInfo};
pub use queries::busiest::Activity;
pub use queries::chart_actions::ChartAction;
pub use queries::dead_letter::DeadLetterSummary;
pub use queries::due::{DueByHour, HOURS};
pub use queries::evaluate::{Allowance, Evaluated};
pub use queries::events::PublishedEvent;
pub use queries::failure_times::{FailureEntry, FailureTimes, TIMES_MAX};
pub use queries::failures::{FailureGroup, FailureTotals};
pub use queries::names::Names;
pub use queries::queue_workers::{ActivityList, ActivityRow, QueueActivity, QueueRates};
pub use queries::queues::{Counts, QueueCounts};
pub use queries::record_labels::{LabelCounts, LabelFilter};
pub use queries::records::Records;
pub use queries::search::{LISTED_TAGS_MAX, SearchLimits, SearchResult};
pub use queries::series::{SeriesTotals, quantile};
pub use queries::stats::{Durations, Stats};
pub use queries::workers::WorkerCounts;
use subscriptions::Subscriptions;
#[cfg(test)]
pub use test_support::engine_without_tasks;
pub use tokens::expiry::Expiry;
pub use tokens::{Grant, Token, TokenError, Tokens};
use unit_of_work::commit_times::CommitTimes;
pub use unit_of_work::counters::{Summary, daily_bucket, daily_bucket_end};
pub use unit_of_work::deferred::EventsFollowed;
use unit_of_work::deferred::{DeferredState, DeferredWrites};
use unit_of_work::job_cache::JobCache;
pub use unit_of_work::time_series::{HOUR, minute};
use unit_of_work::transaction::{Runner, StatisticsCleanup, WriteRequest};
pub use verbs::admin::alerts::{
    ALERT_DELIVERIES_MAX, ALERT_ENDED, ALERT_RAISED, ALERT_RULES_MAX, ALERT_TEST, AlertDelivery,
    AlertRule, AttemptResult, ReportedProblem,
};
pub use verbs::admin::import::{Import, ImportedDependencies, ImportedQueue, ImportedRecurring};
pub use verbs::admin::mutes::{MUTES_MAX, Mute};
pub use verbs::admin::queues::NewPause;
pub use verbs::admin::saved_searches::{SEARCHES_MAX, SavedSearch};
pub use verbs::admin::scripts::SCRIPTS_MAX;
pub use verbs::admin::sessions::{
    SESSION_AGE_S, SESSION_IDLE_S, SESSIONS_MAX, SESSIONS_OF_NAME_MAX, Session,
};
use verbs::claim::round_robin::RoundRobin;
pub use verbs::claim::{Claim, Order};
pub use verbs::jobq::advance::CompareAndSet;
use verbs::jobq::candidates::PollCandidates;
pub use verbs::jobq::queues::invalid_queue_name_reason;
pub use verbs::leases::LeaseHolder;
pub use verbs::lmstfy::publish::Publish;
pub use verbs::qless::complete::NextQueue;
pub use verbs::qless::depend::Depend;
pub use verbs::qless::fail::{Fail, MESSAGE_BYTES_MAX};
pub use verbs::qless::manual::{ManualActionError, SeenJob};
pub use verbs::qless::put::Put;
pub use verbs::qless::recurring::{Recur, RecurringChange};
pub use verbs::qless::retry::Retry;
use verbs::queue_limit::QueueLimit;
pub use verbs::queue_limit::{MAX_QUEUES, QUEUES};
pub use verbs::relay::complete::Run;
pub use verbs::relay::dead_letter::RequeueResult;
pub use verbs::relay::enqueue::{Enqueue, Mode};

pub use worker_results::{RunCounts, WorkerResults};

use crate::store::{self, LimitedReaders, Readers, Statement, Store, Writer};
pub use crate::store::{DatabaseInfo, Durability, ReaderUse};

/// The bytes to write or load that add 1 to the weight of a request.
const BYTES_PER_WEIGHT: usize = 1_024;

/// What a search for a run of a cron expression adds to the weight of a request: it can take 2 ms, because
/// there are expressions of which two runs are decades apart.
const WEIGHT_OF_CRON_SEARCH: usize = 200;

/// How an engine is opened.
#[derive(Clone, Debug, Default)]
pub struct EngineSettings {
    /// `sqlite://FILE`, `sqlite::memory:` or `postgres://USER@HOST/DATABASE`.
    pub database: String,
    pub durability: Durability,
    /// Postgres: do not use SKIP LOCKED, which some Postgres-compatible databases lack.
    pub no_skip_locked: bool,
    /// Postgres: do not use LISTEN and NOTIFY; other servers' changes are polled once per second.
    pub no_notify: bool,
    /// Requests carry the client's time. Maintenance then skips qless jobs, ended pauses, inactive workers, and old
    /// statistics, sessions and audit entries.
    pub trust_client_clock: bool,
    /// Empty lmstfy and Relay queues are deleted after this time without activity; 10 minutes by default.
    pub empty_queue_age: Option<Duration>,
    /// Queues with metrics of their own; [`COUNTED_QUEUES`] by default.
    pub counted_queues: Option<usize>,
    /// Requests that would create more queues fail; [`MAX_QUEUES`] by default.
    pub max_queues: Option<u32>,
    /// Long polls that wait at once; 12,288 by default.
    pub polls_max: Option<usize>,
    /// Bytes of the rows of dependents that a transaction releases; 4 MiB by default.
    pub released_bytes_max: Option<usize>,
    /// Opened for one command, while a server may have the database open: no background tasks run.
    pub without_tasks: bool,
    /// Opened for one command that needs the database for itself: no server may have it open, and no background tasks
    /// run.
    pub offline: bool,
    /// Replaces the clock, for tests and simulations.
    pub clock: Option<ManualClock>,
    /// SQLite: the writer is a task of the runtime instead of a thread. On a runtime with one thread, the order of all
    /// writes is then determined by the callers.
    pub writer_on_runtime: bool,
}

/// The default of [`EngineSettings::polls_max`]: three quarters of the connections.
const POLLS_MAX: usize = 12_288;

/// A handle to the engine, optionally acting for a dashboard user ([`Actor`]). Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>, Option<Arc<Actor>>, ReadsFor);

/// For which clients a handle reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadsFor {
    All,
    /// Dashboard guests.
    Guests,
}

struct Inner {
    writer: Writer<WriteRequest>,
    readers: Readers,
    /// For reads of which only a few run at a time.
    limited_readers: LimitedReaders,
    caches: Caches,
    clock: Arc<Clock>,
    deferred_state: Arc<DeferredState>,
    subscriptions: Arc<Subscriptions>,
    peers: Arc<Peers>,
    operation_runner: operations::OperationRunner,
    round_robin: RoundRobin,
    /// Audited actions whose outcome was recorded.
    outcomes_recorded: AtomicU64,
    /// The minute of the last sample of waiting jobs.
    sampled_minute: AtomicI64,
    poll_candidates: PollCandidates,
    claimants: LastClaimsByQueue,
    queue_limit: QueueLimit,
    polls_max: usize,
    long_reads: LongReads,
    changes: watch::Sender<u64>,
    commits: Arc<CommitTimes>,
    metrics: Arc<Metrics>,
    trust_client_clock: bool,
    opened: Opened,
    stop: CancellationToken,
    /// Canceled when long polls must end.
    stop_polls: CancellationToken,
    _scratch: Option<tempfile::TempDir>,
    /// The server that has the same database open, if there is one.
    file_owner: Option<store::FileOwner>,
}

impl EngineSettings {
    fn metrics(&self) -> Metrics {
        Metrics::new(self.counted_queues.unwrap_or(COUNTED_QUEUES))
    }

    fn store(&self) -> store::Settings {
        store::Settings {
            durability: self.durability,
            no_skip_locked: self.no_skip_locked,
            alongside_server: self.without_tasks,
            constants: &CONSTANTS,
        }
    }
}

impl Engine {
    /// Opens the database, creating it if necessary, and starts the writer and the background tasks.
    pub async fn open(settings: &EngineSettings) -> Result<Engine> {
        // In a box, because its future is large.
        let mut store = Box::pin(Store::open(&settings.database, settings.store()))
            .await
            .map_err(|error| Error::Store(error.to_string()))?;
        let peers = Arc::new(Peers::join(&mut store.connection, !settings.no_notify).await?);
        let (readers, caches) = (store.readers, Caches::new(settings.released_bytes_max));
        let clock = Arc::new(Clock::with(settings.clock.clone()));
        if let Some(fresh) = readers.status().await? {
            clock.synchronize(fresh.now);
        }
        let subscriptions = Arc::new(Subscriptions::default());
        cache::load(&caches, &readers).await?;
        let highest = readers.rows(Statement::new(HIGHEST_SEQ, [])).await?;
        let (deferred_state, changes) = (Arc::<DeferredState>::default(), watch::Sender::new(0));
        let operation_runner = operations::OperationRunner::default();
        let (commits, metrics) = (Arc::default(), Arc::new(settings.metrics()));
        let runner = Runner {
            caches: caches.clone(),
            clock: Arc::clone(&clock),
            deferred_state: Arc::clone(&deferred_state),
            deferred: DeferredWrites::default(),
            subscriptions: Arc::clone(&subscriptions),
            changes: changes.clone(),
            commits: Arc::clone(&commits),
            metrics: Arc::clone(&metrics),
            trust_client_clock: settings.trust_client_clock,
            peers: Arc::clone(&peers),
            is_leader: operation_runner.is_leader(),
            last_seq: highest.first().map_or(Ok(0), |row| row.int(0))?,
            has_reported_revision: false,
            old_events: events::OldEvents::default(),
            statistics_cleanup: StatisticsCleanup::default(),
            job_cache: JobCache::default(),
            cursors: Cursors::default(),
            empty_queues: EmptyQueues::after(settings.empty_queue_age.unwrap_or(DEFAULT_AGE)),
        };
        let inner = Arc::new(Inner {
            writer: Writer::start(store.connection, runner, settings.writer_on_runtime),
            opened: Opened::with(settings, clock.now()),
            limited_readers: LimitedReaders::of(&readers),
            readers,
            caches,
            clock,
            deferred_state,
            subscriptions,
            peers,
            operation_runner,
            round_robin: RoundRobin::default(),
            outcomes_recorded: AtomicU64::new(0),
            sampled_minute: AtomicI64::new(i64::MIN),
            poll_candidates: PollCandidates::default(),
            claimants: LastClaimsByQueue::default(),
            queue_limit: QueueLimit::of(settings),
            polls_max: settings.polls_max.unwrap_or(POLLS_MAX),
            long_reads: LongReads::default(),
            changes,
            commits,
            metrics,
            trust_client_clock: settings.trust_client_clock,
            stop: CancellationToken::new(),
            stop_polls: CancellationToken::new(),
            _scratch: store.scratch,
            file_owner: store.server,
        });
        let engine = Engine(inner, None, ReadsFor::All);
        if !settings.without_tasks && !settings.offline {
            engine.start_tasks(settings);
        }
        Ok(engine)
    }

    /// Starts the background tasks.
    fn start_tasks(&self, settings: &EngineSettings) {
        self.spawn_task("maintenance", Engine::run_maintenance);
        self.spawn_task("long polls", Engine::run_wake_up_timer);
        self.spawn_task("operations", Engine::run_operations);
        if !self.readers().is_shared() {
            return;
        }
        self.spawn_task("changes of other servers", Engine::poll_peers);
        if !settings.no_notify {
            self.spawn_task("notifications to other servers", Engine::notify_peers);
            self.spawn_task("notifications of other servers", Engine::listen_to_peers);
        }
    }

    fn spawn_task<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        task: fn(Engine) -> F,
    ) {
        let engine = self.clone();
        tokio::spawn(async move {
            let running = keep_running(name, || task(engine.clone()));
            engine.0.stop.run_until_cancelled(running).await;
        });
    }

    /// Long polls that wait at once: three quarters of the connections.
    pub fn polls_max(&self) -> usize {
        self.0.polls_max
    }

    /// Ends all long polls now, without jobs.
    pub fn stop_waiting(&self) {
        self.0.stop_polls.cancel();
    }

    /// Finishes the queued writes and closes the database.
    pub async fn close(&self) {
        self.stop_waiting();
        self.0.stop.cancel();
        self.0.writer.close().await;
        self.peers().leave(self.readers()).await;
        self.0.readers.close().await;
    }

    /// The time of a request: the client's if given, else the server's.
    pub fn now(&self, client: Option<Time>) -> Time {
        client.unwrap_or_else(|| self.0.clock.now())
    }

    /// Whether writes are possible: false once the writer has ended.
    pub fn can_write(&self) -> bool {
        !self.0.writer.has_ended()
    }

    /// Completes when the writer has ended although the engine is open, because the database can no longer be trusted.
    pub async fn writer_failed(&self) {
        self.0.writer.failed().await;
    }

    /// Whether the disk is full, so that new jobs are refused.
    pub fn is_disk_full(&self) -> bool {
        self.0.writer.is_disk_full()
    }

    /// Whether requests carry the client's time.
    pub fn trusts_client_clock(&self) -> bool {
        self.0.trust_client_clock
    }

    /// Changes with every commit that changed something. A hint to read again, never data.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// The 95th percentile of commit durations in the last minute; `None` if there were too few commits.
    pub fn commits_p95(&self) -> Option<Duration> {
        self.0.commits.p95()
    }

    /// Reads one row to check that the database responds.
    pub async fn ping(&self) -> Result<()> {
        Ok(self.readers().ping(Statement::new(PING, [])).await?)
    }

    /// The options, after the cache was refreshed: with all changes by other servers.
    pub async fn options(&self) -> Result<&Config> {
        self.refresh_cache().await?;
        Ok(self.config())
    }

    /// The options as cached: changes by other servers can be missing.
    pub fn config(&self) -> &Config {
        &self.0.caches.config
    }

    /// The cached queues.
    pub fn known_queues(&self) -> &Queues {
        &self.0.caches.queues
    }

    /// The cached tracked jobs.
    pub fn known_tracked(&self) -> &Tracked {
        &self.0.caches.tracked
    }

    /// The cached tokens of all namespaces.
    fn known_tokens(&self) -> &Tokens {
        &self.0.caches.tokens
    }

    fn peers(&self) -> &Peers {
        &self.0.peers
    }

    /// Signals that another server may have changed something.
    fn notify_changed(&self) {
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.0.subscriptions
    }

    /// Completes when long polls must end.
    async fn polls_stopped(&self) {
        self.0.stop_polls.cancelled().await;
    }

    /// The candidates that Jobq polls choose records from.
    fn poll_candidates(&self) -> &PollCandidates {
        &self.0.poll_candidates
    }

    fn operation_runner(&self) -> &operations::OperationRunner {
        &self.0.operation_runner
    }

    /// The same engine for dashboard guests: only a few of their reads run at a time, so that they leave connections for
    /// users and APIs.
    #[must_use]
    pub fn for_guests(&self) -> Engine {
        Engine(Arc::clone(&self.0), self.1.clone(), ReadsFor::Guests)
    }

    /// A handle for a task that serves several requests: it acts for no user, and reads for all clients.
    fn for_task(&self) -> Engine {
        Engine(Arc::clone(&self.0), None, ReadsFor::All)
    }

    /// Whether this is the engine of [`Engine::for_guests`].
    fn is_for_guests(&self) -> bool {
        matches!(self.2, ReadsFor::Guests)
    }

    fn readers(&self) -> &Readers {
        match self.2 {
            ReadsFor::All => &self.0.readers,
            ReadsFor::Guests => &self.0.limited_readers.guests,
        }
    }

    fn deferred_state(&self) -> &Arc<DeferredState> {
        &self.0.deferred_state
    }
}

/// The cheapest statement that reads a table.
const PING: &str = "SELECT 1 AS one FROM state LIMIT 1";

/// The highest insertion number of jobs, recurring jobs and operations; numbering continues from it.
const HIGHEST_SEQ: &str = "
SELECT coalesce(max(seq), 0) FROM (SELECT max(seq) AS seq FROM jobs UNION ALL SELECT max(seq) FROM recurring
    UNION ALL SELECT max(id) FROM operations) AS s";
