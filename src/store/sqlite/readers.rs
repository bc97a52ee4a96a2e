//! The connections that read. Each has a thread of the driver, and every call switches to that thread and back, which
//! costs more than most statements. A batch is therefore sent as one text of several statements, including `BEGIN` and
//! `COMMIT`; the driver caches its prepared form.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions,
    SqliteQueryResult, SqliteRow,
};
use sqlx::{Arguments, AssertSqlSafe, Either, Executor};
use tokio_util::sync::CancellationToken;

use super::log_gate::LogGate;
use super::{PREPARED_BYTES_MAX, options};
use crate::memory::hold_until_done;
use crate::store::StoreError;
use crate::store::binding;
use crate::store::file::with_suffix;
use crate::store::readers::{LONG_READS_MAX, LONG_WAIT_MAX, ReadKind, ReadPermits};
use crate::store::rows::{Arg, BytesLeft, Row, Statement, StatementResult};

/// Maximum number of read-only connections.
const READERS: u32 = 4;

/// The pool of read-only connections. They see committed data and never wait for the writer.
#[derive(Clone)]
pub struct Readers {
    pool: SqlitePool,
    /// One connection, so that a ping does not wait for long reads.
    ping: SqlitePool,
    /// Connections for reads that a time limit ends.
    long: SqlitePool,
    pub(in crate::store) permits: ReadPermits,
    /// The write-ahead log.
    log: PathBuf,
    gate: Arc<LogGate>,
    /// Whether the connections are being closed.
    closing: Arc<AtomicBool>,
}

/// Steps of SQLite's virtual machine after which a statement checks whether it must end: about a millisecond.
const STEPS_BETWEEN_CHECKS: i32 = 100_000;

/// Connections for statements that sort much, as a consistency check sorts all jobs and tags: they sort in temporary
/// files. If the folder for temporary files cannot be written, the files are beside the database.
fn sort_in_files(options: SqliteConnectOptions, database: &Path) -> SqliteConnectOptions {
    if tempfile::tempfile().is_ok() {
        return options.pragma("temp_store", "file");
    }
    let folder = database.parent().and_then(Path::to_str);
    let folder = folder.map(|folder| if folder.is_empty() { "." } else { folder });
    match folder.filter(|folder| tempfile::tempfile_in(folder).is_ok()) {
        // A setting of the process, which SQLite changes under a lock.
        Some(folder) => options.pragma("temp_store", "file").pragma(
            "temp_store_directory",
            format!("'{}'", folder.replace('\'', "''")),
        ),
        None => options.pragma("temp_store", "memory"),
    }
}

impl Readers {
    pub(in crate::store) async fn open(
        path: &Path,
        gate: Arc<LogGate>,
    ) -> Result<Readers, StoreError> {
        let options = options(path)?.pragma("query_only", "true");
        let pool = |max| SqlitePoolOptions::new().max_connections(max);
        let ping = pool(1).connect_lazy_with(options.clone());
        let long = pool(LONG_READS_MAX).acquire_timeout(LONG_WAIT_MAX);
        let long = long.connect_lazy_with(sort_in_files(options.clone(), path));
        let closing = Arc::new(AtomicBool::new(false));
        let ends = (Arc::clone(&closing), Arc::clone(&gate));
        let pool = pool(READERS).after_connect(move |connection, _| {
            let (closing, gate) = ends.clone();
            Box::pin(async move {
                let mut handle = connection.lock_handle().await?;
                handle.set_progress_handler(STEPS_BETWEEN_CHECKS, move || {
                    !closing.load(Ordering::Relaxed) && !gate.ends_reads()
                });
                Ok(())
            })
        });
        let pool = pool.connect_with(options).await?;
        let log = with_suffix(path, "-wal");
        Ok(Readers {
            pool,
            ping,
            long,
            permits: ReadPermits::new(READERS),
            log,
            gate,
            closing,
        })
    }

    /// Runs the statements on one snapshot of the database. Returns one result per statement. Dropping the future does
    /// not cancel a read that has begun, because an unfinished read would leave its snapshot open on the pooled
    /// connection.
    pub async fn read(
        &self,
        kind: ReadKind,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        self.gate.pass().await;
        read_to_end(self.pool.clone(), batch, Some((self.permits.clone(), kind))).await
    }

    /// Runs the statements like [`Readers::read`], on connections of their own and for at most `time`. Dropping the
    /// future ends the read.
    ///
    /// # Errors
    /// [`StoreError::Slow`] after `time`.
    pub async fn read_within(
        &self,
        time: Duration,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        self.gate.pass().await;
        let (long, closing, gate) = (
            self.long.clone(),
            Arc::clone(&self.closing),
            Arc::clone(&self.gate),
        );
        let permits = self.permits.clone();
        let (abandoned, held) = (CancellationToken::new(), hold_until_done());
        let (_caller, waiting) = (abandoned.clone().drop_guard(), abandoned.clone());
        let end = Instant::now() + time;
        let reading = tokio::spawn(async move {
            let _held = held;
            let begins = async {
                let permit = permits.take_long().await?;
                let connection = long.acquire().await.map_err(|error| match error {
                    // Other long reads run.
                    sqlx::Error::PoolTimedOut => StoreError::Slow,
                    error => error.into(),
                });
                Ok::<_, StoreError>((permit, connection?))
            };
            let begun = waiting.run_until_cancelled(begins).await;
            let (_permit, mut connection) = begun.ok_or(StoreError::Stopped)??;
            let is_over = move || {
                let must_end = abandoned.is_cancelled() || closing.load(Ordering::Relaxed);
                must_end || gate.ends_reads() || Instant::now() >= end
            };
            if is_over() {
                return Err(StoreError::Slow);
            }
            let watched = is_over.clone();
            let mut handle = connection.lock_handle().await?;
            handle.set_progress_handler(STEPS_BETWEEN_CHECKS, move || !watched());
            drop(handle);
            let outcome = read_on(&mut connection, batch).await;
            connection.lock_handle().await?.remove_progress_handler();
            match outcome {
                Err(_) if is_over() => Err(StoreError::Slow),
                outcome => outcome,
            }
        });
        reading.await.map_err(|_| StoreError::Stopped)?
    }

    /// Runs a statement on the connection for pings.
    pub async fn ping(&self, statement: Statement) -> Result<(), StoreError> {
        read_to_end(self.ping.clone(), vec![statement], None)
            .await
            .map(drop)
    }

    /// The size of the write-ahead log; 0 if there is none.
    pub async fn log_bytes(&self) -> u64 {
        let file = tokio::fs::metadata(&self.log).await;
        file.map_or(0, |file| file.len())
    }

    /// Open connections, idle ones among them, and the maximum.
    pub fn usage(&self) -> (u32, usize, u32) {
        (self.pool.size(), self.pool.num_idle(), READERS)
    }

    /// Closes the connections. Ends statements that run, because a check of a large database takes minutes.
    pub async fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.ping.close().await;
        self.long.close().await;
        self.pool.close().await;
    }
}

/// Holds the permits, and what the request holds, until the read has ended, even if the future is dropped. A read that has
/// not begun by then is left out.
async fn read_to_end(
    pool: SqlitePool,
    batch: Vec<Statement>,
    permits: Option<(ReadPermits, ReadKind)>,
) -> Result<Vec<StatementResult>, StoreError> {
    let (abandoned, held) = (CancellationToken::new(), hold_until_done());
    let _caller = abandoned.clone().drop_guard();
    let reading = tokio::spawn(async move {
        let _held = held;
        let begins = async {
            let permits = match permits {
                Some((permits, kind)) => Some(permits.take(kind).await?),
                None => None,
            };
            Ok::<_, StoreError>((permits, pool.acquire().await?))
        };
        let begun = abandoned.run_until_cancelled(begins).await;
        let (_permits, mut connection) = begun.ok_or(StoreError::Stopped)??;
        read_on(&mut connection, batch).await
    });
    reading.await.map_err(|_| StoreError::Stopped)?
}

async fn read_on(
    connection: &mut SqliteConnection,
    batch: Vec<Statement>,
) -> Result<Vec<StatementResult>, StoreError> {
    let statements = batch.len();
    let bytes_max = batch.iter().map(|statement| statement.bytes_max).sum();
    let snapshot = statements > 1;
    let (mut text, arguments) = joined(&batch)?;
    if snapshot {
        text = format!("BEGIN;{text}COMMIT;");
    }
    let mut results = match fetch(connection, text, arguments, bytes_max).await {
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

/// The statements joined into one text, and their arguments in its order.
fn joined(batch: &[Statement]) -> Result<(String, SqliteArguments), StoreError> {
    let mut text =
        String::with_capacity(batch.iter().map(|statement| statement.sql.len() + 16).sum());
    let capacity = binding::capacity(batch);
    let mut arguments = SqliteArguments::default();
    for statement in batch {
        let bound = binding::bind(statement.sql, &statement.args, capacity);
        for arg in bound.args {
            let done = match arg.into_owned() {
                Arg::Null | Arg::Rows(_) => arguments.add(None::<i64>),
                Arg::Int(value) => arguments.add(value),
                Arg::Real(value) => arguments.add(value),
                Arg::Text(value) => arguments.add(value),
                Arg::Shared(value) => arguments.add(value.to_string()),
            };
            done.map_err(sqlx::Error::Encode)?;
        }
        text.push_str(&bound.text);
        text.push(';');
    }
    Ok((text, arguments))
}

/// Runs the text and collects its results. Their texts have at most `bytes_max` bytes.
async fn fetch(
    connection: &mut SqliteConnection,
    text: String,
    arguments: SqliteArguments,
    bytes_max: Option<usize>,
) -> Result<Vec<StatementResult>, StoreError> {
    // Safe: the text is joined from literals of this program, and every value is bound.
    let persistent = text.len() <= PREPARED_BYTES_MAX;
    let query = sqlx::query_with(AssertSqlSafe(text), arguments).persistent(persistent);
    let mut stream = connection.fetch_many(query);
    let mut collected = Collected::default();
    let mut left = BytesLeft::of(bytes_max);
    while let Some(part) = stream.try_next().await? {
        collected.add(part);
        if let (Some(left), Some(row)) = (&mut left, collected.rows.last()) {
            left.count(row)?;
        }
    }
    Ok(collected.results)
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
