//! The source or target of a copy, with one connection.

use std::fs::File;
use std::path::Path;
use std::str::FromStr;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{Arguments, AssertSqlSafe, ConnectOptions, Connection as _, Encode, Type};

use super::tables::{Kind, TABLES, Table};
use super::value::{Batch, Value};
use crate::store::address::{connect_once, postgres_options};
use crate::store::{BUSY_TIMEOUT, Row, StoreError, file, migrations};

/// Rows that SQLite's thread reads ahead. It is small because each row can be large.
const ROW_BUFFER: usize = 8;

/// Rows per `INSERT` into SQLite, where each value is a separate argument.
const SQLITE_ROWS: usize = 50;

/// One of the two databases.
pub enum CopyDatabase {
    Sqlite {
        inner: Box<SqliteConnection>,
        /// Locks the file against servers.
        _lock: File,
    },
    Postgres(Box<PgConnection>),
}

impl CopyDatabase {
    /// Connects to an SQLite file. With `create`, creates the file if it does not exist.
    ///
    /// # Errors
    /// If a server has the file open, or it cannot be opened.
    pub async fn sqlite(path: &Path, create: bool) -> Result<CopyDatabase, StoreError> {
        let lock = file::lock(path)?;
        if create {
            file::create(path)?;
        }
        let mut options = SqliteConnectOptions::from_str("sqlite:")?
            .filename(path)
            .create_if_missing(create)
            .foreign_keys(false)
            .pragma("temp_store", "memory")
            .busy_timeout(BUSY_TIMEOUT)
            .row_buffer_size(ROW_BUFFER)
            .disable_statement_logging();
        options = if create {
            options.journal_mode(SqliteJournalMode::Wal)
        } else {
            options.pragma("query_only", "true")
        };
        Ok(CopyDatabase::Sqlite {
            inner: Box::new(options.connect().await?),
            _lock: lock,
        })
    }

    /// Connects to a PostgreSQL database.
    ///
    /// # Errors
    /// If the address is invalid or the database cannot be reached.
    pub async fn postgres(address: &str) -> Result<CopyDatabase, StoreError> {
        let options = postgres_options(address)?
            .application_name("switchyard copy")
            // The transaction is idle while the other side is read.
            .options([("idle_in_transaction_session_timeout", "0")])
            .disable_statement_logging();
        Ok(CopyDatabase::Postgres(connect_once(&options).await?))
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self, CopyDatabase::Postgres(_))
    }

    /// The migrations of this version.
    pub fn migrations(&self) -> Migrator {
        match self {
            CopyDatabase::Sqlite { .. } => migrations::sqlite(),
            CopyDatabase::Postgres(_) => migrations::postgres(),
        }
    }

    /// Runs pending migrations.
    ///
    /// # Errors
    /// If one fails.
    pub async fn migrate(&mut self) -> Result<(), StoreError> {
        let migrations = self.migrations();
        match self {
            CopyDatabase::Sqlite { inner, .. } => migrations.run(&mut **inner).await?,
            CopyDatabase::Postgres(inner) => migrations.run(&mut **inner).await?,
        }
        Ok(())
    }

    /// Runs statements without arguments and without rows.
    ///
    /// # Errors
    /// If one fails.
    pub async fn run(&mut self, sql: &str) -> Result<(), StoreError> {
        // Safe: every text is put together from literals of this program.
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            CopyDatabase::Sqlite { inner, .. } => sql.execute(&mut **inner).await.map(|_| ())?,
            CopyDatabase::Postgres(inner) => sql.execute(&mut **inner).await.map(|_| ())?,
        }
        Ok(())
    }

    /// Streams the rows of a statement.
    fn stream(
        &mut self,
        sql: String,
        args: Vec<Value>,
    ) -> Result<BoxStream<'_, Result<Row, StoreError>>, StoreError> {
        // Safe: the text is put together from literals of this program, and every value is bound.
        let sql = AssertSqlSafe(sql);
        Ok(match self {
            CopyDatabase::Sqlite { inner, .. } => {
                let rows =
                    sqlx::query_with(sql, arguments::<SqliteArguments>(args)?).fetch(&mut **inner);
                rows.map_ok(Row::Sqlite).map_err(StoreError::from).boxed()
            }
            CopyDatabase::Postgres(inner) => {
                let rows =
                    sqlx::query_with(sql, arguments::<PgArguments>(args)?).fetch(&mut **inner);
                rows.map_ok(Row::Postgres).map_err(StoreError::from).boxed()
            }
        })
    }

    /// All rows of a statement that returns only a few.
    ///
    /// # Errors
    /// If it fails.
    pub async fn rows(&mut self, sql: impl Into<String>) -> Result<Vec<Row>, StoreError> {
        self.stream(sql.into(), Vec::new())?.try_collect().await
    }

    /// Runs a statement with arguments.
    ///
    /// # Errors
    /// If it fails.
    pub async fn execute(&mut self, sql: &str, args: Vec<Value>) -> Result<(), StoreError> {
        let rows = self.stream(sql.to_owned(), args)?;
        rows.try_for_each(|_| async { Ok(()) }).await
    }

    /// Streams one page of the table in the order of its primary key, starting after the key `after`. The last page has
    /// fewer than [`CopyDatabase::PAGE`] rows.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn page(
        &mut self,
        table: &Table,
        after: Option<Vec<Value>>,
    ) -> Result<BoxStream<'_, Result<Row, StoreError>>, StoreError> {
        let (name, columns, key) = (table.name, table.columns(), table.key());
        let beyond = match &after {
            None => String::new(),
            Some(after) => format!("WHERE ({key}) > ({})", placeholders(1, after.len())),
        };
        let sql = format!(
            "SELECT {columns} FROM {name} {beyond} ORDER BY {key} LIMIT {}",
            CopyDatabase::PAGE
        );
        self.stream(sql, after.unwrap_or_default())
    }

    /// Rows per query. They are streamed one by one.
    pub const PAGE: usize = 10_000;

    /// Writes the rows.
    ///
    /// # Errors
    /// If they cannot be written.
    pub async fn insert(&mut self, table: &Table, batch: Batch) -> Result<(), StoreError> {
        match self {
            CopyDatabase::Sqlite { inner, .. } => insert_into_sqlite(inner, table, batch).await,
            CopyDatabase::Postgres(inner) => insert_into_postgres(inner, table, batch).await,
        }
    }

    /// The copied tables that exist.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn tables(&mut self) -> Result<Vec<&'static Table>, StoreError> {
        let sql = match self {
            CopyDatabase::Sqlite { .. } => SQLITE_TABLES,
            CopyDatabase::Postgres(_) => POSTGRES_TABLES,
        };
        let rows = self.rows(sql).await?;
        let names: Vec<String> = rows
            .iter()
            .map(|row| row.text(0))
            .collect::<Result<_, _>>()?;
        let exists = |table: &&Table| names.iter().any(|name| name == table.name);
        Ok(TABLES.iter().filter(exists).collect())
    }

    /// Whether a server uses the database, according to its last registration.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn has_servers(&mut self) -> Result<bool, StoreError> {
        match self {
            // The lock excludes servers.
            CopyDatabase::Sqlite { .. } => Ok(false),
            CopyDatabase::Postgres(_) => Ok(!self.rows(LIVE_SERVERS).await?.is_empty()),
        }
    }

    /// Closes the connection. Rolls back an open transaction.
    ///
    /// # Errors
    /// If the database cannot be closed.
    pub async fn close(self) -> Result<(), StoreError> {
        match self {
            CopyDatabase::Sqlite { inner, .. } => Ok(inner.close().await?),
            CopyDatabase::Postgres(inner) => Ok(inner.close().await?),
        }
    }
}

async fn insert_into_sqlite(
    inner: &mut SqliteConnection,
    table: &Table,
    batch: Batch,
) -> Result<(), StoreError> {
    let (name, columns, width) = (table.name, table.columns(), table.columns.len());
    let mut rows = batch.rows.into_iter();
    loop {
        let part: Vec<_> = rows.by_ref().take(SQLITE_ROWS).collect();
        if part.is_empty() {
            return Ok(());
        }
        let lines = (0..part.len()).map(|i| format!("({})", placeholders(i * width + 1, width)));
        let lines = lines.collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO {name} ({columns}) VALUES {lines}");
        let whole = part.len() == SQLITE_ROWS;
        let arguments: SqliteArguments = arguments(part.into_iter().flatten().collect())?;
        // Safe: the text is put together from literals of this program, and every value is bound.
        sqlx::query_with(AssertSqlSafe(sql), arguments)
            .persistent(whole)
            .execute(&mut *inner)
            .await?;
    }
}

async fn insert_into_postgres(
    inner: &mut PgConnection,
    table: &Table,
    batch: Batch,
) -> Result<(), StoreError> {
    if batch.rows.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<_> = batch.rows.into_iter().map(Vec::into_iter).collect();
    let mut arguments = PgArguments::default();
    let mut sets = Vec::with_capacity(table.columns.len());
    for (i, (_, kind)) in table.columns.iter().enumerate() {
        let column = rows.iter_mut().filter_map(Iterator::next);
        let (set, added) = match kind {
            Kind::Int => (
                "bigint",
                arguments.add(column.map(Value::into_int).collect::<Vec<_>>()),
            ),
            Kind::Real => (
                "double precision",
                arguments.add(column.map(Value::into_real).collect::<Vec<_>>()),
            ),
            Kind::Text => (
                "text",
                arguments.add(column.map(Value::into_text).collect::<Vec<_>>()),
            ),
        };
        added.map_err(sqlx::Error::Encode)?;
        sets.push(format!("${}::{set}[]", i + 1));
    }
    let (name, columns, sets) = (table.name, table.columns(), sets.join(", "));
    let sql = format!("INSERT INTO {name} ({columns}) SELECT * FROM unnest({sets})");
    // Safe: the text is put together from literals of this program, and every value is bound.
    let insert = sqlx::query_with(AssertSqlSafe(sql), arguments);
    insert.execute(&mut *inner).await?;
    Ok(())
}

/// The values as the arguments of a statement.
fn arguments<A: Arguments>(values: Vec<Value>) -> Result<A, StoreError>
where
    Option<i64>: for<'a> Encode<'a, A::Database> + Type<A::Database>,
    i64: for<'a> Encode<'a, A::Database> + Type<A::Database>,
    f64: for<'a> Encode<'a, A::Database> + Type<A::Database>,
    String: for<'a> Encode<'a, A::Database> + Type<A::Database>,
{
    let mut arguments = A::default();
    for value in values {
        let added = match value {
            Value::Null => arguments.add(None::<i64>),
            Value::Int(value) => arguments.add(value),
            Value::Real(value) => arguments.add(value),
            Value::Text(value) => arguments.add(value),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// `count` placeholders, numbered from `first`.
fn placeholders(first: usize, count: usize) -> String {
    let placeholders = (first..first + count).map(|i| format!("${i}"));
    placeholders.collect::<Vec<_>>().join(", ")
}

const SQLITE_TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'";

const POSTGRES_TABLES: &str = "
SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema()";

const LIVE_SERVERS: &str = "
SELECT number FROM servers WHERE until > CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) LIMIT 1";
