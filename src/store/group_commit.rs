//! Group commit: one writer runs many queued requests in one transaction and delivers their results after the commit.
//! It never waits for further requests, so an idle server responds immediately; on a busy server the next group queues
//! up while the current one is written.

mod queue;

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use futures::FutureExt;
pub use queue::WEIGHT_MAX;
use queue::{Queue, Sender, queue, separate_fitting};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Connection, StoreError};
use crate::traces::{GroupSpan, Trace, of_group};

/// Maximum number of attempts for a single request that conflicts with other servers. A larger group runs twice and is
/// then split ([`attempts_max`]).
const ATTEMPTS_MAX: u32 = 20;

/// How long a single request is repeated after conflicts, such as a row that another session of the database has
/// locked. Other requests wait meanwhile.
const CONFLICT_RETRY_MAX: Duration = Duration::from_secs(2);

/// Delay before a group is run again, from the second conflict on; multiplied by the number of attempts.
const CONFLICT_DELAY: Duration = Duration::from_millis(2);

/// How long after a conflict groups lock their jobs before they read them, because the same clients will probably
/// conflict again.
const LOCKS_FIRST: Duration = Duration::from_secs(1);

/// How long groups are retried after an outage of the database began, unless the server is stopping. After that, a
/// group fails on its first attempt until the database responds again.
const OUTAGE_RETRY_MAX: Duration = Duration::from_secs(2);

/// Delay between attempts during an outage.
const OUTAGE_DELAY: Duration = Duration::from_millis(100);

/// How long a slow request is searched for in a group. Finding one among 512 takes eight attempts of 100 ms, and one
/// with the normal limit.
const SEARCH_MAX: Duration = Duration::from_millis(2_500);

/// How the writer runs a group. The engine implements it.
pub trait GroupRunner: Send + 'static {
    /// One write, with a channel for its result.
    type Request: Send + 'static;

    /// What the request costs a transaction: the number of its jobs, and more for large ones.
    fn weight(request: &Self::Request) -> usize;

    /// Of requests that were too large together: what this one loaded, in units of weight.
    fn loaded_weight(request: &Self::Request) -> usize;

    /// Whether the request shares its transaction.
    fn sharing(request: &Self::Request) -> Sharing;

    /// Whether the request adds jobs and must be rejected while the disk is full.
    fn adds_jobs(request: &Self::Request) -> bool;

    /// The trace that the request belongs to.
    fn trace(request: &Self::Request) -> &Trace;

    /// Whether the caller no longer waits for the request.
    fn is_abandoned(request: &Self::Request) -> bool;

    /// Runs the requests and commits. It is called again with the same requests after a conflict. With `locks_first`,
    /// what they name is locked before it is read, so that they do not conflict. If they are too large together, it
    /// raises the weight of each of them, at least to twice what it was, so that fewer share a group.
    fn run(
        &mut self,
        connection: &mut Connection,
        requests: &mut [Self::Request],
        locks_first: bool,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Splits a group into groups that run one after the other, each with a transaction of its own.
    fn divide(&self, requests: Vec<Self::Request>) -> Vec<Vec<Self::Request>> {
        vec![requests]
    }

    /// Delivers the outcome of every request: its own result after a commit, the error otherwise.
    fn respond(&mut self, requests: Vec<Self::Request>, outcome: Result<(), StoreError>);

    /// Called after each group with the time for which it held the writer, so that other requests waited: all attempts
    /// and responses.
    fn writer_occupied(&mut self, took: Duration);

    /// Called when the queue is closed and empty, before the connection is closed.
    fn finish(
        &mut self,
        _connection: &mut Connection,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }
}

/// Whether a request shares its transaction with others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    Shared,
    /// A client request that needs a transaction of its own.
    Exclusive,
    /// A request of the server or a dashboard user that needs a transaction of its own. It has its own lane, so it does
    /// not queue behind client requests.
    System,
}

/// A handle to the writer.
pub struct Writer<S> {
    queue: Sender<S>,
    is_disk_full: Arc<AtomicBool>,
    stop: CancellationToken,
    /// Completes when the writer has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    /// Canceled when the writer has ended.
    is_over: CancellationToken,
}

impl<S: Send + 'static> Writer<S> {
    /// Starts the writer, which owns the connection: as a task, or in a thread of its own if calls of the connection
    /// block, unless `on_runtime` is set.
    pub fn start<R: GroupRunner<Request = S>>(
        connection: Connection,
        runner: R,
        on_runtime: bool,
    ) -> Writer<S> {
        let (queue, requests) = queue::<R>();
        let (end, ended) = oneshot::channel();
        let stop = CancellationToken::new();
        let is_disk_full = Arc::new(AtomicBool::new(connection.is_disk_full()));
        let blocks = connection.blocks() && !on_runtime;
        let (stopped, full) = (stop.clone(), Arc::clone(&is_disk_full));
        let is_over = CancellationToken::new();
        let over = is_over.clone().drop_guard();
        let writing = async move {
            let _over = over;
            write(connection, runner, requests, stopped, full).await;
            end.send(()).ok();
        };
        if blocks {
            let runtime = Handle::current();
            let thread = thread::Builder::new().name("writer".to_owned());
            // Without a thread, the queue is closed, and the server reports that it cannot write.
            if let Err(error) = thread.spawn(move || runtime.block_on(writing)) {
                tracing::error!(%error, "failed to start the thread of the writer");
            }
        } else {
            tokio::spawn(writing);
        }
        Writer {
            queue,
            is_disk_full,
            stop,
            ended: Mutex::new(Some(ended)),
            is_over,
        }
    }

    /// Completes when the writer has ended without [`Writer::close`]: nothing can be written any more.
    pub async fn failed(&self) {
        self.is_over.cancelled().await;
        if self.stop.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }

    /// Rejects further requests, runs the queued ones and closes the connection.
    pub async fn close(&self) {
        self.stop.cancel();
        let ended = self
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(ended) = ended
            && ended.await.is_err()
        {
            tracing::error!("the writer ended with an error");
        }
    }

    /// Whether further requests are rejected, because the writer is closing or has ended.
    pub fn has_ended(&self) -> bool {
        self.queue.is_closed()
    }

    /// The number of requests that wait for the writer or run in it.
    pub fn queued(&self) -> usize {
        self.queue.count()
    }

    /// Whether the disk is full, so that no jobs are added.
    pub fn is_disk_full(&self) -> bool {
        self.is_disk_full.load(Ordering::Relaxed)
    }

    /// Queues a request if there is room. Otherwise returns it, to be passed to [`Writer::submit`].
    ///
    /// # Errors
    /// The request, if there is no room, or if no more requests are accepted.
    pub fn try_submit(&self, request: S) -> Result<(), S> {
        self.queue.try_send(request)
    }

    /// Queues a request, as soon as there is room. The request runs even if the caller stops waiting for its result,
    /// unless it has not begun and is a claim, is large, or was too large together with others.
    pub async fn submit(&self, request: S) -> Result<(), StoreError> {
        self.queue.send(request).await
    }
}

async fn write<R: GroupRunner>(
    mut connection: Connection,
    mut runner: R,
    mut queue: Queue<R>,
    stop: CancellationToken,
    is_disk_full: Arc<AtomicBool>,
) {
    let mut recent_failures = RecentFailures::default();
    // Whether the database was unreachable for a group after the stop.
    let mut is_given_up = false;
    loop {
        let Some(requests) = queue.next_group(&stop).await else {
            break;
        };
        if requests.is_empty() {
            continue;
        }
        if is_given_up {
            // An attempt for each group would take too long.
            queue.release(requests.len());
            runner.respond(requests, Err(StoreError::Stopped));
            continue;
        }
        let began = Instant::now();
        if let Err(error) = connection.restore_reserve_if_possible().await {
            tracing::warn!(%error, "failed to check the disk reserve");
        }
        let count = requests.len();
        let mut attempts = Attempts {
            recent_failures: &mut recent_failures,
            stop: &stop,
        };
        let ran = run_and_respond(&mut connection, &mut runner, requests, &mut attempts).await;
        // The connection is not closed, because that could write to the database again.
        let Some(oversized) = ran else { return };
        is_given_up = stop.is_cancelled() && recent_failures.outage.is_some();
        runner.writer_occupied(began.elapsed());
        let ended = count - oversized.len();
        let refused = queue.put_back(oversized);
        queue.release(ended + refused.len());
        if !refused.is_empty() {
            runner.respond(refused, Err(StoreError::Busy));
        }
        update_disk_full(&is_disk_full, connection.is_disk_full());
    }
    if let Err(error) = runner.finish(&mut connection).await {
        tracing::error!(%error, "failed to store the latest statistics");
        connection.roll_back().await;
    }
    if let Err(error) = connection.close().await {
        tracing::error!(%error, "failed to close the database");
    }
}

/// Stores whether the disk is full, and logs changes.
fn update_disk_full(known: &AtomicBool, is_disk_full: bool) {
    match (known.swap(is_disk_full, Ordering::Relaxed), is_disk_full) {
        (false, true) => tracing::error!(
            "the disk is full; new jobs are refused; claims, completions and deletes use the reserve"
        ),
        (true, false) => tracing::info!("the disk has space again; new jobs are accepted"),
        _ => {}
    }
}

/// Runs the group and delivers its outcome. If a single request may have caused a failure, the group is split into
/// halves that run separately, so that only that request fails: finding one among 512 takes 18 more runs. Of requests
/// that are too large together, as many run at once as fit a group with the weights that the run has raised. The others
/// are returned, and run later, so that other requests can run in between. `None` if the database can no longer be
/// trusted: the writer must end, and requests without a response have an unknown outcome.
async fn run_and_respond<R: GroupRunner>(
    connection: &mut Connection,
    runner: &mut R,
    requests: Vec<R::Request>,
    attempts: &mut Attempts<'_>,
) -> Option<Vec<R::Request>> {
    let mut oversized = Vec::new();
    let mut groups = VecDeque::from(runner.divide(requests));
    let mut has_released_reserve = false;
    let mut search = SlowSearch::default();
    while let Some(mut requests) = groups.pop_front() {
        if connection.is_disk_full() {
            let adding: Vec<_> = requests
                .extract_if(.., |request| R::adds_jobs(request))
                .collect();
            if !adding.is_empty() {
                runner.respond(adding, Err(StoreError::Full));
            }
            if requests.is_empty() {
                continue;
            }
        }
        connection.search_slow_statement(search.limits(requests.len()));
        let outcome = attempt(connection, runner, &mut requests, attempts).await;
        if let Err(error) = &outcome {
            if error.is_fatal() {
                tracing::error!(%error, "the database can no longer be trusted");
                runner.respond(requests, outcome);
                return None;
            }
            if error.is_disk_full() && !has_released_reserve && connection.release_reserve().await {
                has_released_reserve = true;
                groups.push_front(requests);
                continue;
            }
            if requests.len() > 1 && matches!(error, StoreError::TransactionTooLarge) {
                let (fitting, others) = separate_fitting::<R>(requests);
                if !fitting.is_empty() {
                    groups.push_front(fitting);
                }
                oversized.extend(others);
                continue;
            }
            if requests.len() > 1 && error.is_slow() && search.continues() {
                let rest = requests.split_off(requests.len() / 2);
                // They run last, so that the other requests do not wait for the search.
                groups.extend([requests, rest]);
                continue;
            }
            if requests.len() > 1 && error.is_conflict() {
                let rest = requests.split_off(requests.len() / 2);
                // They run last, so that requests for other jobs do not wait for those that conflict.
                groups.extend([requests, rest]);
                continue;
            }
            if requests.len() > 1 && error.may_be_caused_by_one_request() {
                let rest = requests.split_off(requests.len() / 2);
                groups.push_front(rest);
                groups.push_front(requests);
                continue;
            }
            // The caller splits a single request that is too large.
            if !matches!(error, StoreError::TransactionTooLarge) {
                tracing::error!(%error, requests = requests.len(), "a transaction failed");
            }
        }
        runner.respond(requests, outcome);
    }
    connection.search_slow_statement(false);
    Some(oversized)
}

/// The search for the request that makes a group slow. Its attempts are short, and it ends after a time, because the
/// whole database can be slow.
#[derive(Default)]
struct SlowSearch {
    since: Option<Instant>,
}

impl SlowSearch {
    /// Begins the search, or continues it. False if it has taken too long.
    fn continues(&mut self) -> bool {
        self.since.get_or_insert_with(Instant::now).elapsed() < SEARCH_MAX
    }

    fn has_ended(&self) -> bool {
        self.since
            .is_some_and(|since| since.elapsed() >= SEARCH_MAX)
    }

    /// Whether the statements of a group of this many requests have a shorter time limit. A single request that has
    /// been found has the normal one.
    fn limits(&self, requests: usize) -> bool {
        self.since.is_some() && (requests > 1 || self.has_ended())
    }
}

/// The outage and the conflict that later groups must take into account.
#[derive(Default)]
struct RecentFailures {
    /// When the current outage of the database began.
    outage: Option<Instant>,
    /// When a group last conflicted with another server.
    conflict: Option<Instant>,
}

/// What the attempts of a group need.
struct Attempts<'a> {
    recent_failures: &'a mut RecentFailures,
    stop: &'a CancellationToken,
}

/// Maximum number of attempts for a group of `requests` requests that conflicts with another server. A larger group is
/// split soon, so that the requests that do not conflict are done.
fn attempts_max(requests: usize) -> u32 {
    match requests {
        0 | 1 => ATTEMPTS_MAX,
        _ => 2,
    }
}

/// Runs the group, and again after a conflict with another server or an outage before the commit.
async fn attempt<R: GroupRunner>(
    connection: &mut Connection,
    runner: &mut R,
    requests: &mut [R::Request],
    Attempts {
        recent_failures,
        stop,
    }: &mut Attempts<'_>,
) -> Result<(), StoreError> {
    let (mut attempts, mut conflicts_since) = (1, Instant::now());
    loop {
        // A panic in a verb must not end the writer.
        let span = GroupSpan::begin(requests.iter().map(R::trace));
        let is_recent = |at: Instant| at.elapsed() < LOCKS_FIRST;
        let locks_first = attempts > 1 || recent_failures.conflict.is_some_and(is_recent);
        let running = runner.run(connection, requests, locks_first);
        let running = of_group(&span, running);
        let running = AssertUnwindSafe(running).catch_unwind();
        let outcome = running.await.unwrap_or(Err(StoreError::Panicked));
        if let Some(span) = span {
            span.end(outcome.is_ok());
        }
        if outcome.is_err() {
            connection.roll_back().await;
        }
        if outcome.as_ref().is_err_and(StoreError::is_conflict) {
            recent_failures.conflict = Some(Instant::now());
        }
        let is_first = attempts == 1;
        match outcome {
            Err(error)
                if error.is_conflict()
                    && attempts < attempts_max(requests.len())
                    && (is_first || conflicts_since.elapsed() < CONFLICT_RETRY_MAX) =>
            {
                if is_first {
                    conflicts_since = Instant::now();
                }
                if attempts > 1 {
                    sleep(CONFLICT_DELAY * attempts).await;
                }
                attempts += 1;
            }
            Err(error) if error.is_outage() => {
                let since = *recent_failures.outage.get_or_insert_with(Instant::now);
                let is_over = since.elapsed() > OUTAGE_RETRY_MAX || stop.is_cancelled();
                if is_over || matches!(error, StoreError::InDoubt) {
                    return Err(error);
                }
                sleep(OUTAGE_DELAY).await;
            }
            outcome => {
                recent_failures.outage = None;
                return outcome;
            }
        }
    }
}

#[cfg(test)]
mod tests;
