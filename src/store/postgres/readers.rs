//! The connections that read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Executor, Postgres, SqlStr};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::listener::{Listener, NOTIFY};
use super::{READ_STATE, STATEMENT_TIMEOUT, options, run_statement};
use crate::memory::hold_until_done;
use crate::store::pooled::SendMode;
use crate::store::readers::{ReadKind, ReadPermits};
use crate::store::rows::{Statement, StatementResult};
use crate::store::{Settings, SharedState, StoreError};

/// Maximum number of read-only connections, in addition to the writer's.
const READERS: u32 = 8;

/// One of them, which the [`Listener`] takes from the pool and keeps.
const LISTENERS: u32 = 1;

/// How long a read may take.
const READ_TIMEOUT: Duration = Duration::from_secs(4);

/// `None` until the read has ended.
type StatusResult = watch::Receiver<Option<Result<SharedState, StatusError>>>;

/// Why a shared read of the state failed.
#[derive(Clone, Copy, Debug)]
enum StatusError {
    Outage,
    Busy,
    Other,
}

/// The reads of the state that requests share.
#[derive(Debug, Default)]
struct StatusReads {
    /// Held by the one that runs, or by the first of several.
    turn: tokio::sync::Mutex<()>,
    /// The one that waits for its turn.
    next: Mutex<Option<StatusResult>>,
}

/// How long a read of the state waits for another one. If the database does not respond, that can take long.
const STATUS_TURN_MAX: Duration = Duration::from_millis(100);

/// The pool of read-only connections.
#[derive(Clone)]
pub struct Readers {
    pool: PgPool,
    /// One connection, so that a ping does not wait for long reads.
    ping: PgPool,
    send_mode: SendMode,
    /// Begins a read of one statement; `None` if it needs no transaction.
    begin_one: Option<SqlStr>,
    /// Begins a read of several statements.
    begin_several: SqlStr,
    pub(in crate::store) permits: ReadPermits,
    status: Arc<StatusReads>,
}

impl Readers {
    pub(in crate::store) async fn open(
        address: &str,
        settings: Settings,
    ) -> Result<Readers, StoreError> {
        // The database ends a read that this server has given up on.
        let options = options(address, settings.durability)?
            .options([("statement_timeout", READ_TIMEOUT.as_millis().to_string())]);
        let send_mode = SendMode::new(address, &options, settings.postgres_dialect());
        let pool = |max| {
            PgPoolOptions::new()
                .max_connections(max)
                .acquire_timeout(STATEMENT_TIMEOUT)
                .test_before_acquire(false) // It costs as much as most reads; `read` retries.
        };
        let ping = pool(1).connect_lazy_with(options.clone());
        Ok(Readers {
            pool: pool(READERS).connect_with(options).await?,
            ping,
            begin_one: send_mode.is_pooled().then(|| send_mode.begin("BEGIN", "")),
            begin_several: send_mode.begin(SNAPSHOT, ""),
            send_mode,
            permits: ReadPermits::new(READERS - LISTENERS),
            status: Arc::default(),
        })
    }

    /// Open connections, idle ones among them, and the maximum.
    pub fn usage(&self) -> (u32, usize, u32) {
        (self.pool.size(), self.pool.num_idle(), READERS)
    }

    /// Runs the statements on one snapshot. Returns one result per statement. Dropping the future does not cancel a read
    /// that has begun; the permits, and what the request holds, are held until it has ended.
    pub async fn read(
        &self,
        kind: ReadKind,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let (readers, held, abandoned) =
            (self.clone(), hold_until_done(), CancellationToken::new());
        let _caller = abandoned.clone().drop_guard();
        let reading = tokio::spawn(async move {
            let permits = abandoned
                .run_until_cancelled(readers.permits.take(kind))
                .await;
            let permits = permits.ok_or(StoreError::Stopped)??;
            let (_held, mut lost) = ((permits, held), 0);
            loop {
                let reading = readers.try_read(batch.clone(), &abandoned);
                let reading = timeout(READ_TIMEOUT, reading).await;
                match reading.unwrap_or(Err(StoreError::Timeout)) {
                    // All connections of the pool may have been lost at once.
                    Err(error) if error.is_lost_connection() && lost < READERS => lost += 1,
                    outcome => return outcome,
                }
            }
        });
        reading.await.map_err(|_| StoreError::Stopped)?
    }

    /// Reads, unless the caller is gone before a connection is free.
    async fn try_read(
        &self,
        batch: Vec<Statement>,
        abandoned: &CancellationToken,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let acquired = Box::pin(abandoned.run_until_cancelled(self.pool.acquire()));
        let connection = acquired.await;
        let mut borrowed = ReadConnection(Some(connection.ok_or(StoreError::Stopped)??));
        let connection = borrowed.0.as_mut().ok_or(StoreError::Stopped)?;
        let begin = match batch.len() {
            0 | 1 => self.begin_one.clone(),
            _ => Some(self.begin_several.clone()),
        };
        let begun = begin.is_some();
        if let Some(begin) = begin {
            connection.execute(begin).await?;
        }
        let mut results = Vec::with_capacity(batch.len());
        for statement in batch {
            let how = (self.send_mode.dialect, !self.send_mode.is_pooled());
            results.push(run_statement(connection, how, &statement, None).await?);
        }
        if begun {
            connection.execute("COMMIT").await?;
        }
        // Returns the connection to the pool, now that it is idle again.
        drop(borrowed.0.take());
        Ok(results)
    }

    /// Runs a statement on the connection for pings.
    pub async fn ping(&self, statement: Statement) -> Result<(), StoreError> {
        let ping = Readers {
            pool: self.ping.clone(),
            ..self.clone()
        };
        ping.read(ReadKind::Keyed, vec![statement]).await.map(drop)
    }

    /// The shared state. Calls that wait for the same read share it. It begins after all of them, so none gets an older
    /// state, and a flood of requests does not occupy the connections.
    ///
    /// # Errors
    /// Those of the read; an outage as [`StoreError::Timeout`].
    pub async fn status(&self) -> Result<SharedState, StoreError> {
        let mut state = self.next_status();
        let waiting = timeout(
            STATUS_TURN_MAX + READ_TIMEOUT,
            state.wait_for(Option::is_some),
        );
        let Ok(read) = waiting.await else {
            return Err(StoreError::Timeout);
        };
        match read.ok().and_then(|read| *read) {
            Some(Ok(state)) => Ok(state),
            Some(Err(StatusError::Outage)) => Err(StoreError::Timeout),
            Some(Err(StatusError::Busy)) => Err(StoreError::Busy),
            Some(Err(StatusError::Other)) => self.read_status().await,
            None => Err(StoreError::Stopped),
        }
    }

    /// The read of the state that has not begun.
    fn next_status(&self) -> StatusResult {
        let mut next = self.lock_status();
        if let Some(next) = &*next {
            return next.clone();
        }
        let (sender, state) = watch::channel(None);
        *next = Some(state.clone());
        drop(next);
        let readers = self.clone();
        tokio::spawn(async move {
            let _turn = timeout(STATUS_TURN_MAX, readers.status.turn.lock()).await;
            readers.lock_status().take();
            let read = readers.read_status().await;
            sender.send_replace(Some(read.map_err(|error| match error {
                StoreError::Busy => StatusError::Busy,
                error if error.is_outage() => StatusError::Outage,
                _ => StatusError::Other,
            })));
        });
        state
    }

    fn lock_status(&self) -> MutexGuard<'_, Option<StatusResult>> {
        let next = self.status.next.lock();
        next.unwrap_or_else(PoisonError::into_inner)
    }

    async fn read_status(&self) -> Result<SharedState, StoreError> {
        let results = self
            .read(ReadKind::Keyed, vec![Statement::new(READ_STATE, [])])
            .await?;
        let row = results.first().and_then(|result| result.rows.first());
        let row = row.ok_or(StoreError::Corrupt("no state"))?;
        Ok(SharedState {
            revision: row.int(0)?,
            now: row.int(1)?,
            last_event: row.int(2)?,
        })
    }

    /// Sends a notification to all listening servers.
    pub async fn notify(&self, message: &str) -> Result<(), StoreError> {
        let notify = Statement::new(NOTIFY, [message.into()]);
        self.read(ReadKind::Keyed, vec![notify]).await.map(drop)
    }

    /// Subscribes to the notifications of all servers.
    pub async fn listen(&self) -> Result<Listener, StoreError> {
        Ok(Listener::connect(&self.pool).await?)
    }

    /// Closes the connections. Gives up after 2 s if the database does not respond.
    pub async fn close(&self) {
        let closing = async {
            self.ping.close().await;
            self.pool.close().await;
        };
        if timeout(STATEMENT_TIMEOUT, closing).await.is_err() {
            tracing::warn!("the database did not respond while closing its connections");
        }
    }
}

/// A connection of the pool. Dropping it closes it, because it may be in the middle of a transaction.
struct ReadConnection(Option<PoolConnection<Postgres>>);

impl Drop for ReadConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}

const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
