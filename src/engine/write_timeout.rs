//! The time limit of writes on a shared database.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::{Error, Result};

/// On a shared database: after this time a write fails with [`Error::Unavailable`], and its outcome is unknown.
/// Requests are answered within 5 s.
const WRITE_TIMEOUT: Duration = Duration::from_millis(4_500);

/// Minimum time between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// The result of the write. In an outage, it would otherwise wait for all writes queued before it to fail.
///
/// # Errors
/// Those of the write, and [`Error::Unavailable`] after the time limit.
pub async fn in_time<T>(write: impl Future<Output = Result<T>>) -> Result<T> {
    let written = tokio::time::timeout(WRITE_TIMEOUT, write).await;
    written.unwrap_or_else(|_| {
        warn();
        Err(Error::Unavailable)
    })
}

/// Logs that a write took too long, unless the last such line is less than a second old.
fn warn() {
    static WARNED: Mutex<Option<Instant>> = Mutex::new(None);
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if warned.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
        *warned = Some(Instant::now());
        tracing::warn!("a write took longer than 4.5 s; its client got an error");
    }
}
