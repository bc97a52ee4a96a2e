//! The database: transactions, group commit and a pool of readers. It knows no job logic, and it is
//! the only room that names a database driver.
//!
//! A write is a *step* of a group: [`Store::submit`] hands it to the one writer, which takes whatever
//! is queued, runs it in one transaction and answers every step after the commit (`store/group.rs`).

mod group;
mod rows;
mod sqlite;

use std::time::Duration;

pub use group::{Group, Writer};
pub use rows::{Answer, Arg, Row, Statement};
pub use sqlite::{Connection, Readers};

/// How the database may fail.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{0}")]
    Database(#[from] sqlx::Error),
    #[error("migration failed: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// Somebody else changed a row between our reading and our writing of it. The group is run again.
    #[error("a row was changed by somebody else meanwhile")]
    Conflict,
    #[error("\"{0}\" is no database address: expected sqlite://FILE or sqlite::memory:")]
    Address(String),
    #[error("another server has this database open")]
    InUse,
    #[error("the writer has stopped")]
    Stopped,
    #[error("a row is not as it should be: {0}")]
    Corrupt(&'static str),
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// Loss of power: every commit waits for the disk.
    #[default]
    Full,
    /// The end of the process, `kill -9` included; at a loss of power the last moments may be gone.
    Process,
}

/// How long one server waits for the database file that another process has locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open database.
pub struct Store {
    readers: Readers,
    connection: Connection,
    /// A database in memory is a file in a folder of its own, removed with the store.
    _scratch: Option<tempfile::TempDir>,
}

impl Store {
    /// Opens (and, if it is new, makes) the database at `address` and brings its tables up to date.
    /// `sqlite://FILE` or `sqlite::memory:`, which is a temporary file, gone when the store is closed.
    pub async fn open(address: &str, durability: Durability) -> Result<Store, StoreError> {
        let (path, scratch) = sqlite::locate(address)?;
        let mut connection = Connection::open(&path, durability, scratch.is_some()).await?;
        connection.migrate().await?;
        let readers = Readers::open(&path).await?;
        Ok(Store {
            readers,
            connection,
            _scratch: scratch,
        })
    }

    /// Splits into the pool of readers and the connection that the writer is to own.
    pub fn split(self) -> (Readers, Connection, Option<tempfile::TempDir>) {
        (self.readers, self.connection, self._scratch)
    }
}
