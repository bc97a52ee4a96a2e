//! SQLite: the connection that writes (`sqlite/writer.rs`), those that read (`sqlite/readers.rs`), checkpoints
//! (`sqlite/checkpoints.rs`), and the files (`sqlite/files.rs`).

mod checkpoints;
mod files;
mod log_gate;
mod readers;
mod writer;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use readers::Readers;
use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
pub use writer::Connection;

use super::address::without_password;
use super::{BUSY_TIMEOUT, StoreError};

/// Buffer between the connection's thread and the reader, in rows. It is larger than most results, so that the thread
/// does not wait in the middle of one.
const ROW_BUFFER: usize = 4_096;

/// The longest text whose prepared form is cached. A longer one comes from a request with many queues or long bodies,
/// is unlikely to be sent again, and would occupy megabytes.
const PREPARED_BYTES_MAX: usize = 16 * 1024;

/// Prepared statements that a connection caches. One with a thousand values occupies about 0.5 MB.
const PREPARED_MAX: usize = 128;

/// The file of an address, and for a temporary database the folder to remove afterwards.
pub fn locate(address: &str) -> Result<(PathBuf, Option<tempfile::TempDir>), StoreError> {
    let wrong = || StoreError::Address(without_password(address));
    let rest = address.strip_prefix("sqlite:").ok_or_else(wrong)?;
    if matches!(rest, ":memory:" | "//:memory:") {
        let folder = tempfile::Builder::new()
            .prefix("switchyard-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(|error| StoreError::Database(error.into()))?;
        return Ok((folder.path().join("switchyard.db"), Some(folder)));
    }
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() || path.contains('?') {
        return Err(wrong());
    }
    Ok((PathBuf::from(path), None))
}

fn options(path: &Path) -> Result<SqliteConnectOptions, StoreError> {
    Ok(SqliteConnectOptions::from_str("sqlite:")?
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .foreign_keys(false)
        // Otherwise every statement that can fail halfway creates a statement journal file.
        .pragma("temp_store", "memory")
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(PREPARED_MAX)
        .row_buffer_size(ROW_BUFFER)
        .disable_statement_logging())
}

#[cfg(test)]
mod tests;
