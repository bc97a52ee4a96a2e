//! The messages that wait for a subscriber.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::protocol::redis::resp::{Reply, Version};

/// Bytes of messages that wait for one client, and for all. The connection of one that exceeds a limit is closed.
const MAILBOX_BYTES_MAX: usize = 4 << 20;
const MAILBOXES_BYTES_MAX: usize = 256 << 20;

/// Bytes of messages that wait for all clients.
static WAITING_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The messages for one client. They count until they are written.
#[derive(Debug, Default)]
pub struct Mailbox {
    state: Mutex<Waiting>,
    pub arrived: Notify,
    /// Canceled when a message had no room. As in Redis, the connection then ends.
    pub overflow: CancellationToken,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Bytes of the messages that are being written.
    taken: usize,
    version: Version,
}

impl Mailbox {
    pub fn set_version(&self, version: Version) {
        self.lock().version = version;
    }

    /// Adds a message, if there is room for it.
    pub fn push(&self, message: &Reply) {
        if self.overflow.is_cancelled() {
            return;
        }
        let mut waiting = self.lock();
        let version = waiting.version;
        let before = waiting.bytes.len();
        // Checked first, so that a large message is not copied to every client.
        let expected = message.size();
        let all = WAITING_BYTES.load(Ordering::Relaxed);
        if waiting.size() + expected > MAILBOX_BYTES_MAX || all + expected > MAILBOXES_BYTES_MAX {
            self.overflow.cancel();
            return;
        }
        message.encode(version, &mut waiting.bytes);
        let added = waiting.bytes.len() - before;
        WAITING_BYTES.fetch_add(added, Ordering::Relaxed);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Moves the messages to `output`. [`Mailbox::written`] ends the time in which they count.
    pub fn take(&self, output: &mut Vec<u8>) {
        let mut waiting = self.lock();
        let bytes = std::mem::take(&mut waiting.bytes);
        output.extend_from_slice(&bytes);
        waiting.taken += bytes.len();
    }

    /// Called when the messages that were taken are written.
    pub fn written(&self) {
        let mut waiting = self.lock();
        let written = std::mem::take(&mut waiting.taken);
        WAITING_BYTES.fetch_sub(written, Ordering::Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn size(&self) -> usize {
        self.bytes.len() + self.taken
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING_BYTES.fetch_sub(self.size(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Reply {
        Reply::Push(vec![Reply::text("m".repeat(bytes))])
    }

    #[test]
    fn messages_count_until_they_are_written() {
        let (mailbox, mut output) = (Mailbox::default(), Vec::new());
        let half = message(MAILBOX_BYTES_MAX / 2);
        mailbox.push(&half);
        mailbox.take(&mut output);
        assert!(output.len() > MAILBOX_BYTES_MAX / 2);
        mailbox.written();
        for _ in 0..2 {
            mailbox.push(&half);
            assert!(!mailbox.overflow.is_cancelled(), "the first was written");
            mailbox.take(&mut output);
            mailbox.written();
        }
        mailbox.push(&half);
        mailbox.take(&mut output);
        assert!(WAITING_BYTES.load(Ordering::Relaxed) > MAILBOX_BYTES_MAX / 2);
        mailbox.push(&half);
        assert!(mailbox.overflow.is_cancelled(), "both wait");
        drop(mailbox);
    }
}
