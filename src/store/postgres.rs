//! Postgres: connections, reconnection after a loss, and notifications.

mod combined;
mod listener;
mod readers;
mod reserve;
mod single_write;

use std::time::{Duration, Instant};

use futures::TryStreamExt;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgQueryResult, PgRow};
use sqlx::{
    Arguments, ConnectOptions, Connection as _, Either, Executor, Row as _, SqlSafeStr, SqlStr,
};
use tokio::time::timeout;

use combined::{in_one_statement, merged};
pub use listener::Listener;
pub use readers::Readers;
use reserve::Reserve;
use single_write::{KnownState, WITHOUT_SKIP_LOCKED};

use super::address::postgres_options;
use super::dialect::Dialect;
use super::pooled::SendMode;
use super::rows::{Arg, BytesLeft, Row, Statement, StatementResult};
use super::{Begin, Durability, Settings, SharedState, StoreError, VERSION, migrations};
use crate::traces::{POSTGRES, StatementSpan};

/// Timeout for connecting and for a statement. With one retry it stays below the 5 s within which a request gets its
/// response.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the statements of one call of [`Connection::run`] may take together. If a single statement takes longer,
/// the database does not respond.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(4);

/// Each statement sees what other servers have committed before it.
macro_rules! begin {
    () => {
        "BEGIN ISOLATION LEVEL READ COMMITTED"
    };
}

/// Settings of a group in which a slow statement is searched for. The other requests of the group wait meanwhile, so
/// each attempt is short. Waiting for a lock is a conflict as always, because it ends before the statement does.
macro_rules! searching {
    ($($rest:tt)*) => {
        concat!("SET LOCAL statement_timeout = 100;SET LOCAL lock_timeout = 80;", $($rest)*)
    };
}

/// How long a group waits for a row that another server has locked. Then it conflicts and runs again. Longer than most
/// transactions, and shorter than Postgres waits before it looks for a deadlock.
const LOCK_TIMEOUT: &str = "300ms";

/// Postgres ends a transaction that is idle for this long, so that a suspended server does not hold its locks for
/// longer.
const IDLE_IN_TRANSACTION_MAX: &str = "3s";

/// Planner settings of the writer's connection. All of its statements read few rows through indexes. Plans must not
/// depend on table statistics: the statistics of a recently filled table say that it is empty, and a claim would then
/// scan all of it. Each statement is planned once.
const PLANS: [(&str, &str); 4] = [
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
];

/// The connection options: the address and the settings of every connection.
fn options(address: &str, durability: Durability) -> Result<PgConnectOptions, StoreError> {
    let options = postgres_options(address)?;
    let commit = match durability {
        Durability::Full => "on",
        // Acknowledged writes survive the end of this process, but not a crash of the database server.
        Durability::Process => "off",
    };
    Ok(options
        .application_name("switchyard")
        .options([
            ("synchronous_commit", commit),
            // JIT compilation takes longer than any of these queries.
            ("jit", "off"),
            (
                "idle_in_transaction_session_timeout",
                IDLE_IN_TRANSACTION_MAX,
            ),
        ])
        .disable_statement_logging())
}

/// The connection that writes. It is reopened after a loss.
pub struct Connection {
    options: PgConnectOptions,
    send_mode: SendMode,
    /// Begins a commit group.
    begin: SqlStr,
    /// Begins an exclusive group.
    begin_exclusive: SqlStr,
    /// The same for groups in which a slow statement is searched for.
    begin_search: SqlStr,
    begin_exclusive_search: SqlStr,
    /// Whether a slow statement is searched for.
    is_searching: bool,
    inner: Option<PgConnection>,
    /// Whether it was opened again, and [`Connection::take_reopened`] has not reported that yet.
    is_reopened: bool,
    /// Whether a transaction is open.
    open: bool,
    /// Whether this group may begin late, so that the commit also reads the state for the next one.
    is_alone: bool,
    /// The state that the last transaction has read, if none has changed it since.
    known: Option<KnownState>,
    /// The state with which the group has begun, if its transaction begins later.
    late: Option<SharedState>,
    reserve: Reserve,
}

impl Connection {
    pub(super) async fn open(address: &str, settings: Settings) -> Result<Connection, StoreError> {
        let options = options(address, settings.durability)?
            .options(PLANS)
            .options([("lock_timeout", LOCK_TIMEOUT)])
            // The database ends a slow statement and keeps the connection, so the group can run again in parts.
            .options([(
                "statement_timeout",
                STATEMENT_TIMEOUT.as_millis().to_string(),
            )]);
        let send_mode = SendMode::new(address, &options, settings.postgres_dialect());
        let mut connection = Connection {
            begin: send_mode.begin(begin!(), READ_STATE),
            begin_exclusive: send_mode.begin(begin!(), LOCK_AND_READ_STATE),
            begin_search: send_mode.begin(begin!(), SEARCH_AND_READ_STATE),
            begin_exclusive_search: send_mode.begin(begin!(), SEARCH_LOCK_AND_READ_STATE),
            is_searching: false,
            send_mode,
            options,
            inner: None,
            is_reopened: false,
            open: false,
            is_alone: false,
            known: None,
            late: None,
            reserve: Reserve::default(),
        };
        connection.inner().await?;
        Ok(connection)
    }

    /// Whether the disk is full, so that no jobs are added.
    pub(super) fn is_disk_full(&self) -> bool {
        self.reserve.is_disk_full()
    }

    /// Shortens the time limits of the statements of the following groups, or restores them.
    pub(super) fn search_slow_statement(&mut self, search: bool) {
        self.is_searching = search;
    }

    pub(super) async fn migrate(&mut self) -> Result<(), StoreError> {
        if self.send_mode.is_pooled() {
            return self.require_current_schema().await;
        }
        let inner = self.inner().await?;
        // A starting server waits until another one has migrated the tables.
        inner
            .execute("SET lock_timeout = 0; SET statement_timeout = 0")
            .await?;
        migrations::postgres().run(&mut *inner).await?;
        inner
            .execute("RESET lock_timeout; RESET statement_timeout")
            .await?;
        Ok(())
    }

    /// Checks the version of the schema. Migrations cannot run through a pooler, because they need session locks and
    /// prepared statements.
    async fn require_current_schema(&mut self) -> Result<(), StoreError> {
        let last = migrations::newest(&migrations::postgres());
        let found = match self.run_text(VERSION.into_sql_str()).await {
            Err(error) if error.is_outage() => return Err(error),
            // The table does not exist yet.
            Err(_) => None,
            Ok(rows) => match rows.first() {
                Some(row) => row.try_get(0)?,
                None => None,
            },
        };
        if found == last {
            Ok(())
        } else {
            Err(StoreError::SchemaOutdatedBehindPooler)
        }
    }

    /// Begins the group.
    pub async fn begin(&mut self, begin: Begin) -> Result<SharedState, StoreError> {
        self.is_alone = begin == Begin::Late;
        match begin {
            Begin::Late if self.can_begin_late() => self.begin_late().await,
            begin => self.begin_transaction(begin == Begin::Exclusive).await,
        }
    }

    /// Begins the group's transaction. An exclusive group waits until the exclusive groups of other servers have ended;
    /// other groups run at the same time.
    async fn begin_transaction(&mut self, exclusive: bool) -> Result<SharedState, StoreError> {
        let begin = match (exclusive, self.is_searching) {
            (false, false) => &self.begin,
            (true, false) => &self.begin_exclusive,
            (false, true) => &self.begin_search,
            (true, true) => &self.begin_exclusive_search,
        };
        self.known = None;
        let begin = begin.clone();
        self.open = true;
        let mut begun = self.run_text(begin).await?;
        shared_state(begun.pop())
    }

    /// Whether the connection was opened again since the last call.
    pub fn take_reopened(&mut self) -> bool {
        std::mem::take(&mut self.is_reopened)
    }

    /// Runs statements that only read. If the group has begun late, its transaction does not begin yet.
    pub async fn read(
        &mut self,
        batch: Vec<Statement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        match self.late {
            Some(_) => self.run_here(batch, WITHOUT_SKIP_LOCKED).await,
            None => self.run(batch).await,
        }
    }

    /// Runs the statements in the group's transaction. Returns one result per statement.
    pub async fn run(&mut self, batch: Vec<Statement>) -> Result<Vec<StatementResult>, StoreError> {
        self.begin_now().await?;
        let dialect = self.send_mode.dialect;
        if self.open || !self.send_mode.is_pooled() {
            return self.run_here(batch, dialect).await;
        }
        self.begin_transaction(false).await?;
        let results = self.run_here(batch, dialect).await?;
        self.end("COMMIT").await?;
        Ok(results)
    }

    async fn run_here(
        &mut self,
        batch: Vec<Statement>,
        dialect: Dialect,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let persistent = !self.send_mode.is_pooled();
        let inner = self.inner().await?;
        let began = Instant::now();
        let running = async {
            let mut results = Vec::with_capacity(batch.len());
            let mut batch = batch.into_iter().peekable();
            while let Some(statement) = batch.next() {
                let also = batch.next_if(|next| statement.combines_with(next));
                if began.elapsed() > TRANSACTION_TIMEOUT {
                    return Err(StoreError::Slow);
                }
                let expected = statement.expected;
                let texts = || [Some(&statement), also.as_ref()].into_iter().flatten();
                let span = StatementSpan::begin(POSTGRES, || texts().map(|it| it.sql));
                // The database itself ends a statement earlier, so after this time it does not respond.
                let fetching =
                    run_statement(inner, (dialect, persistent), &statement, also.as_ref());
                let fetching = timeout(TRANSACTION_TIMEOUT, fetching);
                let result = fetching.await.unwrap_or(Err(StoreError::Timeout));
                span.end(result.is_ok());
                let result = result?;
                if expected.is_some_and(|n| n != result.affected) {
                    return Err(StoreError::Conflict);
                }
                results.push(result);
                results.extend(also.map(|_| StatementResult::default()));
            }
            Ok(results)
        };
        let outcome = running.await;
        self.drop_if_lost(outcome)
    }

    /// Runs the statements and commits.
    pub async fn commit_with(&mut self, batch: Vec<Statement>) -> Result<(), StoreError> {
        let batch = merged(batch);
        if self.end_late(&batch).await? {
            return Ok(());
        }
        self.run(batch).await?;
        let committed = match self.is_alone {
            true => self.commit_and_read_state().await,
            false => self.end("COMMIT").await,
        };
        match committed {
            // PgBouncer reports a lost connection with an error of class 08.
            Err(error) if error.is_outage() || error.is_connection() => Err(StoreError::InDoubt),
            Err(error) => Err(error),
            Ok(()) => Ok(()),
        }
    }

    /// Commits, and reads the state in the same round trip.
    async fn commit_and_read_state(&mut self) -> Result<(), StoreError> {
        self.open = false;
        let span = StatementSpan::begin(POSTGRES, || ["COMMIT"]);
        let inner = self.inner().await?;
        let mut is_committed = false;
        let running = async {
            let mut results = inner.fetch_many(COMMIT_AND_READ_STATE.into_sql_str());
            let mut state = None;
            while let Some(result) = results.try_next().await? {
                match result {
                    // The first result is that of the commit.
                    Either::Left(_) => is_committed = true,
                    Either::Right(row) => state = Some(row),
                }
            }
            shared_state(state)
        };
        let outcome = timeout(STATEMENT_TIMEOUT, running).await;
        span.end(is_committed);
        match outcome.unwrap_or(Err(StoreError::Timeout)) {
            Ok(state) => self.known = Some(KnownState::of(state)),
            // The next group finds out why the state cannot be read.
            Err(_) if is_committed => (self.inner, self.known) = (None, None),
            Err(error) => return self.drop_if_lost(Err(error)),
        }
        Ok(())
    }

    /// Rolls back the group's transaction. Drops the connection if that fails.
    pub async fn roll_back(&mut self) {
        (self.late, self.known) = (None, None);
        if self.open && self.inner.is_some() && self.end("ROLLBACK").await.is_err() {
            self.inner = None;
        }
    }

    pub async fn close(mut self) -> Result<(), StoreError> {
        match self.inner.take() {
            Some(inner) => Ok(inner.close().await?),
            None => Ok(()),
        }
    }

    /// Ends the transaction.
    async fn end(&mut self, how: &'static str) -> Result<(), StoreError> {
        self.open = false;
        let span = StatementSpan::begin(POSTGRES, || [how]);
        let ended = self.run_text(how.into_sql_str()).await;
        span.end(ended.is_ok());
        ended.map(drop)
    }

    /// Runs statements without arguments in one round trip.
    async fn run_text(&mut self, sql: SqlStr) -> Result<Vec<PgRow>, StoreError> {
        let inner = self.inner().await?;
        let outcome = timeout(STATEMENT_TIMEOUT, inner.fetch_all(sql)).await;
        let outcome = outcome.map_or(Err(StoreError::Timeout), |rows| Ok(rows?));
        self.drop_if_lost(outcome)
    }

    async fn inner(&mut self) -> Result<&mut PgConnection, StoreError> {
        if self.inner.is_none() {
            self.is_reopened = true;
            let connecting = timeout(STATEMENT_TIMEOUT, self.options.connect()).await;
            self.inner = Some(connecting.map_err(|_| StoreError::Timeout)??);
        }
        self.inner.as_mut().ok_or(StoreError::Stopped)
    }

    /// Drops the connection after an outage.
    fn drop_if_lost<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if outcome.as_ref().is_err_and(StoreError::is_outage) {
            (self.inner, self.known) = (None, None);
        }
        outcome
    }
}

fn shared_state(row: Option<PgRow>) -> Result<SharedState, StoreError> {
    let row = row.ok_or(StoreError::Corrupt("no state"))?;
    Ok(SharedState {
        revision: row.try_get(0)?,
        now: row.try_get(1)?,
        last_event: row.try_get(2)?,
    })
}

/// Runs a statement, or two in one round trip.
async fn run_statement(
    connection: &mut PgConnection,
    (dialect, persistent): (Dialect, bool),
    statement: &Statement,
    also: Option<&Statement>,
) -> Result<StatementResult, StoreError> {
    let mut arguments = PgArguments::default();
    let args = statement.args.iter();
    for arg in args.chain(also.into_iter().flat_map(|it| &it.args)) {
        bind(&mut arguments, arg)?;
    }
    let expand = |it: &Statement| dialect.expand(it.sql);
    let text = match also {
        Some(also) => in_one_statement(expand(statement), statement.args.len(), expand(also)),
        None => expand(statement),
    };
    let query = sqlx::query_with(text, arguments).persistent(persistent);
    let mut stream = connection.fetch_many(query);
    let mut result = StatementResult::default();
    let mut left = BytesLeft::of(statement.bytes_max);
    while let Some(part) = stream.try_next().await? {
        let part: Either<PgQueryResult, PgRow> = part;
        match part {
            Either::Left(done) => result.affected = done.rows_affected(),
            Either::Right(row) => {
                let row = Row::Postgres(row);
                if let Some(left) = &mut left {
                    left.count(&row)?;
                }
                result.rows.push(row);
            }
        }
    }
    Ok(result)
}

fn bind(arguments: &mut PgArguments, arg: &Arg) -> Result<(), StoreError> {
    let bound = match arg {
        Arg::Null => arguments.add(None::<i64>),
        Arg::Int(value) => arguments.add(value),
        Arg::Real(value) => arguments.add(value),
        Arg::Text(value) => arguments.add(value),
        Arg::Shared(value) => arguments.add(value.as_ref()),
        Arg::Rows(rows) => arguments.add(rows.json()),
    };
    bound.map_err(|error| sqlx::Error::Encode(error).into())
}

/// The time of the database, in microseconds.
macro_rules! database_time {
    () => {
        "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
    };
}

macro_rules! read_state {
    () => {
        concat!(
            "
SELECT revision, ",
            database_time!(),
            ", last_event FROM state WHERE id = 1"
        )
    };
}

// The lock lasts until the end of the transaction. It is an advisory lock, not a row lock, so that commit groups that
// only write the row need not wait. The statements after it see everything that its previous holder has committed.
macro_rules! lock_and_read_state {
    () => {
        concat!(
            "
SELECT pg_advisory_xact_lock(CAST(CAST('state' AS regclass) AS oid)::bigint);",
            read_state!()
        )
    };
}

const DATABASE_TIME: &str = database_time!();
const COMMIT_AND_READ_STATE: &str = concat!("COMMIT;", read_state!());
const READ_STATE: &str = read_state!();
const LOCK_AND_READ_STATE: &str = lock_and_read_state!();
const SEARCH_AND_READ_STATE: &str = searching!(read_state!());
const SEARCH_LOCK_AND_READ_STATE: &str = searching!(lock_and_read_state!());
