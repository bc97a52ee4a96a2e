//! The write-ahead log starts again only at a moment when no read needs it. If reads follow each other without a pause,
//! there is no such moment, and the log grows with each write. So while it is very long, new reads wait for up to 1.5
//! seconds, and reads that still run after one second are ended.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;

/// Pages of 4 KiB in a log that is too long: 1 GiB. Most single reads leave it shorter.
const LONG: u32 = 262_144;

/// How long the gate is closed, unless the log starts again.
const CLOSED_MAX: Duration = Duration::from_millis(1_500);

/// How long a read may last while the gate is closed.
const READ_MAX: Duration = Duration::from_millis(1_000);

/// The shortest and the longest time from one closing to the next. It doubles if the log did not start again: a backup in
/// another process keeps it long for as long as it runs.
const INTERVAL: Duration = Duration::from_secs(30);
const INTERVAL_MAX: Duration = Duration::from_mins(10);

/// See the module. The writer closes and opens it, and reads pass it.
#[derive(Debug)]
pub struct LogGate {
    created: Instant,
    /// When it was closed, in milliseconds since it was created; 0 while it is open.
    closed_at: AtomicU64,
    /// When it may be closed again, and the time from one closing to the next, in milliseconds.
    next: AtomicU64,
    interval: AtomicU64,
    /// See [`LONG`].
    long: AtomicU32,
    opened: Notify,
}

impl Default for LogGate {
    fn default() -> Self {
        LogGate {
            created: Instant::now(),
            closed_at: AtomicU64::new(0),
            next: AtomicU64::new(0),
            interval: AtomicU64::new(millis(INTERVAL)),
            long: AtomicU32::new(LONG),
            opened: Notify::new(),
        }
    }
}

impl LogGate {
    /// Called after each commit with the number of pages in the log.
    pub fn committed(&self, pages: u32) {
        if pages < self.long.load(Ordering::Relaxed) {
            if self.closed_at.load(Ordering::Relaxed) != 0 {
                self.closed_at.store(0, Ordering::Release);
                self.interval.store(millis(INTERVAL), Ordering::Relaxed);
                self.opened.notify_waiters();
            }
            return;
        }
        let now = self.now();
        if now >= self.next.load(Ordering::Relaxed) {
            let interval = self.interval.load(Ordering::Relaxed);
            let longer = (2 * interval).min(millis(INTERVAL_MAX));
            self.interval.store(longer, Ordering::Relaxed);
            self.next.store(now + interval, Ordering::Relaxed);
            self.closed_at.store(now.max(1), Ordering::Release);
        }
    }

    /// Waits while the gate is closed.
    pub async fn pass(&self) {
        loop {
            let opened = self.opened.notified();
            let Some(closed) = self.closed_for() else {
                return;
            };
            drop(timeout(CLOSED_MAX.saturating_sub(closed), opened).await);
        }
    }

    /// Whether reads that run must end.
    pub fn ends_reads(&self) -> bool {
        self.closed_for().is_some_and(|closed| closed > READ_MAX)
    }

    /// How long the gate has been closed; `None` if it is open.
    fn closed_for(&self) -> Option<Duration> {
        let closed_at = self.closed_at.load(Ordering::Acquire);
        if closed_at == 0 {
            return None;
        }
        let closed = Duration::from_millis(self.now().saturating_sub(closed_at));
        (closed < CLOSED_MAX).then_some(closed)
    }

    fn now(&self) -> u64 {
        millis(self.created.elapsed())
    }

    /// Sets the number of pages from which on the log is too long.
    #[cfg(test)]
    pub fn set_long(&self, pages: u32) {
        self.long.store(pages, Ordering::Relaxed);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
