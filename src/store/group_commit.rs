//! Group commit: one writer runs all queued steps in one transaction and delivers their results after the commit. It
//! never waits for further steps, so an idle server responds immediately; on a busy server the next group queues up
//! while the current one is written.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Connection, StoreError};

/// Maximum number of queued steps; beyond that, callers wait.
const QUEUED_MAX: usize = 4_096;

/// Maximum number of steps in a group.
const STEPS_MAX: usize = 512;

/// Maximum number of items (such as jobs) in a group, unless a single step has more.
const ITEMS_MAX: usize = 2_048;

/// Maximum number of steps that are held over because they did not fit a group.
const HELD_OVER_MAX: usize = 2 * STEPS_MAX;

/// How often a group is run in total when it conflicts with other servers.
const ATTEMPTS_MAX: u32 = 20;

/// Delay before a group is run again, from the second conflict on; multiplied by the number of attempts.
const CONFLICT_DELAY: Duration = Duration::from_millis(2);

/// How long groups are retried after an outage of the database began, unless the server is stopping. After that, a
/// group fails on its first attempt until the database responds again.
const OUTAGE_RETRY_MAX: Duration = Duration::from_secs(2);

/// Delay between attempts during an outage.
const OUTAGE_DELAY: Duration = Duration::from_millis(100);

/// How the writer runs a group. The engine implements it.
pub trait BatchRunner: Send + 'static {
    /// One write, with a channel for its result.
    type Step: Send + 'static;

    /// The number of items in the step.
    fn item_count(step: &Self::Step) -> usize;

    /// Whether the step needs its own transaction.
    fn needs_own_transaction(step: &Self::Step) -> bool;

    /// Whether the step adds jobs and must be rejected while the disk is full.
    fn adds_jobs(step: &Self::Step) -> bool;

    /// Runs the steps and commits. It is called again with the same steps after a conflict. If they are too large
    /// together, it raises their numbers of items, so that fewer share a group.
    fn run(
        &mut self,
        connection: &mut Connection,
        steps: &mut [Self::Step],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Delivers the outcome of every step: its own result after a commit, the error otherwise.
    fn respond(&mut self, steps: Vec<Self::Step>, outcome: Result<(), StoreError>);
}

/// A handle to the writer.
pub struct Writer<S> {
    queue: mpsc::Sender<S>,
    is_full: Arc<AtomicBool>,
    stop: CancellationToken,
    /// Completes when the writer has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl<S: Send + 'static> Writer<S> {
    /// Starts the writer, which owns the connection: as a task, or in a thread of its own if calls of the connection
    /// block.
    pub fn start<R: BatchRunner<Step = S>>(connection: Connection, runner: R) -> Writer<S> {
        let (queue, steps) = mpsc::channel(QUEUED_MAX);
        let (end, ended) = oneshot::channel();
        let stop = CancellationToken::new();
        let is_full = Arc::new(AtomicBool::new(connection.is_full()));
        let blocks = connection.blocks();
        let (stopped, full) = (stop.clone(), Arc::clone(&is_full));
        let writing = async move {
            write(connection, runner, steps, stopped, full).await;
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
            is_full,
            stop,
            ended: Mutex::new(Some(ended)),
        }
    }

    /// Rejects further steps, runs the queued ones and closes the connection.
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

    /// Whether the writer has ended, so that nothing can be written.
    pub fn has_ended(&self) -> bool {
        self.queue.is_closed()
    }

    /// The number of steps that wait for the writer.
    pub fn queued(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Whether the disk is full, so that no jobs are added.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Queues a step. The step runs even if the caller stops waiting for its result.
    pub async fn submit(&self, step: S) -> Result<(), StoreError> {
        self.queue.send(step).await.map_err(|_| StoreError::Stopped)
    }
}

async fn write<R: BatchRunner>(
    mut connection: Connection,
    mut runner: R,
    mut queue: mpsc::Receiver<R::Step>,
    stop: CancellationToken,
    is_full: Arc<AtomicBool>,
) {
    let (mut held_over, mut outage) = (VecDeque::new(), None);
    loop {
        // Read once per iteration: with a stop between two reads, the queue would stay open and the `select!` would
        // wait for a step forever.
        let stopping = stop.is_cancelled();
        if stopping {
            queue.close();
        }
        let next = match held_over.pop_front() {
            Some(step) => Some(step),
            None => tokio::select! {
                biased;
                step = queue.recv() => step,
                () = stop.cancelled(), if !stopping => continue,
            },
        };
        let Some(first) = next else { break };
        let steps = gather::<R>(first, &mut queue, &mut held_over);
        if let Err(error) = connection.restore_reserve_if_possible().await {
            tracing::warn!(%error, "failed to read the free space of the database");
        }
        let oversized =
            run_and_respond(&mut connection, &mut runner, steps, &mut outage, &stop).await;
        oversized
            .into_iter()
            .rev()
            .for_each(|step| held_over.push_front(step));
        update_disk_full(&is_full, connection.is_full());
    }
    if let Err(error) = connection.close().await {
        tracing::error!(%error, "failed to close the database");
    }
}

/// The steps that share a transaction with the first one. A step that does not fit is held over while later steps may
/// pass it; it cannot starve, because each group begins with the oldest step held over.
fn gather<R: BatchRunner>(
    first: R::Step,
    queue: &mut mpsc::Receiver<R::Step>,
    held_over: &mut VecDeque<R::Step>,
) -> Vec<R::Step> {
    let mut items = R::item_count(&first);
    let needs_own_transaction = R::needs_own_transaction(&first);
    let mut steps = vec![first];
    if needs_own_transaction {
        return steps;
    }
    let mut earlier = std::mem::take(held_over).into_iter();
    while steps.len() < STEPS_MAX && items < ITEMS_MAX && held_over.len() < HELD_OVER_MAX {
        let Some(step) = earlier.next().or_else(|| queue.try_recv().ok()) else {
            break;
        };
        if R::needs_own_transaction(&step) || items.saturating_add(R::item_count(&step)) > ITEMS_MAX
        {
            held_over.push_back(step);
        } else {
            items += R::item_count(&step);
            steps.push(step);
        }
    }
    held_over.extend(earlier);
    steps
}

/// Stores whether the disk is full, and logs changes.
fn update_disk_full(known: &AtomicBool, is_full: bool) {
    match (known.swap(is_full, Ordering::Relaxed), is_full) {
        (false, true) => tracing::error!(
            "the disk is full; new jobs are refused; claims, completions and deletes use the reserve"
        ),
        (true, false) => tracing::info!("the disk has space again; new jobs are accepted"),
        _ => {}
    }
}

/// Runs the group and delivers its outcome. If a single step may have caused a failure, the group is split into halves
/// that run separately, so that only that step fails: finding one among 512 takes 18 more runs. Returns steps that are too
/// large together: they run later with fewer others, so that small steps can run in between.
async fn run_and_respond<R: BatchRunner>(
    connection: &mut Connection,
    runner: &mut R,
    steps: Vec<R::Step>,
    outage: &mut Option<Instant>,
    stop: &CancellationToken,
) -> Vec<R::Step> {
    let mut oversized = Vec::new();
    let (mut batches, mut has_released_reserve) = (vec![steps], false);
    while let Some(mut steps) = batches.pop() {
        if connection.is_full() {
            let adding: Vec<_> = steps.extract_if(.., |step| R::adds_jobs(step)).collect();
            if !adding.is_empty() {
                runner.respond(adding, Err(StoreError::Full));
            }
            if steps.is_empty() {
                continue;
            }
        }
        let outcome = attempt(connection, runner, &mut steps, outage, stop).await;
        if let Err(error) = &outcome {
            if error.is_full() && !has_released_reserve && connection.release_reserve().await {
                has_released_reserve = true;
                batches.push(steps);
                continue;
            }
            if steps.len() > 1 && matches!(error, StoreError::TransactionTooLarge) {
                oversized.extend(steps);
                continue;
            }
            if steps.len() > 1 && error.may_be_caused_by_one_step() {
                let rest = steps.split_off(steps.len() / 2);
                batches.extend([rest, steps]);
                continue;
            }
            // The caller splits a single step that is too large.
            if !matches!(error, StoreError::TransactionTooLarge) {
                tracing::error!(%error, steps = steps.len(), "a transaction failed");
            }
        }
        runner.respond(steps, outcome);
    }
    oversized
}

/// Runs the group, and again after a conflict with another server or an outage before the commit.
async fn attempt<R: BatchRunner>(
    connection: &mut Connection,
    runner: &mut R,
    steps: &mut [R::Step],
    outage: &mut Option<Instant>,
    stop: &CancellationToken,
) -> Result<(), StoreError> {
    let mut attempts = 1;
    loop {
        // A panic in an operation must not end the writer.
        let running = AssertUnwindSafe(runner.run(connection, steps)).catch_unwind();
        let outcome = running.await.unwrap_or(Err(StoreError::Panicked));
        if outcome.is_err() {
            connection.roll_back().await;
        }
        match outcome {
            Err(error) if error.is_conflict() && attempts < ATTEMPTS_MAX => {
                if attempts > 1 {
                    sleep(CONFLICT_DELAY * attempts).await;
                }
                attempts += 1;
            }
            Err(error) if error.is_outage() => {
                let since = *outage.get_or_insert_with(Instant::now);
                let is_over = since.elapsed() > OUTAGE_RETRY_MAX || stop.is_cancelled();
                if is_over || matches!(error, StoreError::InDoubt) {
                    return Err(error);
                }
                sleep(OUTAGE_DELAY).await;
            }
            outcome => {
                *outage = None;
                return outcome;
            }
        }
    }
}

#[cfg(test)]
mod tests;
