//! Errors of the database, and what they mean for a commit group.

use std::borrow::Cow;

use sqlx::migrate::MigrateError;

/// Errors of the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{0}")]
    Database(#[from] sqlx::Error),
    /// An error of SQLite's writing connection.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("migration failed: {0}")]
    Migration(MigrateError),
    /// The version of a migration that this program does not have.
    #[error(
        "its schema is version {0}, from a newer program; use that version of Switchyard or a newer one"
    )]
    Newer(i64),
    /// Another server changed a row after this group read it and before it wrote it. The group is run again.
    #[error("a row was changed by another server")]
    Conflict,
    #[error(
        "\"{0}\" is not a database URL; expected sqlite://FILE, sqlite::memory: or postgres://USER@HOST/DATABASE"
    )]
    Address(String),
    #[error("another server has this database open")]
    InUse,
    #[error(
        "a server with another version of Switchyard has this database open, or a server is still starting"
    )]
    OtherVersion,
    #[error("the database does not respond")]
    Timeout,
    /// The statements of one call of `Connection::run`, or of a read with a time limit, together took too long.
    #[error("the statements of a transaction took too long")]
    Slow,
    /// The commit was sent, but its outcome is unknown.
    #[error("the database did not confirm the commit")]
    InDoubt,
    #[error(
        "the database schema is out of date; start a server once with a direct connection (no pooler) and without \
         statement-cache-capacity=0"
    )]
    SchemaOutdatedBehindPooler,
    #[error("the writer has stopped")]
    Stopped,
    /// The request adds jobs, but the disk is full.
    #[error("the disk is full")]
    Full,
    /// A verb panicked; its group was rolled back.
    #[error("internal error")]
    Panicked,
    #[error("corrupt row: {0}")]
    Corrupt(&'static str),
    /// The requests of a group together exceed the memory or time of a transaction. They are run again in smaller
    /// groups.
    #[error("the transaction is too large")]
    TransactionTooLarge,
    /// Too many requests are queued that were too large together with others, or a read waited too long for a
    /// connection. Nothing was changed.
    #[error("too many requests are queued; try again")]
    Busy,
    /// The rows of a read have grown much since they were measured ([`Statement::measured`]). Nothing was changed.
    ///
    /// [`Statement::measured`]: crate::store::Statement::measured
    #[error("the rows have changed; try again")]
    Grown,
    /// Written data may not be on the disk, so the server must stop.
    #[error("{0}")]
    Lost(&'static str),
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> StoreError {
        match error {
            MigrateError::VersionMissing(version) => StoreError::Newer(version),
            error => StoreError::Migration(error),
        }
    }
}

impl StoreError {
    /// Whether the group can succeed if it is run again immediately.
    pub fn is_conflict(&self) -> bool {
        match self {
            StoreError::Conflict => true,
            // Serialization failure, deadlock, lock timeout, and unique violation (two servers created the same row at
            // once).
            _ => self.has_code(&["40001", "40P01", "55P03", "23505"]),
        }
    }

    /// Whether a single request may have caused the error, so that the other requests can succeed without it: a value
    /// that the database cannot store, a corrupt row, a panic. False if the database or the disk is at fault, because
    /// then the next group would fail too.
    pub fn may_be_caused_by_one_request(&self) -> bool {
        match self {
            StoreError::Conflict
            | StoreError::Corrupt(_)
            | StoreError::Panicked
            | StoreError::TransactionTooLarge => true,
            StoreError::Database(
                sqlx::Error::Encode(_) | sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. },
            ) => true,
            StoreError::Database(sqlx::Error::Database(_)) | StoreError::Sqlite(_) => {
                !self.code().is_some_and(|code| is_system_error(&code))
            }
            _ => false,
        }
    }

    /// Whether the server must stop, because what it has written may not be on the disk. After a failed `fsync`, Linux
    /// drops the data and reports the next `fsync` as successful, so a second attempt proves nothing.
    pub fn is_fatal(&self) -> bool {
        // SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC.
        matches!(self, StoreError::Lost(_)) || self.has_code(&["1034", "1290"])
    }

    /// Whether a statement was ended because it took too long, although the database responds.
    pub fn is_slow(&self) -> bool {
        matches!(self, StoreError::Slow) || self.has_code(&["57014"])
    }

    /// Whether a long read was ended because it took too long. On Postgres, the time limit of the server and that of the
    /// database are the same.
    pub fn is_too_slow(&self) -> bool {
        self.is_slow() || matches!(self, StoreError::Timeout)
    }

    /// Whether the disk is full.
    pub fn is_disk_full(&self) -> bool {
        match self {
            StoreError::Full => true,
            // SQLite reports SQLITE_FULL (13) for ENOSPC only. An exceeded quota is a failed write (778); a full tmpfs
            // can also be shared memory that cannot grow (4874).
            _ => self.has_code(&["13", "778", "4874", "53100"]),
        }
    }

    /// Whether a text is too long for an index. Postgres indexes at most 2,704 bytes after compression.
    pub fn is_too_long(&self) -> bool {
        self.has_code(&["54000"])
    }

    /// Whether the database is unreachable, so that a later retry can succeed.
    pub fn is_outage(&self) -> bool {
        match self {
            StoreError::Timeout | StoreError::InDoubt | StoreError::Stopped => true,
            StoreError::Database(sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) => true,
            // SQLITE_INTERRUPT: the connection is being closed, or the log is too long. The others are those of a
            // connection that Postgres refuses: its password, its user or its database.
            error => {
                error.is_lost_connection() || error.has_code(&["9", "28P01", "28000", "3D000"])
            }
        }
    }

    /// Whether this connection was lost, although the database may be available.
    pub fn is_lost_connection(&self) -> bool {
        match self {
            StoreError::Database(
                sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed,
            ) => true,
            // Shutdown, crash, starting up, idle session timeout; too many connections; idle in transaction timeout;
            // read-only (a standby); connection exceptions.
            _ => self.has_code(&[
                "57P01", "57P02", "57P03", "57P05", "53300", "25P03", "25006", "08000", "08003",
                "08006",
            ]),
        }
    }

    /// Whether the database has sent this error.
    pub(super) fn is_from_database(&self) -> bool {
        matches!(self, StoreError::Database(sqlx::Error::Database(_)))
    }

    /// Whether the error is of the class of connection exceptions.
    pub(super) fn is_connection(&self) -> bool {
        self.code().is_some_and(|code| code.starts_with("08"))
    }

    /// The database's code: five characters of Postgres, or the extended result code of SQLite, a number that is
    /// shorter.
    fn code(&self) -> Option<Cow<'_, str>> {
        match self {
            StoreError::Database(error) => error.as_database_error()?.code(),
            StoreError::Sqlite(error) => {
                Some(error.sqlite_error()?.extended_code.to_string().into())
            }
            _ => None,
        }
    }

    pub(super) fn has_code(&self, codes: &[&str]) -> bool {
        self.code()
            .is_some_and(|code| codes.contains(&code.as_ref()))
    }
}

/// Whether an error code concerns the database as a whole and not a statement.
fn is_system_error(code: &str) -> bool {
    /// Busy, locked, out of memory, read-only, interrupted, I/O, corrupt, full, cannot open, not a database.
    const SQLITE: [i64; 10] = [5, 6, 7, 8, 9, 10, 11, 13, 14, 26];
    /// Classes: connection, authorization, name of the database, resources, operator intervention, system, internal.
    const POSTGRES: [&str; 7] = ["08", "28", "3D", "53", "57", "58", "XX"];
    match code.parse::<i64>() {
        // The low byte of an extended SQLite code is its primary code.
        Ok(number) if code.len() < 5 => SQLITE.contains(&(number & 0xff)),
        _ => POSTGRES.iter().any(|class| code.starts_with(class)),
    }
}
