//! Groups whose writes are a single statement. While no other server is known, a group needs no transaction around its
//! statements: each read is a statement of its own, and all writes are one statement, which also compares the revision,
//! the time, the versions of the jobs and the number of changed rows. So a put takes one round trip, not three. Such a
//! group *begins late* (`Begin::Late`).
//!
//! Another server may have started without notice, or the machine was suspended. Then the comparison fails, nothing is
//! written, and the group runs again in a transaction.

use std::time::{Duration, Instant};

use futures::TryStreamExt;
use sqlx::postgres::PgArguments;
use sqlx::{Executor, SqlSafeStr};
use tokio::time::timeout;

use super::combined::at_once;
use super::{Connection, READ_STATE, TRANSACTION_TIMEOUT, bind, shared_state};
use crate::store::dialect::Dialect;
use crate::store::{Arg, SharedState, Statement, StoreError};
use crate::traces::{POSTGRES, StatementSpan};

/// How long the state that was read last is used for groups that begin late, and how far the clock of the database may
/// then be ahead of the expected time.
const STATE_AGE_MAX: Duration = Duration::from_secs(1);

/// The most statements that are written as one.
const AT_ONCE_MAX: usize = 8;

/// For databases that do not support `SKIP LOCKED`, and for reads outside of a transaction, which would release the locks
/// at once, after writing them to the log.
pub const WITHOUT_SKIP_LOCKED: Dialect = Dialect::Postgres { skip_locked: false };

/// The error of a failed comparison ([`at_once`]): a text is not a number.
const INVALID_TEXT: &str = "22P02";

/// The state of the database, and when it was read.
#[derive(Clone, Copy)]
pub struct KnownState {
    state: SharedState,
    at: Instant,
}

impl KnownState {
    pub fn of(state: SharedState) -> KnownState {
        let at = Instant::now();
        KnownState { state, at }
    }

    /// The state, with the present time, unless it is too old.
    fn recent(self) -> Option<SharedState> {
        let elapsed = self.at.elapsed();
        (elapsed < STATE_AGE_MAX).then(|| SharedState {
            now: self.state.now + micros(elapsed),
            ..self.state
        })
    }
}

impl Connection {
    /// Whether groups can begin late. Not behind a pooler, where each statement needs its settings. Databases without
    /// SKIP LOCKED may also refuse statements that change a table twice.
    pub(super) fn can_begin_late(&self) -> bool {
        let skips_locked = self.send_mode.dialect != WITHOUT_SKIP_LOCKED;
        skips_locked && !self.is_searching && !self.send_mode.is_pooled()
    }

    /// Begins a group whose transaction begins with its first write, or not at all.
    pub(super) async fn begin_late(&mut self) -> Result<SharedState, StoreError> {
        let state = match self.known.and_then(KnownState::recent) {
            Some(state) => state,
            None => self.read_state().await?,
        };
        self.late = Some(state);
        Ok(state)
    }

    async fn read_state(&mut self) -> Result<SharedState, StoreError> {
        let mut rows = self.run_text(READ_STATE.into_sql_str()).await?;
        let state = shared_state(rows.pop())?;
        self.known = Some(KnownState::of(state));
        Ok(state)
    }

    /// Begins the transaction of a group that has begun late.
    pub(super) async fn begin_now(&mut self) -> Result<(), StoreError> {
        match self.late.take() {
            None => Ok(()),
            Some(late) => compare(late, self.begin_transaction(false).await?),
        }
    }

    /// Writes and commits a group that has begun late, in one round trip. False if it needs a transaction.
    pub(super) async fn end_late(&mut self, batch: &[Statement]) -> Result<bool, StoreError> {
        let Some(late) = self.late else {
            return Ok(false);
        };
        if batch.is_empty() {
            compare(late, self.read_state().await?)?;
        } else if batch.len() <= AT_ONCE_MAX && batch.iter().all(|it| it.is_combinable) {
            self.write_at_once(batch, late).await?;
        } else {
            return Ok(false);
        }
        self.late = None;
        Ok(true)
    }

    /// Writes and commits. Fails with a conflict if the revision or the time is not that with which the group has begun,
    /// or a statement changes another number of rows than it must.
    async fn write_at_once(
        &mut self,
        batch: &[Statement],
        late: SharedState,
    ) -> Result<(), StoreError> {
        let mut arguments = PgArguments::default();
        let expected = batch.iter().filter_map(|statement| statement.expected);
        let expected = expected.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        let until = late.now + micros(STATE_AGE_MAX);
        let compared = [late.revision, until].into_iter().chain(expected);
        let compared: Vec<Arg> = compared.map(Arg::from).collect();
        let args = batch.iter().flat_map(|statement| &statement.args);
        args.chain(&compared)
            .try_for_each(|arg| bind(&mut arguments, arg))?;
        let query = sqlx::query_with(at_once(batch, self.send_mode.dialect), arguments);
        let span = StatementSpan::begin(POSTGRES, || batch.iter().map(|it| it.sql));
        let inner = self.inner().await?;
        let mut row = None;
        let writing = async {
            let mut results = inner.fetch_many(query);
            while let Some(result) = results.try_next().await? {
                row = result.right().or(row.take());
            }
            Ok(())
        };
        // The database ends a slow statement earlier.
        let outcome = timeout(TRANSACTION_TIMEOUT, writing).await;
        let outcome = outcome.unwrap_or(Err(StoreError::Timeout));
        span.end(outcome.is_ok());
        match self.drop_if_lost(outcome) {
            Ok(()) => {
                self.known = shared_state(row).ok().map(KnownState::of);
                Ok(())
            }
            Err(error) if error.has_code(&[INVALID_TEXT]) => Err(StoreError::Conflict),
            // Postgres sends the row before it commits. With an error of Postgres in its place, nothing is committed. A
            // lost connection can be reported by a proxy.
            Err(error) if row.is_none() && error.is_from_database() && !error.is_connection() => {
                Err(error)
            }
            Err(_) => Err(StoreError::InDoubt),
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Compares the state with which a group has begun with that of the database.
fn compare(late: SharedState, found: SharedState) -> Result<(), StoreError> {
    match late.revision == found.revision && found.now < late.now + micros(STATE_AGE_MAX) {
        true => Ok(()),
        false => Err(StoreError::Conflict),
    }
}
