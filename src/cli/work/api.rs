//! The APIs, as a worker uses them. Each has a file of its own; `docs/worker.md` describes their rules.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::job::{Job, Lease};
use super::jobq::Jobq;
use super::lmstfy::Lmstfy;
use super::outcome::Failure;
use super::qless::Qless;
use super::relay::Relay;
use crate::client::{Client, Error};
use crate::config::{Work, WorkApi};

/// An API of the server.
#[derive(Debug)]
pub enum Api {
    Qless(Qless),
    Lmstfy(Lmstfy),
    Relay(Relay),
    Jobq(Jobq),
}

/// The response to a heartbeat.
#[derive(Clone, Debug, PartialEq)]
pub enum HeartbeatResult {
    /// The lease ends this time after the heartbeat was sent; `None` if it has no end.
    Extended(Option<Duration>),
    /// Why the worker no longer has the job.
    Lost(String),
}

/// What to tell the server about a job.
#[derive(Clone, Debug)]
pub enum Report {
    Complete,
    Retry(Failure),
    Fail(Failure),
    /// Another worker can have the job now.
    HandBack,
}

/// The response to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportResult {
    /// The server has recorded it, now or at an earlier attempt.
    Done,
    /// The API has no such verb. When the lease expires, the job is delivered again, or dead-lettered if it has no retries
    /// left.
    LeftToExpire,
    /// Why the worker no longer has the job.
    Lost(String),
}

/// A job that the next claims would return.
#[derive(Clone, Debug)]
pub struct UpcomingJob {
    pub queue: String,
    pub id: String,
    pub bytes: usize,
}

impl Api {
    pub fn new(options: &Work, client: Client) -> Api {
        let name = options.name.clone().unwrap_or_else(default_name);
        let (outcomes, protocol) = (&options.outcomes, &options.protocol);
        match options.api {
            WorkApi::Qless => Api::Qless(Qless {
                client,
                name,
                retry_delay: outcomes.retry_delay,
            }),
            WorkApi::Lmstfy => Api::Lmstfy(Lmstfy {
                client,
                namespace: options.namespace.clone(),
                ttr: protocol.ttr,
            }),
            WorkApi::Relay => Api::Relay(Relay {
                client,
                retry_delay: outcomes.retry_delay,
            }),
            WorkApi::Jobq => Api::Jobq(Jobq {
                client,
                name,
                options: protocol.clone(),
                without_response: Mutex::default(),
            }),
        }
    }

    /// The name of the API in `SWITCHYARD_API`.
    pub fn name(&self) -> &'static str {
        match self {
            Api::Qless(_) => "qless",
            Api::Lmstfy(_) => "lmstfy",
            Api::Relay(_) => "relay",
            Api::Jobq(_) => "jobq",
        }
    }

    /// Whether the server can hold a claim until there is a job.
    pub fn can_wait(&self) -> bool {
        matches!(self, Api::Qless(_) | Api::Lmstfy(_))
    }

    /// Claims up to `count` jobs from these queues, the first ones first.
    ///
    /// # Errors
    /// If the server does not respond or refuses the request.
    pub async fn claim(
        &self,
        queues: &[String],
        count: usize,
        wait: Duration,
    ) -> Result<Vec<Job>, Error> {
        match self {
            Api::Qless(api) => api.claim(queues, count, wait).await,
            Api::Lmstfy(api) => api.claim(queues, count, wait).await,
            Api::Relay(api) => api.claim(queues, count).await,
            Api::Jobq(api) => api.claim(queues, count).await,
        }
    }

    /// How often to send a heartbeat that does not depend on a lease. `None` if the API has leases or no heartbeat.
    pub fn check_interval(&self) -> Option<Duration> {
        match self {
            Api::Jobq(api) => Some(api.check_interval()),
            Api::Qless(_) | Api::Lmstfy(_) | Api::Relay(_) => None,
        }
    }

    /// Extends the lease, or checks that the worker still has the job.
    ///
    /// # Errors
    /// If the server does not respond or refuses the request for a reason other than a lost lease.
    pub async fn heartbeat(&self, job: &Job, timeout: Duration) -> Result<HeartbeatResult, Error> {
        match self {
            Api::Qless(api) => api.heartbeat(job, timeout).await,
            Api::Lmstfy(_) => Ok(HeartbeatResult::Extended(None)),
            Api::Relay(api) => api.heartbeat(job, timeout).await,
            Api::Jobq(api) => api.heartbeat(job, timeout).await,
        }
    }

    /// Reports the outcome. `is_repeated` if an earlier attempt may have had its effect.
    ///
    /// # Errors
    /// If the server does not respond or refuses the request for a reason other than a lost lease.
    pub async fn report_outcome(
        &self,
        job: &Job,
        report: &Report,
        is_repeated: bool,
    ) -> Result<ReportResult, Error> {
        match self {
            Api::Qless(api) => api.report_outcome(job, report, is_repeated).await,
            Api::Lmstfy(api) => api.report_outcome(job, report).await,
            Api::Relay(api) => api.report_outcome(job, report).await,
            Api::Jobq(api) => api.report_outcome(job, report, is_repeated).await,
        }
    }

    /// Whether the server rejects a report of a worker that has lost the job. lmstfy deletes the job at any time.
    pub fn rejects_late_reports(&self) -> bool {
        !matches!(self, Api::Lmstfy(_))
    }

    /// The jobs that claims would return next, up to `count` of each queue.
    ///
    /// # Errors
    /// If the server does not respond or refuses the request, or the API cannot show them.
    pub async fn next(&self, queues: &[String], count: usize) -> Result<Vec<UpcomingJob>, Error> {
        match self {
            Api::Qless(api) => api.next(queues, count).await,
            Api::Lmstfy(api) => api.next(queues).await,
            Api::Relay(_) => Err(Error::Invalid(
                "Relay cannot show the next jobs without claiming them; the dashboard lists them"
                    .to_owned(),
            )),
            Api::Jobq(api) => api.next(queues, count).await,
        }
    }
}

/// The name of the host and the process ID.
fn default_name() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("{host}-{}", std::process::id())
}

/// The longest lease. Longer ones would exceed the range of [`Instant`].
pub const LEASE_MAX: Duration = Duration::from_hours(24 * 365);

/// A lease that heartbeats extend. `None` if it has no length, so that it cannot be kept.
pub fn lease(length: Duration, sent: Instant) -> Option<Lease> {
    let length = length.min(LEASE_MAX);
    Some(Lease {
        length,
        until: sent + length,
        can_extend: true,
    })
    .filter(|lease| !lease.length.is_zero())
}

/// The elements of the server's JSON, which is an array, a single element or null.
///
/// # Errors
/// If it is not JSON.
pub fn one_or_many<'a>(client: &Client, text: &'a RawValue) -> Result<Vec<&'a RawValue>, Error> {
    match text.get() {
        "null" => Ok(Vec::new()),
        many if many.starts_with('[') => parsed(client, many),
        _ => Ok(vec![text]),
    }
}

/// Parses JSON of the server.
///
/// # Errors
/// If it does not have this shape.
pub fn parsed<'a, T: Deserialize<'a>>(client: &Client, text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| unexpected(client, &error))
}

/// The error for a response that cannot be decoded.
pub fn unexpected(client: &Client, error: &impl ToString) -> Error {
    Error::Unexpected {
        server: client.server().to_owned(),
        why: error.to_string(),
    }
}

/// The message of a response that says that the worker has lost the job, if this is one.
pub fn lost_job_message(error: Error, statuses: &[u16]) -> Result<String, Error> {
    match error.status() {
        Some(status) if statuses.contains(&status) => Ok(error.to_string()),
        _ => Err(error),
    }
}
