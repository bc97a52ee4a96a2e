//! Who has an SQLite file open: one server, and beside it for a moment `switchyard token`.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::sqlite::Connection;
use super::{BUSY_TIMEOUT, Durability, StoreError};

/// For how long a server waits for one who has the file open.
const MOMENT: Duration = Duration::from_secs(2);

/// Before a file that somebody has open is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// The server beside which a file was opened.
#[derive(Debug)]
pub struct Host(PathBuf);

impl Host {
    /// Whether no server has the file open any more. It asks by taking the lock for a moment.
    pub fn is_gone(&self) -> bool {
        lock(&self.0).is_ok()
    }
}

/// Opens the file as a server does. Who has it open for a moment only, as `switchyard token` does, is waited for.
pub async fn open_alone(
    path: &Path,
    durability: Durability,
    scratch: bool,
) -> Result<Connection, StoreError> {
    let until = Instant::now() + MOMENT;
    loop {
        match Connection::open(path, durability, scratch).await {
            Err(StoreError::InUse) if Instant::now() < until => sleep(TRY_AGAIN).await,
            opened => return opened,
        }
    }
}

/// Opens the file as a server does, or else beside the server that has it open; one that is only starting is given
/// time to bring the tables up to date.
pub async fn open_or_join(path: &Path) -> Result<(Connection, Option<Host>), StoreError> {
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match Connection::open(path, Durability::Full, false).await {
            Err(StoreError::InUse) => {}
            opened => return Ok((opened?, None)),
        }
        match Connection::beside(path).await {
            Err(StoreError::OtherVersion) if Instant::now() < until => sleep(TRY_AGAIN).await,
            joined => return Ok((joined?, Some(Host(path.to_owned())))),
        }
    }
}

/// Keeps other servers away from the file: each of them would take itself for the only writer.
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

/// Makes the file of a new database, which only its owner may read. SQLite gives the files beside it the same mode.
pub fn create(path: &Path) -> Result<(), StoreError> {
    // A file that is there is not even opened: closing it would release SQLite's locks on it.
    if !path.exists() {
        private(path)?;
    }
    Ok(())
}

/// Opens a file, or makes one that only its owner may read.
fn private(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| StoreError::Database(error.into()))
}
