//! Measures a server with jobs of its own: each connection puts a job, claims one, and deletes or completes it, again
//! and again. `bench/protocol.rs` has the requests of each API, `bench/latency.rs` the figures.

mod latency;
mod protocol;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;

use latency::Samples;
pub use latency::{Latency, percentile};
use protocol::Queue;
pub use protocol::{Api, Load};

use crate::client::{Client, Error};

/// Maximum number of attempts of a claim that returns no job, because several servers that share a database skip jobs
/// that another one is claiming.
const CLAIMS: usize = 50;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("{0}")]
    Client(#[from] Error),
    #[error("job {0} was claimed twice")]
    Twice(String),
    #[error("job {0} was claimed, but this measurement did not put it")]
    Unknown(String),
    #[error("{CLAIMS} claims returned no job, although there must be one")]
    NoJob,
    #[error("no job was finished in time")]
    Nothing,
    #[error("a connection ended: {0}")]
    Ended(String),
}

/// The result of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub api: Api,
    pub queue: String,
    pub connections: usize,
    /// Jobs of each request.
    pub batch: usize,
    pub payload_bytes: usize,
    pub seconds: f64,
    pub jobs: u64,
    pub jobs_per_s: f64,
    pub put: Latency,
    pub claim: Latency,
    pub finish: Latency,
    /// The three requests together.
    pub cycle: Latency,
    /// Jobs that were left over and have been deleted.
    pub removed: u64,
}

/// Limits of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: usize,
    pub duration: Duration,
    /// The most jobs that are put.
    pub jobs: u64,
}

/// What all connections share.
struct Shared {
    queue: Queue,
    /// IDs of jobs that were put and not finished.
    open: Mutex<HashSet<String>>,
    /// Jobs that may still be put.
    left: AtomicU64,
    stop: AtomicBool,
}

/// Measures until the time or the jobs are used up, or `stop` completes, and deletes what is left over.
///
/// # Errors
/// If a request fails or a job is lost. What is left over is deleted even then, as far as the server responds.
pub async fn run(
    client: Client,
    load: Load,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> Result<Measured, BenchError> {
    let name = format!(
        "switchyard-bench-{:08x}",
        uuid::Uuid::new_v4().as_fields().0
    );
    let shared = Arc::new(Shared {
        queue: Queue::new(client, load, name),
        open: Mutex::default(),
        left: AtomicU64::new(limits.jobs),
        stop: AtomicBool::new(false),
    });
    let began = Instant::now();
    let mut connections = JoinSet::new();
    for number in 0..limits.connections {
        connections.spawn(work(Arc::clone(&shared), number));
    }
    let measured = collect(&shared, &mut connections, limits.duration, stop).await;
    let seconds = began.elapsed().as_secs_f64();
    let removed = clean_up(&shared, limits.connections).await;
    let (samples, removed) = (measured?, removed?);
    let jobs = samples.cycle.len() as u64 * shared.queue.load.batch as u64;
    if jobs == 0 {
        return Err(BenchError::Nothing);
    }
    Ok(Measured {
        api: shared.queue.load.api,
        queue: shared.queue.name.clone(),
        connections: limits.connections,
        batch: shared.queue.load.batch,
        payload_bytes: shared.queue.load.payload_bytes,
        seconds,
        jobs,
        jobs_per_s: jobs as f64 / seconds,
        put: Latency::of(samples.put),
        claim: Latency::of(samples.claim),
        finish: Latency::of(samples.finish),
        cycle: Latency::of(samples.cycle),
        removed,
    })
}

/// Waits for the connections, which end after the time or when `stop` completes.
async fn collect(
    shared: &Shared,
    connections: &mut JoinSet<Result<Samples, BenchError>>,
    duration: Duration,
    stop: impl Future<Output = ()>,
) -> Result<Samples, BenchError> {
    let end = async {
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = stop => {}
        }
        shared.stop.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    };
    let mut failed = None;
    let all = async {
        let mut samples = Samples::default();
        while let Some(ended) = connections.join_next().await {
            let ended = ended.map_err(|error| BenchError::Ended(error.to_string()));
            match ended.flatten() {
                Ok(some) => samples.append(some),
                Err(error) => {
                    shared.stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
            }
        }
        samples
    };
    let samples = tokio::select! {
        () = end => Samples::default(),
        samples = all => samples,
    };
    failed.map_or(Ok(samples), Err)
}

/// Runs cycles until the end, and finishes the last one.
async fn work(shared: Arc<Shared>, number: usize) -> Result<Samples, BenchError> {
    let (mut samples, worker) = (Samples::default(), shared.queue.worker(number));
    let batch = shared.queue.load.batch as u64;
    let take = |left: u64| left.checked_sub(batch);
    for cycle in 0_u64.. {
        let is_left = || {
            let left = &shared.left;
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_ok()
        };
        if shared.stop.load(Ordering::Relaxed) || !is_left() {
            break;
        }
        let began = Instant::now();
        // Noted before they are put, because a request that fails may have had its effect.
        let ids = shared.queue.ids(number, cycle);
        shared.note(&ids);
        let put = shared.queue.put(&ids).await?;
        shared.replace(&ids, &put);
        let after_put = Instant::now();
        let mut claimed = Vec::new();
        for _ in 0..CLAIMS {
            let missing = shared.queue.load.batch - claimed.len();
            claimed.extend(shared.queue.claim(missing, &worker).await?);
            if claimed.len() >= shared.queue.load.batch {
                break;
            }
        }
        if claimed.is_empty() {
            return Err(BenchError::NoJob);
        }
        let after_claim = Instant::now();
        shared.queue.finish(&claimed, &worker).await?;
        shared.finished(claimed.into_iter().map(|job| job.id))?;
        samples.add(began, after_put, after_claim, Instant::now());
    }
    Ok(samples)
}

impl Shared {
    fn note(&self, ids: &[String]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.extend(ids.iter().cloned());
    }

    /// Replaces the IDs of this program with the IDs that the server has generated. Another connection may have finished
    /// such a job already.
    fn replace(&self, ids: &[String], chosen: &[String]) {
        if ids == chosen {
            return;
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            open.remove(id);
        }
        for id in chosen {
            // If another connection has already finished the job, its entry cancels this one.
            if !open.remove(&done(id)) {
                open.insert(id.clone());
            }
        }
    }

    fn finished(&self, ids: impl Iterator<Item = String>) -> Result<(), BenchError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            if open.remove(&id) {
                continue;
            }
            if !self.queue.load.api.chooses_ids() {
                return Err(BenchError::Twice(id));
            }
            if !open.insert(done(&id)) {
                return Err(BenchError::Twice(id));
            }
        }
        Ok(())
    }
}

/// The entry of a job that was finished before the response to its put arrived.
fn done(id: &str) -> String {
    format!("done {id}")
}

/// Deletes the jobs that are left over, and with qless the queue. Returns the number of jobs.
async fn clean_up(shared: &Shared, workers: usize) -> Result<u64, BenchError> {
    let open = std::mem::take(&mut *shared.open.lock().unwrap_or_else(PoisonError::into_inner));
    let mut removed = 0;
    for id in open {
        if let Some(id) = id.strip_prefix("done ") {
            return Err(BenchError::Unknown(id.to_owned()));
        }
        shared.queue.remove(&id).await?;
        removed += 1;
    }
    shared.queue.forget(workers).await?;
    Ok(removed)
}
