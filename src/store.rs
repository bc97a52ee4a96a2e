//! The database: transactions, group commit and readers. Contains no job logic, and is the only module that uses a
//! database driver.
//!
//! A write is a *request* in a group: [`Writer::submit`] queues it for the single writer, which runs many
//! requests in one transaction and delivers their results after the commit (`store/group_commit.rs`). The differences
//! between SQLite and Postgres are in the files of those names and in `store/dialect.rs`.
//!
//! [`Writer::submit`]: crate::store::Writer::submit

mod address;
mod backup;
mod binding;
mod constant_cache;
mod copy;
mod dialect;
mod error;
mod file;
mod group_commit;
mod info;
mod inspect;
mod migrations;
mod pooled;
mod postgres;
mod readers;
mod relay_table;
mod reserve;
mod row_serializer;
mod rows;
mod sqlite;

use std::path::Path;
use std::time::Duration;

pub use address::without_password;
pub use backup::{BackupError, VerifiedCopy, back_up, restore};
pub use binding::ROWS_BOUND_MAX;
pub use copy::{Copied, CopyError, Progress, copy};
use dialect::Dialect;
pub use error::StoreError;
pub use file::{FileOwner, folder_of};
pub use group_commit::{GroupRunner, Sharing, WEIGHT_MAX, Writer};
pub use info::{DatabaseInfo, ReaderUse};
pub use inspect::{Inspection, database_file, inspect};
pub use postgres::Listener;
pub use readers::{LimitedReaders, Readers};
pub use relay_table::{RelayRow, RelayTable};
use reserve::Reserve;
pub use rows::{Arg, Row, Statement, StatementResult, grown_max};

/// A statement that never ends, until it is interrupted.
#[cfg(test)]
pub const ENDLESS_STATEMENT: &str = "SELECT count(*) FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)";

/// Failures after which acknowledged writes are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// Crashes and power losses: each commit waits for the disk.
    #[default]
    Full,
    /// Crashes of the server, including kill -9. A power loss or a crash of Postgres can lose the most recent writes.
    Process,
}

/// How a database is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    pub durability: Durability,
    /// Postgres: do not use SKIP LOCKED.
    pub no_skip_locked: bool,
    /// SQLite: if a server has the file open, open it alongside that server.
    pub alongside_server: bool,
    /// Names for numbers in statements: with `("running", 4)`, `{running}` expands to 4.
    pub constants: &'static [(&'static str, i64)],
}

impl Settings {
    fn postgres_dialect(self) -> Dialect {
        Dialect::Postgres {
            skip_locked: !self.no_skip_locked,
        }
    }
}

/// How a commit group begins on Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At once, with an advisory lock: the exclusive groups of several servers run one after another.
    Exclusive,
    /// At once. Other groups run at the same time.
    Shared,
    /// With the first write that needs a transaction, because no other server is known. If another one has changed the
    /// cached data or a job that is written, that is a conflict.
    Late,
}

/// The shared state that a commit group reads when it begins, if several servers can share the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedState {
    /// Changes whenever data that servers cache changes.
    pub revision: i64,
    /// The database's clock, in microseconds since 1970.
    pub now: i64,
    /// Number of the last event.
    pub last_event: i64,
}

/// The description of the token that a server creates at its first start. A database that holds only this token counts
/// as empty.
pub const FIRST_TOKEN: &str = "made at the first start";

/// How long to wait for a database file that another process has locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The version of the last successful migration.
const VERSION: &str = "SELECT max(version) FROM _sqlx_migrations WHERE success";

/// An open database.
pub struct Store {
    pub readers: Readers,
    pub connection: Connection,
    /// The folder of a temporary database (`sqlite::memory:`), removed with the store.
    pub scratch: Option<tempfile::TempDir>,
    /// The server that has the file open, if this store was opened alongside it.
    pub server: Option<FileOwner>,
}

impl Store {
    /// Opens the database at `address` and runs pending migrations. The address is `sqlite://FILE`, which is created if
    /// it does not exist; `sqlite::memory:`, a temporary file that is removed with the store; or
    /// `postgres://USER@HOST/DATABASE`, which must exist.
    pub async fn open(address: &str, settings: Settings) -> Result<Store, StoreError> {
        dialect::define(settings.constants);
        if address::is_postgres(address) {
            let mut connection = postgres::Connection::open(address, settings).await?;
            connection.migrate().await?;
            return Ok(Store {
                readers: Readers::Postgres(postgres::Readers::open(address, settings).await?),
                connection: Connection::Postgres(Box::new(connection)),
                scratch: None,
                server: None,
            });
        }
        let (path, scratch) = sqlite::locate(address)?;
        let is_scratch = scratch.is_some();
        let (connection, server) = match Store::open_file(&path, settings, is_scratch).await {
            // After a stop on a full disk, the reserve provides the space to start.
            Err(error) if error.is_disk_full() && Reserve::remove_left_over(&path) => {
                Store::open_file(&path, settings, is_scratch).await?
            }
            opened => opened?,
        };
        Ok(Store {
            readers: Readers::Sqlite(sqlite::Readers::open(&path, connection.log_gate()).await?),
            connection: Connection::Sqlite(Box::new(connection)),
            scratch,
            server,
        })
    }

    async fn open_file(
        path: &Path,
        settings: Settings,
        is_scratch: bool,
    ) -> Result<(sqlite::Connection, Option<FileOwner>), StoreError> {
        let (mut connection, server) = if settings.alongside_server {
            file::open_or_join(path).await?
        } else {
            let connection = file::open_exclusive(path, settings.durability, is_scratch).await?;
            (connection, None)
        };
        if server.is_none() {
            connection.migrate().await?;
        }
        if !settings.alongside_server && !is_scratch {
            connection.allocate_reserve()?;
        }
        Ok((connection, server))
    }
}

/// The connection that writes. Its calls block the thread on SQLite.
pub enum Connection {
    Sqlite(Box<sqlite::Connection>),
    Postgres(Box<postgres::Connection>),
}

impl Connection {
    /// Begins a commit group. Returns the shared state if other servers can have changed it.
    pub async fn begin(&mut self, begin: Begin) -> Result<Option<SharedState>, StoreError> {
        match self {
            Connection::Sqlite(connection) => {
                connection.begin();
                Ok(None)
            }
            Connection::Postgres(connection) => connection.begin(begin).await.map(Some),
        }
    }

    /// Runs read-only statements, before the group's first write.
    pub async fn read(
        &mut self,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.read(&batch),
            Connection::Postgres(connection) => connection.read(batch).await,
        }
    }

    /// Runs the statements in the group's transaction. Returns one result per statement.
    pub async fn run(&mut self, batch: Vec<Statement>) -> Result<Vec<StatementResult>, StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.run(&batch),
            Connection::Postgres(connection) => connection.run(batch).await,
        }
    }

    /// Runs the statements and commits. When this returns, the writes have the durability that the database was opened
    /// with.
    pub async fn commit_with(&mut self, batch: Vec<Statement>) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.commit_with(&batch).map(drop),
            Connection::Postgres(connection) => connection.commit_with(batch).await,
        }
    }

    /// Whether the connection was opened again since the last call. Another database server may have taken over, without
    /// the last commits of the previous one.
    pub fn take_reopened(&mut self) -> bool {
        match self {
            Connection::Sqlite(_) => false,
            Connection::Postgres(connection) => connection.take_reopened(),
        }
    }

    /// Rolls back the group's transaction, if one is open.
    pub async fn roll_back(&mut self) {
        match self {
            Connection::Sqlite(connection) => connection.roll_back(),
            Connection::Postgres(connection) => connection.roll_back().await,
        }
    }

    /// Shortens the time limits of statements, to find the one that made a group slow, or restores them. SQLite has
    /// none.
    pub fn search_slow_statement(&mut self, search: bool) {
        if let Connection::Postgres(connection) = self {
            connection.search_slow_statement(search);
        }
    }

    /// Whether the disk is full, so that no jobs can be added.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Connection::Sqlite(connection) => connection.is_disk_full(),
            Connection::Postgres(connection) => connection.is_disk_full(),
        }
    }

    /// Releases the disk reserve after a group found the disk full. False if that cannot help the group.
    pub async fn release_reserve(&mut self) -> bool {
        match self {
            Connection::Sqlite(connection) => connection.release_reserve(),
            Connection::Postgres(connection) => connection.release_reserve().await,
        }
    }

    /// Checks whether a full disk has space again, at most once a second.
    pub async fn restore_reserve_if_possible(&mut self) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.restore_reserve_if_possible(),
            Connection::Postgres(connection) => connection.restore_reserve_if_possible().await,
        }
    }

    /// Whether calls block their thread.
    pub fn blocks(&self) -> bool {
        matches!(self, Connection::Sqlite(_))
    }

    pub async fn close(self) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.close(),
            Connection::Postgres(connection) => connection.close().await,
        }
    }
}
