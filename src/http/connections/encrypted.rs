//! Encrypted bytes that have arrived and are not decrypted yet.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::large;

/// Bytes of a connection until some are decrypted: a TLS record and the next read, or the messages of a handshake. A
/// client can announce a longer message, of which the TLS library keeps up to 64 KiB.
pub const BYTES_MAX: usize = 24 << 10;

/// The same of all connections of a listener, beyond [`SMALL`](super::SMALL) each. With more, those are closed that have
/// had such bytes for [`TICKS`]. The rest of a record normally arrives within milliseconds.
pub const TOTAL_MAX: usize = 64 << 20;
pub const TICKS: u32 = 3;

/// Those of one connection.
#[derive(Debug, Default)]
pub struct EncryptedBytes {
    /// Bytes since the last decrypted ones.
    bytes: AtomicUsize,
    /// The tick in which they became large.
    since: AtomicU32,
}

impl EncryptedBytes {
    /// Adds bytes that have arrived. `total` counts those of all connections. Returns whether there is room for them.
    #[must_use]
    pub fn received(&self, bytes: usize, total: &AtomicUsize, now: u32) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let added = large(before + bytes) - large(before);
        if added > 0 {
            if large(before) == 0 {
                self.since.store(now, Ordering::Relaxed);
            }
            total.fetch_add(added, Ordering::Relaxed);
        }
        before + bytes <= BYTES_MAX
    }

    /// Called when the handshake is complete, when bytes were decrypted, and when the connection ends.
    pub fn decrypted(&self, total: &AtomicUsize) {
        if self.bytes.load(Ordering::Relaxed) == 0 {
            return;
        }
        let counted = large(self.bytes.swap(0, Ordering::Relaxed));
        if counted > 0 {
            total.fetch_sub(counted, Ordering::Relaxed);
        }
    }

    /// Whether the connection has had such bytes for long, while all connections together have too many.
    pub fn is_overdue(&self, total: &AtomicUsize, now: u32) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        total.load(Ordering::Relaxed) > TOTAL_MAX
            && large(self.bytes.load(Ordering::Relaxed)) > 0
            && now.saturating_sub(since) >= TICKS
    }
}
