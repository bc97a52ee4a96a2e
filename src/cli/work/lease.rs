//! Keeps the lease of a job while its program runs.

use std::future::pending;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};

use super::api::{Api, HeartbeatResult, LEASE_MAX};
use super::job::Job;
use super::pace::Backoff;

/// How many heartbeats there are in a lease.
const HEARTBEATS_PER_LEASE: u32 = 3;

/// Limits of the time between two heartbeats. The upper one is how long it takes at most to notice that a job was
/// canceled or taken from the worker.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Sends heartbeats until the worker has lost the job; returns the reason. Never returns if the API has neither leases
/// nor a check interval.
pub async fn extend_until_lost(api: &Api, job: &Job) -> String {
    let (mut length, mut until) = match (job.lease, api.check_interval()) {
        (Some(lease), _) if lease.can_extend => (lease.length, Some(lease.until)),
        (Some(lease), _) => {
            sleep_until(lease.until.into()).await;
            return "its time to run has passed".to_owned();
        }
        (None, Some(interval)) => (interval * HEARTBEATS_PER_LEASE, None),
        (None, None) => return pending().await,
    };
    loop {
        sleep(interval(length)).await;
        match send_heartbeat(api, job, length, until).await {
            HeartbeatResult::Lost(why) => return why,
            HeartbeatResult::Extended(None) => {}
            HeartbeatResult::Extended(Some(extended)) if extended.is_zero() => {
                return "its lease cannot be extended any further".to_owned();
            }
            HeartbeatResult::Extended(Some(extended)) => {
                // Counted from before the heartbeat was sent, in `send_heartbeat`.
                length = extended.min(LEASE_MAX);
                until = until.map(|_| Instant::now() + length);
            }
        }
    }
}

fn interval(length: Duration) -> Duration {
    (length / HEARTBEATS_PER_LEASE).clamp(INTERVAL_MIN, INTERVAL_MAX)
}

/// Sends one heartbeat, and repeats it while the server is away and the lease valid.
async fn send_heartbeat(
    api: &Api,
    job: &Job,
    length: Duration,
    until: Option<Instant>,
) -> HeartbeatResult {
    let mut backoff = Backoff::new();
    let heartbeat_timeout = interval(length).max(Duration::from_secs(1));
    loop {
        let sent = Instant::now();
        let attempt = async {
            match api.heartbeat(job, heartbeat_timeout).await {
                Ok(HeartbeatResult::Extended(Some(extended))) => {
                    let past = sent.elapsed();
                    Some(HeartbeatResult::Extended(Some(
                        extended.saturating_sub(past),
                    )))
                }
                Ok(result) => Some(result),
                Err(error) => {
                    tracing::warn!(queue = job.queue, id = job.id, %error, "a heartbeat failed");
                    backoff.pause(&error).await;
                    None
                }
            }
        };
        let expired = async {
            match until {
                Some(until) => sleep_until(until.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            result = attempt => if let Some(result) = result {
                return result;
            },
            () = expired => {
                return HeartbeatResult::Lost("its lease expired, because the server did not respond".to_owned());
            }
        }
    }
}
