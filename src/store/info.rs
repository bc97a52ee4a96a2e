//! Facts about the database, for the dashboard.

use super::{Readers, Statement, StoreError};

/// Kind, version and size of a database.
#[derive(Clone, Debug)]
pub struct DatabaseInfo {
    /// `SQLite` or `PostgreSQL`.
    pub kind: &'static str,
    pub version: String,
    pub bytes: i64,
    /// Version of the last migration.
    pub migration: i64,
    /// Number of servers that use the database.
    pub servers: i64,
    /// Size of SQLite's write-ahead log; `None` for PostgreSQL.
    pub log_bytes: Option<u64>,
}

/// The use of the connections that read.
#[derive(Clone, Copy, Debug)]
pub struct ReaderUse {
    /// Connections that run a statement.
    pub busy: usize,
    pub idle: usize,
    /// Maximum number of connections.
    pub max: u32,
}

impl Readers {
    /// Reads the facts. `now` is in microseconds since 1970.
    pub async fn database_info(&self, now: i64) -> Result<DatabaseInfo, StoreError> {
        let (kind, sql) = match self {
            Readers::Sqlite(_) => ("SQLite", OF_SQLITE),
            Readers::Postgres(_) => ("PostgreSQL", OF_POSTGRES),
        };
        let rows = self.rows(Statement::new(sql, [now.into()])).await?;
        let row = rows.first().ok_or(StoreError::Corrupt("no answer"))?;
        Ok(DatabaseInfo {
            kind,
            version: row.text(0)?,
            bytes: row.int(1)?,
            migration: row.int(2)?,
            servers: row.int(3)?.max(1),
            log_bytes: match self {
                Readers::Sqlite(readers) => Some(readers.log_bytes().await),
                Readers::Postgres(_) => None,
            },
        })
    }

    /// The use of the connections at this moment.
    pub fn usage(&self) -> ReaderUse {
        let (open, idle, max) = match self {
            Readers::Sqlite(readers) => readers.usage(),
            Readers::Postgres(readers) => readers.usage(),
        };
        ReaderUse {
            busy: usize::try_from(open)
                .unwrap_or_default()
                .saturating_sub(idle),
            idle,
            max,
        }
    }
}

const OF_SQLITE: &str = "
SELECT sqlite_version(),
       (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size),
       (SELECT max(version) FROM _sqlx_migrations WHERE success),
       (SELECT count(*) FROM servers WHERE until > $1)";

const OF_POSTGRES: &str = "
SELECT current_setting('server_version'),
       pg_database_size(current_database()),
       (SELECT max(version) FROM _sqlx_migrations WHERE success),
       (SELECT count(*) FROM servers WHERE until > $1)";
