//! The reserved memory of responses that a client has not read, and how fast it reads them.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// While requests wait for memory, a client whose response has reserved some is disconnected if it has read less than this
/// many bytes per tick (256 KiB per second), once it has read for [`READ_MIN`] ticks (5 s).
pub const RATE_MIN: usize = 128 << 10;
pub const READ_MIN: u32 = 10;

/// What one connection holds.
#[derive(Debug, Default)]
pub struct HeldMemory {
    bytes: AtomicUsize,
    /// The tick in which the first of them were reserved.
    since: AtomicU32,
    /// Bytes sent since then.
    sent: AtomicUsize,
    /// Whether more of a response will follow after what was passed on to be sent.
    is_responding: AtomicBool,
}

impl HeldMemory {
    /// Called when a response with this much reserved memory begins.
    pub fn begin_response(&self, bytes: usize, now: u32) {
        self.is_responding.store(true, Ordering::Relaxed);
        self.hold(bytes, now);
    }

    /// Called when a response was passed on to be sent.
    pub fn end_response(&self) {
        self.is_responding.store(false, Ordering::Relaxed);
    }

    /// Called before a response with this much reserved memory is sent as a whole.
    pub fn hold(&self, bytes: usize, now: u32) {
        if bytes == 0 {
            return;
        }
        if self.bytes.load(Ordering::Relaxed) == 0 {
            self.since.store(now, Ordering::Relaxed);
            self.sent.store(0, Ordering::Relaxed);
        }
        // A thread that sees the bytes also sees since when they are held.
        self.bytes.fetch_add(bytes, Ordering::Release);
    }

    /// Called when bytes were sent.
    pub fn sent(&self, bytes: usize) {
        if self.bytes.load(Ordering::Relaxed) > 0 {
            self.sent.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Called when all bytes were sent that were passed on.
    pub fn flushed(&self) {
        if self.bytes.load(Ordering::Relaxed) > 0 && !self.is_responding.load(Ordering::Relaxed) {
            self.bytes.store(0, Ordering::Relaxed);
        }
    }

    /// The tick since which the client reads, if it reads slowly.
    pub fn slow_since(&self, now: u32) -> Option<u32> {
        if self.bytes.load(Ordering::Acquire) == 0 {
            return None;
        }
        let since = self.since.load(Ordering::Relaxed);
        let ticks = now.saturating_sub(since);
        let sent = self.sent.load(Ordering::Relaxed);
        let is_slow = ticks >= READ_MIN && sent < RATE_MIN.saturating_mul(ticks as usize);
        is_slow.then_some(since)
    }
}
