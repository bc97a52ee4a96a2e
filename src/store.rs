//! The database: transactions, group commit and readers. It knows no job logic, and it is the only room
//! that names a database driver.
//!
//! A write is a *step* of a group: [`Writer::submit`] hands it to the one writer, which takes whatever
//! is queued, runs it in one transaction and answers every step after the commit (`store/group.rs`).
//! What is different about SQLite and Postgres is in the files of those names, and in `store/dialect.rs`.

mod about;
mod address;
mod bound;
mod copy;
mod dialect;
mod file;
mod flat;
mod group;
mod migrations;
mod pooled;
mod postgres;
mod reserve;
mod rows;
mod sqlite;

use std::path::Path;
use std::time::Duration;

pub use about::DatabaseInfo;
pub use address::shown;
pub use bound::ROWS_BOUND_MAX;
pub use copy::{Copied, CopyError, Progress, copy};
use dialect::Dialect;
pub use file::Host;
pub use group::{Group, Writer};
pub use postgres::Listener;
use reserve::Reserve;
pub use rows::{Answer, Arg, Row, Statement};

/// How the database may fail.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{0}")]
    Database(#[from] sqlx::Error),
    #[error("migration failed: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// Somebody else changed a row between our reading and our writing of it. The group is run again.
    #[error("a row was changed by another server")]
    Conflict,
    #[error(
        "\"{0}\" is not a database address; expected sqlite://FILE, sqlite::memory: or postgres://USER@HOST/DATABASE"
    )]
    Address(String),
    #[error("another server has this database open")]
    InUse,
    #[error(
        "a server with another version of Switchyard has this database open, or a server is still starting"
    )]
    OtherVersion,
    #[error("the database does not respond")]
    Slow,
    /// The commit was sent, and its answer never came.
    #[error("the database did not confirm the commit")]
    InDoubt,
    #[error(
        "the database schema is out of date; start a server once with a direct connection (no pooler) and without \
         statement-cache-capacity=0"
    )]
    Pooled,
    #[error("the writer has stopped")]
    Stopped,
    /// The step adds jobs, for which the disk has no space.
    #[error("the disk is full")]
    Full,
    /// A verb panicked; nothing of its group was written.
    #[error("internal error")]
    Panicked,
    #[error("corrupt row: {0}")]
    Corrupt(&'static str),
    /// The steps of a group need more memory or time together than a transaction has. Each is run with fewer others.
    #[error("the transaction is too large")]
    Oversized,
}

impl StoreError {
    /// Whether the group may succeed if it is run again at once.
    pub fn is_conflict(&self) -> bool {
        match self {
            StoreError::Conflict => true,
            // Serialisation failure, deadlock; and two servers that made the same thing at once.
            StoreError::Database(error) => has_code(error, &["40001", "40P01", "23505"]),
            _ => false,
        }
    }

    /// Whether one step of a group may be the cause, so that the others may succeed without it: a value that the
    /// database does not hold, a row that is not as it should be, a panic. Not where the database or the disk is at
    /// fault, so that the next group would fail too.
    pub fn concerns_a_step(&self) -> bool {
        match self {
            StoreError::Conflict
            | StoreError::Corrupt(_)
            | StoreError::Panicked
            | StoreError::Oversized => true,
            StoreError::Database(error) => match error {
                sqlx::Error::Database(error) => !error.code().is_some_and(|code| is_systems(&code)),
                sqlx::Error::Encode(_)
                | sqlx::Error::Decode(_)
                | sqlx::Error::ColumnDecode { .. } => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the database could not write for want of disk space.
    pub fn is_full(&self) -> bool {
        match self {
            StoreError::Full => true,
            // SQLite says "full" for ENOSPC only. A quota shows as a failed write, a full tmpfs also as memory shared
            // among connections that cannot grow.
            StoreError::Database(error) => has_code(error, &["13", "778", "4874", "53100"]),
            _ => false,
        }
    }

    /// Whether a text is too long for one of the database's indexes. Postgres indexes 2,704 bytes, after compression.
    pub fn is_too_long(&self) -> bool {
        matches!(self, StoreError::Database(error) if has_code(error, &["54000"]))
    }

    /// Whether the database cannot be reached now, so that asking later makes sense.
    pub fn is_outage(&self) -> bool {
        match self {
            StoreError::Slow | StoreError::InDoubt | StoreError::Stopped => true,
            StoreError::Database(sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) => true,
            error => error.is_lost_connection(),
        }
    }

    /// Whether the connection was lost, though the database may be there.
    pub fn is_lost_connection(&self) -> bool {
        match self {
            StoreError::Database(
                sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed,
            ) => true,
            // Shut down, crashed, starting, no room for more, idle for too long, standby now.
            StoreError::Database(error) => has_code(
                error,
                &[
                    "57P01", "57P02", "57P03", "57P05", "53300", "25P03", "25006", "08000",
                    "08003", "08006",
                ],
            ),
            _ => false,
        }
    }
}

/// Whether an error code tells that something is wrong with the database as a whole.
fn is_systems(code: &str) -> bool {
    /// Busy, locked, out of memory, read-only, interrupted, I/O, corrupt, full, cannot open, no database.
    const SQLITE: [i64; 10] = [5, 6, 7, 8, 9, 10, 11, 13, 14, 26];
    /// Connection, resources, intervention, system, internal.
    const POSTGRES: [&str; 5] = ["08", "53", "57", "58", "XX"];
    match code.parse::<i64>() {
        // The low byte is what an extended code extends.
        Ok(number) if code.len() < 5 => SQLITE.contains(&(number & 0xff)),
        _ => POSTGRES.iter().any(|class| code.starts_with(class)),
    }
}

fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    let error = error.as_database_error();
    // SQLite has codes of its own, which are shorter.
    error
        .and_then(sqlx::error::DatabaseError::code)
        .is_some_and(|code| codes.contains(&code.as_ref()))
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// Loss of power: each commit waits for the disk.
    #[default]
    Full,
    /// The end of the process, `kill -9` included; a loss of power can lose the most recent writes.
    Process,
}

/// How a database is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    pub durability: Durability,
    /// Postgres: do not ask for rows to be passed over that others have locked.
    pub no_skip_locked: bool,
    /// SQLite: if a server has the file open, open it beside that one, for a moment.
    pub beside: bool,
}

impl Settings {
    fn dialect(self) -> Dialect {
        Dialect::Postgres {
            skip_locked: !self.no_skip_locked,
        }
    }
}

/// What a group learns when it begins, where several servers may share the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// Changes with everything that servers keep in memory.
    pub revision: i64,
    /// The database's clock, in microseconds since 1970.
    pub now: i64,
    /// The number of the last event.
    pub last_event: i64,
}

/// The description of the token that a server makes at its first start. In a database that holds nothing else it
/// does not count as something.
pub const FIRST_TOKEN: &str = "made at the first start";

/// How long one server waits for the database file that another process has locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How far the tables are.
const VERSION: &str = "SELECT max(version) FROM _sqlx_migrations WHERE success";

/// An open database.
pub struct Store {
    pub readers: Readers,
    pub connection: Connection,
    /// A database in memory is a file in a folder of its own, removed with the store.
    pub scratch: Option<tempfile::TempDir>,
    /// The server beside which it was opened, if it was.
    pub host: Option<Host>,
}

impl Store {
    /// Opens (and, if it is new, makes) the database at `address` and brings its tables up to date.
    /// `sqlite://FILE`; `sqlite::memory:`, which is a temporary file, gone when the store is closed; or
    /// `postgres://USER@HOST/DATABASE`, which must be there.
    pub async fn open(address: &str, settings: Settings) -> Result<Store, StoreError> {
        if ["postgres:", "postgresql:"]
            .iter()
            .any(|it| address.starts_with(it))
        {
            let mut connection = postgres::Connection::open(address, settings).await?;
            connection.migrate().await?;
            return Ok(Store {
                readers: Readers::Postgres(postgres::Readers::open(address, settings).await?),
                connection: Connection::Postgres(Box::new(connection)),
                scratch: None,
                host: None,
            });
        }
        let (path, scratch) = sqlite::locate(address)?;
        let is_scratch = scratch.is_some();
        let (connection, host) = match Store::open_file(&path, settings, is_scratch).await {
            // A server that was stopped on a full disk starts in the space that it has set aside.
            Err(error) if error.is_full() && Reserve::give_up(&path) => {
                Store::open_file(&path, settings, is_scratch).await?
            }
            opened => opened?,
        };
        Ok(Store {
            readers: Readers::Sqlite(sqlite::Readers::open(&path).await?),
            connection: Connection::Sqlite(connection),
            scratch,
            host,
        })
    }

    async fn open_file(
        path: &Path,
        settings: Settings,
        is_scratch: bool,
    ) -> Result<(sqlite::Connection, Option<Host>), StoreError> {
        let (mut connection, host) = if settings.beside {
            file::open_or_join(path).await?
        } else {
            let connection = file::open_alone(path, settings.durability, is_scratch).await?;
            (connection, None)
        };
        if host.is_none() {
            connection.migrate().await?;
        }
        if !settings.beside && !is_scratch {
            connection.reserve(path).await?;
        }
        Ok((connection, host))
    }
}

/// The connection that writes.
pub enum Connection {
    Sqlite(sqlite::Connection),
    Postgres(Box<postgres::Connection>),
}

impl Connection {
    /// Begins a group. Tells how the database stands, if other servers may have changed it. Strict groups of
    /// several servers come one after the other.
    pub async fn begin(&mut self, strict: bool) -> Result<Option<Fresh>, StoreError> {
        match self {
            Connection::Sqlite(_) => Ok(None),
            Connection::Postgres(connection) => connection.begin(strict).await.map(Some),
        }
    }

    /// Runs statements that only read, before anything is written.
    pub async fn read(&mut self, batch: Vec<Statement>) -> Result<Vec<Answer>, StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.read(batch).await,
            Connection::Postgres(connection) => connection.run(batch).await,
        }
    }

    /// Runs the statements in the group's transaction. One answer a statement.
    pub async fn run(&mut self, batch: Vec<Statement>) -> Result<Vec<Answer>, StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.run(batch).await,
            Connection::Postgres(connection) => connection.run(batch).await,
        }
    }

    /// Runs the statements and commits. When this returns, what was written is as durable as the
    /// database was opened for.
    pub async fn commit_with(&mut self, batch: Vec<Statement>) -> Result<Vec<Answer>, StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.commit_with(batch).await,
            Connection::Postgres(connection) => connection.commit_with(batch).await,
        }
    }

    /// Undoes what the group has written, if anything.
    pub async fn roll_back(&mut self) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.roll_back().await,
            Connection::Postgres(connection) => {
                connection.roll_back().await;
                Ok(())
            }
        }
    }

    /// Whether the disk is full, so that nothing is to be added.
    pub fn is_full(&self) -> bool {
        match self {
            Connection::Sqlite(connection) => connection.is_full(),
            Connection::Postgres(connection) => connection.is_full(),
        }
    }

    /// After a group has found the disk full: frees the space that was set aside. False if that was done before.
    pub async fn make_room(&mut self) -> bool {
        match self {
            Connection::Sqlite(connection) => connection.make_room().await,
            Connection::Postgres(connection) => connection.note_full(),
        }
    }

    /// Checks now and then whether a full disk has space again.
    pub async fn check_room(&mut self) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.check_room().await,
            Connection::Postgres(_) => Ok(()),
        }
    }

    pub async fn close(self) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.close().await,
            Connection::Postgres(connection) => connection.close().await,
        }
    }
}

/// The connections that read. They see what has been committed, and never wait for the writer.
#[derive(Clone)]
pub enum Readers {
    Sqlite(sqlite::Readers),
    Postgres(postgres::Readers),
}

impl Readers {
    /// Runs the statements on one snapshot of the database. One answer a statement.
    pub async fn read(&self, batch: Vec<Statement>) -> Result<Vec<Answer>, StoreError> {
        match self {
            Readers::Sqlite(readers) => readers.read(batch).await,
            Readers::Postgres(readers) => readers.read(batch).await,
        }
    }

    /// Runs one statement and gives its rows.
    pub async fn rows(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let answers = self.read(vec![statement]).await?;
        let first = answers.into_iter().next();
        Ok(first.map(|answer| answer.rows).unwrap_or_default())
    }

    /// How the database stands, if other servers may have changed it.
    pub async fn status(&self) -> Result<Option<Fresh>, StoreError> {
        match self {
            Readers::Sqlite(_) => Ok(None),
            Readers::Postgres(readers) => readers.status().await.map(Some),
        }
    }

    /// Says a word to all servers that listen.
    pub async fn notify(&self, word: &str) -> Result<(), StoreError> {
        match self {
            Readers::Sqlite(_) => Ok(()),
            Readers::Postgres(readers) => readers.notify(word).await,
        }
    }

    /// Hears what servers say. With SQLite nobody says anything.
    pub async fn listen(&self) -> Result<Listener, StoreError> {
        match self {
            Readers::Sqlite(_) => Err(StoreError::Stopped),
            Readers::Postgres(readers) => readers.listen().await,
        }
    }

    /// Whether other servers may use the same database.
    pub fn is_shared(&self) -> bool {
        matches!(self, Readers::Postgres(_))
    }

    pub async fn close(&self) {
        match self {
            Readers::Sqlite(readers) => readers.close().await,
            Readers::Postgres(readers) => readers.close().await,
        }
    }
}
