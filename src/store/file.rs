//! Locks on an SQLite file. One server has it open; `switchyard token` can open it alongside, briefly.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::sqlite::Connection;
use super::{BUSY_TIMEOUT, Durability, StoreError};

/// How long a server waits for another process to close the file.
const BRIEF_OPEN_MAX: Duration = Duration::from_secs(2);

/// Delay between attempts to open a file.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The server that has the file open. Holds the path of the file.
#[derive(Debug)]
pub struct FileOwner(PathBuf);

impl FileOwner {
    /// Whether the server has closed the file. Checks by taking the lock and releasing it.
    pub fn has_closed(&self) -> bool {
        lock(&self.0).is_ok()
    }
}

/// Opens the file exclusively. Waits up to 2 s for a process that has it open briefly, such as `switchyard token`.
pub async fn open_exclusive(
    path: &Path,
    durability: Durability,
    scratch: bool,
) -> Result<Connection, StoreError> {
    let until = Instant::now() + BRIEF_OPEN_MAX;
    loop {
        match Connection::open(path, durability, scratch) {
            Err(StoreError::InUse) if Instant::now() < until => sleep(RETRY_DELAY).await,
            opened => return opened,
        }
    }
}

/// Opens the file exclusively, or alongside the server that has it open. Waits up to 5 s for a starting server to run
/// its migrations.
pub async fn open_or_join(path: &Path) -> Result<(Connection, Option<FileOwner>), StoreError> {
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match Connection::open(path, Durability::Full, false) {
            Err(StoreError::InUse) => {}
            opened => return Ok((opened?, None)),
        }
        match Connection::open_alongside(path).await {
            Err(StoreError::OtherVersion) if Instant::now() < until => sleep(RETRY_DELAY).await,
            joined => return Ok((joined?, Some(FileOwner(path.to_owned())))),
        }
    }
}

/// Locks the file against other servers, because each server assumes that it is the only writer.
pub fn lock(path: &Path) -> Result<File, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = private(Path::new(&name))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse),
        Err(TryLockError::Error(error)) => Err(StoreError::Database(error.into())),
    }
}

/// Creates the file of a new database, readable by its owner only. SQLite gives its log files the same mode.
pub fn create(path: &Path) -> Result<(), StoreError> {
    // An existing file is not opened, because closing it would release SQLite's POSIX locks on it.
    if !path.exists() {
        private(path)?;
    }
    Ok(())
}

/// Opens a file, or creates one that only its owner can read.
fn private(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| StoreError::Database(error.into()))
}
