//! The connection that writes. There is only one, so its transactions need no row locks.
//!
//! It calls SQLite directly, in the thread that uses it: the switch to a thread of the driver and back, three times per
//! transaction, cost more than the statements. Its calls block, so the writer of a store has a thread of its own
//! (`store/group_commit.rs`).

use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rusqlite::OpenFlags;
use rusqlite::types::{Value, ValueRef};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection as _, Executor, Row as _};

use super::checkpoints::Checkpoints;
use super::files::Files;
use super::log_gate::LogGate;
use super::{PREPARED_BYTES_MAX, PREPARED_MAX, options};
use crate::store::file::{create, lock};
use crate::store::reserve::Reserve;
use crate::store::rows::{Arg, Row, Statement, StatementResult};
use crate::store::{BUSY_TIMEOUT, Durability, StoreError, VERSION, binding, migrations};
use crate::traces::{SQLITE, StatementSpan};

/// Pages of 4 KiB in the write-ahead log before a checkpoint.
const CHECKPOINT_PAGES: u32 = 2_000;
const PAGE_BYTES: u64 = 4_096;

/// Page cache, in KiB (SQLite expects a negative number for KiB).
const CACHE_KIB: &str = "-65536";

/// The unused bytes of the database file.
const FREE_BYTES: &str =
    "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size";

/// See the module.
pub struct Connection {
    inner: rusqlite::Connection,
    path: PathBuf,
    /// The value of `PRAGMA synchronous`.
    synchronous: &'static str,
    /// Whether a commit group has begun. Its transaction begins with its first statement.
    in_group: bool,
    /// Whether another process was writing when a transaction wanted to.
    was_busy: bool,
    /// The files that were opened; `None` for a temporary database.
    files: Option<Files>,
    /// The disk reserve; `None` for a temporary database, and with `Settings::alongside_server`.
    reserve: Option<Reserve>,
    /// `None` in the same cases: a commit then runs a checkpoint if the log is long.
    checkpoints: Option<Checkpoints>,
    gate: Arc<LogGate>,
    /// Held while the connection is open; `None` alongside a server, which holds it.
    _lock: Option<File>,
}

impl Connection {
    pub(in crate::store) fn open(
        path: &Path,
        durability: Durability,
        scratch: bool,
    ) -> Result<Connection, StoreError> {
        let lock = lock(path)?;
        create(path)?;
        let synchronous = match durability {
            _ if scratch => "OFF",
            Durability::Full => "FULL",
            Durability::Process => "NORMAL",
        };
        Connection::connect(path, synchronous, Some(lock))
    }

    /// A second connection that writes, alongside the server that has the file open. It is meant for one command and
    /// runs no migrations.
    pub(in crate::store) async fn open_alongside(path: &Path) -> Result<Connection, StoreError> {
        if !path.is_file() {
            return Err(StoreError::OtherVersion);
        }
        // Without `options`, because the server sets the properties of the file, such as WAL mode.
        let mut probe = SqliteConnectOptions::from_str("sqlite:")?
            .filename(path)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging()
            .connect()
            .await?;
        let found = probe.fetch_optional(VERSION).await;
        probe.close().await?;
        let found = match found {
            Ok(row) => row.map(|row| row.try_get(0)).transpose()?.flatten(),
            // The table does not exist yet.
            Err(_) => None,
        };
        if found != migrations::newest(&migrations::sqlite()) {
            return Err(StoreError::OtherVersion);
        }
        Connection::connect(path, "FULL", None)
    }

    fn connect(
        path: &Path,
        synchronous: &'static str,
        lock: Option<File>,
    ) -> Result<Connection, StoreError> {
        // A connection is used by one thread at a time, so SQLite needs no mutex for it.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let inner = rusqlite::Connection::open_with_flags(path, flags)?;
        inner.busy_timeout(BUSY_TIMEOUT)?;
        inner.pragma_update(None, "journal_mode", "WAL")?;
        inner.pragma_update(None, "synchronous", synchronous)?;
        inner.pragma_update(None, "foreign_keys", "OFF")?;
        // Otherwise every statement that can fail halfway creates a statement journal file.
        inner.pragma_update(None, "temp_store", "MEMORY")?;
        inner.pragma_update(None, "cache_size", CACHE_KIB)?;
        inner.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES.to_string())?;
        inner.set_prepared_statement_cache_capacity(PREPARED_MAX);
        Ok(Connection {
            inner,
            path: path.to_owned(),
            files: (synchronous != "OFF").then(|| Files::of(path)),
            synchronous,
            in_group: false,
            was_busy: false,
            reserve: None,
            checkpoints: None,
            gate: Arc::default(),
            _lock: lock,
        })
    }

    pub(in crate::store) async fn migrate(&mut self) -> Result<(), StoreError> {
        let options = options(&self.path)?.pragma("synchronous", self.synchronous);
        let mut migrating = options.connect().await?;
        let migrated = migrations::sqlite().run(&mut migrating).await;
        migrating.close().await?;
        Ok(migrated?)
    }

    /// Allocates the disk reserve next to the file, and starts the thread of the checkpoints. They begin when the log
    /// is a quarter of the reserve, or [`CHECKPOINT_PAGES`] if that is less, and the writer waits for them when it is
    /// five eighths, because a checkpoint needs as much space as the log, and the log grows as long as a checkpoint
    /// fails.
    pub(in crate::store) fn allocate_reserve(&mut self) -> Result<(), StoreError> {
        let reserve = Reserve::allocate(&self.path);
        let eighth = u32::try_from(reserve.bytes() / 8 / PAGE_BYTES).unwrap_or(u32::MAX);
        self.reserve = Some(reserve);
        let (start, max) = (eighth.saturating_mul(2), eighth.saturating_mul(5));
        let start = start.min(CHECKPOINT_PAGES);
        let gate = Arc::clone(&self.gate);
        let checkpoints = Checkpoints::start(
            &self.inner,
            &self.path,
            self.synchronous,
            (start, max),
            gate,
        )?;
        self.checkpoints = Some(checkpoints);
        Ok(())
    }

    /// What reads pass, so that the log starts again.
    pub(in crate::store) fn log_gate(&self) -> Arc<LogGate> {
        Arc::clone(&self.gate)
    }

    pub(in crate::store) fn is_disk_full(&self) -> bool {
        self.reserve.as_ref().is_some_and(Reserve::is_released)
    }

    /// Releases the reserve and truncates the log. False if there is no reserve, or if it was released before.
    pub(in crate::store) fn release_reserve(&mut self) -> bool {
        let released = self.reserve.as_mut().is_some_and(Reserve::release);
        if released {
            self.empty_log();
        }
        released
    }

    /// Restores the reserve if there is enough space. Checks at most once a second.
    pub(in crate::store) fn restore_reserve_if_possible(&mut self) -> Result<(), StoreError> {
        if !self.reserve.as_ref().is_some_and(Reserve::is_check_due) {
            return Ok(());
        }
        self.empty_log();
        let free: i64 = self.inner.query_row(FREE_BYTES, [], |row| row.get(0))?;
        if let Some(reserve) = &mut self.reserve {
            reserve.restore(free.unsigned_abs());
        }
        Ok(())
    }

    /// Runs a checkpoint and truncates the log, unless a reader needs it. Does not wait for readers.
    fn empty_log(&mut self) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.wait();
        }
        let busy_timeout = BUSY_TIMEOUT.as_millis().to_string();
        for (pragma, value) in [
            ("busy_timeout", "0"),
            ("wal_checkpoint", "TRUNCATE"),
            ("busy_timeout", &busy_timeout),
        ] {
            if let Err(error) = self.inner.pragma_update(None, pragma, value) {
                tracing::warn!(%error, pragma, "failed to checkpoint the write-ahead log");
            }
        }
    }

    /// Begins a commit group.
    pub(in crate::store) fn begin(&mut self) {
        self.in_group = true;
    }

    /// Runs read-only statements; in a group, in its transaction.
    pub(in crate::store) fn read(
        &mut self,
        batch: &[Statement],
    ) -> Result<Vec<StatementResult>, StoreError> {
        if self.in_group {
            self.begin_transaction()?;
        }
        batch.iter().map(|it| self.execute(it)).collect()
    }

    /// Runs the statements in the group's transaction. Returns one result per statement.
    pub(in crate::store) fn run(
        &mut self,
        batch: &[Statement],
    ) -> Result<Vec<StatementResult>, StoreError> {
        self.begin_transaction()?;
        let results = batch.iter().map(|it| self.execute(it)).collect();
        match results {
            // The next attempt waits for the other process when it begins. This one cannot: it has read, and what it
            // has read may be outdated.
            Err(error) if is_busy(&error) && !std::mem::replace(&mut self.was_busy, true) => {
                Err(StoreError::Conflict)
            }
            results => results,
        }
    }

    /// Runs the statements and commits. When this returns, the writes have the durability that the database was opened
    /// with.
    pub(in crate::store) fn commit_with(
        &mut self,
        batch: &[Statement],
    ) -> Result<Vec<StatementResult>, StoreError> {
        let results = match batch.is_empty() {
            true => Vec::new(),
            false => self.run(batch)?,
        };
        if !self.inner.is_autocommit() {
            let span = StatementSpan::begin(SQLITE, || ["COMMIT"]);
            let committed = self.inner.prepare_cached("COMMIT")?.raw_execute();
            span.end(committed.is_ok());
            committed?;
            if let Some(files) = &mut self.files {
                files.check()?;
            }
            if let Some(checkpoints) = &mut self.checkpoints {
                checkpoints.after_commit(&self.inner)?;
            }
        }
        self.in_group = false;
        Ok(results)
    }

    /// Rolls back the group's transaction, if one is open.
    pub(in crate::store) fn roll_back(&mut self) {
        self.in_group = false;
        // After some errors, such as a full disk, SQLite has already rolled back.
        if !self.inner.is_autocommit() {
            drop(self.inner.execute_batch("ROLLBACK"));
        }
    }

    /// Begins a transaction unless one is open. It locks the file at its first write, which costs a read-only group
    /// nothing, or at once if another process wrote in between.
    fn begin_transaction(&mut self) -> Result<(), StoreError> {
        if self.inner.is_autocommit() {
            let begin = match std::mem::take(&mut self.was_busy) {
                true => "BEGIN IMMEDIATE",
                false => "BEGIN",
            };
            self.inner.prepare_cached(begin)?.raw_execute()?;
        }
        Ok(())
    }

    /// Runs one statement and collects its rows.
    fn execute(&self, statement: &Statement) -> Result<StatementResult, StoreError> {
        let span = StatementSpan::begin(SQLITE, || [statement.sql]);
        let outcome = self.execute_untraced(statement);
        span.end(outcome.is_ok());
        outcome
    }

    #[inline]
    fn execute_untraced(&self, statement: &Statement) -> Result<StatementResult, StoreError> {
        let capacity = binding::capacity([statement]);
        let bound = binding::bind(statement.sql, &statement.args, capacity);
        let rows = match bound.text.len() <= PREPARED_BYTES_MAX {
            true => run_prepared(&mut *self.inner.prepare_cached(&bound.text)?, &bound.args)?,
            false => run_prepared(&mut self.inner.prepare(&bound.text)?, &bound.args)?,
        };
        let affected = self.inner.changes();
        // With a single writer, this fails only if the engine is wrong about what it wrote.
        if statement
            .expected
            .is_some_and(|expected| expected != affected)
        {
            return Err(StoreError::Conflict);
        }
        Ok(StatementResult { rows, affected })
    }

    /// Closes the connection. SQLite then runs a checkpoint.
    pub(in crate::store) fn close(self) -> Result<(), StoreError> {
        drop(self.checkpoints);
        self.inner.close().map_err(|(_, error)| error.into())
    }
}

fn run_prepared(
    statement: &mut rusqlite::Statement<'_>,
    args: &[Cow<'_, Arg>],
) -> Result<Vec<Row>, StoreError> {
    for (index, arg) in (1..).zip(args) {
        match &**arg {
            // What is not bound is null.
            Arg::Null | Arg::Rows(_) => {}
            Arg::Int(value) => statement.raw_bind_parameter(index, value)?,
            Arg::Real(value) => statement.raw_bind_parameter(index, value)?,
            Arg::Text(value) => statement.raw_bind_parameter(index, value)?,
            Arg::Shared(value) => statement.raw_bind_parameter(index, &**value)?,
        }
    }
    let columns = statement.column_count();
    let mut found = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(value(row.get_ref(column)?)?);
        }
        found.push(Row::Values(values.into_boxed_slice()));
    }
    Ok(found)
}

fn value(value: ValueRef<'_>) -> Result<Value, StoreError> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) => {
            let text = str::from_utf8(text).map_err(|_| StoreError::Corrupt("text"))?;
            Value::Text(text.to_owned())
        }
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
    })
}

/// Whether another process was writing.
fn is_busy(error: &StoreError) -> bool {
    matches!(error, StoreError::Sqlite(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy))
}
