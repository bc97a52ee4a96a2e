//! SQLite: connections, and batches of statements in a single call.
//!
//! Every call to the driver switches to the connection's thread and back, which costs far more than the statement
//! itself. A batch is therefore sent as one text of several statements, including `BEGIN` and `COMMIT`; the driver
//! caches its prepared form.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool,
    SqlitePoolOptions, SqliteQueryResult, SqliteRow, SqliteSynchronous,
};
use sqlx::{Arguments, AssertSqlSafe, ConnectOptions, Connection as _, Either, Executor, Row as _};
use tokio::sync::Notify;

use super::address::without_password;
use super::binding;
use super::file::{create, lock};
use super::reserve::Reserve;
use super::rows::{Arg, Row, Statement, StatementResult};
use super::{BUSY_TIMEOUT, Durability, StoreError, VERSION, migrations};

/// Maximum number of read-only connections.
const READERS: u32 = 4;

/// Buffer between the connection's thread and the reader, in rows. It is larger than most results, so that the thread
/// does not wait in the middle of one.
const ROW_BUFFER: usize = 4_096;

/// The longest text whose prepared form is cached. A longer one comes from a request with many queues or long bodies,
/// is unlikely to be sent again, and would occupy megabytes.
const PREPARED_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of statements in a batch that is sent in one call.
const BATCH_MAX: usize = 16;
/// Statements per call of a longer batch. Three statements with 64 bound jobs have 16 KiB.
const PART_MAX: usize = 3;

/// Prepared texts that a connection caches. One with several hundred values occupies about 0.5 MB.
const PREPARED_MAX: usize = 128;

/// How often a call that waits for its commit to begin checks whether an earlier statement failed.
const FAILURE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Pages of 4 KiB in the write-ahead log before a checkpoint.
const CHECKPOINT_PAGES: u64 = 2_000;
const PAGE_BYTES: u64 = 4_096;

/// The unused bytes of the database file.
const FREE_BYTES: &str =
    "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size";

/// Page cache of the writer, in KiB (SQLite expects a negative number for KiB).
const CACHE_KIB: &str = "-65536";

/// The file of an address, and for a temporary database the folder to remove afterwards.
pub fn locate(address: &str) -> Result<(PathBuf, Option<tempfile::TempDir>), StoreError> {
    let wrong = || StoreError::Address(without_password(address));
    let rest = address.strip_prefix("sqlite:").ok_or_else(wrong)?;
    if matches!(rest, ":memory:" | "//:memory:") {
        let folder = tempfile::Builder::new()
            .prefix("switchyard-")
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

/// The connection that writes. There is only one, so its transactions need no row locks.
pub struct Connection {
    inner: SqliteConnection,
    /// Whether a transaction is open.
    open: bool,
    /// Notified when a commit begins.
    committing: Arc<Notify>,
    /// The disk reserve; `None` for a temporary database or one that is opened briefly.
    reserve: Option<Reserve>,
    /// Held while the connection is open; `None` alongside a server, which holds it.
    _lock: Option<File>,
}

impl Connection {
    pub(super) async fn open(
        path: &Path,
        durability: Durability,
        scratch: bool,
    ) -> Result<Connection, StoreError> {
        let lock = lock(path)?;
        create(path)?;
        let synchronous = match durability {
            _ if scratch => SqliteSynchronous::Off,
            Durability::Full => SqliteSynchronous::Full,
            Durability::Process => SqliteSynchronous::Normal,
        };
        let options = options(path)?.synchronous(synchronous);
        Connection::connect(options, Some(lock)).await
    }

    /// A second connection that writes, alongside the server that has the file open. It is meant for brief use and runs
    /// no migrations.
    pub(super) async fn open_alongside(path: &Path) -> Result<Connection, StoreError> {
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
        if found != migrations::sqlite().iter().map(|step| step.version).max() {
            return Err(StoreError::OtherVersion);
        }
        let options = options(path)?.synchronous(SqliteSynchronous::Full);
        Connection::connect(options, None).await
    }

    async fn connect(
        options: SqliteConnectOptions,
        lock: Option<File>,
    ) -> Result<Connection, StoreError> {
        let mut inner = options
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES.to_string())
            .pragma("cache_size", CACHE_KIB)
            .connect()
            .await?;
        let committing = Arc::new(Notify::new());
        let begins = Arc::clone(&committing);
        tokio::spawn(wake_periodically(Arc::downgrade(&committing)));
        inner.lock_handle().await?.set_commit_hook(move || {
            begins.notify_one();
            true
        });
        Ok(Connection {
            inner,
            open: false,
            committing,
            reserve: None,
            _lock: lock,
        })
    }

    pub(super) async fn migrate(&mut self) -> Result<(), StoreError> {
        Ok(migrations::sqlite().run(&mut self.inner).await?)
    }

    /// Allocates the disk reserve next to the file. Checkpoints keep the log below a quarter of the reserve, because a
    /// checkpoint needs as much space as the log, and the log grows as long as a checkpoint fails.
    pub(super) async fn allocate_reserve(&mut self, path: &Path) -> Result<(), StoreError> {
        let reserve = Reserve::allocate(path);
        let pages = reserve.bytes() / 4 / PAGE_BYTES;
        if pages < CHECKPOINT_PAGES {
            let smaller = AssertSqlSafe(format!("PRAGMA wal_autocheckpoint = {pages}"));
            self.inner.execute(smaller).await?;
        }
        self.reserve = Some(reserve);
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.reserve.as_ref().is_some_and(Reserve::is_released)
    }

    /// Releases the reserve and truncates the log. False if it was released before.
    pub(super) async fn release_reserve(&mut self) -> bool {
        let released = self.reserve.as_mut().is_some_and(Reserve::release);
        if released {
            self.empty_log().await;
        }
        released
    }

    /// Restores the reserve if there is enough space. Checks at most once a second.
    pub(super) async fn restore_reserve_if_possible(&mut self) -> Result<(), StoreError> {
        if !self.reserve.as_ref().is_some_and(Reserve::is_check_due) {
            return Ok(());
        }
        self.empty_log().await;
        let free = sqlx::query_scalar::<_, i64>(FREE_BYTES);
        let free = free.fetch_one(&mut self.inner).await?;
        if let Some(reserve) = &mut self.reserve {
            reserve.restore(free.unsigned_abs());
        }
        Ok(())
    }

    /// Runs a checkpoint and truncates the log, unless a reader needs it. Does not wait for readers.
    async fn empty_log(&mut self) {
        let patience = format!("PRAGMA busy_timeout = {}", BUSY_TIMEOUT.as_millis());
        for pragma in [
            "PRAGMA busy_timeout = 0",
            "PRAGMA wal_checkpoint(TRUNCATE)",
            &patience,
        ] {
            // Safe: literals in this program.
            let done = self.inner.execute(AssertSqlSafe(pragma.to_owned())).await;
            if let Err(error) = done {
                tracing::warn!(%error, pragma, "failed to checkpoint the write-ahead log");
            }
        }
    }

    /// Runs read-only statements. Before the group's first write they need no transaction: only this connection writes,
    /// so nothing can change in between.
    pub async fn read(
        &mut self,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let (text, arguments) = joined(batch, false, false)?;
        fetch(&mut self.inner, text, arguments, None).await
    }

    /// Runs the statements in the group's transaction, which begins with the first batch. Returns one result per
    /// statement.
    pub async fn run(&mut self, batch: Vec<Statement>) -> Result<Vec<StatementResult>, StoreError> {
        self.call(batch, false).await
    }

    /// Runs the statements and commits. When this returns, the writes have the durability that the database was opened
    /// with.
    pub async fn commit_with(
        &mut self,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        if batch.is_empty() && !self.open {
            return Ok(Vec::new());
        }
        let results = self.call(batch, true).await?;
        self.open = false;
        Ok(results)
    }

    /// Rolls back the group's transaction, if one is open.
    pub async fn roll_back(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.open) {
            // Ignores the error: after some errors, such as a full disk, SQLite has already rolled back.
            drop(self.inner.execute("ROLLBACK").await);
        }
        Ok(())
    }

    /// Sends the batch. A long batch repeats a few statements with different rows, so it is sent in parts that are
    /// short enough to be cached in prepared form.
    async fn call(
        &mut self,
        mut batch: Vec<Statement>,
        commit: bool,
    ) -> Result<Vec<StatementResult>, StoreError> {
        if batch.len() <= BATCH_MAX {
            return self.send(batch, commit).await;
        }
        let mut results = Vec::with_capacity(batch.len());
        while batch.len() > PART_MAX {
            let rest = batch.split_off(PART_MAX);
            let part = std::mem::replace(&mut batch, rest);
            results.extend(self.send(part, false).await?);
        }
        results.extend(self.send(batch, commit).await?);
        Ok(results)
    }

    async fn send(
        &mut self,
        batch: Vec<Statement>,
        commit: bool,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let begin = !std::mem::replace(&mut self.open, true);
        let guarded: Vec<_> = batch.iter().map(|it| it.expected.is_some()).collect();
        let (text, arguments) = joined(batch, begin, commit)?;
        let commit_notify = commit.then_some(&*self.committing);
        let results = fetch(&mut self.inner, text, arguments, commit_notify).await;
        let mut results = results.map_err(conflict_from_guard)?.into_iter();
        if begin {
            results.next();
        }
        let mut of_batch = Vec::with_capacity(guarded.len());
        for guarded in guarded {
            of_batch.extend(results.next());
            if guarded {
                results.next();
            }
        }
        Ok(of_batch)
    }

    /// Closes the connection. SQLite then runs a checkpoint.
    pub async fn close(self) -> Result<(), StoreError> {
        Ok(self.inner.close().await?)
    }
}

/// The pool of read-only connections. They see committed data and never wait for the writer.
#[derive(Clone)]
pub struct Readers(SqlitePool);

impl Readers {
    pub(super) async fn open(path: &Path) -> Result<Readers, StoreError> {
        let pool = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_with(options(path)?.pragma("query_only", "true"))
            .await?;
        Ok(Readers(pool))
    }

    /// Runs the statements on one snapshot of the database. Returns one result per statement. Dropping the future does
    /// not cancel the read, because an unfinished read would leave its snapshot open on the pooled connection.
    pub async fn read(&self, batch: Vec<Statement>) -> Result<Vec<StatementResult>, StoreError> {
        let pool = self.0.clone();
        let reading = tokio::spawn(async move { read(&pool, batch).await });
        reading.await.map_err(|_| StoreError::Stopped)?
    }

    pub async fn close(&self) {
        self.0.close().await;
    }
}

async fn read(
    pool: &SqlitePool,
    batch: Vec<Statement>,
) -> Result<Vec<StatementResult>, StoreError> {
    let statements = batch.len();
    let snapshot = statements > 1;
    let (text, arguments) = if snapshot {
        let (text, arguments) = joined(batch, false, true)?;
        (format!("BEGIN;{text}"), arguments)
    } else {
        joined(batch, false, false)?
    };
    let mut connection = pool.acquire().await?;
    let mut results = match fetch(&mut connection, text, arguments, None).await {
        Ok(results) => results,
        Err(error) => {
            drop(connection.execute("ROLLBACK").await);
            return Err(error);
        }
    };
    if snapshot && !results.is_empty() {
        results.remove(0);
    }
    results.truncate(statements);
    Ok(results)
}

/// Fails if the preceding statement did not change exactly `$1` rows. It is a statement because the whole batch,
/// including the commit, is sent in one call. With a single writer, whose transactions lock the file from the start, it
/// fails only if the engine is wrong about what it wrote.
const GUARD: &str = "SELECT abs(-9223372036854775808) WHERE changes() <> $1";

/// The error message of [`GUARD`]. No other statement can produce it.
const GUARD_ERROR: &str = "integer overflow";

fn conflict_from_guard(error: StoreError) -> StoreError {
    if error.to_string().contains(GUARD_ERROR) {
        StoreError::Conflict
    } else {
        error
    }
}

/// The statements joined into one text, and their arguments in its order.
fn joined(
    batch: Vec<Statement>,
    begin: bool,
    commit: bool,
) -> Result<(String, SqliteArguments), StoreError> {
    let mut text =
        String::with_capacity(batch.iter().map(|statement| statement.sql.len() + 16).sum());
    let capacity = binding::capacity(&batch);
    let mut arguments = SqliteArguments::default();
    let mut outcome = Ok(());
    if begin {
        text.push_str("BEGIN IMMEDIATE;");
    }
    for Statement {
        sql,
        args,
        expected,
    } in batch
    {
        let guard = expected.and_then(|rows| i64::try_from(rows).ok());
        let guard = guard.map(|rows| (GUARD, vec![Arg::Int(rows)]));
        for (sql, args) in [(sql, args)].into_iter().chain(guard) {
            binding::write(sql, args, capacity, &mut text, |arg| {
                let done = match arg {
                    Arg::Null | Arg::Rows(_) => arguments.add(None::<i64>),
                    Arg::Int(value) => arguments.add(value),
                    Arg::Real(value) => arguments.add(value),
                    Arg::Text(value) => arguments.add(value),
                };
                if let Err(error) = done {
                    outcome = Err(sqlx::Error::Encode(error));
                }
            });
            text.push(';');
        }
    }
    if commit {
        text.push_str("COMMIT;");
    }
    outcome?;
    Ok((text, arguments))
}

/// Runs the text and collects its results. `committing` is notified when the commit begins, if the text has one.
async fn fetch(
    connection: &mut SqliteConnection,
    text: String,
    arguments: SqliteArguments,
    committing: Option<&Notify>,
) -> Result<Vec<StatementResult>, StoreError> {
    // Safe: the text is joined from literals of this program, and every value is bound.
    let persistent = text.len() <= PREPARED_BYTES_MAX;
    let query = sqlx::query_with(AssertSqlSafe(text), arguments).persistent(persistent);
    let mut stream = connection.fetch_many(query);
    let mut collected = Collected::default();
    if let Some(committing) = committing {
        // The driver reports each statement as it completes, and a wake-up per statement costs more than the
        // statement. So this polls once without a waker and then waits until the commit begins, or until the next
        // periodic wake-up in case a statement fails before it. The driver buffers the reports meanwhile.
        let early = stream.poll_next_unpin(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Some(part)) = early {
            collected.add(part?);
        }
        committing.notified().await;
    }
    while let Some(part) = stream.try_next().await? {
        collected.add(part);
    }
    Ok(collected.results)
}

/// Wakes calls that wait for a commit at intervals, because a failed statement prevents the commit.
async fn wake_periodically(committing: Weak<Notify>) {
    let mut ticks = tokio::time::interval(FAILURE_CHECK_INTERVAL);
    while let Some(committing) = committing.upgrade() {
        committing.notify_one();
        drop(committing);
        ticks.tick().await;
    }
}

/// Collects the rows and completions that the driver reports.
#[derive(Default)]
struct Collected {
    results: Vec<StatementResult>,
    rows: Vec<Row>,
}

impl Collected {
    fn add(&mut self, part: Either<SqliteQueryResult, SqliteRow>) {
        match part {
            Either::Right(row) => self.rows.push(Row::Sqlite(row)),
            Either::Left(done) => {
                let rows = std::mem::take(&mut self.rows);
                self.results.push(StatementResult {
                    rows,
                    affected: done.rows_affected(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
