//! The handles of the connections that read, and how many reads run at the same time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::postgres::{self, Listener};
use super::rows::{Row, Statement, StatementResult};
use super::{SharedState, StoreError, sqlite};
use crate::memory::hold_until_done;
use crate::traces::{POSTGRES, SQLITE, StatementSpan};

/// Maximum number of long reads at once, so that these never occupy the connections of the others.
pub const LONG_READS_MAX: u32 = 2;

/// Of these, at most one is for guests.
static LONG_READS_OF_GUESTS: Semaphore = Semaphore::const_new(1);

/// How long a long read waits until it may begin.
pub const LONG_WAIT_MAX: Duration = Duration::from_secs(5);

/// The permits for long reads on Postgres. On SQLite, long reads have connections of their own.
static LONG_READS: Semaphore = Semaphore::const_new(LONG_READS_MAX as usize);

/// Reads for dashboard guests that run at the same time. There are more connections, so that users and APIs find one.
const GUEST_READS_MAX: usize = 2;

/// How long a read waits for others.
const READ_WAIT_MAX: Duration = Duration::from_secs(5);

/// Lookups of sessions that run at a time. Each takes a fraction of a millisecond, on Postgres a round trip.
const SQLITE_SESSION_READS_MAX: usize = 1;
const POSTGRES_SESSION_READS_MAX: usize = 2;

/// Which rows a read looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadKind {
    /// A few rows with known keys. Takes a fraction of a millisecond.
    Keyed,
    /// Rows of lists, counts and queries. Some take long, so all of them leave one connection for the keyed ones.
    Unkeyed,
}

/// Limits how many reads run at the same time.
#[derive(Clone, Debug)]
pub struct ReadPermits {
    /// Limits the reads of a handle and its clones.
    own: Option<Arc<Semaphore>>,
    /// Limits the reads of [`ReadKind::Unkeyed`] of all handles.
    unkeyed: Arc<Semaphore>,
}

impl ReadPermits {
    /// Permits for `connections` connections.
    pub fn new(connections: u32) -> ReadPermits {
        let unkeyed = usize::try_from(connections.saturating_sub(1)).unwrap_or_default();
        ReadPermits {
            own: None,
            unkeyed: Arc::new(Semaphore::new(unkeyed)),
        }
    }

    /// Waits for permits, which the read holds to its end; `None` where there is no limit. Called in the task of the read:
    /// the future of a request may not be polled while it waits for another part of its page, and would keep them.
    ///
    /// # Errors
    /// [`StoreError::Busy`] after [`READ_WAIT_MAX`].
    pub async fn take(
        &self,
        kind: ReadKind,
    ) -> Result<[Option<OwnedSemaphorePermit>; 2], StoreError> {
        let taken = timeout(READ_WAIT_MAX, self.wait(kind)).await;
        taken.map_err(|_| StoreError::Busy)
    }

    /// Waits for the permit of a long read; `None` unless it is for guests.
    ///
    /// # Errors
    /// [`StoreError::Timeout`] after [`LONG_WAIT_MAX`].
    pub async fn take_long(&self) -> Result<Option<SemaphorePermit<'static>>, StoreError> {
        if self.own.is_none() {
            return Ok(None);
        }
        let taken = timeout(LONG_WAIT_MAX, LONG_READS_OF_GUESTS.acquire()).await;
        Ok(taken.map_err(|_| StoreError::Timeout)?.ok())
    }

    async fn wait(&self, kind: ReadKind) -> [Option<OwnedSemaphorePermit>; 2] {
        let own = match &self.own {
            Some(own) => Arc::clone(own).acquire_owned().await.ok(),
            None => None,
        };
        let unkeyed = match kind {
            ReadKind::Keyed => None,
            ReadKind::Unkeyed => Arc::clone(&self.unkeyed).acquire_owned().await.ok(),
        };
        [own, unkeyed]
    }
}

/// The read-only connections. They see committed data and never wait for the writer.
#[derive(Clone)]
pub enum Readers {
    Sqlite(sqlite::Readers),
    Postgres(postgres::Readers),
}

/// Handles of which only a few reads run at a time.
pub struct LimitedReaders {
    pub guests: Readers,
    pub sessions: Readers,
}

impl LimitedReaders {
    pub fn of(readers: &Readers) -> LimitedReaders {
        LimitedReaders {
            guests: readers.for_guests(),
            sessions: readers.for_sessions(),
        }
    }
}

impl Readers {
    /// Runs the statements on one snapshot of the database. Returns one result per statement.
    pub async fn read(&self, batch: Vec<Statement>) -> Result<Vec<StatementResult>, StoreError> {
        self.read_rows(ReadKind::Unkeyed, batch).await
    }

    /// Like [`Readers::read`], for a few rows with known keys: does not wait for reads of lists, counts and queries.
    pub async fn read_keyed(
        &self,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        self.read_rows(ReadKind::Keyed, batch).await
    }

    async fn read_rows(
        &self,
        kind: ReadKind,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let span = StatementSpan::begin(self.database(), || batch.iter().map(|it| it.sql));
        let outcome = match self {
            Readers::Sqlite(readers) => readers.read(kind, batch).await,
            Readers::Postgres(readers) => readers.read(kind, batch).await,
        };
        span.end(outcome.is_ok());
        outcome
    }

    /// A handle for the reads of dashboard guests, of which only a few run at a time.
    #[must_use]
    pub fn for_guests(&self) -> Readers {
        self.limited(GUEST_READS_MAX)
    }

    /// A handle for the lookups of sessions. Strangers can cause them with invented cookies.
    #[must_use]
    pub fn for_sessions(&self) -> Readers {
        self.limited(match self {
            Readers::Sqlite(_) => SQLITE_SESSION_READS_MAX,
            Readers::Postgres(_) => POSTGRES_SESSION_READS_MAX,
        })
    }

    /// A handle that runs at most `reads` reads at a time.
    fn limited(&self, reads: usize) -> Readers {
        let mut readers = self.clone();
        let permits = match &mut readers {
            Readers::Sqlite(readers) => &mut readers.permits,
            Readers::Postgres(readers) => &mut readers.permits,
        };
        permits.own = Some(Arc::new(Semaphore::new(reads)));
        readers
    }

    /// The database in traces.
    fn database(&self) -> &'static str {
        match self {
            Readers::Sqlite(_) => SQLITE,
            Readers::Postgres(_) => POSTGRES,
        }
    }

    /// Runs statements that can take long, on one snapshot of the database, for at most `time` (on Postgres, at most as
    /// long as any read). There are at most two such reads at once, so that others need not wait for them. Dropping the
    /// future ends them on SQLite.
    ///
    /// # Errors
    /// [`StoreError::Slow`] after `time` on SQLite. An outage ([`StoreError::is_outage`]) if the read cannot begin
    /// within 5 s.
    pub async fn read_within(
        &self,
        time: Duration,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let span = StatementSpan::begin(self.database(), || batch.iter().map(|it| it.sql));
        let outcome = match self {
            Readers::Sqlite(readers) => readers.read_within(time, batch).await,
            Readers::Postgres(readers) => read_long(readers.clone(), batch).await,
        };
        span.end(outcome.is_ok());
        outcome
    }

    /// Checks that the database responds, on a connection of its own.
    pub async fn ping(&self, statement: Statement) -> Result<(), StoreError> {
        match self {
            Readers::Sqlite(readers) => readers.ping(statement).await,
            Readers::Postgres(readers) => readers.ping(statement).await,
        }
    }

    /// Runs one statement and returns its rows.
    pub async fn rows(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        Ok(rows(self.read(vec![statement]).await?))
    }

    /// Like [`Readers::rows`], for a statement that can take long ([`Readers::read_within`]).
    pub async fn rows_within(
        &self,
        time: Duration,
        statement: Statement,
    ) -> Result<Vec<Row>, StoreError> {
        Ok(rows(self.read_within(time, vec![statement]).await?))
    }

    /// Like [`Readers::rows`], for a few rows with known keys ([`Readers::read_keyed`]).
    pub async fn keyed_rows(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        Ok(rows(self.read_keyed(vec![statement]).await?))
    }

    /// The shared state, if other servers can have changed it.
    pub async fn status(&self) -> Result<Option<SharedState>, StoreError> {
        match self {
            Readers::Sqlite(_) => Ok(None),
            Readers::Postgres(readers) => readers.status().await.map(Some),
        }
    }

    /// Sends a notification to all listening servers.
    pub async fn notify(&self, message: &str) -> Result<(), StoreError> {
        match self {
            Readers::Sqlite(_) => Ok(()),
            Readers::Postgres(readers) => readers.notify(message).await,
        }
    }

    /// Subscribes to the notifications of all servers.
    ///
    /// # Errors
    /// SQLite has no notifications.
    pub async fn listen(&self) -> Result<Listener, StoreError> {
        match self {
            Readers::Sqlite(_) => Err(StoreError::Stopped),
            Readers::Postgres(readers) => readers.listen().await,
        }
    }

    /// Whether other servers can use the same database.
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

/// The rows of the first result.
fn rows(results: Vec<StatementResult>) -> Vec<Row> {
    let first = results.into_iter().next();
    first.map(|result| result.rows).unwrap_or_default()
}

/// Runs a long read on Postgres, as soon as fewer than [`LONG_READS_MAX`] run. Fails with [`StoreError::Timeout`] after
/// [`LONG_WAIT_MAX`]. Dropping the future does not end the read, which counts until it ends.
async fn read_long(
    readers: postgres::Readers,
    batch: Vec<Statement>,
) -> Result<Vec<StatementResult>, StoreError> {
    let (abandoned, held) = (CancellationToken::new(), hold_until_done());
    let _caller = abandoned.clone().drop_guard();
    let reading = tokio::spawn(async move {
        let begins = async {
            let of_guests = readers.permits.take_long().await?;
            let place = timeout(LONG_WAIT_MAX, LONG_READS.acquire()).await;
            Ok::<_, StoreError>((of_guests, place.map_err(|_| StoreError::Timeout)?))
        };
        let begun = abandoned.run_until_cancelled(begins).await;
        let places = begun.ok_or(StoreError::Stopped)??;
        let outcome = readers.read(ReadKind::Unkeyed, batch).await;
        drop((places, held));
        outcome
    });
    reading.await.map_err(|_| StoreError::Stopped)?
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn reads_whose_requests_do_not_continue_delay_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("jobs.db");
        let readers = sqlite::Readers::open(&file, Arc::default()).await.unwrap();
        let unkeyed = Arc::clone(&readers.permits.unkeyed);
        let all = u32::try_from(unkeyed.available_permits()).unwrap();
        let busy = unkeyed.acquire_many_owned(all).await.unwrap();
        let readers = Readers::Sqlite(readers);
        let read = || readers.rows(Statement::new("SELECT 1", []));
        let mut idle: Vec<_> = (0..8).map(|_| Box::pin(read())).collect();
        assert!(idle.iter_mut().all(|it| it.now_or_never().is_none()));
        tokio::task::yield_now().await;
        drop(busy);
        assert_eq!(read().await.unwrap().len(), 1);
        for idle in idle {
            assert_eq!(idle.await.unwrap().len(), 1);
        }
        readers.close().await;
    }

    #[tokio::test]
    async fn one_long_read_is_for_guests() {
        let mut permits = ReadPermits::new(4);
        assert!(permits.take_long().await.unwrap().is_none());
        permits.own = Some(Arc::new(Semaphore::new(GUEST_READS_MAX)));
        let first = permits.take_long().await.unwrap();
        assert!(permits.take_long().now_or_never().is_none());
        drop(first);
        assert!(permits.take_long().await.unwrap().is_some());
    }
}
