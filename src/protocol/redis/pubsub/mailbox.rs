//! The messages that wait for a subscriber.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::protocol::redis::resp::{Reply, Version};

/// Maximum size of the messages that wait for one client, and for all. A client that exceeds a limit is disconnected.
const MAILBOX_BYTES_MAX: usize = 4 << 20;
const MAILBOXES_BYTES_MAX: usize = 256 << 20;

/// Size of the messages that may wait for a client even if other clients, which do not read, have used up the limit for
/// all clients.
const SHARE_BYTES: usize = 64 << 10;

/// Bytes of messages that wait for all clients.
static WAITING_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A message for one or many clients. It is encoded once for each version of the protocol.
pub struct Message {
    reply: Reply,
    resp2: OnceCell<Bytes>,
    resp3: OnceCell<Bytes>,
}

impl From<Reply> for Message {
    fn from(reply: Reply) -> Message {
        Message {
            reply,
            resp2: OnceCell::new(),
            resp3: OnceCell::new(),
        }
    }
}

impl Message {
    fn bytes(&self, version: Version) -> Bytes {
        let encoded = match version {
            Version::Resp2 => &self.resp2,
            Version::Resp3 => &self.resp3,
        };
        let encode = || {
            let mut bytes = Vec::new();
            self.reply.encode(version, &mut bytes);
            Bytes::from(bytes)
        };
        encoded.get_or_init(encode).clone()
    }
}

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
    messages: Vec<Bytes>,
    /// Their size, and that of the messages that are being written.
    size: usize,
    taken: usize,
    version: Version,
}

impl Mailbox {
    pub fn set_version(&self, version: Version) {
        self.lock().version = version;
    }

    /// Adds a message, if there is room for it.
    pub fn push(&self, message: &Message) {
        if self.overflow.is_cancelled() {
            return;
        }
        let mut waiting = self.lock();
        let bytes = message.bytes(waiting.version);
        let added = bytes.len() + size_of::<Bytes>();
        let own = waiting.size + waiting.taken;
        let all = WAITING_BYTES.load(Ordering::Relaxed) + added;
        if own + added > MAILBOX_BYTES_MAX || all > MAILBOXES_BYTES_MAX && own > SHARE_BYTES {
            self.overflow.cancel();
            return;
        }
        waiting.messages.push(bytes);
        waiting.size += added;
        WAITING_BYTES.fetch_add(added, Ordering::Relaxed);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Moves the messages to `output`. [`Mailbox::written`] ends the time in which they count.
    pub fn take(&self, output: &mut Vec<u8>) {
        let mut waiting = self.lock();
        waiting.taken += std::mem::take(&mut waiting.size);
        let messages = std::mem::take(&mut waiting.messages);
        drop(waiting);
        for message in messages {
            output.extend_from_slice(&message);
        }
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

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING_BYTES.fetch_sub(self.size + self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Message {
        Reply::Push(vec![Reply::text("m".repeat(bytes))]).into()
    }

    #[test]
    fn subscribers_share_the_bytes_of_a_message() {
        let (message, mailboxes) = (message(1_000), [Mailbox::default(), Mailbox::default()]);
        mailboxes.iter().for_each(|mailbox| mailbox.push(&message));
        let [one, other] = mailboxes.map(|mailbox| mailbox.lock().messages[0].clone());
        assert_eq!(one.as_ptr(), other.as_ptr());
        let mut expected = Vec::new();
        message.reply.encode(Version::Resp2, &mut expected);
        assert_eq!(one, expected);
        assert_ne!(message.bytes(Version::Resp3), expected);
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

    #[test]
    fn clients_that_read_keep_a_share_of_the_memory() {
        let large = message(MAILBOX_BYTES_MAX - 1_000);
        let fill = || {
            let mailbox = Mailbox::default();
            mailbox.push(&large);
            mailbox
        };
        let stopped: Vec<_> = (0..64).map(|_| fill()).collect();
        let reading = Mailbox::default();
        for _ in 0..3 {
            reading.push(&message(SHARE_BYTES));
            assert!(!reading.overflow.is_cancelled());
            reading.take(&mut Vec::new());
            reading.written();
        }
        let also_stopped = fill();
        also_stopped.push(&message(1_000));
        assert!(also_stopped.overflow.is_cancelled());
        drop(stopped);
    }
}
