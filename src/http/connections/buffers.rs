//! The buffer into which a connection reads, and bytes that become no part of a request.

use std::sync::atomic::Ordering;

use super::{Connection, Phase, SMALL, large};

/// Bytes after the header of a request that become no part of a body. They take a few milliseconds.
const UNFRAMED_MAX: usize = 256 << 10;

impl Connection {
    /// Called before a read into a buffer with room for this many bytes. Returns whether the read may fill it. If there
    /// are too many large buffers, it may not.
    #[must_use]
    pub fn reads_into(&self, room: usize) -> bool {
        let before = self.buffer.load(Ordering::Relaxed);
        // A long header that is incomplete is in the same buffer.
        let header = self.header.load(Ordering::Relaxed);
        let size = match self.phase().0 == Phase::Header as u64 && header > SMALL {
            true => room + header,
            false => room,
        };
        if size > before {
            self.buffer.store(size, Ordering::Relaxed);
            let added = large(size) - large(before);
            self.totals.buffers.fetch_add(added, Ordering::Relaxed);
        }
        large(room) == 0 || self.totals.buffers.load(Ordering::Relaxed) <= self.totals.buffers_max
    }

    /// Called when a part of a request has arrived. Returns false if too many bytes after its header have become no part
    /// of a body: lines of chunks can have any length.
    #[must_use]
    pub fn received_part(&self, bytes: usize) -> bool {
        if self.phase().0 == Phase::Header as u64 {
            return true;
        }
        let before = self.unframed.fetch_add(bytes, Ordering::Relaxed);
        before <= UNFRAMED_MAX
    }

    /// Called when a part of a body has been read.
    pub fn read_frame(&self) {
        self.unframed.store(0, Ordering::Relaxed);
    }

    /// Whether the connection must end after a response, because it would keep a large buffer, and there are too many.
    pub fn must_end(&self) -> bool {
        large(self.buffer.load(Ordering::Relaxed)) > 0
            && self.totals.buffers.load(Ordering::Relaxed) > self.totals.buffers_max
    }
}
