//! A claimed job, the same for all APIs.

use std::time::{Duration, Instant};

/// A claimed job.
#[derive(Clone, Debug)]
pub struct Job {
    pub queue: String,
    pub id: String,
    pub payload: Vec<u8>,
    /// The job as the API returned it, in JSON.
    pub whole: String,
    /// The number of this attempt, from 1, if the API returns it.
    pub attempt: Option<u64>,
    /// Further environment variables of its program.
    pub variables: Vec<(&'static str, String)>,
    pub lease: Option<Lease>,
    pub proof: LeaseProof,
}

/// A lease, as of the claim.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub length: Duration,
    /// When it ends at the earliest.
    pub until: Instant,
    /// Whether heartbeats extend it.
    pub can_extend: bool,
}

/// What a request contains so that the API recognizes the holder of the lease.
#[derive(Clone, Debug)]
pub enum LeaseProof {
    /// The worker's name.
    Qless,
    Lmstfy,
    Relay(RelayRun),
    Jobq {
        /// The state that the poll has set, as JSON.
        state: String,
    },
}

/// A run of Relay, and the fields with which its job is enqueued again. `payload` and `state` are JSON texts.
#[derive(Clone, Debug)]
pub struct RelayRun {
    pub run_id: String,
    pub timeout: i64,
    pub retries_remaining: Option<i64>,
    pub payload: String,
    pub state: Option<String>,
    pub run_at: String,
}

impl Job {
    /// What identifies the job within the worker.
    pub fn key(&self) -> (String, String) {
        (self.queue.clone(), self.id.clone())
    }
}
