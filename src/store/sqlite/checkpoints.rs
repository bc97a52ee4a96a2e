//! Checkpoints of the write-ahead log, on a thread with a connection of its own, so that commits do not wait for them.
//!
//! SQLite lets a checkpoint copy the log while another connection appends to it. The log starts again from its
//! beginning only when all of it has been copied at the moment of a write. So the writer copies the last pages, which
//! were appended during the checkpoint.

use std::cell::Cell;
use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use rusqlite::OpenFlags;
use rusqlite::hooks::Wal;

use super::log_gate::LogGate;
use crate::store::StoreError;

/// The most pages that the writer copies itself; takes about a millisecond.
const LAST_PAGES: u32 = 256;

/// Copies all pages that no reader still needs in the database file, without waiting. Returns the number of pages in
/// the log, and of copied ones.
const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";

thread_local! {
    /// Pages in the log after the last commit of this thread.
    static LOG_PAGES: Cell<u32> = const { Cell::new(0) };
}

/// Pages in the log after the last commit of this thread.
#[cfg(test)]
pub fn log_pages() -> u32 {
    LOG_PAGES.get()
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a hook")]
fn note_pages(_: &Wal, pages: c_int) -> rusqlite::Result<()> {
    LOG_PAGES.set(pages.unsigned_abs());
    Ok(())
}

/// See the module. The thread ends when this is dropped.
pub struct Checkpoints {
    /// Starts a checkpoint. `None` while this is dropped.
    start: Option<Sender<()>>,
    /// The number of copied pages, for each checkpoint.
    copied: Receiver<Result<u32, StoreError>>,
    is_running: bool,
    /// Pages in the log with which a checkpoint starts.
    start_pages: u32,
    /// Pages in the log with which the writer waits for the checkpoint.
    max_pages: u32,
    gate: Arc<LogGate>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// Starts the thread. From now on, commits of `writer` run no checkpoints.
    pub fn start(
        writer: &rusqlite::Connection,
        path: &Path,
        synchronous: &str,
        (start_pages, max_pages): (u32, u32),
        gate: Arc<LogGate>,
    ) -> Result<Checkpoints, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        connection.pragma_update(None, "synchronous", synchronous)?;
        let (start, started) = channel();
        let (done, copied) = channel();
        let thread = Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || {
                for () in started {
                    if done.send(checkpoint(&connection)).is_err() {
                        break;
                    }
                }
            });
        let thread = thread.map_err(|error| StoreError::Database(error.into()))?;
        writer.wal_hook(Some(note_pages));
        Ok(Checkpoints {
            start: Some(start),
            copied,
            is_running: false,
            start_pages,
            max_pages,
            gate,
            thread: Some(thread),
        })
    }

    /// Starts or finishes a checkpoint if the log is long. Call it after each commit, on the thread of the commit.
    ///
    /// # Errors
    /// Those after which the server must stop. After others, such as a full disk, the log grows until a checkpoint
    /// succeeds.
    pub fn after_commit(&mut self, writer: &rusqlite::Connection) -> Result<(), StoreError> {
        let pages = LOG_PAGES.get();
        self.gate.committed(pages);
        if self.is_running {
            let copied = match pages < self.max_pages {
                true => self.copied.try_recv().ok(),
                false => self.copied.recv().ok(),
            };
            let Some(copied) = copied else { return Ok(()) };
            self.is_running = false;
            let copied = succeeded(copied)?;
            // If the log has fewer pages than were copied, it has started again.
            let left = pages.checked_sub(copied);
            if left.is_some_and(|left| left <= LAST_PAGES || pages >= self.max_pages) {
                return succeeded(checkpoint(writer)).map(drop);
            }
        }
        if pages >= self.start_pages && self.start.as_ref().is_some_and(|it| it.send(()).is_ok()) {
            self.is_running = true;
        }
        Ok(())
    }

    /// Waits until no checkpoint runs.
    pub fn wait(&mut self) {
        if std::mem::take(&mut self.is_running) {
            drop(self.copied.recv());
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.start = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The number of pages that a checkpoint copied; 0 after an error that is not fatal.
fn succeeded(copied: Result<u32, StoreError>) -> Result<u32, StoreError> {
    match copied {
        Err(error) if !error.is_fatal() => {
            tracing::debug!(%error, "failed to checkpoint the write-ahead log");
            Ok(0)
        }
        copied => copied,
    }
}

fn checkpoint(connection: &rusqlite::Connection) -> Result<u32, StoreError> {
    let mut statement = connection.prepare_cached(CHECKPOINT)?;
    let copied: i64 = statement.query_row([], |row| row.get(2))?;
    Ok(u32::try_from(copied).unwrap_or_default())
}
